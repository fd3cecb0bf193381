//! The main loop for tiles of few columns: operands go through registers.
//!
//! Products of few columns, and batches of small ones, have many small tiles. A phase of such a
//! tile has few multiply-adds, so what counts is how many blocks an SM holds, and how many columns
//! of a tile are outside C.
//!
//! * **A block** of 64 threads computes a tile of 64 x 64, 64 x 32 or 64 x 16 elements. Shared
//!   memory holds two stages of 16 k-steps.
//! * **A thread** loads its part of the next stage into registers, multiplies the stage before, and
//!   then stores what it loaded. So loads are in flight while it multiplies.
//!
//! ```text
//!   load 0, store 0 │ load 1, multiply 0, store 1 │ load 2, multiply 1, store 2 │ ...
//! ```
//!
//! At the end the sums go through shared memory. So neighbouring threads store neighbouring
//! elements of C, whether its rows or its columns are contiguous.
//!
//! A thread's elements of an operand are one step apart, whichever side is contiguous. So there is
//! one loop for all layouts. (With two loops a register that both write waits for its load where
//! they meet.)
//!
//! An element is one sum in the order of k by fused multiply-adds: the bits of the other [main
//! loop](super::main_loop).

use super::{
    collective::{epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR},
    device::*,
    operand::{Place, Which},
};
use crate::params::GemmParams;

/// Threads of a block.
pub const THREADS: usize = 64;

/// Rows of a tile.
pub const ROWS: usize = 64;

/// K-steps of a stage.
pub const BLOCK_K: usize = 16;

/// K-steps that the main loop has code for.
const UNROLLED: usize = 8;

/// K-steps of both stages.
pub const STEPS: usize = 2 * BLOCK_K;

/// Elements between the k-steps of a stage, which nobody reads. With them a warp that stores
/// sixteen k-steps of two rows each touches each bank twice; without them, sixteen times.
pub const PAD: usize = 12;

/// Elements of A that a thread loads for a stage.
const LOADS_A: usize = ROWS * BLOCK_K / THREADS;

/// A thread's part of an operand.
struct Part<'a, T> {
    matrix: &'a In<T>,
    /// Its first element of the next stage, and the step from stage to stage.
    from: usize,
    to_next: usize,
    /// From one of its elements to the next: in global memory, and in shared memory.
    from_step: usize,
    to_step: usize,
    /// The first one's place in a stage.
    to: usize,
    /// How many of its elements are inside on the outer side.
    inside: u32,
    /// K-steps from the first element on, and the logarithm of the k-steps from one element to the
    /// next. `None`: all elements are of one k-step.
    steps: u32,
    apart: Option<u32>,
}

impl<'a, T: Stored> Part<'a, T> {
    /// The part of an operand whose tile has `outer` elements on its outer side, and starts at
    /// `first` there. A thread loads `loads` elements.
    #[inline(always)]
    fn new(
        which: Which,
        matrix: &'a In<T>,
        problem: &GemmParams,
        (outer, pitch, loads): (usize, usize, usize),
        first: usize,
    ) -> Self {
        let Place { size, strides, start } = which.place(problem);
        let t = thread::thread_idx_x() as usize;
        // If neither side is contiguous, the operand is handled as if k were.
        let along_outer = strides.0 == 1;
        let (at, p, outer_step, k_step) = if along_outer {
            (t % outer, t / outer, 0, THREADS / outer)
        } else {
            (t / BLOCK_K, t % BLOCK_K, THREADS / BLOCK_K, 0)
        };
        let is_inside = |i: &usize| first + at + i * outer_step < size;
        Part {
            matrix,
            from: start + (first + at) * strides.0 + p * strides.1,
            to_next: BLOCK_K * strides.1,
            from_step: outer_step * strides.0 + k_step * strides.1,
            to_step: outer_step + k_step * pitch,
            to: p * pitch + at,
            inside: (0..loads).filter(is_inside).count() as u32,
            steps: problem.k.saturating_sub(p as u32),
            apart: along_outer.then_some(k_step.trailing_zeros()),
        }
    }

    /// Loads the part of the next stage. Elements outside are zeros, which add nothing to a sum.
    #[inline(always)]
    #[track_caller]
    fn load<const LOADS: usize>(&mut self) -> [T::Real; LOADS] {
        // Elements whose k-step is inside.
        let in_k = match self.apart {
            // Rounded up, without overflow.
            Some(log2) => (self.steps >> log2) + u32::from(self.steps & ((1 << log2) - 1) != 0),
            None if self.steps > 0 => LOADS as u32,
            None => 0,
        };
        let valid = in_k.min(self.inside);
        let mut loaded = [T::Real::ZERO; LOADS];
        let mut from = self.from;
        for i in 0..LOADS {
            if (i as u32) < valid {
                loaded[i] = self.matrix[from].widened();
            }
            // Addresses are computed one after another: all of them do not fit in registers.
            from = thread::opaque(from + self.from_step);
        }
        self.from += self.to_next;
        self.steps = self.steps.saturating_sub(BLOCK_K as u32);
        loaded
    }

    /// Stores what was loaded to the stage that starts with element `first`.
    #[inline(always)]
    #[track_caller]
    fn store<const LOADS: usize, const PITCH: usize>(
        &self,
        stages: &mut Shared<T::Real, STEPS, PITCH>,
        first: usize,
        loaded: [T::Real; LOADS],
    ) {
        let to = first + self.to;
        for i in 0..LOADS {
            stages[to + i * self.to_step] = loaded[i];
        }
    }
}

