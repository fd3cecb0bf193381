//! Outer products: a thread multiplies an element of B in a register by a column of A's tile.
//!
//! * **A block** of 64 threads computes a 16 x 64 tile of C, in phases of 16 k-steps. In each phase
//!   it loads a 16 x 16 tile of A into shared memory.
//! * **A thread** computes a column of 16 elements of that tile of C, in registers. For each k-step
//!   it reads one element of B from global memory, and 16 elements of A's tile. The threads of a
//!   warp read the same elements of A's tile, each in one access for all.
//!
//! ```text
//!                                 64                    for each of 16 k-steps:
//!                       16  +-----------+
//!                           |     b     |                 the 16 elements of a column of A's tile
//!            16             +-----------+                 times one element b of B
//!          +----+           +-----------+                 are added to the thread's column of C
//!       16 | At |        16 |     :     |
//!          +----+           +-----------+
//! ```
//!
//! The inner product of the rungs before reads two elements of shared memory for a multiply-add.
//! Here one element of B in a register serves 16 multiply-adds, and one 128-bit read brings four
//! elements of A. The ratio is 16 x 64 / 2 (16 + 64) = 6.4 FLOP a byte.

use super::{device::*, tile::element_or_zero};

/// Rows of a block's tile of C: a thread's column.
pub const ROWS: usize = 16;
/// Columns of a block's tile of C: one a thread.
pub const COLS: usize = 64;
/// K-steps in a phase.
pub const DEPTH: usize = 16;
/// Words from one column of A's tile to the next. A warp stores into sixteen columns. With 16 words
/// they would begin in two banks. With 20 words they begin in eight banks, and rows stay aligned to
/// 128 bits.
pub const PITCH: usize = 20;

/// C (m x n) = A (m x k) B (k x n) by outer products, 64 threads with a column of 16 elements each.
#[kernel(
    block = (COLS),
    shared = DEPTH * PITCH * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn outer_product(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    // Column by column: the elements of a column are contiguous.
    let mut tile_a = shared![f32; DEPTH, PITCH];

    let tx = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * ROWS;
    let col = thread::block_idx_x() as usize * COLS + tx;

    let mut column = [0.0; ROWS];
    for phase in 0..k.div_ceil(DEPTH) {
        // Sixteen neighbouring threads load a row of A's tile, and the block loads four rows at a
        // time.
        for i in 0..ROWS * DEPTH / COLS {
            let (row, p) = (tx / DEPTH + i * COLS / DEPTH, tx % DEPTH);
            tile_a[(p, row)] = element_or_zero(&a, (m, k), (first_row + row, phase * DEPTH + p));
        }
        thread::sync_threads();
        // The number of k-steps is known at run time only, so this stays a loop. The next rung
        // unrolls it.
        for p in 0..DEPTH.min(k - phase * DEPTH) {
            let b = if col < n { b[(phase * DEPTH + p) * n + col] } else { 0.0 };
            for i in 0..ROWS {
                column[i] = fma(tile_a[(p, i)], b, column[i]);
            }
        }
        thread::sync_threads();
    }
    for i in 0..ROWS {
        if first_row + i < m && col < n {
            c[(first_row + i) * n + col] = column[i];
        }
    }
}
