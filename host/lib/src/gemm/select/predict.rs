//! The time model.
//!
//! A product has one block for each tile of C, whole tiles at the edges, too. The SM with the most
//! blocks decides: with `q` blocks it needs `q` times a block's operations over its speed. It
//! reaches that speed only with several blocks at work. One block alone reaches a share of it,
//! `alone`. Speed and share were measured for each design, on one H200 and on a CPU core
//! (docs/log/selection.md). Absolute speeds differ between GPUs; the ranking should not, at sizes
//! that fill the device.
//!
//! For TMA kernels the time also has the sum over a cluster's parts, the bytes that they load and
//! store, and the copies of operands. They were not measured on the CPU device, and are used there
//! by name only.

use gpu::{
    kernels::emulated::two_widths::wide_tiles_across,
    registry::{Access, Entry, Product, Products, Scheme, Speed},
};
use simt::{Bf16, F16};

use super::{
    Request, cuda_cores,
    layout::{OperandPlan, layouts_of, operands, strided_c_ps, timed_bytes, unit},
};
use crate::gemm::{Target, scalar::Kernel, split, target::H200_BYTE_US};

/// Microseconds in which a cluster adds the parts of its tiles' sums.
const PARTS_US: f64 = 2.3;

/// The same where the parts are sent to the block that adds them. Measured for C with 16 and with
/// 4096 columns.
fn sent_parts_us(n: usize) -> f64 {
    if n <= 64 { 2.0 } else { 5.0 }
}

/// Microseconds for an accumulator that is staged in shared memory: eight bytes there and back at
/// 128 bytes a cycle, in which the block does not multiply. Computed.
const ELEMENT_US: f64 = 3.5e-5;

/// How many times its share of the bandwidth an SM can load, where others are idle.
const MORE_THAN_SHARE: f64 = 3.5;

/// Fraction of the shorter phase (loads or MMA) that does not overlap the longer.
const APART: f64 = 0.25;

/// Microseconds of the host: for a call, for each launch of it, and for each tensor map that it
/// encodes. Measured on an H100, for products that take the GPU less (docs/log/selection.md,
/// "Random shapes").
const CALL_US: f64 = 1.3;
const LAUNCH_US: f64 = 5.5;
const MAP_US: f64 = 0.6;

/// Fraction of the shorter time, the host's or the GPU's, that does not overlap the longer. It
/// decides between kernels that wait for the host equally long.
const HOST_APART: f64 = 0.1;

/// Microseconds of the GPU for a launch that copies an operand, and for each byte that it writes,
/// of 32-bit and of 16-bit elements. Short rows count more ([`timed_bytes`]).
const COPY_US: f64 = 2.5;
const COPY_BYTE_US: f64 = 0.7e-6;
const COPY_HALF_BYTE_US: f64 = 0.9e-6;

/// Microseconds of the GPU for the launch that adds partial products, for each of them, which a
/// thread waits for, and for each of their bytes.
const REDUCE_US: f64 = 3.5;
const REDUCE_PARTIAL_US: f64 = 0.005;
const REDUCE_BYTE_US: f64 = 1e-6;

/// A kernel's measured speed on the target.
fn speed(entry: &Entry, target: &Target) -> Option<Speed> {
    if target.cuda { entry.on_gpu } else { entry.on_cpu }
}

/// The time of some launches, in microseconds: of the host, which launches them, and of the GPU,
/// which runs them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    host_us: f64,
    gpu_us: f64,
}

impl Times {
    /// Both, one after the other.
    pub(super) fn and(self, next: Times) -> Times {
        Times { host_us: self.host_us + next.host_us, gpu_us: self.gpu_us + next.gpu_us }
    }

    /// The time of one of many such products, launched without waiting.
    pub(super) fn us(self) -> f64 {
        let call_us = if self.host_us > 0.0 { CALL_US } else { 0.0 };
        let host_us = call_us + self.host_us;
        host_us.max(self.gpu_us) + HOST_APART * host_us.min(self.gpu_us)
    }
}

/// The predicted time of a kernel in microseconds. `None` where it was not measured, or where
/// another kernel is always better.
pub(super) fn predict(kernel: &Kernel, request: &Request, target: &Target) -> Option<f64> {
    times(kernel, request, target).map(Times::us)
}

/// The same, of the host and of the GPU.
pub(super) fn times(kernel: &Kernel, request: &Request, target: &Target) -> Option<Times> {
    let speed = speed(kernel.entry, target)?;
    match speed.of {
        // Hopper has faster tensor cores.
        Products::OtherGpus | Products::OtherGpusAligned if target.capability == (9, 0) => {
            return None;
        }
        Products::OtherGpusAligned
            if !request.has_aligned_rows(kernel.product.variant.operands.bytes()) =>
        {
            return None;
        }
        _ => {}
    }
    if request.batch == 0 || request.shape.m() == 0 || request.shape.n() == 0 {
        return Some(Times::default());
    }
    let product = kernel.product;
    if product.is_tma_or_ldg() {
        let operands = operands(kernel, request);
        let given = operands.apply(request);
        let (m, n) = (given.shape.m(), given.shape.n());
        let is_measured = match speed.of {
            Products::Columns(most) => n <= most,
            Products::ShorterSide(least) => request.batch == 1 && (least..=64).contains(&m.min(n)),
            _ => true,
        };
        if !is_measured
            || is_narrow_alone(product, &given, target)
            || needs_no_classes(product, &given)
        {
            return None;
        }
        return Some(tma_us(product, operands, request, target, &speed).1);
    }
    let given = operands(kernel, request).apply(request);
    let host_us = if target.cuda { LAUNCH_US } else { 0.0 };
    Some(Times { host_us, gpu_us: cuda_cores::us(product, &given, target, &speed) })
}

