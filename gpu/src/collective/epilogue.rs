//! What happens to a thread's sums on their way to C.

use super::{device::*, real::Real, stored::Stored, vector::FOUR};
use crate::params::{COL_BIAS, GELU, GemmParams, IDENTITY, NO_BIAS, RELU, ROW_BIAS};

/// Bytes of a line of the caches.
const LINE: usize = 128;

/// Where C lies, and what it becomes. Everything is computed in the type that sums are kept in, and rounded to C's at the
/// end.
pub struct Epilogue<'a, T: Stored> {
    problem: &'a GemmParams,
    c: &'a mut Out<T>,
    bias: &'a In<T>,
    /// Where this product's C begins, or the first of its rows that are looked at.
    start: usize,
    /// The number of that row, and from one that is looked at to the next; and how many these are.
    rows: (usize, usize),
    count: usize,
    alpha: T::Real,
    beta: T::Real,
    /// See [`is_wide`](Self::is_wide).
    wide: bool,
}

impl<'a, T: Stored> Epilogue<'a, T> {
    /// That of the product of a block whose place along z is the product's.
    #[inline(always)]
    pub fn new(problem: &'a GemmParams, c: &'a mut Out<T>, bias: &'a In<T>) -> Self {
        Epilogue::of_product(problem, thread::block_idx_z() as usize, c, bias)
    }

    /// That of a product of the batch.
    #[inline(always)]
    pub fn of_product(
        problem: &'a GemmParams,
        product: usize,
        c: &'a mut Out<T>,
        bias: &'a In<T>,
    ) -> Self {
        Epilogue::of_rows(problem, product, (0, 1), c, bias)
    }

    /// That of some of its rows, which are numbered among themselves: the `first`, and from there on each that is `step`
    /// further.
    #[inline(always)]
    pub fn of_rows(
        problem: &'a GemmParams,
        product: usize,
        rows @ (first, step): (usize, usize),
        c: &'a mut Out<T>,
        bias: &'a In<T>,
    ) -> Self {
        let start = product * problem.batch[2] as usize + first * problem.c[0] as usize;
        let between_rows = problem.c[0] as usize * step;
        let even = start.is_multiple_of(FOUR) && between_rows.is_multiple_of(FOUR);
        let wide = problem.c[1] == 1 && even && c.is_aligned128();
        let count = (problem.m as usize).saturating_sub(first).div_ceil(step);
        let (alpha, beta) = (T::Real::from_f64(problem.alpha), T::Real::from_f64(problem.beta));
        Epilogue { problem, c, bias, start, rows, count, alpha, beta, wide }
    }

    /// Is C `alpha A B + beta C`, and nothing else? Then [`finish`](Self::finish) need not ask for each element.
    #[inline(always)]
    pub fn is_scaled_sum(&self) -> bool {
        self.problem.bias == NO_BIAS && self.problem.activation == IDENTITY
    }

    /// Do four elements of a row begin at a multiple of four elements, and of f32 of sixteen bytes, wherever a group of four
    /// begins?
    #[inline(always)]
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// Is there such an element?
    #[inline(always)]
    pub fn is_inside(&self, (row, col): (usize, usize)) -> bool {
        row < self.count && col < self.problem.n as usize
    }

    /// Is C `alpha A B`?
    #[inline(always)]
    pub fn is_scaled(&self) -> bool {
        self.is_scaled_sum() && self.beta == T::Real::ZERO
    }

    /// Are all of four neighbours, the first of which is (row, col), to be written?
    #[inline(always)]
    pub fn are_four_inside(&self, (row, col): (usize, usize)) -> bool {
        row < self.count && col + FOUR <= self.problem.n as usize
    }

    /// Is a tile of C `alpha A B`, and all of it to be written? Then [`store`](Self::store) does it.
    #[inline(always)]
    pub fn is_scaled_tile(&self, (row, col): (usize, usize), (rows, cols): (usize, usize)) -> bool {
        self.is_scaled() && row + rows <= self.count && col + cols <= self.problem.n as usize
    }

    /// Writes the elements of (row, col) to (row, col + 3) of four sums, where C [`is_scaled`](Self::is_scaled) and all four
    /// are [inside](Self::are_four_inside); by 128 bits, if C [`is_wide`](Self::is_wide).
    #[inline(always)]
    #[track_caller]
    pub fn store<const WIDE: bool>(&mut self, (row, col): (usize, usize), sums: [T::Real; FOUR]) {
        let (between_rows, between_cols) = (self.between_rows(), self.problem.c[1] as usize);
        let at = self.start + row * between_rows + col * between_cols;
        let four = sums.map(|sum| self.alpha * sum);
        if WIDE {
            T::store(self.c, at, four);
        } else {
            for i in 0..FOUR {
                self.c[at + i * between_cols] = T::nearest(four[i]);
            }
        }
    }

