//! What a thread holds of a stage: its 8 (or 9) rows of A and its 16 (or 10) columns of B, for the
//! current k-step and the next one. Of a K-major A it holds four steps.
//!
//! A *slab* is 32 k-steps of an operand. B is N-major: 128 bits are four columns of one step. If
//! A is M-major, 128 bits are four rows of one step. If A is K-major, they are four steps of one
//! row: a *group*.
//!
//! ```text
//!   K-major A                                     MN-major
//!     128 bytes a row, groups swizzled by TMA:      the elements of a step are contiguous, for the whole tile
//!     group g of row r is at g ^ r % 8
//!   a thread has rows y, y + 8, y + 16, ...       rows 4y to 4y + 3, 4y + 32 to 4y + 35
//!                                                 columns 4x to 4x + 3, 4x + 16, ...
//! ```
//!
//! With these rows, the eight lanes that differ in y read eight different groups of banks. This is
//! a warp of 8 x 4 lanes, whose part of a tile is 64 x 64 elements. With 2 x 16 lanes it is 16 x
//! 256, with 32 x 1 it is 256 x 16.
//!
//! # The order of the multiply-adds
//!
//! The register file has two banks, of the even and of the odd registers. Each delivers one operand
//! a cycle. A multiply-add has three operands. So at one a cycle, it must share one with the
//! multiply-add before it, which is kept ("reuse" in SASS), and the other two should be in
//! different banks. Hence:
//!
//! * **A row goes through all its columns, back and forth.** The row's element is reused, and where
//!   the row changes, the column's is. What remains are the accumulator and the new operand. They
//!   alternate between the banks from column to column.
//! * **Where the row changes**, the new operand is A's. If A is K-major, its bank is that of the
//!   step, for all rows. So the columns of a step are visited in an order that starts and ends at
//!   accumulators of the other bank.
//!
//! Measured: docs/log/tma.md, "The cost of a multiply-add".

use core::marker::PhantomData;

use super::{device::*, vector::FOUR};

/// A thread's elements of C.
pub type Sums<const ROWS: usize, const COLS: usize> = [[f32; COLS]; ROWS];

/// Rows of C that a thread computes, except in the kernels with producer warps.
pub const ROWS: usize = 8;

/// K-steps of a slab: 128 bytes of a row, the span of the swizzle.
pub const SLAB: usize = 32;

/// K-steps of a round of the main loop. A longer round does not fit the instruction cache.
pub const STEPS: usize = 8;

/// How an operand's slabs are in shared memory.
pub trait Staged {
    /// Whether it is K-major.
    const K_MAJOR: bool;
    /// Whether its rows are unaligned. Only `tma` has such rows.
    const UNALIGNED: bool = false;
}

/// What kernels without work of their own do in each step: nothing.
#[inline(always)]
pub fn idle(_: &mut DynamicShared<f32>, _: usize) {}

/// The row and the column of a lane, in a warp with `ROW_LANES` rows of lanes.
#[inline(always)]
pub fn place_of<const ROW_LANES: usize>(lane: usize) -> (usize, usize) {
    const { assert!(ROW_LANES == 2 || ROW_LANES == 8 || ROW_LANES == 32) };
    match ROW_LANES {
        // Neighbouring lanes, two by two, share rows and columns. So their 128-bit loads are
        // combined.
        8 => (lane / 2 % 2 + lane / 8 * 2, lane % 2 + lane / 4 % 2 * 2),
        _ => (lane / (32 / ROW_LANES), lane % (32 / ROW_LANES)),
    }
}

/// Where a thread reads its rows (columns) of a slab. A tile has `TILE` rows (columns), shared by
/// `LANES` lanes of a warp.
pub struct ThreadRows<O, const TILE: usize, const LANES: usize> {
    /// The warp's first row, and the lane's number among those that differ in rows.
    first: usize,
    lane: usize,
    /// The thread's first element of step 0, in the first stage. With unaligned rows, one for each
    /// class: the swizzle then depends on the class too.
    starts: [usize; FOUR],
    operand: PhantomData<O>,
}

impl<O: Staged, const TILE: usize, const LANES: usize> ThreadRows<O, TILE, LANES> {
    /// The rows of a slab that starts with element `slab`, in a warp whose part of the tile starts
    /// with row (column) `first`.
    #[inline(always)]
    pub fn new(slab: usize, first: usize, lane: usize) -> Self {
        let row = first + lane;
        let starts = match (O::UNALIGNED, O::K_MAJOR) {
            (true, _) => {
                const { assert!(!O::UNALIGNED || LANES == 8 && TILE.is_multiple_of(8)) };
                // The rows of a class are contiguous.
                let row = row % FOUR * (TILE / FOUR) + row / FOUR;
                let phase = |i| (row + i * LANES / FOUR) % 8 * FOUR;
                [0, 1, 2, 3].map(|i| slab + row * SLAB + phase(i))
            }
            (_, true) => [slab + row * SLAB + row % 8 * FOUR; FOUR],
            (_, false) => [slab + first + lane * FOUR; FOUR],
        };
        ThreadRows { first, lane, starts, operand: PhantomData }
    }

