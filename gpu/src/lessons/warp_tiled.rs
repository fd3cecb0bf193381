//! Warp tiles: a warp computes 64 x 64 elements of C, a thread 8 x 16.
//!
//! * **A block** of 256 threads computes a 128 x 256 tile of C, in phases of 8 k-steps, with two
//!   buffers as before.
//! * **A warp** computes a 64 x 64 tile of C. A block has 2 x 4 warp tiles. The lanes of a warp
//!   form a grid of 8 x 4.
//! * **A thread** computes 8 x 16 elements, in groups of 4 x 4. The lane in row y and column x of
//!   that grid has the groups at rows 4 y and 32 + 4 y of its warp's tile, and at columns 4 x, 16 +
//!   4 x, 32 + 4 x and 48 + 4 x.
//!
//! For a k-step a thread reads elements of both tiles with 128-bit loads, and does a multiply-add
//! (FMA) for each pair:
//!
//! ```text
//!   kernel        elements    loads    FMAs    FMAs of all these instructions    loads for 64 FMAs
//!   vectorised       16         4       64              94 %                            4
//!   warp_tiled       24         6      128              96 %                            3
//! ```
//!
//! The lanes of a warp read 8 groups of A's tile and 4 groups of B's tile. Shared memory reads each
//! group once, and sends it to all lanes that ask for it.
//!
//! The ratio is 128 x 256 / 2 (128 + 256) = 42.7 FLOP a byte. The price is registers: the elements
//! of C alone take 128. So only one block fits on an SM.

use super::{
    device::*,
    register_blocked::DEPTH,
    tile::{four_or_zero, store_four},
};

/// Rows of a block's tile of C.
pub const ROWS: usize = 128;
/// Columns of a block's tile of C.
pub const COLS: usize = 256;
/// Rows and columns of a warp's tile of C.
pub const WARP: usize = 64;
/// Threads of a block.
pub const THREADS: usize = 256;
/// Words from one column of A's tile to the next, four banks apart.
pub const PITCH: usize = ROWS + 4;

/// The first row and column of a thread's elements in its block's tile of C.
#[inline(always)]
pub fn first_element(t: usize) -> (usize, usize) {
    let (warp, lane) = (t / 32, t % 32);
    (warp / 4 * WARP + lane / 4 * 4, warp % 4 * WARP + lane % 4 * 4)
}

/// Adds the products of one k-step to a thread's 8 x 16 elements. The thread's first element of A's
/// tile has index `a`, its first element of B's tile has index `b`.
#[inline(always)]
#[track_caller]
pub fn multiply_add<const A: usize, const B: usize>(
    sums: &mut [[f32; 16]; 8],
    (tiles_a, a): (&Shared<f32, A, PITCH>, usize),
    (tiles_b, b): (&Shared<f32, B, COLS>, usize),
) {
    let (mut rows, mut cols) = ([0.0; 8], [0.0; 16]);
    for group in 0..2 {
        let four = tiles_a.load128::<4>(a + group * 32);
        rows[group * 4..group * 4 + 4].copy_from_slice(&four);
    }
    for group in 0..4 {
        let four = tiles_b.load128::<4>(b + group * 16);
        cols[group * 4..group * 4 + 4].copy_from_slice(&four);
    }
    for i in 0..8 {
        for j in 0..16 {
            sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
        }
    }
}

/// Writes a thread's 8 x 16 elements. The first of them is element (`first_row`, `first_col`) of C.
#[inline(always)]
#[track_caller]
pub fn store(
    c: &mut Out<f32>,
    (m, n): (usize, usize),
    (first_row, first_col): (usize, usize),
    sums: &[[f32; 16]; 8],
) {
    let wide = n % 4 == 0 && c.is_aligned128();
    for i in 0..8 {
        for group in 0..4 {
            let at = (first_row + i / 4 * 32 + i % 4, first_col + group * 16);
            let mut four = [0.0; 4];
            four.copy_from_slice(&sums[i][group * 4..group * 4 + 4]);
            store_four(c, (m, n), at, four, wide);
        }
    }
}

/// C (m x n) = A (m x k) B (k x n), 128 x 256 elements a block, 64 x 64 a warp, 8 x 16 a thread.
#[kernel(
    block = (THREADS),
    shared = 2 * DEPTH * (PITCH + COLS) * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn warp_tiled(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles_a = shared![f32; 2 * DEPTH, PITCH];
    let mut tiles_b = shared![f32; 2 * DEPTH, COLS];

    let t = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * ROWS;
    let first_col = thread::block_idx_x() as usize * COLS;
    let (row, col) = first_element(t);
    // This thread loads four elements of a row of A, and its two groups of four elements of B.
    let (load_row, load_p) = (t / 2, t % 2 * 4);
    let (load_p_b, load_col) = (t / 64, t % 64 * 4);
    let wide_a = k % 4 == 0 && a.is_aligned128();
    let wide_b = n % 4 == 0 && b.is_aligned128();

    let mut sums = [[0.0; 16]; 8];
    for next in 0..=k.div_ceil(DEPTH) {
        let at = (first_row + load_row, next * DEPTH + load_p);
        let next_a = four_or_zero(&a, (m, k), at, wide_a);
        let at = |i: usize| (next * DEPTH + load_p_b + i * 4, first_col + load_col);
        let next_b = [0, 1].map(|i| four_or_zero(&b, (k, n), at(i), wide_b));

        if next > 0 {
            let buffer = (next - 1) % 2 * DEPTH;
            for p in buffer..buffer + DEPTH {
                let (a, b) = (p * PITCH + row, p * COLS + col);
                multiply_add(&mut sums, (&tiles_a, a), (&tiles_b, b));
            }
        }
        let buffer = next % 2 * DEPTH;
        for i in 0..4 {
            tiles_a[(buffer + load_p + i, load_row)] = next_a[i];
        }
        for i in 0..2 {
            tiles_b.store128((buffer + load_p_b + i * 4) * COLS + load_col, next_b[i]);
        }
        thread::sync_threads();
    }
    store(&mut c, (m, n), (first_row + row, first_col + col), &sums);
}