/// The launch that adds `count` partial products, which have so many bytes each.
pub(super) fn reduce_times(count: usize, bytes: usize) -> Times {
    let gpu_us =
        REDUCE_US + count as f64 * REDUCE_PARTIAL_US + count as f64 * bytes as f64 * REDUCE_BYTE_US;
    Times { host_us: LAUNCH_US, gpu_us }
}

/// Blocks of a cluster that split k.
pub(super) fn split_k(
    kernel: &Kernel,
    operands: OperandPlan,
    request: &Request,
    target: &Target,
) -> u32 {
    match kernel.entry.on_gpu {
        Some(speed) if kernel.product.is_tma_or_ldg() => {
            tma_us(kernel.product, operands, request, target, &speed).0
        }
        _ => 1,
    }
}

/// Blocks that split k, and the product's time on the target in microseconds. The split is the
/// request's, or the fastest on an H200: so a product has the same bits on every device.
fn tma_us(
    product: &Product,
    operands: OperandPlan,
    request: &Request,
    target: &Target,
    speed: &Speed,
) -> (u32, Times) {
    let given = operands.apply(request);
    let of = |blocks, target| product_us(product, operands, &given, target, speed, blocks);
    let blocks = match request.split_k {
        Some(blocks) => blocks.clamp(1, product.most_splits),
        None => {
            let timed = (1..=product.most_splits).map(|blocks| (of(blocks, &Target::H200), blocks));
            let shorter = |best: (f64, u32), timed: (f64, u32)| {
                if timed.0 < best.0 { timed } else { best }
            };
            timed.fold((f64::INFINITY, 1), shorter).1
        }
    };
    let bytes = operands.workspace_bytes();
    let copies = f64::from(operands.copies());
    let copies_us = match product.variant.scheme {
        Scheme::F16x3 => split::split_us::<F16>(bytes),
        Scheme::Bf16x6 => split::split_us::<Bf16>(bytes),
        _ => {
            let layouts = layouts_of(product, operands, &given);
            let timed = layouts.iter().zip(given.aligned);
            let bytes = timed.map(|(layout, aligned)| timed_bytes(layout, given.batch, aligned));
            let is_half = product.variant.operands.bytes() == 2;
            let byte_us = if is_half { COPY_HALF_BYTE_US } else { COPY_BYTE_US };
            copies * COPY_US + bytes.sum::<f64>() * byte_us
        }
    };
    let maps = match product.variant.access {
        Access::Ldg => 0,
        access => access.classes() + 1,
    };
    let host_us = match target.cuda {
        true => (1.0 + copies) * LAUNCH_US + maps as f64 * MAP_US,
        false => 0.0,
    };
    (blocks, Times { host_us, gpu_us: of(blocks, target) + copies_us })
}

/// The time of a TMA kernel in microseconds, without copies.
fn product_us(
    product: &Product,
    operands: OperandPlan,
    given: &Request,
    target: &Target,
    speed: &Speed,
    split_k: u32,
) -> f64 {
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize) as f64;
    let ([rows, cols], shape) = (product.tile(), given.shape);
    // Each block of a cluster computes some rows of its tile.
    let cluster = product.variant.cluster;
    let down = product.tiles_down(shape.m()) as f64;
    let tiles = down * tiles(shape.n(), cols) * given.batch as f64;
    let (tiles, rows) = (tiles * f64::from(cluster), rows / cluster);
    // A block takes whole stages. With alignment classes some k-steps before the first element are
    // loaded too.
    let before = product.variant.access.classes() - 1;
    let steps = (shape.k() + before).div_ceil(product.steps()).div_ceil(split_k as usize);
    let steps = (steps * product.steps()) as f64;
    let flop = 2.0 * f64::from(rows) * f64::from(cols) * steps;
    let each = tiles * f64::from(split_k) / f64::from(target.sms);
    // Blocks that an SM runs one at a time drift apart later.
    let many = if product.persistent || speed.alone < 1.0 { 4.0 } else { 8.0 };
    let most_blocks = match (split_k, two_widths(product, given, target)) {
        (_, Some((_, end))) => f64::from(end) / 3.0,
        // In many waves the last blocks do not begin together, and few are left over.
        (1, None) if each > many => each + 0.3,
        (1 | 2, None) => each.ceil(),
        // A cluster runs within one GPC, where a few SMs are left over: of 32 clusters of four some
        // wait for a second wave.
        _ if each <= 0.93 => 1.0,
        _ => 2.0 * each.ceil(),
    };
    let [of_ab, of_c] = cuda_cores::bytes(product, given);
    let bytes = of_ab + of_c;
    let multiplied =
        cuda_cores::multiply_us(speed, flop, most_blocks) * half_sectors(product, given);
    // In a full wave all SMs load at once, in the last one those that have a tile.
    let (of_wave, loaded) =
        (multiplied / most_blocks, steps * load_us(product, operands, given, each));
    let beyond = |share: f64| (share * loaded - of_wave).max(0.0);
    let multiplied = multiplied + each.floor() * beyond(1.0) + beyond(each.fract());
    let overlapped = |multiplied: f64, loaded: f64, apart: f64| {
        multiplied.max(loaded) + apart * multiplied.min(loaded)
    };
    let next = cuda_cores::next_tiles_us(speed, product, given, most_blocks);
    let (parts, time) = match product.persistent {
        false => (PARTS_US, overlapped(multiplied + next, bytes * H200_BYTE_US, 0.0)),
        true => {
            let staged = most_blocks * f64::from(rows * cols) * ELEMENT_US / f64::from(split_k);
            let busy = (MORE_THAN_SHARE * each).min(1.0);
            let streamed = bytes * H200_BYTE_US / busy;
            (sent_parts_us(shape.n()), overlapped(multiplied + staged + next, streamed, APART))
        }
    };
    let strided = strided_c_ps(product, given) as f64 * 1e-6;
    speed.fixed_us + time + strided + if split_k > 1 { parts } else { 0.0 }
}

