//! The time model of the kernels that read any strides ([`gpu::kernels::gemm`]), and the decision
//! to swap A and B.
//!
//! Operands are never copied. `C = A B` is also `C^T = B^T A^T`. So A and B are swapped where that
//! is faster: if fewer of a tile's elements are outside C, or if loads are coalesced.

use gpu::registry::{Family, Product, Speed, Type};

use super::{Request, dot};
use crate::gemm::{Target, scalar::Kernel};

/// Microseconds for a byte, at the most that these kernels reached on an H100: 1.75 TB/s of A and
/// B, but 2.4 by the family `mma`, and 2.4 of C.
const LOAD_US: f64 = 0.57e-6;
const MMA_LOAD_US: f64 = 0.42e-6;
const STORE_US: f64 = 0.42e-6;

/// Whether the kernel is faster on an H200 with A and B swapped.
pub(super) fn swaps(kernel: &Kernel, request: &Request) -> bool {
    let [rows, cols] = kernel.product.tile();
    let has_sides = kernel.product.is_dot() || rows != cols;
    has_sides
        && kernel.entry.on_gpu.is_some_and(|speed| {
            let of = |request: &Request| us(kernel.product, request, &Target::H200, &speed);
            of(&request.swapped()) < of(request)
        })
}

/// Microseconds of the device. `given`: the request, with A and B swapped if they are to be.
pub(super) fn us(product: &Product, given: &Request, target: &Target, speed: &Speed) -> f64 {
    if product.is_dot() {
        return dot::gpu_us(product, given, target, speed);
    }
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize) as f64;
    let ([rows, cols], shape) = (product.tile(), given.shape);
    let blocks = tiles(shape.m(), rows) * tiles(shape.n(), cols) * given.batch as f64;
    // The part of a tile outside of C is computed too, except by kernels whose threads compute four
    // columns each.
    let computed = |size: usize, tile: u32| match product.is_direct() {
        true => size.min(tile as usize) as f64,
        false => f64::from(tile),
    };
    let n = shape.n().next_multiple_of(4);
    let k = shape.k().next_multiple_of(product.steps().max(1));
    let flop = 2.0 * computed(shape.m(), rows) * computed(n, cols) * k as f64;
    let most_blocks = (blocks / f64::from(target.sms)).ceil();
    let multiplied = multiply_us(speed, flop, most_blocks) * unaligned(product, given);
    let busy = multiplied + next_tiles_us(speed, product, given, most_blocks);
    let streamed = if target.cuda { streamed_us(product, given) } else { 0.0 };
    speed.fixed_us + busy.max(streamed)
}

/// Bytes of A and B, and of C.
pub(super) fn bytes(product: &Product, given: &Request) -> [f64; 2] {
    let [of_ab, of_c] = [product.variant.operands, product.variant.c].map(|ty| ty.bytes() as f64);
    let [a, b, c] = given.dense_steps().map(|len| len as f64 * given.batch as f64);
    [of_ab * (a + b), of_c * c]
}

/// Microseconds in which A, B and C are moved once.
fn streamed_us(product: &Product, given: &Request) -> f64 {
    let load_us = match product.variant.family {
        Family::Mma => MMA_LOAD_US,
        _ => LOAD_US,
    };
    let [of_ab, of_c] = bytes(product, given);
    of_ab * load_us + of_c * STORE_US
}

/// The factor by which a kernel of the family `mma` is slower where it copies element by element.
/// Measured for tf32 on an H100 (docs/log/selection.md, "tf32 by `mma` on Hopper"); for bf16 and
/// f16 it is a guess.
fn unaligned(product: &Product, given: &Request) -> f64 {
    match product.variant.family {
        Family::Mma if !given.has_aligned_rows(product.variant.operands.bytes()) => {
            // An f64 is copied alone: on an H200 at 4095x4093x4097.
            let of_f64 = if product.tile()[0] == 128 { 1.12 } else { 1.27 };
            if product.variant.operands == Type::F64 { of_f64 } else { 1.8 }
        }
        _ => 1.0,
    }
}

/// Microseconds for `blocks` blocks of `flop` operations on one SM.
pub(super) fn multiply_us(speed: &Speed, flop: f64, blocks: f64) -> f64 {
    let share = (speed.alone * blocks).min(1.0);
    if blocks == 0.0 { 0.0 } else { blocks * flop / (speed.gflops * share) * 1e-3 }
}

/// Microseconds for the tiles of an SM after its first one, beside their operations: `tiles` is the
/// number of all. A tile that extends beyond the columns of C takes longer, the more of its rows it
/// stores.
pub(super) fn next_tiles_us(speed: &Speed, product: &Product, given: &Request, tiles: f64) -> f64 {
    let ([rows, cols], (m, n)) = (product.tile(), (given.shape.m(), given.shape.n()));
    let [full, partial] = speed.tile_us;
    let share = match n.is_multiple_of(cols as usize) {
        true => 0.0,
        false => (m as f64 / f64::from(rows)).min(1.0) / n.div_ceil(cols as usize) as f64,
    };
    (tiles - 1.0).max(0.0) * (full + share * (partial - full))
}
