//! Scales of numbers of 8 bits: where a product's are.

use super::{device::*, real::Real, vector::FOUR};
use crate::params::{GemmParams, ROWS_COLS, ScaleStrides};

/// Those of the kernel's constant: perhaps none.
pub struct Scaled<'a> {
    /// [`NO_SCALES`](crate::params::NO_SCALES), [`ROWS_COLS`] or [`BLOCKS`](crate::params::BLOCKS).
    pub kind: u32,
    /// Where they are.
    pub strides: ScaleStrides,
    /// A's.
    pub a: &'a In<f32>,
    /// B's.
    pub b: &'a In<f32>,
}

impl Scaled<'_> {
    /// That of a row of A, which may be beyond the last.
    #[inline(always)]
    #[track_caller]
    pub fn of_row<R: Real>(&self, problem: &GemmParams, row: usize, stage: u32) -> R {
        let [between_rows, between_stages] = self.strides.a.map(|stride| stride as usize);
        let row = row.min(problem.m as usize - 1);
        R::from_f64(self.a[row * between_rows + stage as usize * between_stages].into())
    }

    /// That of a column of B, or of 128, which may be beyond the last.
    #[inline(always)]
    #[track_caller]
    pub fn of_col<R: Real>(&self, col: usize, stage: u32) -> R {
        let [between_stages, between_cols] = self.strides.b.map(|stride| stride as usize);
        R::from_f64(self.b[stage as usize * between_stages + col * between_cols].into())
    }

    /// Those of four columns of B, which may be beyond the last, if each column has one.
    #[inline(always)]
    #[track_caller]
    pub fn of_four<R: Real>(&self, problem: &GemmParams, cols: [usize; FOUR]) -> [R; FOUR] {
        match self.kind {
            ROWS_COLS => cols.map(|col| self.of_col(col.min(problem.n as usize - 1), 0)),
            _ => [R::ONE; FOUR],
        }
    }

    /// Multiplies sums of these rows by their scales and [those of the columns](Self::of_four).
    #[inline(always)]
    #[track_caller]
    pub fn finish_four<R: Real>(
        &self,
        problem: &GemmParams,
        rows: [usize; FOUR],
        of_cols: [R; FOUR],
        sums: [R; FOUR],
    ) -> [R; FOUR] {
        if self.kind != ROWS_COLS {
            return sums;
        }
        core::array::from_fn(|i| {
            let of_row: R = self.of_row(problem, rows[i], 0);
            // In this order the swap of A and B changes no bit.
            sums[i].times(of_row.times(of_cols[i]))
        })
    }
}
