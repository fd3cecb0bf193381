//! What a thread holds of a stage: its 8 (or 9) rows of A and its 16 (or 10) columns of B, for the step of k that it
//! multiplies and for the one that comes next; of an A along k for four steps.
//!
//! A *slab* is 32 steps of k of an operand. B's elements lie side by side along n, so 128 bits are four columns of one
//! step; A's lie along m, likewise, or along k: then 128 bits are four steps of one row, a *group*.
//!
//! ```text
//!   A along k                                     along the outer side
//!     128 bytes a row, groups exchanged as the      a step's elements side by side, all of a tile
//!     accelerator swizzles them:
//!     group g of row r lies at g ^ r % 8
//!   a thread has rows y, y + 8, y + 16, ...       rows 4y to 4y + 3, 4y + 32 to 4y + 35
//!                                                 columns 4x to 4x + 3, 4x + 16, ...
//! ```
//!
//! With these rows the eight lanes that differ in y read eight different groups of banks. This is a warp of 8 x 4 lanes,
//! whose part of a tile is 64 x 64 elements; with 2 x 16 lanes it is 16 x 256, with 32 x 1 256 x 16.
//!
//! # The order of the multiply-adds
//!
//! The register file has two banks, of the even and of the odd registers, and each gives one operand a cycle. A
//! multiply-add has three, so at one a cycle it must have one in common with the multiply-add before it, which is kept
//! ("reuse" in the listings), and the other two should lie in different banks. Hence:
//!
//! * **A row goes through all its columns, to and fro**: the row's element stays, and where the row changes the column's
//!   stays. Then it is a matter of the accumulator and the new operand, which alternate between the banks from column to
//!   column.
//! * **Where the row changes** the new operand is A's. Along k, its bank is that of the step, for all rows, so a step's
//!   columns are gone through in an order that ends, both ways, at those whose accumulators lie in the other bank.
//!
//! Measured: docs/measurements.md, "What a multiply-add costs".

use core::marker::PhantomData;

use super::{
    collective::vector::FOUR,
    device::*,
    operand::Operand,
    tile::{SLAB, STEPS, Sums},
};

/// The row and the column of a lane in a warp of so many rows of lanes.
#[inline(always)]
pub fn place_of<const ROW_LANES: usize>(lane: usize) -> (usize, usize) {
    const { assert!(ROW_LANES == 2 || ROW_LANES == 8 || ROW_LANES == 32) };
    match ROW_LANES {
        // Two by two lanes beside each other share rows and columns: so their 128-bit reads are put together.
        8 => (lane / 2 % 2 + lane / 8 * 2, lane % 2 + lane / 4 % 2 * 2),
        _ => (lane / (32 / ROW_LANES), lane % (32 / ROW_LANES)),
    }
}

/// Where a thread finds its rows (or columns): those of a slab of an operand of which a tile has `TILE`, shared by `LANES`
/// lanes of a warp.
pub struct ThreadRows<O, const TILE: usize, const LANES: usize> {
    /// Its first row, and the lane's number among those that differ in rows.
    first: usize,
    lane: usize,
    /// The first element that it reads of step 0, in the first stage; of shifted rows, whose swizzle is not that of the
    /// lane alone, by every fourth row.
    starts: [usize; FOUR],
    operand: PhantomData<O>,
}

impl<O: Operand, const TILE: usize, const LANES: usize> ThreadRows<O, TILE, LANES> {
    /// Of a slab that begins with that element, of a warp whose part of the tile begins with row (column) `first`.
    #[inline(always)]
    pub fn new(slab: usize, first: usize, lane: usize) -> Self {
        let row = first + lane;
        let starts = match (O::UNALIGNED, O::K_MAJOR) {
            (true, _) => {
                const { assert!(!O::UNALIGNED || LANES == 8 && TILE.is_multiple_of(8)) };
                // A map's rows lie side by side.
                let row = row % FOUR * (TILE / FOUR) + row / FOUR;
                let phase = |i| (row + i * LANES / FOUR) % 8 * FOUR;
                [0, 1, 2, 3].map(|i| slab + row * SLAB + phase(i))
            }
            (_, true) => [slab + row * SLAB + row % 8 * FOUR; FOUR],
            (_, false) => [slab + first + lane * FOUR; FOUR],
        };
        ThreadRows { first, lane, starts, operand: PhantomData }
    }

    /// The row (column) of the tile that is the i-th of the thread's `N`.
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

    /// Where the thread reads its rows (columns) of the steps from `step` on, of the stage that begins with that element.
    #[inline(always)]
    pub fn at(&self, stage: usize, step: usize) -> [usize; FOUR] {
        self.starts.map(|start| match O::K_MAJOR {
            // Rows begin at multiples of eight groups: exchanging groups is an exclusive or with the place.
            true => (stage + start) ^ step,
            false => stage + start + step * TILE,
        })
    }

    /// The same of its last two rows (columns), where their number is no multiple of four: there a lane's two lie beside the
    /// next lane's two.
    #[inline(always)]
    pub fn tail(&self, at: usize) -> usize {
        at - self.lane * 2
    }

    /// All of its `N` rows (columns), `step` steps further.
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

    /// Four steps of its i-th row, from the `step`th on.
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
        // Of fewer than eight rows of lanes, a lane's rows are swizzled by what is theirs and what is the lane's.
        let group = i * LANES % 8 * FOUR;
        tiles.load128_in_order((at[0] ^ step ^ group) + i * LANES * SLAB)
    }
}

