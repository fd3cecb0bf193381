//! Register blocking: a thread computes 8 x 8 elements of C. So it uses each element that it reads
//! from shared memory eight times.
//!
//! * **A block** of 16 x 16 threads computes a 128 x 128 tile of C, in phases of 8 k-steps. It
//!   holds two tiles of A (128 x 8) and two tiles of B (8 x 128): this phase's, and the next
//!   phase's.
//! * **A thread** computes 64 elements of C: every sixteenth row and column, from its own y and x
//!   on. For each k-step it reads 8 elements of A's tile and 8 elements of B's tile, and does 64
//!   multiply-adds.
//!
//! ```text
//!            tx   tx+16       tx+112                16 elements read, 64 multiply-adds: a quarter of a read
//!         +--|------|-- .. -----|--+                for each, where tiled16 has one and a quarter
//!      ty |  x      x           x  |
//!   ty+16 |  x      x           x  |                Neighbouring threads take neighbouring columns: no bank
//!         :                        :                conflicts in B's tile, and one address a row of threads
//!  ty+112 |  x      x           x  |                in A's, which is a broadcast.
//!         +------------------------+
//! ```
//!
//! The ratio is 128/4 = 32 FLOP a byte.

use super::{device::*, tile::element_or_zero};

/// Rows and columns of a block's tile of C.
pub const TILE: usize = 128;
/// K-steps in a phase.
pub const DEPTH: usize = 8;
/// Elements of each tile that a thread loads in a phase.
const LOADS: usize = TILE * DEPTH / (16 * 16);
/// Words from one column of A's tile to the next: 8 threads store into 8 columns, four banks apart.
pub const PITCH: usize = TILE + 4;

/// C (m x n) = A (m x k) B (k x n), 128 x 128 elements a block, 8 x 8 a thread.
#[kernel(
    block = (16, 16),
    shared = 2 * DEPTH * (PITCH + TILE) * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn register_blocked(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    // For one k-step, the column of A's tile and the row of B's tile are each contiguous.
    let mut tiles_a = shared![f32; 2 * DEPTH, PITCH];
    let mut tiles_b = shared![f32; 2 * DEPTH, TILE];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    // The place of this thread's i-th element of A's tile: row and k-step. Of B's tile: k-step and
    // column.
    let t = ty * 16 + tx;
    let place_a = |i: usize| (t / DEPTH + i * 32, t % DEPTH);
    let place_b = |i: usize| (t / TILE + i * 2, t % TILE);

    let (mut next_a, mut next_b) = ([0.0; LOADS], [0.0; LOADS]);
    let mut sums = [[0.0; 8]; 8];
    let phases = k.div_ceil(DEPTH);
    // Phase by phase: load the tiles of phase `next`, multiply those of the phase before.
    for next in 0..=phases {
        for i in 0..LOADS {
            let (row, p) = place_a(i);
            next_a[i] = element_or_zero(&a, (m, k), (first_row + row, next * DEPTH + p));
            let (p, col) = place_b(i);
            next_b[i] = element_or_zero(&b, (k, n), (next * DEPTH + p, first_col + col));
        }
        if next > 0 {
            let buffer = (next - 1) % 2 * DEPTH;
            for p in buffer..buffer + DEPTH {
                let (mut rows, mut cols) = ([0.0; 8], [0.0; 8]);
                for i in 0..8 {
                    rows[i] = tiles_a[(p, ty + 16 * i)];
                    cols[i] = tiles_b[(p, tx + 16 * i)];
                }
                for i in 0..8 {
                    for j in 0..8 {
                        sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
                    }
                }
            }
        }
        let buffer = next % 2 * DEPTH;
        for i in 0..LOADS {
            let (row, p) = place_a(i);
            tiles_a[(buffer + p, row)] = next_a[i];
            let (p, col) = place_b(i);
            tiles_b[(buffer + p, col)] = next_b[i];
        }
        thread::sync_threads();
    }

    for i in 0..8 {
        for j in 0..8 {
            let (row, col) = (first_row + ty + 16 * i, first_col + tx + 16 * j);
            if row < m && col < n {
                c[row * n + col] = sums[i][j];
            }
        }
    }
}
