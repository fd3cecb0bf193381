//! 128-bit accesses: four elements an instruction, from global memory and from shared memory.
//!
//! * **A block** of 256 threads computes a 128 x 128 tile of C, in phases of 8 k-steps, as in
//!   [`register_blocked`](super::register_blocked).
//! * **A thread** computes 8 x 8 elements of C, now in four groups of 4 x 4. The groups start at
//!   rows 4 ty and 64 + 4 ty, and at columns 4 tx and 64 + 4 tx. For a k-step the thread reads 16
//!   elements from shared memory with 4 accesses. For a phase it reads 4 elements of A, and 4 of B,
//!   from global memory with one access each.
//!
//! For 64 multiply-adds there are 4 reads instead of 16. (Why groups, and not eight columns in a
//! row: shared memory serves the threads of a quarter of a warp together. With eight columns in a
//! row these threads would be 8 words apart and would access the same banks.)
//!
//! Four elements are one access only if their address is a multiple of sixteen bytes. In every row
//! of A it is one if k is a multiple of four; in every row of B and C if n is a multiple of four.
//! Otherwise the elements are accessed one by one. The ratio is still 128/4 = 32 FLOP a byte.

use super::{
    device::*,
    register_blocked::{DEPTH, PITCH, TILE},
    tile::{four_or_zero, store_four},
};

/// C (m x n) = A (m x k) B (k x n), 128 x 128 elements a block, 8 x 8 a thread, by 128-bit
/// accesses.
#[kernel(
    block = (16, 16),
    shared = 2 * DEPTH * (PITCH + TILE) * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn vectorised(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles_a = shared![f32; 2 * DEPTH, PITCH];
    let mut tiles_b = shared![f32; 2 * DEPTH, TILE];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    // This thread loads four elements of a row of A, and four elements of a row of B.
    let t = ty * 16 + tx;
    let (load_row, load_p) = (t / 2, t % 2 * 4);
    let (load_p_b, load_col) = (t / 32, t % 32 * 4);
    let wide_a = k % 4 == 0 && a.is_aligned128();
    let wide_b = n % 4 == 0 && b.is_aligned128();

    let mut sums = [[0.0; 8]; 8];
    for next in 0..=k.div_ceil(DEPTH) {
        let at = (first_row + load_row, next * DEPTH + load_p);
        let next_a = four_or_zero(&a, (m, k), at, wide_a);
        let at = (next * DEPTH + load_p_b, first_col + load_col);
        let next_b = four_or_zero(&b, (k, n), at, wide_b);

        if next > 0 {
            let buffer = (next - 1) % 2 * DEPTH;
            for p in buffer..buffer + DEPTH {
                let (mut rows, mut cols) = ([0.0; 8], [0.0; 8]);
                for half in 0..2 {
                    let four = tiles_a.load128::<4>(p * PITCH + half * 64 + ty * 4);
                    rows[half * 4..half * 4 + 4].copy_from_slice(&four);
                    let four = tiles_b.load128::<4>(p * TILE + half * 64 + tx * 4);
                    cols[half * 4..half * 4 + 4].copy_from_slice(&four);
                }
                for i in 0..8 {
                    for j in 0..8 {
                        sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
                    }
                }
            }
        }
        let buffer = next % 2 * DEPTH;
        for i in 0..4 {
            // A's tile is stored column by column, so the four elements go to four columns.
            tiles_a[(buffer + load_p + i, load_row)] = next_a[i];
        }
        tiles_b.store128((buffer + load_p_b) * TILE + load_col, next_b);
        thread::sync_threads();
    }

    let wide = n % 4 == 0 && c.is_aligned128();
    for i in 0..8 {
        for half in 0..2 {
            let row = first_row + i / 4 * 64 + ty * 4 + i % 4;
            let col = first_col + half * 64 + tx * 4;
            let mut four = [0.0; 4];
            four.copy_from_slice(&sums[i][half * 4..half * 4 + 4]);
            store_four(&mut c, (m, n), (row, col), four, wide);
        }
    }
}