    /// The row (column) of the tile that is the thread's i-th of `N`.
    #[inline(always)]
    pub fn outer<const N: usize>(&self, i: usize) -> usize {
        match O::K_MAJOR {
            true => self.first + self.lane + i * LANES,
            false if i >= N / FOUR * FOUR => {
                self.first + (N - 2) * LANES + self.lane * 2 + (i - (N - 2))
            }
            false => self.first + self.lane * FOUR + i / FOUR * LANES * FOUR + i % FOUR,
        }
    }

    /// Where the thread reads its rows (columns) of step `step` and the following ones, in the
    /// stage that starts with element `stage`.
    #[inline(always)]
    pub fn at(&self, stage: usize, step: usize) -> [usize; FOUR] {
        self.starts.map(|start| match O::K_MAJOR {
            // Rows start at multiples of eight groups, so the swizzle is an exclusive or with the
            // index.
            true => (stage + start) ^ step,
            false => stage + start + step * TILE,
        })
    }

    /// The same for the thread's last two rows (columns), if their number is no multiple of four.
    /// The two of a lane are next to the two of the next lane.
    #[inline(always)]
    pub fn tail(&self, at: usize) -> usize {
        at - self.lane * 2
    }

    /// Loads all `N` rows (columns) of an MN-major operand, `step` steps further.
    #[inline(always)]
    #[track_caller]
    fn load_beside<const N: usize>(
        tiles: &DynamicShared<f32>,
        (at, tail): (usize, usize),
        step: usize,
        all: &mut [f32; N],
    ) {
        const { assert!(O::K_MAJOR || N.is_multiple_of(2), "fours, and perhaps two more") };
        for i in (0..N / FOUR * FOUR).step_by(FOUR) {
            let four: [f32; FOUR] = tiles.load128_in_order(at + step * TILE + i * LANES);
            all[i..i + FOUR].copy_from_slice(&four);
        }
        if !N.is_multiple_of(FOUR) {
            let two: [f32; 2] = tiles.load64_in_order(tail + step * TILE + (N - 2) * LANES);
            all[N - 2..].copy_from_slice(&two);
        }
    }

    /// Loads four steps of the i-th row of a K-major operand, from step `step` on.
    #[inline(always)]
    #[track_caller]
    fn load_along(
        tiles: &DynamicShared<f32>,
        at: [usize; FOUR],
        i: usize,
        step: usize,
    ) -> [f32; FOUR] {
        if O::UNALIGNED {
            return tiles.load128_in_order((at[i % FOUR] ^ step) + i * LANES / FOUR * SLAB);
        }
        // With fewer than eight rows of lanes, the swizzle depends on the lane and on the row.
        let group = i * LANES % 8 * FOUR;
        tiles.load128_in_order((at[0] ^ step ^ group) + i * LANES * SLAB)
    }
}

/// Where a thread reads the next steps of its rows and columns.
#[derive(Clone, Copy)]
pub struct Steps {
    /// The rows, one for each class if they are unaligned.
    pub rows: [usize; FOUR],
    /// The columns.
    pub cols: usize,
    /// The last two columns, if their number is no multiple of four.
    pub tail: usize,
}

impl Steps {
    /// The steps from `step` on, in the stage that starts with element `stage`.
    #[inline(always)]
    pub fn new<
        A: Staged,
        B: Staged,
        const TILE_ROWS: usize,
        const TILE_COLS: usize,
        const ROW_LANES: usize,
        const COL_LANES: usize,
    >(
        rows: &ThreadRows<A, TILE_ROWS, ROW_LANES>,
        cols: &ThreadRows<B, TILE_COLS, COL_LANES>,
        stage: usize,
        step: usize,
    ) -> Self {
        let [at, ..] = cols.at(stage, step);
        Steps { rows: rows.at(stage, step), cols: at, tail: cols.tail(at) }
    }
}

/// What a thread multiplies: two alternating steps of its columns, and of its rows two alternating
/// steps or the four of a group.
pub struct Fragment<Rows, Cols, const ROWS: usize, const COLS: usize> {
    rows: [[f32; ROWS]; FOUR],
    cols: [[f32; COLS]; 2],
    places: PhantomData<(Rows, Cols)>,
}

impl<
    A: Staged,
    B: Staged,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const ROWS: usize,
    const COLS: usize,
