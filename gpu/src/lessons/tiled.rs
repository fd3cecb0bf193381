//! `C = A B` with tiles in shared memory. All threads of a block use what the block reads from
//! global memory.
//!
//! * **A block** computes a TILE x TILE tile of C, in phases. In each phase it loads one tile of A
//!   and one tile of B into shared memory, and multiplies them.
//! * **A thread** computes one element of that tile of C. In each phase it loads one element of A
//!   and one of B, and reads a row of A's tile and a column of B's.
//!
//! ```text
//!                  n                          an element loaded from global memory is used TILE times:
//!               +------+--+----+              TILE/4 FLOP a byte, where the basic kernel has 1/4
//!            k  |      |Bt|    |
//!               +------+--+----+
//!        k
//!     +--+--+  +------+--+----+
//!   m |  |At|  |      |Ct|    |               Ct = sum over the phases of At Bt
//!     +--+--+  +------+--+----+
//! ```
//!
//! # Boundary checks
//! m, n and k need not be multiples of TILE. Elements of a tile outside the matrix are zeros, which
//! add nothing to a sum. A thread whose element is outside C still loads, and still reaches both
//! barriers: the other threads of its block need the elements that it loads, and a barrier waits
//! for all threads.

use super::device::*;

/// The work of one thread of [`tiled16`] and [`tiled32`].
#[inline(always)]
fn tiled<const TILE: usize>(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; TILE, TILE];
    let mut tile_b = shared![f32; TILE, TILE];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;

    let mut sum = 0.0;
    for phase in 0..k.div_ceil(TILE) {
        // This thread loads an element of its own row of A, and an element of its own column of B.
        let (a_col, b_row) = (phase * TILE + tx, phase * TILE + ty);
        tile_a[(ty, tx)] = if row < m && a_col < k { a[row * k + a_col] } else { 0.0 };
        tile_b[(ty, tx)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };

        // No thread reads the tiles before both are complete.
        thread::sync_threads();
        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }
        // The next phase overwrites no tile before all threads have read it.
        thread::sync_threads();
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}

/// C (m x n) = A (m x k) B (k x n) with 16 x 16 tiles: 256 threads and 2 KiB of shared memory a
/// block.
#[kernel(
    block = (16, 16),
    shared = 2 * 16 * 16 * size_of::<f32>(),
    barriers = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tiled16(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, c: Out<f32>) {
    tiled::<16>(m, n, k, a, b, c);
}

/// C (m x n) = A (m x k) B (k x n) with 32 x 32 tiles: 1024 threads and 8 KiB of shared memory a
/// block.
#[kernel(
    block = (32, 32),
    shared = 2 * 32 * 32 * size_of::<f32>(),
    barriers = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tiled32(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, c: Out<f32>) {
    tiled::<32>(m, n, k, a, b, c);
}

/// The same with 2 x 2 tiles, which [`toy`](super::toy) makes a kernel of.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(super) fn tiled_2x2(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, c: Out<f32>) {
    tiled::<2>(m, n, k, a, b, c);
}
