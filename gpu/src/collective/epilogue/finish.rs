//! Finishing elements: from sums to elements of C, some at a time.
//!
//! ```text
//!   finish_fours       fours of a row, each one aligned access
//!   finish_any_fours   fours of a row of any C
//!   finish_anywhere    any elements of any C
//!   finish             one four of any C
//! ```

use super::{
    super::{device::*, real::Real, stored::Stored, vector::FOUR},
    Columns, Epilogue,
};
use crate::params::{COL_BIAS, IDENTITY, RELU, ROW_BIAS};

impl<T: Stored> Epilogue<'_, T> {
    /// Applies the epilogue to the sums of four columns in `ROWS` rows, from `row` on by `step`,
    /// and stores them. C [`is_in_fours`](Self::is_in_fours). The loads of all rows are issued
    /// before one is waited for.
    #[inline(always)]
    #[track_caller]
    pub fn finish_fours<const ROWS: usize>(
        &mut self,
        columns: &Columns<T::Real>,
        rows: (u32, u32),
        sums: [[T::Real; FOUR]; ROWS],
    ) {
        self.finish_fours_until(columns, rows, u32::MAX, sums);
    }

    /// As [`finish_fours`](Self::finish_fours), of the rows before row `end`.
    #[inline(always)]
    #[track_caller]
    pub fn finish_fours_until<const ROWS: usize>(
        &mut self,
        columns: &Columns<T::Real>,
        (row, step): (u32, u32),
        end: u32,
        sums: [[T::Real; FOUR]; ROWS],
    ) {
        let to_next = step as usize * self.between_rows();
        let at = self.start + row as usize * self.between_rows() + columns.cols[0] as usize;
        let rows = if columns.cols[0] < self.problem.n { end.min(self.count as u32) } else { 0 };
        let mut values = sums.map(|four| four.map(|sum| self.alpha.times(sum)));
        if self.beta != T::Real::ZERO {
            let old: [[T::Real; FOUR]; ROWS] =
                core::array::from_fn(|i| match row + i as u32 * step < rows {
                    true => T::load(self.c, at + i * to_next),
                    false => [T::Real::ZERO; FOUR],
                });
            for i in 0..ROWS {
                for j in 0..FOUR {
                    values[i][j] = fma(self.beta, old[i][j], values[i][j]);
                }
            }
        }
        let each = core::array::from_fn(|i| [row + i as u32 * step; FOUR]);
        values = self.completed(&[columns; ROWS], each, values);
        for i in 0..ROWS {
            if row + (i as u32) * step < rows {
                T::store(self.c, at + i * to_next, values[i]);
            }
        }
    }

    /// As [`finish_fours`](Self::finish_fours), of any C, with columns and a row for each four.
    /// Only the accesses differ between a C [in fours](Self::is_in_fours) and another one, so there
    /// is less code than with two functions.
    #[inline(always)]
    #[track_caller]
    pub fn finish_any_fours<const COUNT: usize>(
        &mut self,
        columns: &[&Columns<T::Real>; COUNT],
        rows: [u32; COUNT],
        sums: [[T::Real; FOUR]; COUNT],
    ) {
        let (n, between_cols) = (self.problem.n, self.problem.c[1] as usize);
        let (between_rows, in_fours) = (self.between_rows(), self.is_in_fours());
        // Elements that C has.
        let counts: [u32; COUNT] = core::array::from_fn(|i| {
            let row_is_inside = (rows[i] as usize) < self.count;
            if row_is_inside { n.saturating_sub(columns[i].cols[0]) } else { 0 }
        });
        let mut at: [usize; COUNT] = core::array::from_fn(|i| {
            let (row, col) = (rows[i] as usize, columns[i].cols[0] as usize);
            self.start + row * between_rows + col * between_cols
        });
        let mut values = sums.map(|four| four.map(|sum| self.alpha.times(sum)));
        // BLAS's rule: if `beta = 0`, C is not read. It may hold NaN.
        if self.beta != T::Real::ZERO {
            let mut old = [[T::Real::ZERO; FOUR]; COUNT];
            for i in 0..COUNT {
                if in_fours && counts[i] > 0 {
                    old[i] = T::load(self.c, at[i]);
                }
            }
            for i in 0..COUNT {
                for j in 0..FOUR {
                    if !in_fours && (j as u32) < counts[i] {
                        old[i][j] = self.c[at[i] + j * between_cols].widened();
                    }
                }
            }
            for i in 0..COUNT {
                for j in 0..FOUR {
                    values[i][j] = fma(self.beta, old[i][j], values[i][j]);
                }
            }
            // Otherwise the addresses of all elements would stay in registers.
            at = at.map(thread::opaque);
        }
        values = self.completed(columns, rows.map(|row| [row; FOUR]), values);
        for i in 0..COUNT {
            if in_fours && counts[i] > 0 {
                T::store(self.c, at[i], values[i]);
            }
        }
        for i in 0..COUNT {
            for j in 0..FOUR {
                if !in_fours && (j as u32) < counts[i] {
                    self.c[at[i] + j * between_cols] = T::nearest(values[i][j]);
                }
            }
        }
    }

    /// As [`finish_fours`](Self::finish_fours), of any C: element `i` is in column `i` and in row
    /// `row + i / ACROSS`.
    #[inline(always)]
    #[track_caller]
    pub fn finish_elements<const ACROSS: usize>(
        &mut self,
        columns: &Columns<T::Real>,
        row: u32,
        sums: [T::Real; FOUR],
    ) {
        let rows = core::array::from_fn(|i| row + (i / ACROSS) as u32);
        self.finish_anywhere(&[columns], [rows], [sums]);
    }

    /// As [`finish_elements`](Self::finish_elements), with a row for each element, and `COUNT`
    /// times four of them. The loads of all are issued before one is waited for.
    #[inline(always)]
    #[track_caller]
    pub fn finish_anywhere<const COUNT: usize>(
        &mut self,
        columns: &[&Columns<T::Real>; COUNT],
        rows: [[u32; FOUR]; COUNT],
        sums: [[T::Real; FOUR]; COUNT],
    ) {
        let (between_rows, between_cols) = (self.between_rows(), self.problem.c[1] as usize);
        let mut values = sums.map(|four| four.map(|sum| self.alpha.times(sum)));
        let (mut inside, mut at) = ([[false; FOUR]; COUNT], [[0; FOUR]; COUNT]);
        for i in 0..COUNT {
            for j in 0..FOUR {
                let (row, col) = (rows[i][j] as usize, columns[i].cols[j] as usize);
                inside[i][j] = self.is_inside((row, col));
                at[i][j] = self.start + row * between_rows + col * between_cols;
            }
        }
        // BLAS's rule: if `beta = 0`, C is not read. It may hold NaN.
        if self.beta != T::Real::ZERO {
            let mut old = [[T::Real::ZERO; FOUR]; COUNT];
            for i in 0..COUNT {
                for j in 0..FOUR {
                    if inside[i][j] {
                        old[i][j] = self.c[at[i][j]].widened();
                    }
                }
            }
            for i in 0..COUNT {
                for j in 0..FOUR {
                    values[i][j] = fma(self.beta, old[i][j], values[i][j]);
                }
            }
        }
        values = self.completed(columns, rows, values);
        for i in 0..COUNT {
            for j in 0..FOUR {
                if inside[i][j] {
                    self.c[at[i][j]] = T::nearest(values[i][j]);
                }
            }
        }
    }

    /// Adds the bias and applies the activation function, each chosen once for all.
    #[inline(always)]
    #[track_caller]
    fn completed<const COUNT: usize>(
        &self,
        columns: &[&Columns<T::Real>; COUNT],
        rows: [[u32; FOUR]; COUNT],
        mut values: [[T::Real; FOUR]; COUNT],
    ) -> [[T::Real; FOUR]; COUNT] {
        match self.bias() {
            ROW_BIAS => {
                // Of a row outside C any element is read, and not used.
                let last = self.count as u32 - 1;
                let bias = rows.map(|four| {
                    four.map(|row| {
                        self.bias[self.rows.0 + row.min(last) as usize * self.rows.1].widened()
                    })
                });
                for i in 0..COUNT {
                    for j in 0..FOUR {
                        values[i][j] = values[i][j].plus(bias[i][j]);
                    }
                }
            }
            COL_BIAS => {
                for i in 0..COUNT {
                    for j in 0..FOUR {
                        values[i][j] = values[i][j].plus(columns[i].bias[j]);
                    }
                }
            }
            _ => {}
        }
        match self.activation() {
            RELU => values.map(|four| four.map(T::Real::relu)),
            IDENTITY => values,
            smooth => values.map(|four| T::activated(smooth, four)),
        }
    }

    /// Applies the epilogue to the four sums of (row, col) and its right neighbours, and writes
    /// the elements that are inside C.
    #[inline(always)]
    #[track_caller]
    pub fn finish(&mut self, (row, col): (usize, usize), sums: [T::Real; FOUR]) {
        if !self.is_inside((row, col)) {
            return;
        }
        let n = self.problem.n as usize;
        let (between_rows, between_cols) = (self.between_rows(), self.problem.c[1] as usize);
        let at = self.start + row * between_rows + col * between_cols;
        let mut four = sums.map(|sum| self.alpha.times(sum));
        let wide = self.wide && col + FOUR <= n;
        // BLAS's rule: if `beta = 0`, C is not read. It may hold NaN.
        if self.beta != T::Real::ZERO {
            if wide {
                let before = T::load(self.c, at);
                for i in 0..FOUR {
                    four[i] = fma(self.beta, before[i], four[i]);
                }
            } else {
                for i in 0..FOUR {
                    if col + i < n {
                        let at = at + i * between_cols;
                        four[i] = fma(self.beta, self.c[at].widened(), four[i]);
                    }
                }
            }
        }
        for i in 0..FOUR {
            if col + i < n {
                four[i] = self.biased((row, col + i), four[i]);
            }
        }
        four = self.activated(four);
        if wide {
            T::store(self.c, at, four);
        } else {
            for i in 0..FOUR {
                if col + i < n {
                    self.c[at + i * between_cols] = T::nearest(four[i]);
                }
            }
        }
    }

    #[inline(always)]
    #[track_caller]
    fn biased(&self, (row, col): (usize, usize), value: T::Real) -> T::Real {
        match self.bias() {
            ROW_BIAS => value.plus(self.bias[self.rows.0 + row * self.rows.1].widened()),
            COL_BIAS => value.plus(self.bias[col].widened()),
            _ => value,
        }
    }

    #[inline(always)]
    fn activated(&self, values: [T::Real; FOUR]) -> [T::Real; FOUR] {
        match self.activation() {
            RELU => values.map(T::Real::relu),
            IDENTITY => values,
            smooth => T::activated(smooth, values),
        }
    }
}
