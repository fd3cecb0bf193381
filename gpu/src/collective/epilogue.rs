//! The epilogue: alpha, beta, bias, activation, and the stores to C.

mod finish;

use super::{device::*, real::Real, stored::Stored, vector::FOUR};
use crate::params::{COL_BIAS, GemmParams, IDENTITY, NO_BIAS, RELU};

/// Bytes of a cache line.
const LINE: usize = 128;

/// The C of one product, and the operations from a sum to an element of C. They are computed in the
/// type of the sums, and the result is rounded to C's type.
pub struct Epilogue<'a, T: Stored> {
    problem: &'a GemmParams,
    c: &'a mut Out<T>,
    bias: &'a In<T>,
    /// The first element of this product's C, or of its first selected row.
    start: usize,
    /// The number of the first selected row, and the step from one selected row to the next.
    rows: (usize, usize),
    count: usize,
    alpha: T::Real,
    beta: T::Real,
    /// See [`is_wide`](Self::is_wide).
    wide: bool,
    /// See [`with_smooth`](Self::with_smooth).
    smooth: u32,
}

/// The columns of four elements that a lane finishes together, and their bias.
pub struct Columns<R: Real> {
    cols: [u32; FOUR],
    bias: [R; FOUR],
}

impl<'a, T: Stored> Epilogue<'a, T> {
    /// The epilogue of a block whose index along z is the product's number.
    #[inline(always)]
    pub fn new(problem: &'a GemmParams, c: &'a mut Out<T>, bias: &'a In<T>) -> Self {
        Epilogue::of_product(problem, thread::block_idx_z() as usize, c, bias)
    }

    /// The epilogue of a product of the batch.
    #[inline(always)]
    pub fn of_product(
        problem: &'a GemmParams,
        product: usize,
        c: &'a mut Out<T>,
        bias: &'a In<T>,
    ) -> Self {
        Epilogue::of_rows(problem, product, (0, 1), c, bias)
    }

