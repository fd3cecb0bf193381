//! Asynchronous copies from global to shared memory, two phases ahead of their use.
//!
//! * **A block** of 256 threads computes a 128 x 256 tile of C, in phases of 8 k-steps, as in
//!   [`warp_tiled`](super::warp_tiled). It holds the tiles of three phases: one in use, two in
//!   flight.
//! * **A thread** computes 8 x 16 elements of C. It begins its copies and does not wait for them.
//!   The elements do not pass through its registers on the way to shared memory.
//!
//! ```text
//!   phase        0     1     2     3
//!   multiply     0     1     2     3       a barrier before each: the phase's tiles are complete, and no thread
//!   in flight    1 2   2 3   3 4   4 5     reads the buffer that is filled next
//! ```
//!
//! * **B's tile**: 16-byte copies if B and its rows are 16-byte aligned, otherwise 4-byte copies.
//! * **A's tile**: 4-byte copies, because its elements go to different columns.
//! * **Elements outside A and B** become zeros. So one kernel takes every size.
//!
//! The ratio is 42.7 FLOP a byte, as before.

use super::{
    device::*,
    register_blocked::DEPTH,
    warp_tiled::{COLS, PITCH, ROWS, THREADS, first_element, multiply_add, store},
};

/// Buffers.
const STAGES: usize = 3;

/// The elements that a thread copies in a phase: `ROWS * DEPTH / THREADS` elements of a column of
/// A's tile, and two groups of four elements, in rows of B's tile.
struct Copies {
    /// The index of this phase's first element of A.
    from_a: usize,
    /// From one element of A to the next.
    step_a: usize,
    /// The place of the first element in A's tile. The next elements are 32 words apart.
    to_a: usize,
    /// Whether A has the row of each element.
    rows_inside: [bool; ROWS * DEPTH / THREADS],
    /// The k-step of the elements of A.
    p_a: u32,
    /// The index of this phase's first element of B.
    from_b: usize,
    /// From one group of B to the next, four rows further down.
    step_b: usize,
    /// The place of the first group in B's tile.
    to_b: usize,
    /// Whether B has the column of each element of a group.
    cols_inside: [bool; 4],
    /// The k-step of the first group of B.
    p_b: u32,
    /// Whether a group of B is one 16-byte copy.
    wide: bool,
}

impl Copies {
    #[inline(always)]
    fn new(
        (m, n, k): (usize, usize, usize),
        b: &In<f32>,
        (first_row, first_col): (usize, usize),
    ) -> Self {
        let t = thread::thread_idx_x() as usize;
        // Eight neighbouring threads copy a row of A's tile. Each stores to another column.
        let (p_a, row) = (t % DEPTH, t / DEPTH);
        let (p_b, col) = (t / 64, t % 64 * 4);
        Copies {
            from_a: (first_row + row) * k + p_a,
            step_a: 32 * k,
            to_a: p_a * PITCH + row,
            rows_inside: [0, 1, 2, 3].map(|i| first_row + row + i * 32 < m),
            p_a: p_a as u32,
            from_b: p_b * n + first_col + col,
            step_b: 4 * n,
            to_b: p_b * COLS + col,
            cols_inside: [0, 1, 2, 3].map(|j| first_col + col + j < n),
            p_b: p_b as u32,
            wide: n % 4 == 0 && b.is_aligned128(),
        }
    }

    /// Begins the copies of a phase to a buffer, and advances to the next phase. Elements outside A
    /// and B become zeros.
    #[inline(always)]
    #[track_caller]
    fn begin(
        &mut self,
        k: u32,
        (a, b): (&In<f32>, &In<f32>),
        tiles_a: &mut Shared<f32, { STAGES * DEPTH }, PITCH>,
        tiles_b: &mut Shared<f32, { STAGES * DEPTH }, COLS>,
        buffer: usize,
    ) {
        let to_a = buffer * DEPTH * PITCH + self.to_a;
        for i in 0..ROWS * DEPTH / THREADS {
            let inside = self.rows_inside[i] && self.p_a < k;
            tiles_a.copy_async::<1>(to_a + i * 32, a, self.from_a + i * self.step_a, inside);
        }
        for i in 0..2 {
            let to = (buffer * DEPTH + i * 4) * COLS + self.to_b;
            let from = self.from_b + i * self.step_b;
            let row_inside = self.p_b + i as u32 * 4 < k;
            if self.wide {
                tiles_b.copy_async::<4>(to, b, from, row_inside && self.cols_inside[0]);
            } else {
                for j in 0..4 {
                    let inside = row_inside && self.cols_inside[j];
                    tiles_b.copy_async::<1>(to + j, b, from + j, inside);
                }
            }
        }
        copies::commit_group();
        self.from_a += DEPTH;
        self.from_b += 2 * self.step_b;
        self.p_a += DEPTH as u32;
        self.p_b += DEPTH as u32;
    }
}

/// C (m x n) = A (m x k) B (k x n), 128 x 256 elements a block, tiles by asynchronous copies.
#[kernel(
    block = (THREADS),
    shared = STAGES * DEPTH * (PITCH + COLS) * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn async_copy(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let sizes = (m as usize, n as usize, k as usize);
    let mut tiles_a = shared![f32; STAGES * DEPTH, PITCH];
    let mut tiles_b = shared![f32; STAGES * DEPTH, COLS];

    let first_row = thread::block_idx_y() as usize * ROWS;
    let first_col = thread::block_idx_x() as usize * COLS;
    let (row, col) = first_element(thread::thread_idx_x() as usize);

    let mut copies_ahead = Copies::new(sizes, &b, (first_row, first_col));
    for buffer in 0..STAGES - 1 {
        copies_ahead.begin(k, (&a, &b), &mut tiles_a, &mut tiles_b, buffer);
    }
    let mut sums = [[0.0; 16]; 8];
    let (mut buffer, mut free) = (0, STAGES - 1);
    let phases = k.div_ceil(DEPTH as u32);
    for phase in 0..phases {
        // This thread's copies for this phase are done; those for the next may be in flight. After
        // the barrier all threads' copies are done, and the buffer of the previous phase is free.
        copies::wait_group::<{ STAGES as u32 - 2 }>();
        thread::sync_threads();
        if phases - phase > STAGES as u32 - 1 {
            copies_ahead.begin(k, (&a, &b), &mut tiles_a, &mut tiles_b, free);
        } else {
            // Nothing is left to copy. An empty group keeps the number of groups in flight right.
            copies::commit_group();
        }
        for p in 0..DEPTH {
            let p = buffer * DEPTH + p;
            let (a, b) = (p * PITCH + row, p * COLS + col);
            multiply_add(&mut sums, (&tiles_a, a), (&tiles_b, b));
        }
        free = buffer;
        buffer = if buffer + 1 < STAGES { buffer + 1 } else { 0 };
    }
    store(&mut c, (m as usize, n as usize), (first_row + row, first_col + col), &sums);
}