> Fragment<ThreadRows<A, TILE_ROWS, ROW_LANES>, ThreadRows<B, TILE_COLS, COL_LANES>, ROWS, COLS>
{
    /// Loads the first step.
    #[inline(always)]
    #[track_caller]
    pub fn load(
        _: &ThreadRows<A, TILE_ROWS, ROW_LANES>,
        _: &ThreadRows<B, TILE_COLS, COL_LANES>,
        tiles: &DynamicShared<f32>,
        steps: Steps,
    ) -> Self {
        let (rows, cols) = ([[0.0; ROWS]; FOUR], [[0.0; COLS]; 2]);
        let mut fragment = Fragment { rows, cols, places: PhantomData };
        fragment.load_step(tiles, steps, 0);
        if A::K_MAJOR {
            for i in 0..ROWS {
                fragment.load_group(tiles, steps, 0, i);
            }
        }
        fragment
    }

    /// Clears the first `shift` steps, which belong to other rows.
    #[inline(always)]
    pub fn clear_before(&mut self, shift: u32) {
        for step in 0..FOUR - 1 {
            for i in 0..ROWS {
                self.rows[step][i] = if (step as u32) < shift { 0.0 } else { self.rows[step][i] };
            }
        }
    }

    /// Loads the columns of a step, and the rows of an M-major A.
    #[inline(always)]
    #[track_caller]
    fn load_step(&mut self, tiles: &DynamicShared<f32>, steps: Steps, step: usize) {
        let cols = &mut self.cols[step % 2];
        let at = (steps.cols, steps.tail);
        ThreadRows::<B, TILE_COLS, COL_LANES>::load_beside(tiles, at, step, cols);
        if !A::K_MAJOR {
            let rows = &mut self.rows[step % 2];
            let at = (steps.rows[0], steps.rows[0]);
            ThreadRows::<A, TILE_ROWS, ROW_LANES>::load_beside(tiles, at, step, rows);
        }
    }

    /// Loads the group of the i-th row that starts with a step, of a K-major A.
    #[inline(always)]
    #[track_caller]
    fn load_group(&mut self, tiles: &DynamicShared<f32>, steps: Steps, step: usize, i: usize) {
        let four = ThreadRows::<A, TILE_ROWS, ROW_LANES>::load_along(tiles, steps.rows, i, step);
        for p in 0..FOUR {
            self.rows[p][i] = four[p];
        }
    }

    /// Multiplies rows by columns, the steps from `now` on. If they are the last and at most
    /// `FOUR`, only that many. `during` is called in each step. `next` says where the following
    /// steps are. The first of those is in the fragment on return.
    #[inline(always)]
    #[track_caller]
    pub fn multiply_add(
        &mut self,
        tiles: &mut DynamicShared<f32>,
        now: Steps,
        sums: &mut Sums<ROWS, COLS>,
        (are_last_four, mut during): (bool, impl FnMut(&mut DynamicShared<f32>, usize)),
        next: impl FnOnce(&mut DynamicShared<f32>) -> Steps,
    ) {
        let mut next = Some(next);
        // LLVM does not unroll a loop of this length.
        unrolled!(for step in [0 1 2 3 4 5 6 7] {
            if step == FOUR && are_last_four {
                return;
            }
            let is_last = step + 1 == STEPS;
            let ahead = if is_last { next.take().map_or(now, |next| next(tiles)) } else { now };
            self.load_step(tiles, ahead, (step + 1) % STEPS);
            during(tiles, step);
            unrolled!(for i in [0 1 2 3 4 5 6 7 8] {
                if i < ROWS {
                    self.multiply_add_row(sums, step, i);
                }
                // The row's group has been used up.
                if i < ROWS && A::K_MAJOR && (step + 1) % FOUR == 0 {
                    self.load_group(tiles, ahead, (step + 1) % STEPS, i);
                }
            });
        });
    }

    /// One row by all columns.
    #[inline(always)]
    #[track_caller]
    fn multiply_add_row(&self, sums: &mut Sums<ROWS, COLS>, step: usize, i: usize) {
        let row = self.rows[if A::K_MAJOR { step % FOUR } else { step % 2 }][i];
        for j in 0..COLS {
            // On the CPU in the order of memory, in which the processor adds many at once.
            let j = match cfg!(target_arch = "nvptx64") {
                true => nth_column::<COLS>(j, (A::K_MAJOR, step, i)),
                false => j,
            };
            sums[i][j] = fma_in_order(row, self.cols[step % 2][j], sums[i][j]);
        }
    }
}

/// The j-th column of the i-th row of a step.
#[inline(always)]
fn nth_column<const COLS: usize>(j: usize, (is_k_major, step, i): (bool, usize, usize)) -> usize {
    let j = if i.is_multiple_of(2) { j } else { COLS - 1 - j };
    if is_k_major { ends_even(j, COLS) ^ (step % 2) } else { j }
}

/// The j-th of `cols` columns in an order that starts and ends with an even one. With each column
/// replaced by its neighbour, the order starts and ends with an odd one. The number of columns is
/// even, so in every second pair the two are swapped.
const fn ends_even(j: usize, cols: usize) -> usize {
    // Twelve: 0 1, 3 2, 4 5, 7 6, 8 9, 11 10. Ten: 0 1, 3 2, 4 5, 7 6, 9 8.
    let changed = if cols.is_multiple_of(FOUR) || j + 2 < cols { j / 2 % 2 } else { 1 };
    j ^ changed
}