/// Where a thread reads the next steps of its rows and columns.
#[derive(Clone, Copy)]
pub struct Steps {
    pub rows: [usize; FOUR],
    pub cols: usize,
    /// Where the last two columns are, if their number is no multiple of four.
    pub tail: usize,
}

impl Steps {
    /// The steps from `step` on, of the stage that begins with that element.
    #[inline(always)]
    pub fn new<
        A: Operand,
        B: Operand,
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

/// What a thread multiplies: of its rows two steps in turn, or the group's four; of its columns two steps in turn.
pub struct Fragment<Rows, Cols, const ROWS: usize, const COLS: usize> {
    rows: [[f32; ROWS]; FOUR],
    cols: [[f32; COLS]; 2],
    places: PhantomData<(Rows, Cols)>,
}

impl<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const ROWS: usize,
    const COLS: usize,
> Fragment<ThreadRows<A, TILE_ROWS, ROW_LANES>, ThreadRows<B, TILE_COLS, COL_LANES>, ROWS, COLS>
{
    /// The first of those steps.
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
        fragment.load_step::<0>(tiles, steps);
        if A::K_MAJOR {
            for i in 0..ROWS {
                fragment.load_group::<0>(tiles, steps, i);
            }
        }
        fragment
    }

    /// Of rows that begin with so many elements of others: what is there counts as zero.
    #[inline(always)]
    pub fn clear_before(&mut self, shift: u32) {
        for step in 0..FOUR - 1 {
            for i in 0..ROWS {
                self.rows[step][i] = if (step as u32) < shift { 0.0 } else { self.rows[step][i] };
            }
        }
    }

    /// The columns of a step, and the rows, if they lie along m.
    #[inline(always)]
    #[track_caller]
    fn load_step<const STEP: usize>(&mut self, tiles: &DynamicShared<f32>, steps: Steps) {
        let cols = &mut self.cols[STEP % 2];
        let at = (steps.cols, steps.tail);
        ThreadRows::<B, TILE_COLS, COL_LANES>::load_beside(tiles, at, STEP, cols);
        if !A::K_MAJOR {
            let rows = &mut self.rows[STEP % 2];
            let at = (steps.rows[0], steps.rows[0]);
            ThreadRows::<A, TILE_ROWS, ROW_LANES>::load_beside(tiles, at, STEP, rows);
        }
    }

    /// The i-th row's group that begins with that step: rows that lie along k.
    #[inline(always)]
    #[track_caller]
    fn load_group<const STEP: usize>(
        &mut self,
        tiles: &DynamicShared<f32>,
        steps: Steps,
        i: usize,
    ) {
        let four = ThreadRows::<A, TILE_ROWS, ROW_LANES>::load_along(tiles, steps.rows, i, STEP);
        for p in 0..FOUR {
            self.rows[p][i] = four[p];
        }
    }

    /// Multiplies rows by columns, the steps from `now` on; if these are the last and no more than `FOUR`, only so many. `next`
    /// says where those begin that follow, of which the first are in the fragment then.
    #[inline(always)]
    #[track_caller]
    pub fn multiply_add(
        &mut self,
        tiles: &mut DynamicShared<f32>,
        now: Steps,
        sums: &mut Sums<ROWS, COLS>,
        are_last_four: bool,
        next: impl FnOnce(&mut DynamicShared<f32>) -> Steps,
    ) {
        let mut next = Some(next);
        // As LLVM does not unroll so long a loop.
        macro_rules! steps {
            ($($step:literal)*) => {$(
                if $step == FOUR && are_last_four {
                    return;
                }
                let ahead = if $step + 1 < STEPS { now } else { next.take().map_or(now, |next| next(tiles)) };
                self.load_step::<{ ($step + 1) % STEPS }>(tiles, ahead);
                steps!(row $step, ahead; 0 1 2 3 4 5 6 7 8);
            )*};
            (row $step:literal, $ahead:ident; $($i:literal)*) => {$(
                if $i < ROWS {
                    self.multiply_add_row::<$step, $i>(sums);
                }
                // The row's group has been used up.
                if $i < ROWS && A::K_MAJOR && ($step + 1) % FOUR == 0 {
                    self.load_group::<{ ($step + 1) % STEPS }>(tiles, $ahead, $i);
                }
            )*};
        }
        steps! { 0 1 2 3 4 5 6 7 }
    }

    /// One row by all columns.
    #[inline(always)]
    #[track_caller]
    fn multiply_add_row<const STEP: usize, const I: usize>(&self, sums: &mut Sums<ROWS, COLS>) {
        let row = self.rows[if A::K_MAJOR { STEP % FOUR } else { STEP % 2 }][I];
        for j in 0..COLS {
            let j = if I.is_multiple_of(2) { j } else { COLS - 1 - j };
            let j = if A::K_MAJOR { ends_even(j, COLS) ^ (STEP % 2) } else { j };
            sums[I][j] = fma_in_order(row, self.cols[STEP % 2][j], sums[I][j]);
        }
    }
}

/// The j-th of so many columns in an order that begins and ends with an even one; the same of their neighbours, with an odd
/// one. Columns are even in number, so in every second pair the two change places.
const fn ends_even(j: usize, cols: usize) -> usize {
    // Twelve: 0 1, 3 2, 4 5, 7 6, 8 9, 11 10. Ten: 0 1, 3 2, 4 5, 7 6, 9 8.
    let changed = if cols.is_multiple_of(FOUR) || j + 2 < cols { j / 2 % 2 } else { 1 };
    j ^ changed
}