    /// Is C `alpha A B`, and do a row's elements lie side by side? Then it may be written past the epilogue ([`c`](Self::c)),
    /// and, of f32, by [`store_one_if`](Self::store_one_if).
    #[inline(always)]
    pub fn is_scaled_in_rows(&self) -> bool {
        self.is_scaled() && self.problem.c[1] == 1
    }

    /// Do rows, whose elements lie side by side, begin at multiples of sixteen bytes, and have such a multiple? Then C is as
    /// many pieces of sixteen bytes, none of which lies partly inside.
    #[inline(always)]
    pub fn is_16_byte_aligned(&self) -> bool {
        let piece = const { 16 / size_of::<T>() };
        let elements = self.start | self.between_rows() | self.problem.n as usize;
        elements.is_multiple_of(piece) && self.c.is_aligned128()
    }

    /// Elements from a place to the first one that is at a multiple of sixteen bytes.
    #[inline(always)]
    pub fn to_16_bytes(&self, place: usize) -> usize {
        let piece = const { 16 / size_of::<T>() };
        self.c.misalignment::<16>().wrapping_add(place).wrapping_neg() % piece
    }

    /// What products are multiplied with.
    #[inline(always)]
    pub fn alpha(&self) -> T::Real {
        self.alpha
    }

    /// C itself, for what writes it in its own way.
    #[inline(always)]
    pub fn c(&mut self) -> &mut Out<T> {
        self.c
    }

    /// Rows and columns of C from (row, col) on.
    #[inline(always)]
    pub fn left(&self, (row, col): (usize, usize)) -> (usize, usize) {
        (self.count.saturating_sub(row), (self.problem.n as usize).saturating_sub(col))
    }

    /// The place of (row, col), where a row's elements lie side by side.
    #[inline(always)]
    pub fn place(&self, (row, col): (usize, usize)) -> usize {
        self.start + row * self.between_rows() + col
    }

    /// From one row's place to the next one's.
    #[inline(always)]
    pub fn between_rows(&self) -> usize {
        self.problem.c[0] as usize * self.rows.1
    }

    /// Elements by which a place lies behind a multiple of 128 bytes, a line of the caches: four sectors of 32 bytes.
    #[inline(always)]
    pub fn line_offset(&self, place: usize) -> usize {
        (self.c.misalignment::<LINE>() + place) % (LINE / size_of::<T>())
    }

    /// Makes elements of C of four sums, those of (row, col) to (row, col + 3), and writes those that are inside. `SCALED`
    /// promises [`is_scaled_sum`](Self::is_scaled_sum).
    #[inline(always)]
    #[track_caller]
    pub fn finish<const SCALED: bool>(
        &mut self,
        (row, col): (usize, usize),
        sums: [T::Real; FOUR],
    ) {
        if !self.is_inside((row, col)) {
            return;
        }
        let n = self.problem.n as usize;
        let (between_rows, between_cols) = (self.between_rows(), self.problem.c[1] as usize);
        let at = self.start + row * between_rows + col * between_cols;
        let mut four = sums.map(|sum| self.alpha * sum);
        let wide = self.wide && col + FOUR <= n;
        // BLAS's rule: with `beta = 0` C may hold anything, NaN among it, and is not looked at.
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
        if !SCALED {
            for i in 0..FOUR {
                if col + i < n {
                    four[i] = self.biased((row, col + i), four[i]);
                }
            }
            four = self.activated(four);
        }
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
        match self.problem.bias {
            ROW_BIAS => value + self.bias[self.rows.0 + row * self.rows.1].widened(),
            COL_BIAS => value + self.bias[col].widened(),
            _ => value,
        }
    }

    #[inline(always)]
    fn activated(&self, values: [T::Real; FOUR]) -> [T::Real; FOUR] {
        match self.problem.activation {
            // Written so that NaN stays NaN.
            RELU => values.map(|x| if x < T::Real::ZERO { T::Real::ZERO } else { x }),
            GELU => T::Real::gelu(values),
            _ => values,
        }
    }
}

impl Epilogue<'_, f32> {
    /// Writes one element where that is `valid`, if C [`is_scaled_in_rows`](Self::is_scaled_in_rows).
    #[inline(always)]
    #[track_caller]
    pub fn store_one_if(&mut self, place: usize, sum: f32, valid: bool) {
        self.c.store_if(place, [self.alpha * sum], valid);
    }
}
