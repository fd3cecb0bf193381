//! The epilogue of a warp that finishes rows of staged sums: alpha, beta, bias, activation, and the
//! stores to C, some rows at a time.
//!
//! * **A lane** has [`FOUR`] neighbours of a row in each of `TOGETHER` rows: C [is in
//!   fours](Epilogue::is_in_fours).
//! * **Old elements of C** are loaded one step ahead ([`Old`]): the first ones before the sums are
//!   staged, the next ones before a step is computed.
//!
//! What is to be done is decided once a step, for all its elements.

use super::{device::*, epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR};
use crate::params::{COL_BIAS, IDENTITY, RELU, ROW_BIAS};

/// Rows that a warp finishes: row `first` of C, and every `step`th row after it.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The first row.
    pub first: u32,
    /// From one row to the next.
    pub step: u32,
    /// How many. C may have fewer.
    pub count: u32,
}

/// A warp that finishes `COLS` columns of rows, `TOGETHER` fours of a lane in a step.
#[derive(Clone, Copy)]
pub struct StagedRows<const COLS: usize, const TOGETHER: usize> {
    rows: Rows,
    /// The lane's row of the first rows, and its first column of C's.
    row: u32,
    col: u32,
    /// The lane's first column of the staged ones.
    staged_col: u32,
}

/// Old elements of C, or zeros if beta is 0.
pub type Old<R, const TOGETHER: usize> = [[R; FOUR]; TOGETHER];

impl<const COLS: usize, const TOGETHER: usize> StagedRows<COLS, TOGETHER> {
    /// Lanes that have a row, and rows that a warp has at once.
    const LANES: u32 = (COLS / FOUR) as u32;
    const AT_ONCE: u32 = 32 / Self::LANES;

    /// Rows of a step.
    pub const STEP: u32 = Self::AT_ONCE * TOGETHER as u32;

    /// All lanes of the warp call this. The first column is a multiple of four.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(rows: Rows, first_col: u32) -> Self {
        const { assert!(32_usize.is_multiple_of(COLS / FOUR), "a warp has whole rows at a time") }
        // Through a shuffle, so that the compiler does not compute what follows before the loop
        // over tiles, and keep it in registers.
        let lane = warp::shuffle(warp::ALL, thread::lane_id(), thread::lane_id());
        let staged_col = lane % Self::LANES * FOUR as u32;
        StagedRows { rows, row: lane / Self::LANES, col: first_col + staged_col, staged_col }
    }

    /// The number of a lane's row, and whether C has it.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn row<C: Stored>(&self, epilogue: &Epilogue<C>, at: u32, i: usize) -> (u32, bool) {
        let row = at + self.row + i as u32 * Self::AT_ONCE;
        let of_c = self.rows.first + row * self.rows.step;
        let inside = epilogue.is_inside((of_c as usize, self.col as usize));
        (of_c, row < self.rows.count && inside)
    }

    /// Loads the old elements of the step from row `at` on, if beta is not 0 and C is in fours.
    // BLAS's rule: if `beta = 0`, C is not read. It may hold NaN.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn old<C: Stored>(&self, epilogue: &Epilogue<C>, at: u32) -> Old<C::Real, TOGETHER> {
        let mut old = [[C::Real::ZERO; FOUR]; TOGETHER];
        if epilogue.beta() != C::Real::ZERO && epilogue.is_in_fours() {
            for i in 0..TOGETHER {
                let (row, inside) = self.row(epilogue, at, i);
                if inside {
                    old[i] = epilogue.load_four((row, self.col));
                }
            }
        }
        old
    }

    /// Finishes all rows. `old` is that of row 0. `sums` gives the four sums of a row from a column
    /// on; both are counted from the first ones.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn finish<C: Stored>(
        &self,
        epilogue: &mut Epilogue<C>,
        mut old: Old<C::Real, TOGETHER>,
        sums: impl Fn(u32, u32) -> [C::Real; FOUR],
    ) {
        let bias_of_cols: [C::Real; FOUR] = match epilogue.bias() {
            COL_BIAS => core::array::from_fn(|j| epilogue.bias_of_col(self.col + j as u32)),
            _ => [C::Real::ZERO; FOUR],
        };
        let mut at = 0;
        while at < self.rows.count {
            let next = self.old(epilogue, at + Self::STEP);
            let mut values = [[C::Real::ZERO; FOUR]; TOGETHER];
            for i in 0..TOGETHER {
                let row = at + self.row + i as u32 * Self::AT_ONCE;
                if self.row(epilogue, at, i).1 {
                    values[i] = sums(row, self.staged_col);
                }
            }
            self.complete(epilogue, at, &mut values, &old, &bias_of_cols);
            match epilogue.activation() {
                IDENTITY => {}
                RELU => map(&mut values, |_, _, value| value.relu()),
                // Calls: inlined they would be half of the kernel.
                smooth => values = values.map(|four| C::activated(smooth, four)),
            }
            for i in 0..TOGETHER {
                let (row, inside) = self.row(epilogue, at, i);
                if inside {
                    epilogue.store_four((row, self.col), values[i]);
                }
            }
            old = next;
            at += Self::STEP;
        }
    }

    /// Finishes all rows of any C, four elements of a lane at a time.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn finish_any<C: Stored>(
        &self,
        epilogue: &mut Epilogue<C>,
        sums: impl Fn(u32, u32) -> [C::Real; FOUR],
    ) {
        let mut at = self.row;
        while at < self.rows.count {
            let row = self.rows.first + at * self.rows.step;
            if epilogue.is_inside((row as usize, self.col as usize)) {
                let four = sums(at, self.staged_col);
                epilogue.finish((row as usize, self.col as usize), four);
            }
            at += Self::AT_ONCE;
        }
    }

    /// All but the activation.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn complete<C: Stored>(
        &self,
        epilogue: &Epilogue<C>,
        at: u32,
        values: &mut [[C::Real; FOUR]; TOGETHER],
        old: &Old<C::Real, TOGETHER>,
        bias_of_cols: &[C::Real; FOUR],
    ) {
        let (alpha, beta) = (epilogue.alpha(), epilogue.beta());
        map(values, |_, _, sum| alpha.times(sum));
        if beta != C::Real::ZERO {
            map(values, |i, j, value| fma(beta, old[i][j], value));
        }
        match epilogue.bias() {
            COL_BIAS => map(values, |_, j, value| value.plus(bias_of_cols[j])),
            ROW_BIAS => {
                for i in 0..TOGETHER {
                    let bias = epilogue.bias_of_row(self.row(epilogue, at, i).0);
                    values[i] = values[i].map(|value| value.plus(bias));
                }
            }
            _ => {}
        }
    }
}

/// Replaces each value by `with(i, j, value)`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn map<R: Real, const TOGETHER: usize>(
    values: &mut [[R; FOUR]; TOGETHER],
    mut with: impl FnMut(usize, usize, R) -> R,
) {
    for i in 0..TOGETHER {
        for j in 0..FOUR {
            values[i][j] = with(i, j, values[i][j]);
        }
    }
}