    /// The epilogue of selected rows: row `first`, and every `step`th row after it. The selected
    /// rows are numbered from 0 on.
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
        Epilogue { problem, c, bias, start, rows, count, alpha, beta, wide, smooth: IDENTITY }
    }

    /// The same of a kernel with the constant `smooth`: the smooth activation that it was loaded
    /// with, or [`IDENTITY`].
    #[inline(always)]
    pub fn with_smooth(self, smooth: u32) -> Self {
        Epilogue { smooth, ..self }
    }

    /// The smooth activation that the kernel was loaded with, or [`IDENTITY`].
    #[inline(always)]
    pub fn smooth(&self) -> u32 {
        self.smooth
    }

    /// Whether C is `alpha A B + beta C` without bias and activation.
    #[inline(always)]
    fn is_scaled_sum(&self) -> bool {
        self.bias() == NO_BIAS && self.activation() == IDENTITY
    }

    /// Whether four neighbours of a row are one aligned access, if their first column is a multiple
    /// of four.
    #[inline(always)]
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// Whether C has this element.
    #[inline(always)]
    pub fn is_inside(&self, (row, col): (usize, usize)) -> bool {
        row < self.count && col < self.problem.n as usize
    }

    /// Whether C is `alpha A B`.
    #[inline(always)]
    pub fn is_scaled(&self) -> bool {
        self.is_scaled_sum() && self.beta == T::Real::ZERO
    }

    /// Whether C is `alpha A B`, and has all of a tile. Then [`store`](Self::store) writes it.
    #[inline(always)]
    pub fn is_scaled_tile(&self, (row, col): (usize, usize), (rows, cols): (usize, usize)) -> bool {
        self.is_scaled() && row + rows <= self.count && col + cols <= self.problem.n as usize
    }

    /// Stores four sums to (row, col) and its right neighbours. C [`is_scaled`](Self::is_scaled)
    /// and has all four. With `WIDE` the store has 128 bits, and C
    /// [`is_wide`](Self::is_wide).
    #[inline(always)]
    #[track_caller]
    pub fn store<const WIDE: bool>(&mut self, (row, col): (usize, usize), sums: [T::Real; FOUR]) {
        let (between_rows, between_cols) = (self.between_rows(), self.problem.c[1] as usize);
        let at = self.start + row * between_rows + col * between_cols;
        let four = sums.map(|sum| self.alpha.times(sum));
        if WIDE {
            T::store(self.c, at, four);
        } else {
            for i in 0..FOUR {
                self.c[at + i * between_cols] = T::nearest(four[i]);
            }
        }
    }

    /// Whether C is `alpha A B` and the elements of a row are contiguous. Then code with its own
    /// stores may write [`c`](Self::c) without the rest of the epilogue.
    #[inline(always)]
    pub fn is_scaled_in_rows(&self) -> bool {
        self.is_scaled() && self.has_rows()
    }

    /// Whether elements can be finished where the accumulators are
    /// ([`packed_store`](super::packed_store)): the elements of a row are contiguous, C is not
    /// read, rows have no bias, and the kernel was loaded with the activation, if that is a smooth
    /// one. With `ALL` C may be read, by sixteen bytes, and rows may have a bias: these take
    /// registers.
    #[inline(always)]
    pub fn is_finished_in_registers<const ALL: bool>(&self) -> bool {
        let bias = ALL || matches!(self.bias(), NO_BIAS | COL_BIAS);
        let read = self.beta == T::Real::ZERO || ALL && self.is_16_byte_aligned();
        let activation = self.activation();
        let is_loaded = matches!(activation, IDENTITY | RELU) || activation == self.smooth;
        bias && read && is_loaded && self.problem.c[1] == 1
    }

    /// Whether there is a bias, and whether for each column or each row, of
    /// [`params`](crate::params).
    #[inline(always)]
    pub fn bias(&self) -> u32 {
        if T::Real::IS_SCALED_SUM { NO_BIAS } else { self.problem.bias }
    }

    /// The bias of a column. Of a column outside C it is any.
    #[inline(always)]
    #[track_caller]
    pub fn bias_of_col(&self, col: u32) -> T::Real {
        self.stored_bias_of_col(col).widened()
    }

    /// The bias of a column, as it is stored. Of a column outside C it is any.
    #[inline(always)]
    #[track_caller]
    pub fn stored_bias_of_col(&self, col: u32) -> T {
        self.bias[col.min(self.problem.n - 1) as usize]
    }

    /// The bias of a row. Of a row outside C it is any.
    #[inline(always)]
    #[track_caller]
    pub fn bias_of_row(&self, row: u32) -> T::Real {
        let row = row.min(self.count as u32 - 1) as usize;
        self.bias[self.rows.0 + row * self.rows.1].widened()
    }

    /// The factor of the old C.
    #[inline(always)]
    pub fn beta(&self) -> T::Real {
        self.beta
    }

    /// The old elements of C from (row, col) on. C [is in fours](Self::is_in_fours).
    #[inline(always)]
    #[track_caller]
    pub fn load_four(&self, at: (u32, u32)) -> [T::Real; FOUR] {
        T::load(self.c, self.index(at))
    }

    /// Stores four elements from (row, col) on. C [is in fours](Self::is_in_fours).
    #[inline(always)]
    #[track_caller]
    pub fn store_four(&mut self, at: (u32, u32), four: [T::Real; FOUR]) {
        let at = self.index(at);
        T::store(self.c, at, four);
    }

    /// Asks for the old elements of a tile in L2, if C is read and its rows are contiguous. All
    /// lanes of a warp call this.
    #[inline(always)]
    #[track_caller]
    pub fn prefetch_tile(&self, first: (usize, usize), (rows, cols): (u32, u32)) {
        if self.beta == T::Real::ZERO || self.problem.c[1] != 1 {
            return;
        }
        let of_line = const { (LINE / size_of::<T>()) as u32 };
        let lines = cols.div_ceil(of_line);
        let (left, width) = self.left(first);
        let mut number = thread::lane_id();
        while number < rows * lines {
            let (row, col) = (number / lines, number % lines * of_line);
            if (row as usize) < left && (col as usize) < width {
                self.c.prefetch(
                    self.place(first) + row as usize * self.between_rows() + col as usize,
                );
            }
            number += 32;
        }
    }

    /// The index of (row, col).
    #[inline(always)]
    fn index(&self, (row, col): (u32, u32)) -> usize {
        let across = col as usize * self.problem.c[1] as usize;
        self.start + row as usize * self.between_rows() + across
    }

    /// The activation function, of [`params`](crate::params).
    #[inline(always)]
    pub fn activation(&self) -> u32 {
        if T::Real::IS_SCALED_SUM { IDENTITY } else { self.problem.activation }
    }

    /// Whether the elements of a row are contiguous.
    #[inline(always)]
    pub fn has_rows(&self) -> bool {
        self.problem.c[1] == 1
    }

    /// Whether the elements of a column are contiguous, and those of a row are not.
    #[inline(always)]
    pub fn is_in_columns(&self) -> bool {
        self.between_rows() == 1 && self.problem.c[1] != 1
    }

    /// Whether rows start and end at multiples of sixteen bytes. Elements of a row are contiguous.
    #[inline(always)]
    pub fn is_16_byte_aligned(&self) -> bool {
        let piece = const { 16 / size_of::<T>() };
        let elements = self.start | self.between_rows() | self.problem.n as usize;
        elements.is_multiple_of(piece) && self.c.is_aligned128()
    }

    /// Elements from an index to the next multiple of sixteen bytes.
    #[inline(always)]
    pub fn to_16_bytes(&self, place: usize) -> usize {
        let piece = const { 16 / size_of::<T>() };
        self.c.misalignment::<16>().wrapping_add(place).wrapping_neg() % piece
    }

    /// The factor of A B.
    #[inline(always)]
    pub fn alpha(&self) -> T::Real {
        self.alpha
    }

    /// C itself, for code with its own stores.
    #[inline(always)]
    pub fn c(&mut self) -> &mut Out<T> {
        self.c
    }

    /// C itself, for code with its own loads.
    #[inline(always)]
    pub fn old(&self) -> &Out<T> {
        self.c
    }

    /// Rows and columns of C from (row, col) on.
    #[inline(always)]
    pub fn left(&self, (row, col): (usize, usize)) -> (usize, usize) {
        (self.count.saturating_sub(row), (self.problem.n as usize).saturating_sub(col))
    }

    /// The index of (row, col), if the elements of a row are contiguous.
    #[inline(always)]
    pub fn place(&self, (row, col): (usize, usize)) -> usize {
        self.start + row * self.between_rows() + col
    }

    /// Elements from one row to the next.
    #[inline(always)]
    pub fn between_rows(&self) -> usize {
        self.problem.c[0] as usize * self.rows.1
    }

    /// Elements from the start of a 128-byte cache line to an index. A line is four sectors of 32
    /// bytes.
    #[inline(always)]
    pub fn line_offset(&self, place: usize) -> usize {
        (self.c.misalignment::<LINE>() + place) % (LINE / size_of::<T>())
    }

    /// Whether each four neighbours of a row, from a multiple of four on, are one aligned access,
    /// and all are inside C or none.
    #[inline(always)]
    pub fn is_in_fours(&self) -> bool {
        self.wide && self.problem.n.is_multiple_of(FOUR as u32)
    }

    /// Four columns and their bias.
    #[inline(always)]
    #[track_caller]
    pub fn columns(&self, cols: [u32; FOUR]) -> Columns<T::Real> {
        let mut bias = [T::Real::ZERO; FOUR];
        if self.bias() == COL_BIAS {
            // Of a column outside C any element is read, and not used.
            bias = cols.map(|col| self.bias_of_col(col));
        }
        Columns { cols, bias }
    }
}
