//! Asynchronous copies: tiles go from global to shared memory by themselves, three phases ahead.
//!
//! * **A block** of 256 threads computes a 128 x 256 tile of C, in phases of 8 steps of k, as in
//!   [`warp_tiled`](super::warp_tiled). It holds the tiles of three phases: one in use, two on their way.
//! * **A thread** computes 8 x 16 elements of C. It begins its copies and goes on; no element of A or B passes
//!   through its registers on the way to shared memory.
//!
//! ```text
//!   phase         0     1     2     3
//!   multiply      0     1     2     3       a barrier before each: the tile has come, and nobody reads the
//!   on their way  1 2   2 3   3 4   4 5     buffer any more that is filled next
//! ```
//!
//! Copies of sixteen bytes bring B's tile, where n is a multiple of four, and of four bytes A's, whose elements go
//! to different columns of the tile, and both at the edges. So any size is one kernel. The ratio is 42.7 FLOP a
//! byte, as before.

use super::{
    device::*,
    register_blocked::DEPTH,
    warp_tiled::{COLS, PITCH, ROWS, THREADS, first_element, multiply_add, store},
};

/// Buffers.
const STAGES: usize = 3;

/// The tiles of A and of B, one below the other.
type Tiles<'a> =
    (&'a mut Shared<f32, { STAGES * DEPTH }, PITCH>, &'a mut Shared<f32, { STAGES * DEPTH }, COLS>);

/// Begins the copies of a phase's tiles to a buffer. Zeros fill what lies outside.
#[inline(always)]
#[track_caller]
fn begin(
    (tiles_a, tiles_b): Tiles,
    buffer: usize,
    (m, n, k): (usize, usize, usize),
    (a, b): (&In<f32>, &In<f32>),
    (first_row, first_col): (usize, usize),
    phase: usize,
) {
    let t = thread::thread_idx_x() as usize;
    // Eight neighbouring threads copy a row of A's tile, each to another column.
    let (p, tile_row) = (t % DEPTH, t / DEPTH);
    for i in 0..ROWS * DEPTH / THREADS {
        let (row, col) = (first_row + tile_row + i * 32, phase * DEPTH + p);
        let to = (buffer * DEPTH + p) * PITCH + tile_row + i * 32;
        tiles_a.copy_async::<1>(to, a, row * k + col, row < m && col < k);
    }
    let wide = n % 4 == 0 && b.is_aligned128();
    let (p, tile_col) = (t / 64, t % 64 * 4);
    for i in 0..2 {
        let (row, col) = (phase * DEPTH + p + i * 4, first_col + tile_col);
        let to = (buffer * DEPTH + p + i * 4) * COLS + tile_col;
        if wide {
            tiles_b.copy_async::<4>(to, b, row * n + col, row < k && col < n);
        } else {
            for j in 0..4 {
                let inside = row < k && col + j < n;
                tiles_b.copy_async::<1>(to + j, b, row * n + col + j, inside);
            }
        }
    }
    copies::commit_group();
}

/// C (m x n) = A (m x k) B (k x n), 128 x 256 elements a block, tiles by asynchronous copies.
#[kernel(
    block = (THREADS),
    shared = STAGES * DEPTH * (PITCH + COLS) * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn async_copy(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles_a = shared![f32; STAGES * DEPTH, PITCH];
    let mut tiles_b = shared![f32; STAGES * DEPTH, COLS];

    let t = thread::thread_idx_x() as usize;
    let first_row = thread::block_idx_y() as usize * ROWS;
    let first_col = thread::block_idx_x() as usize * COLS;
    let (row, col) = first_element(t);
    let sizes = (m, n, k);
    let first = (first_row, first_col);

    for phase in 0..STAGES - 1 {
        begin((&mut tiles_a, &mut tiles_b), phase, sizes, (&a, &b), first, phase);
    }
    let mut sums = [[0.0; 16]; 8];
    let (mut buffer, mut free) = (0, STAGES - 1);
    for phase in 0..k.div_ceil(DEPTH) {
        // Of this thread's copies the next phase's may be on their way, and all of this one's have come; after
        // the barrier, everybody's have, and the buffer of the phase before has been read.
        copies::wait_group::<{ STAGES as u32 - 2 }>();
        thread::sync_threads();
        let next = phase + STAGES - 1;
        begin((&mut tiles_a, &mut tiles_b), free, sizes, (&a, &b), first, next);
        for p in buffer * DEPTH..(buffer + 1) * DEPTH {
            let (a, b) = (p * PITCH + row, p * COLS + col);
            multiply_add(&mut sums, (&tiles_a, a), (&tiles_b, b));
        }
        free = buffer;
        buffer = if buffer + 1 < STAGES { buffer + 1 } else { 0 };
    }
    store(&mut c, (m, n), (first_row + row, first_col + col), &sums);
}
