//! What happens to a thread's sums on their way to C.

use super::{super::device::*, FOUR, real::Real};
use crate::problem::{COL_BIAS, GELU, Problem, RELU, ROW_BIAS};

/// Where C lies, and what it becomes.
pub struct Epilogue<'a, T> {
    problem: &'a Problem,
    c: &'a mut Out<T>,
    bias: &'a In<T>,
    /// Where this product's C begins.
    start: usize,
    alpha: T,
    beta: T,
    /// Do four elements of a row begin at a multiple of sixteen bytes, wherever a group of four begins?
    wide: bool,
}

impl<'a, T: Real> Epilogue<'a, T> {
    /// That of this block's product.
    #[inline(always)]
    pub fn new(problem: &'a Problem, c: &'a mut Out<T>, bias: &'a In<T>) -> Self {
        let start = thread::block_idx_z() as usize * problem.batch[2] as usize;
        let even = start.is_multiple_of(FOUR) && problem.c[0].is_multiple_of(FOUR as u64);
        let wide = problem.c[1] == 1 && even && c.is_aligned128();
        let (alpha, beta) = (T::from_f64(problem.alpha), T::from_f64(problem.beta));
        Epilogue { problem, c, bias, start, alpha, beta, wide }
    }

    /// Makes elements of C of four sums, those of (row, col) to (row, col + 3), and writes those that are inside.
    #[inline(always)]
    #[track_caller]
    pub fn finish(&mut self, (row, col): (usize, usize), sums: [T; FOUR]) {
        let (m, n) = (self.problem.m as usize, self.problem.n as usize);
        if row >= m || col >= n {
            return;
        }
        let [between_rows, between_cols] = self.problem.c;
        let index = |col| self.start + row * between_rows as usize + col * between_cols as usize;
        if self.wide && col + FOUR <= n {
            let at = index(col);
            let before = if self.reads_c() { T::load_out(self.c, at) } else { [T::ZERO; FOUR] };
            let mut four = [T::ZERO; FOUR];
            for i in 0..FOUR {
                four[i] = self.element((row, col + i), sums[i], before[i]);
            }
            T::store(self.c, at, four);
        } else {
            for i in 0..FOUR {
                if col + i < n {
                    let at = index(col + i);
                    let before = if self.reads_c() { self.c[at] } else { T::ZERO };
                    self.c[at] = self.element((row, col + i), sums[i], before);
                }
            }
        }
    }

    /// BLAS's rule: with `beta = 0` C may hold anything, NaN among it, and is not looked at.
    #[inline(always)]
    fn reads_c(&self) -> bool {
        self.beta != T::ZERO
    }

    /// `activation(alpha sum + beta before + bias)`.
    #[inline(always)]
    #[track_caller]
    fn element(&self, (row, col): (usize, usize), sum: T, before: T) -> T {
        let mut value = self.alpha * sum;
        if self.reads_c() {
            value = fma(self.beta, before, value);
        }
        match self.problem.bias {
            ROW_BIAS => value = value + self.bias[row],
            COL_BIAS => value = value + self.bias[col],
            _ => {}
        }
        match self.problem.activation {
            // Written so that NaN stays NaN.
            RELU if value < T::ZERO => T::ZERO,
            GELU => value.gelu(),
            _ => value,
        }
    }
}