/// Computes `DOWN x ACROSS` elements of C for each thread of a block, and stores them, `TOGETHER`
/// fours at once. A tile has `COLS` columns. A k-step of a stage is a row of `stages`: A's
/// elements, B's, and [`PAD`] more.
#[inline(always)]
#[track_caller]
pub fn multiply<
    S: Stored,
    O: Stored<Real = S::Real>,
    const COLS: usize,
    const DOWN: usize,
    const ACROSS: usize,
    const LOADS_B: usize,
    const PITCH: usize,
    const TOGETHER: usize,
>(
    problem: &GemmParams,
    (a, b): (&In<S>, &In<S>),
    (c, bias): (&mut Out<O>, &In<O>),
    mut stages: Shared<S::Real, STEPS, PITCH>,
) {
    const {
        assert!(ROWS / DOWN * (COLS / ACROSS) == THREADS, "each thread has elements of its own");
        assert!(DOWN.is_multiple_of(FOUR) && ACROSS.is_multiple_of(FOUR), "groups of four by four");
        assert!(LOADS_B * THREADS == COLS * BLOCK_K, "the threads load a stage of B");
        assert!(PITCH == ROWS + COLS + PAD, "a k-step of A and one of B");
        assert!((ROWS * COLS).is_multiple_of(TOGETHER * FOUR * THREADS), "as many fours each");
    }
    let (across, of_b) = (COLS / ACROSS, ROWS);
    let t = thread::thread_idx_x() as usize;
    let (x, y) = (t % across * FOUR, t / across * FOUR);
    let first_row = thread::block_idx_y() as usize * ROWS;
    let first_col = thread::block_idx_x() as usize * COLS;
    let mut part_a = Part::new(Which::A, a, problem, (ROWS, PITCH, LOADS_A), first_row);
    let mut part_b = Part::new(Which::B, b, problem, (COLS, PITCH, LOADS_B), first_col);

    let mut sums = [[S::Real::ZERO; ACROSS]; DOWN];
    let mut stage = 0;
    for phase in 0..=problem.k.div_ceil(BLOCK_K as u32) {
        // The stage of the phase before is complete, and everybody has read the other one.
        thread::sync_threads();
        // Past the last stage these are zeros, which nobody reads.
        let (next_a, next_b) = (part_a.load::<LOADS_A>(), part_b.load::<LOADS_B>());
        if phase > 0 {
            let mut p = stage;
            // Not unrolled: the compiler does not know the number.
            for _ in 0..thread::opaque(BLOCK_K / UNROLLED) {
                for i in 0..UNROLLED {
                    let at = (p + i) * PITCH;
                    let (mut rows, mut cols) = ([S::Real::ZERO; DOWN], [S::Real::ZERO; ACROSS]);
                    for group in 0..DOWN / FOUR {
                        let four =
                            S::Real::load_shared(&stages, at + y + group * (ROWS / DOWN) * FOUR);
                        rows[group * FOUR..group * FOUR + FOUR].copy_from_slice(&four);
                    }
                    for group in 0..ACROSS / FOUR {
                        let four =
                            S::Real::load_shared(&stages, at + of_b + x + group * across * FOUR);
                        cols[group * FOUR..group * FOUR + FOUR].copy_from_slice(&four);
                    }
                    for i in 0..DOWN {
                        for j in 0..ACROSS {
                            sums[i][j] = fma(rows[i], cols[j], sums[i][j]);
                        }
                    }
                }
                p += UNROLLED;
            }
            stage = BLOCK_K - stage;
        }
        part_a.store(&mut stages, stage * PITCH, next_a);
        part_b.store(&mut stages, stage * PITCH + of_b, next_b);
    }

    // The sums change threads: neighbouring threads store neighbouring fours of a row, or fours of
    // neighbouring rows if the elements of a column are contiguous.
    thread::sync_threads();
    let pitch = COLS + FOUR;
    for i in 0..DOWN {
        for j in 0..ACROSS {
            let row = y + i / FOUR * (ROWS / DOWN) * FOUR + i % FOUR;
            let col = x + j / FOUR * across * FOUR + j % FOUR;
            stages[row * pitch + col] = sums[i][j];
        }
    }
    thread::sync_threads();
    let mut epilogue = Epilogue::new(problem, c, bias);
    // A thread's fours have the same columns, in rows that are `apart`. The first ones, and the
    // steps to the next.
    let (across, down) = const { (COLS / FOUR, THREADS / (COLS / FOUR)) };
    let (mut row, mut col, apart, (next_row, next_col)) = match problem.c[1] == 1 {
        true => (t / across, t % across * FOUR, down, (TOGETHER * down, 0)),
        false => {
            let lanes = const { ROWS / TOGETHER };
            (t % lanes, t / lanes * FOUR, lanes, (0, THREADS / lanes * FOUR))
        }
    };
    for _ in 0..thread::opaque(ROWS * COLS / FOUR / THREADS / TOGETHER) {
        let columns = epilogue.columns(core::array::from_fn(|j| (first_col + col + j) as u32));
        let rows: [_; TOGETHER] = core::array::from_fn(|i| row + i * apart);
        let sums = rows.map(|row| S::Real::load_shared(&stages, row * pitch + col));
        let rows = rows.map(|row| (first_row + row) as u32);
        epilogue.finish_any_fours(&[&columns; TOGETHER], rows, sums);
        (row, col) = (row + next_row, col + next_col);
    }
}
