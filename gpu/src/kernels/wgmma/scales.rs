//! Scales of numbers of 8 bits: what the sums are multiplied by.
//!
//! ```text
//!   scales     A has one for             B has one for         multiplied
//!   [`ROWS_COLS`]  a row                     a column              at the end
//!   [`BLOCKS`] a row's 128 k-steps       128 x 128             the sum of each stage, before it is added
//! ```
//!
//! A stage of these kernels has 128 k-steps, and a tile at most 128 columns, of one block. So a
//! stage has two scales a thread: those of its two rows.

use super::{
    collective::{real::Real, scales::Scaled, stored::Stored},
    device::{warpgroup::*, *},
};
use crate::params::{BLOCKS, GemmParams, ROWS_COLS};

/// Lanes of a warp.
const WARP: usize = 32;

/// Rows between the two rows of a thread.
const NEXT_ROW: usize = 8;

/// What the sums of tiles are multiplied by.
pub trait Scales {
    /// Loads the scales of a stage: those of the thread's two rows, `row` and eight below, and that
    /// of the tile's columns from `col` on.
    fn of_stage<R: Real>(&self, problem: &GemmParams, stage: u32, place: (usize, usize)) -> [R; 3];

    /// Multiplies the sums of 64 rows from `first` on by the scales that are not of a stage.
    fn finish<C: Stored<Real: WgmmaSum>, const N: usize>(
        &self,
        problem: &GemmParams,
        sums: &mut Fragment<N, C::Real>,
        first: (usize, usize),
    );
}

/// There are none.
pub struct Unscaled;

impl Scales for Unscaled {
    #[inline(always)]
    fn of_stage<R: Real>(&self, _: &GemmParams, _: u32, _: (usize, usize)) -> [R; 3] {
        [R::ONE; 3]
    }

    #[inline(always)]
    fn finish<C: Stored<Real: WgmmaSum>, const N: usize>(
        &self,
        _: &GemmParams,
        _: &mut Fragment<N, C::Real>,
        _: (usize, usize),
    ) {
    }
}

impl Scales for Scaled<'_> {
    #[inline(always)]
    #[track_caller]
    fn of_stage<R: Real>(
        &self,
        problem: &GemmParams,
        stage: u32,
        (row, col): (usize, usize),
    ) -> [R; 3] {
        if self.kind != BLOCKS {
            return [R::ONE; 3];
        }
        let [upper, lower] = [row, row + NEXT_ROW].map(|row| self.of_row(problem, row, stage));
        [upper, lower, self.of_col(col / 128, stage)]
    }

    #[inline(always)]
    #[track_caller]
    fn finish<C: Stored<Real: WgmmaSum>, const N: usize>(
        &self,
        problem: &GemmParams,
        sums: &mut Fragment<N, C::Real>,
        (first_row, first_col): (usize, usize),
    ) {
        if self.kind != ROWS_COLS {
            return;
        }
        // A lane loads those of every 32nd column, all at once, and lanes exchange them. If each
        // loaded those of its own columns, there would be registers for a few loads at a time.
        const { assert!(N <= 4 * WARP) };
        let (last, lane) = (problem.n as usize - 1, thread::lane_id() as usize);
        let mut of_cols = [C::Real::ONE; 4];
        for i in 0..N.div_ceil(WARP) {
            of_cols[i] = self.of_col((first_col + i * WARP + lane).min(last), 0);
        }
        let mut part = |i: usize| {
            sums.map_pairs_of::<WARP>(i, |row, col, [left, right]| {
                let of_row: C::Real = self.of_row(problem, first_row + row as usize, 0);
                let [of_left, of_right] =
                    [col, col + 1].map(|col| warp::shuffle(warp::ALL, of_cols[i], col));
                // In this order the swap of A and B changes no bit.
                [left.times(of_row.times(of_left)), right.times(of_row.times(of_right))]
            });
        };
        // Written out, since registers cannot be indexed by a computed number.
        part(0);
        if const { N > WARP } {
            part(1);
            part(2);
            part(3);
        }
    }
}