/// Microseconds in which a block loads the boxes of one k-step from L2 while all others do. It
/// depends on the alignment of rows. Measured for kernels that it limits (docs/log/selection.md,
/// "L2 bandwidth"). `each`: tiles of an SM; with whole lines and one tile the kernel's measured
/// speed contains it.
fn load_us(product: &Product, operands: OperandPlan, given: &Request, each: f64) -> f64 {
    let ([rows, cols], variant) = (product.tile(), &product.variant);
    let (cluster, element) = (variant.cluster, variant.operands.bytes());
    if !product.persistent || variant.access == Access::Ldg || variant.scheme.is_split() {
        return 0.0;
    }
    let classes = [variant.access.classes(), 1];
    let layouts = layouts_of(product, operands, given);
    let pitches =
        layouts.iter().zip(given.aligned).zip(classes).map(|((layout, aligned), classes)| {
            match layout.copied(given.batch, aligned) {
                0 if !layout.strided.1.is_multiple_of(classes) => classes * element,
                0 => layout.strided.1.saturating_mul(element),
                _ => layout.padded_pitch() * element,
            }
        });
    let us_of_byte = |pitch: usize| match pitch.trailing_zeros() {
        0..=4 => 1e-3 / 39.0,
        5 => 1e-3 / 57.0,
        6 => 1e-3 / 63.0,
        _ if each > 1.0 => 1e-3 / 70.0,
        _ => 0.0,
    };
    // Each block of a cluster loads a part of both operands; what they share is loaded once
    // (multicast).
    let bytes = [rows, cols].map(|size| f64::from(size / cluster) * element as f64);
    pitches.zip(bytes).map(|(pitch, bytes)| us_of_byte(pitch) * bytes).sum()
}

/// The factor by which a product is slower whose alignment classes begin at odd multiples of
/// sixteen bytes, in halves of sectors, though [`load_us`] does not limit it. Measured for 4095 x
/// 4093 x 4097 in bf16.
fn half_sectors(product: &Product, given: &Request) -> f64 {
    let in_halves = !given.strides[0][0].is_multiple_of(2 * unit(product));
    match product.variant.access {
        Access::UnalignedA(8) if in_halves && product.variant.scheme == Scheme::Native => 1.025,
        _ => 1.0,
    }
}

/// For a kernel with two tile widths: wide tiles across C, and when the last cluster ends, in
/// thirds of a wide tile.
fn two_widths(product: &Product, given: &Request, target: &Target) -> Option<(usize, u32)> {
    let widths = (product.tile()[1] as usize, product.narrow? as usize);
    let clusters = target.sms / product.variant.cluster;
    let down = product.tiles_down(given.shape.m()).saturating_mul(given.batch);
    let (across, end) = wide_tiles_across((down, given.shape.n()), widths, clusters as usize);
    Some((across, end as u32))
}

/// Whether a kernel with two widths would use narrow tiles only. Another kernel has stages that are
/// made for these.
fn is_narrow_alone(product: &Product, given: &Request, target: &Target) -> bool {
    two_widths(product, given, target).is_some_and(|(across, _)| across == 0)
}

/// Whether a kernel has alignment classes for an A whose rows are all aligned. One tensor map loads
/// them as fast, with fewer tiles (measured for 3000 x 3000 x 3000, 4096 x 4096 x 4104, 8192 x 8192
/// x 8200, in tf32 for 4096 x 4096 x 4100).
fn needs_no_classes(product: &Product, given: &Request) -> bool {
    let [pitch, step] = given.strides[0];
    let is_even = given.aligned[0] && step == 1 && pitch.is_multiple_of(unit(product));
    product.variant.access.classes() > 1 && is_even
}
