//! Every element of C compared with the product in float64.

use std::{
    borrow::Cow,
    mem,
    ops::Range,
    sync::{Mutex, PoisonError},
};

use super::{
    Claim, Comparison, Criterion, NumberFormat, Worst, activation, claim::Bounds, doubled::Doubled,
};
use gpu_gemm::{Layout, Result, blocks::Source, memory, parallel};

/// Rows of C that are compared at a time: enough for a fast product, and few enough for many cores.
const PANEL_ROWS: usize = 32;
/// Rows, columns and k-steps in memory at a time: a quarter of a GiB in all.
pub(super) const BLOCK: usize = 2048;

/// A block in float64, in the layout of its source.
pub(super) struct Block {
    pub(super) values: Vec<f64>,
    /// The strides: elements from one row to the next, and from one column to the next.
    pub(super) strides: [usize; 2],
    layout: Layout,
}

impl Block {
    /// A row-major block with `cols` columns.
    pub(super) fn row_major(values: Vec<f64>, cols: usize) -> Self {
        Block { values, strides: [cols, 1], layout: Layout::RowMajor }
    }

    /// Reads a block on all cores.
    pub(super) fn read(
        source: &dyn Source<f64>,
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Self> {
        let layout = source.layout();
        let (outer, inner, strides) = match layout {
            Layout::RowMajor => (rows.clone(), cols.clone(), [cols.len(), 1]),
            Layout::ColMajor => (cols.clone(), rows.clone(), [1, rows.len()]),
        };
        let mut values = memory::filled(0.0, outer.len() * inner.len())?;
        let runs = outer.len().div_ceil(parallel::threads()).max(1);
        let parts = values.chunks_mut((runs * inner.len()).max(1)).enumerate();
        parallel::for_each(parts, |(part, values)| {
            let first = outer.start + part * runs;
            let outer = first..(first + runs).min(outer.end);
            let (rows, cols) = match layout {
                Layout::RowMajor => (outer, cols.clone()),
                Layout::ColMajor => (rows.clone(), outer),
            };
            source.read(rows, cols, layout, values)
        })?;
        Ok(Block { values, strides, layout })
    }

    /// The block of absolute values.
    pub(super) fn abs(&self) -> Result<Block> {
        let mut values = memory::reserved(self.values.len())?;
        values.extend(self.values.iter().map(|x| x.abs()));
        Ok(Block { values, ..*self })
    }

    /// Its elements row by row, of `cols` columns.
    fn by_rows(&self, cols: usize) -> Result<Cow<'_, [f64]>> {
        if self.layout == Layout::RowMajor {
            return Ok(Cow::Borrowed(&self.values));
        }
        let len = self.values.len();
        let mut values = memory::reserved(len)?;
        values.extend((0..len).map(|at| self.at(at / cols, at % cols)));
        Ok(Cow::Owned(values))
    }

    /// The row and column of the element at that index.
    pub(super) fn place(&self, index: usize) -> (usize, usize) {
        match (self.layout, self.strides) {
            (Layout::RowMajor, [cols, _]) => (index / cols, index % cols),
            (Layout::ColMajor, [_, rows]) => (index % rows, index / rows),
        }
    }

    /// The element at that row and column.
    pub(super) fn at(&self, row: usize, col: usize) -> f64 {
        self.values[row * self.strides[0] + col * self.strides[1]]
    }
}

