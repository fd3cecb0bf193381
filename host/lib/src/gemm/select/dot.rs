//! The time model of the kernels whose threads split k ([`gpu::kernels::gemm::dot`]). Whether the
//! loads of a warp are coalesced depends on the layout.

use gpu::{
    collective::vector::FOUR,
    registry::{Product, Speed},
};

use super::{Request, layout::strided_c_ps, scale::Scale, times::Times};
use crate::gemm::Target;

/// Columns of C of a thread.
const COLS: u32 = FOUR as u32;

/// Resident blocks of an SM.
const TOGETHER: f64 = 2.0;

/// Microseconds that a warp waits for the loads of one step. The latency is a microsecond. A thread
/// with four rows has the loads of four steps in flight, one with eight rows those of two.
fn latency_us(rows: u32) -> f64 {
    f64::from(rows) / 16.0
}

/// Microseconds for a byte from L2.
const L2_BYTE_US: f64 = 1e-6 / 6.5;

/// Microseconds of an SM for each cache line of a load after the first.
const LINE_US: f64 = 1e-3;

/// Microseconds of an SM for a thousand elements of C.
const STORED_US: f64 = 1.5;

/// The time of the GPU. `given`: the request, with A and B swapped if they are to be.
pub(super) fn times(product: &Product, given: &Request, target: &Target, speed: &Speed) -> Times {
    let scale = Scale::new(product, speed, target);
    let ([rows, cols], shape, [a, b, _]) = (product.tile(), given.shape, given.strides);
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize) as f64;
    let batch = given.batch as f64;
    let blocks = tiles(m, rows) * tiles(n, cols) * batch;
    let of_sm = (blocks / f64::from(target.sms)).ceil();
    let steps = k.div_ceil(product.steps()) as f64;

    // A thread's instructions grow with its loads and with its sums. The speed was measured with 8
    // rows.
    let instructions = |rows: u32| f64::from(rows * COLS + 3 * (rows + COLS) + 6);
    let full = f64::from(2 * 32 * 8 * COLS) / scale.gflops * 1e-3;
    let step_us = full * instructions(rows) / instructions(8);

    let warps = f64::from(product.block[0] / 32);

    // Cache lines of a load after the first.
    let bytes = product.variant.operands.bytes();
    let across = (cols / COLS) as usize;
    // Saturating: the stride of a side of one element may be any.
    let lines = |lanes: usize, stride: usize| {
        let touched = lanes.saturating_mul(stride).saturating_mul(bytes);
        touched.div_ceil(128).clamp(1, lanes) as f64
    };
    let of_a = lines(32 / across, a[1]);
    let of_b = lines(32 / across, b[0]) * lines(across, b[1]);
    let touched = f64::from(rows) * (of_a - 1.0) + f64::from(COLS) * (of_b - 1.0);

    let issued = of_sm * steps * warps * (step_us + touched * LINE_US);
    let waited = (of_sm / TOGETHER).ceil() * steps * latency_us(rows);
    let once =
        (m * k + k * n) as f64 * bytes as f64 * batch * scale.byte_us(product.costs.memory_us[0]);
    let loaded =
        blocks * f64::from(rows + cols) * k as f64 * bytes as f64 * L2_BYTE_US / scale.loads;
    let elements = (m.min(rows as usize) * n.min(cols as usize)) as f64;
    let ends = (of_sm - 1.0).max(0.0) * (speed.tile_us[0] + elements * 1e-3 * STORED_US);
    let epilogue_us = ends + strided_c_ps(product, given) as f64 * 1e-6;
    let from_l2 = issued.max(waited).max(loaded);
    let busy = from_l2.max(once);
    Times {
        device_us: speed.fixed_us + busy + epilogue_us,
        fixed_us: speed.fixed_us,
        multiply_us: issued,
        l2_us: from_l2 - issued,
        epilogue_us,
        memory_us: busy - from_l2,
        ..Times::default()
    }
}
