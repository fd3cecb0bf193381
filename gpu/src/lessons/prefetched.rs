//! Two buffers: the next tile of A is loaded while this phase's tile is used.
//!
//! * **A block** of 64 threads computes a 16 x 64 tile of C, in phases of 16 k-steps, as in
//!   [`unrolled`](super::unrolled). It holds two tiles of A: this phase's, and the next phase's.
//! * **A thread** computes a column of 16 elements of C. It begins to read its part of the next
//!   tile into registers. It multiplies. Then it stores the part into the other buffer.
//!
//! The ratio is the same, 6.4 FLOP a byte, but threads wait less. A read of global memory takes
//! hundreds of cycles. Now the arithmetic of a phase is between the read and the first use of the
//! elements. And one barrier a phase is enough: no thread reads the buffer that is being filled.

use super::{
    device::*,
    outer_product::{COLS, DEPTH, PITCH, ROWS},
    tile::element_or_zero,
};

/// Elements of a tile of A that a thread loads.
const LOADS: usize = ROWS * DEPTH / COLS;

/// C (m x n) = A (m x k) B (k x n) by outer products, with the next tile of A prefetched.
#[kernel(
    block = (COLS),
    shared = 2 * DEPTH * PITCH * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn prefetched(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    // Buffer 0 in the first DEPTH rows, buffer 1 below.
    let mut tiles_a = shared![f32; 2 * DEPTH, PITCH];

    let tx = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * ROWS;
    let col = thread::block_idx_x() as usize * COLS + tx;
    // This thread's i-th element of a tile of A: its row, and its k-step.
    let place = |i: usize| (tx / DEPTH + i * COLS / DEPTH, tx % DEPTH);

    let mut next = [0.0; LOADS];
    for i in 0..LOADS {
        let (row, p) = place(i);
        tiles_a[(p, row)] = element_or_zero(&a, (m, k), (first_row + row, p));
    }
    thread::sync_threads();

    let mut column = [0.0; ROWS];
    let mut buffer = 0;
    for phase in 0..k.div_ceil(DEPTH) {
        for i in 0..LOADS {
            // Past the last tile, elements are zeros.
            let (row, p) = place(i);
            let next_p = (phase + 1) * DEPTH + p;
            next[i] = element_or_zero(&a, (m, k), (first_row + row, next_p));
        }
        for p in 0..DEPTH {
            let b = element_or_zero(&b, (k, n), (phase * DEPTH + p, col));
            for i in 0..ROWS {
                column[i] = fma(tiles_a[(buffer * DEPTH + p, i)], b, column[i]);
            }
        }
        buffer = 1 - buffer;
        for i in 0..LOADS {
            let (row, p) = place(i);
            tiles_a[(buffer * DEPTH + p, row)] = next[i];
        }
        // The next tile is complete, and all threads have read this phase's tile.
        thread::sync_threads();
    }
    for i in 0..ROWS {
        if first_row + i < m && col < n {
            c[(first_row + i) * n + col] = column[i];
        }
    }
}