/// `c += A b` in float64, for some rows of A. c is row-major. b has its own strides.
pub(super) fn add_product(
    (a, rows): (&Block, Range<usize>),
    k: usize,
    (b, n): (&Block, usize),
    c: &mut [f64],
) {
    if rows.is_empty() || n == 0 || k == 0 {
        return;
    }
    let last =
        |block: &Block, row: usize, col: usize| row * block.strides[0] + col * block.strides[1];
    assert!(last(a, rows.end - 1, k - 1) < a.values.len(), "A is smaller than its sizes");
    assert!(last(b, k - 1, n - 1) < b.values.len(), "B is smaller than its sizes");
    assert_eq!(c.len(), rows.len() * n, "C has another size");
    let [[a_row, a_col], [b_row, b_col]] =
        [a, b].map(|block| block.strides.map(|stride| stride as isize));
    // SAFETY: the last elements of all three are inside, as checked above.
    unsafe {
        let a = a.values.as_ptr().add(rows.start * a.strides[0]);
        let (b, c) = (b.values.as_ptr(), c.as_mut_ptr());
        let (m, c_row) = (rows.len(), n as isize);
        matrixmultiply::dgemm(m, k, n, 1.0, a, a_row, a_col, b, b_row, b_col, 1.0, c, c_row, 1);
    }
}

/// Parts of a size, at most [`BLOCK`] each.
pub(super) fn parts(size: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    (0..size).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(size))
}

/// The number of panels of rows, over all parts.
pub(super) fn panels(rows: usize) -> usize {
    parts(rows).map(|part| part.len().div_ceil(PANEL_ROWS)).sum()
}

