//! The tiled kernel with tiles of 2 x 2. It is small enough to follow every thread through every
//! phase.
//!
//! * **A block** computes a 2 x 2 tile of C with four threads.
//! * **A thread** computes one element of the tile, by the code of [`tiled`](super::tiled).
//!
//! Only the CPU device runs it: on a GPU four threads would leave seven eighths of a warp idle.
//! Each loaded element is used twice, so the ratio is 1/2 FLOP a byte.

use super::{device::*, tiled::tiled_2x2};

/// C (m x n) = A (m x k) B (k x n) with 2 x 2 tiles: 4 threads and 32 bytes of shared memory a
/// block.
#[kernel(
    block = (2, 2),
    shared = 2 * 2 * 2 * size_of::<f32>(),
    barriers = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tiled2(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, c: Out<f32>) {
    tiled_2x2(m, n, k, a, b, c);
}