impl Claim<'_> {
    /// Compares all of C.
    ///
    /// It takes the time of one product in float64 ([`Criterion::Exact`]) or two, on all cores, and
    /// at most a quarter of a GiB of memory.
    ///
    /// # Errors
    /// [`Error::Argument`](gpu_gemm::Error::Argument) for matrices that do not fit together;
    /// [`Error::Interrupted`](gpu_gemm::Error::Interrupted); those of the sources.
    pub fn compare(&self, criterion: Criterion) -> Result<Comparison> {
        let shape = self.shape()?;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let bounds = (criterion == Criterion::Bound).then(|| self.bounds(k));
        let products = if bounds.is_some() { 2 } else { 1 };
        let all = panels(m) * parts(n).count() * (products * parts(k).count() + 1);
        gpu_gemm::progress::begin(all as u64);
        let mut comparison = Comparison::NOTHING;
        for cols in parts(n) {
            for rows in parts(m) {
                let mut sums = Sums::new(rows.len() * cols.len(), criterion, self.computed)?;
                for depth in parts(k) {
                    let a = Block::read(self.a, rows.clone(), depth.clone())?;
                    let b = Block::read(self.b, depth.clone(), cols.clone())?;
                    sums.add(&a, &b, depth.len(), cols.len())?;
                }
                comparison =
                    comparison.merge(self.compare_tile(bounds, &sums, rows, cols.clone())?);
            }
        }
        Ok(comparison)
    }

    /// Compares a tile of C with its sums.
    fn compare_tile(
        &self,
        bounds: Option<Bounds>,
        sums: &Sums,
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<Comparison> {
        let n = cols.len();
        let c = Block::read(self.c, rows.clone(), cols.clone())?;
        let before = self
            .before()
            .map(|before| Block::read(before, rows.clone(), cols.clone()))
            .transpose()?;
        let found = Mutex::new(Comparison::NOTHING);
        parallel::for_each((0..rows.len()).step_by(PANEL_ROWS), |first| {
            gpu_gemm::check_interrupt()?;
            let mut comparison = Comparison::NOTHING;
            for row in first..(first + PANEL_ROWS).min(rows.len()) {
                for col in 0..n {
                    let index = row * n + col;
                    let sums = (sums.sum(index), sums.sizes.get(index).copied().unwrap_or(0.0));
                    let before = before.as_ref().map(|before| before.at(row, col));
                    let place = (rows.start + row, cols.start + col);
                    self.add(&mut comparison, place, c.at(row, col), bounds, sums, before);
                }
            }
            gpu_gemm::progress::one_more();
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            *found = mem::replace(&mut *found, Comparison::NOTHING).merge(comparison);
            Ok(())
        })?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compares an element of C with its sum and the sum of its terms' absolute values. Without
    /// bounds the sum must be exact, and so must the element, apart from what follows the sum.
    pub(super) fn add(
        &self,
        comparison: &mut Comparison,
        (row, col): (usize, usize),
        got: f64,
        bounds: Option<Bounds>,
        (sum, size): (f64, f64),
        before: Option<f64>,
    ) {
        let [old, bias] = [
            before.map_or(0.0, |before| self.beta * before),
            self.bias.map_or(0.0, |bias| bias[col]),
        ];
        let linear = self.alpha * sum + old + bias;
        let size = if bounds.is_some() { size } else { sum.abs() };
        let magnitude = self.alpha.abs() * size + old.abs() + bias.abs();
        let bound = match bounds {
            Some(bounds) => bounds.of(magnitude),
            None => self.after_an_exact_sum(magnitude),
        };
        let (want, bound) = activation::after(self, linear, bound);
        // float64 holds all integers up to 2^53. How a larger one wraps around it does not know.
        if !self.stored.is_float() && want.abs() >= 2f64.powi(53) {
            comparison.elements += 1;
            comparison.overflowing += 1;
            return;
        }
        let want = self.stored.wrapped(want);
        if bounds.is_none() && bound == 0.0 {
            let want = self.stored.nearest(want);
            return comparison.add(Worst::new(row, col, got, want, 0.0), 0.0);
        }
        // It may have overflowed in a sum, or when it was stored.
        let stored = || {
            self.stored != self.computed && {
                let (low, high) = self.stored(want, bound);
                got == low || got == high
            }
        };
        if !got.is_finite() && (self.may_overflow(size, magnitude) || stored()) {
            comparison.elements += 1;
            comparison.overflowing += 1;
            return;
        }
        let bound = self.stored_bound(want, bound);
        comparison.add(Worst::new(row, col, got, want, bound), bound);
    }
}

/// Row-major sums of a tile of C, and the sums of their terms' absolute values.
struct Sums {
    /// Empty where they are doubled.
    sums: Vec<f64>,
    /// For real numbers that are computed in f64, whose sums are no more exact than those of C.
    doubled: Option<Doubled>,
    /// Empty if the result must be exact.
    sizes: Vec<f64>,
}

impl Sums {
    fn new(len: usize, criterion: Criterion, computed: NumberFormat) -> Result<Self> {
        let sizes = match criterion {
            Criterion::Bound => memory::filled(0.0, len)?,
            Criterion::Exact => Vec::new(),
        };
        let is_doubled = criterion == Criterion::Bound && computed == NumberFormat::F64;
        let doubled = is_doubled.then(|| Doubled::new(len)).transpose()?;
        let sums = if is_doubled { Vec::new() } else { memory::filled(0.0, len)? };
        Ok(Sums { sums, doubled, sizes })
    }

    fn sum(&self, index: usize) -> f64 {
        self.doubled.as_ref().map_or_else(|| self.sums[index], |sums| sums.nearest(index))
    }

    /// Adds the products of some k-steps.
    fn add(&mut self, a: &Block, b: &Block, k: usize, n: usize) -> Result<()> {
        match &mut self.doubled {
            Some(sums) => sums.add(&a.by_rows(k)?, k, &b.by_rows(n)?, n)?,
            None => add_panels(a, k, b, n, &mut self.sums)?,
        }
        if self.sizes.is_empty() {
            return Ok(());
        }
        add_panels(&a.abs()?, k, &b.abs()?, n, &mut self.sizes)
    }
}

/// `c += A b`, panel by panel on all cores.
pub(super) fn add_panels(a: &Block, k: usize, b: &Block, n: usize, c: &mut [f64]) -> Result<()> {
    let panels = c.chunks_mut((PANEL_ROWS * n).max(1)).enumerate();
    parallel::for_each(panels, |(panel, c)| {
        gpu_gemm::check_interrupt()?;
        let first = panel * PANEL_ROWS;
        add_product((a, first..first + c.len() / n), k, (b, n), c);
        gpu_gemm::progress::one_more();
        Ok(())
    })
}
