//! Operands in memory as the kernels take them: K-major or MN-major, aligned or unaligned.

use gpu::{
    collective::{background::COUNTERS, stored::Stored},
    params::MatrixBatch,
};
use simt::{
    Bound, Elements, Map,
    device::{BoxShape, TensorMap},
};

/// Sixteen bytes, aligned.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct Eight<T>(#[allow(dead_code, reason = "only its address is used")] [T; 8]);

/// An operand: `outer` rows of A (columns of B) and `k` steps, K-major or MN-major.
pub(super) struct Operand<T> {
    pub(super) values: Vec<Eight<T>>,
    pub(super) extents: [usize; 3],
    pub(super) pitch: usize,
    pub(super) shape: BoxShape,
}

impl<T: Stored<Real = f32>> Operand<T> {
    pub(super) fn new(
        [outer, k]: [usize; 2],
        along_k: bool,
        anywhere: bool,
        shape: BoxShape,
        value: impl Fn(usize, usize) -> T,
    ) -> Self {
        let (rows, cols) = if along_k { (outer, k) } else { (k, outer) };
        // The rows of each alignment class have another misalignment, and there is padding between
        // all rows.
        let pitch = cols.next_multiple_of(8) + if anywhere { 19 } else { 0 };
        let at = |row: usize, col: usize| match () {
            // The padding is not zero: it must not be read.
            _ if col >= cols => T::nearest(f32::NAN),
            _ if along_k => value(row, col),
            _ => value(col, row),
        };
        let at = |place: usize| at(place / pitch, place % pitch);
        let eights = (0..(rows * pitch).div_ceil(8)).map(|i| i * 8);
        let values = eights.map(|first| Eight(std::array::from_fn(|i| at(first + i)))).collect();
        Operand { values, extents: [1, rows, cols], pitch, shape }
    }

    /// A map for each alignment class of rows. It starts at the multiple of 16 bytes before the
    /// class's first row.
    pub(super) fn maps(&self, classes: usize) -> Bound<'static> {
        let [_, rows, len] = self.extents;
        let map = |class: usize| -> Map {
            let (start, rows) = match rows.saturating_sub(class) {
                0 => (0, 1),
                rows => (class * self.pitch, rows.div_ceil(classes)),
            };
            let skipped = start % (16 / size_of::<T>());
            let first = self.values.as_ptr().cast::<T>().wrapping_add(start - skipped);
            let extents = [1, rows, len + skipped];
            // SAFETY: this many elements exist, and nobody writes them.
            let map =
                unsafe { TensorMap::new(first, extents, [0, classes * self.pitch], self.shape) };
            map.unwrap().skipping(skipped).erased()
        };
        Bound::Maps((0..classes).map(map).collect())
    }

    /// All elements from the first on, with the padding between rows.
    pub(super) fn memory(&self) -> Bound<'static> {
        let [_, rows, len] = self.extents;
        let len = (rows - 1) * self.pitch + len;
        // SAFETY: this many elements exist, and nobody writes them.
        Bound::Elements(unsafe { Elements::read(self.values.as_ptr().cast::<T>(), len) })
    }

    /// The element at that row and column in memory.
    pub(super) fn element(&self, row: usize, col: usize) -> T {
        let first = self.values.as_ptr().cast::<T>();
        // SAFETY: one of its elements, which nobody writes meanwhile.
        unsafe { *first.add(row * self.pitch + col) }
    }
}

/// Integers repeat after this many rows of A and columns of B.
pub(super) const INTEGERS: usize = 11;

/// Small integers, whose sums are exact.
pub(super) fn integer(row: usize, col: usize, salt: usize) -> f32 {
    ((row * 7 + col * 3 + salt) % 11) as f32 - 5.0
}

/// A B whose tail, from the last tile on, is not packed yet. The kernel packs it in the background
/// from unaligned rows, `from`.
pub(super) struct Beside<T> {
    pub(super) from: Operand<T>,
    pub(super) b: Operand<T>,
    pub(super) first: usize,
    pub(super) words: [u32; COUNTERS],
}

impl<T: Stored<Real = f32>> Beside<T> {
    pub(super) fn new(whole: &Operand<T>, tile_cols: u32) -> Self {
        let ([_, k, n], tile_cols) = (whole.extents, tile_cols as usize);
        let first = (n - 1) / tile_cols * tile_cols;
        let from = Operand::new([n - first, k], false, true, whole.shape, |col, p| {
            whole.element(p, first + col)
        });
        let b = Operand::new([n, k], false, false, whole.shape, |col, p| match col < first {
            true => whole.element(p, col),
            false => T::nearest(f32::NAN),
        });
        Beside { from, b, first, words: [0; COUNTERS] }
    }

    pub(super) fn matrix(&self) -> MatrixBatch {
        let [_, rows, cols] = self.from.extents.map(|extent| extent as u32);
        MatrixBatch {
            rows,
            cols,
            count: 1,
            pitch: self.from.pitch as u64,
            ..MatrixBatch::default()
        }
    }

    /// The place of the packed columns, with the padding after each row.
    pub(super) fn place(&mut self) -> Bound<'static> {
        let first = self.b.values.as_mut_ptr().cast::<T>().wrapping_add(self.first);
        let len = self.b.extents[1] * self.b.pitch - self.first;
        // SAFETY: this many elements exist, and only the kernel uses them.
        Bound::Elements(unsafe { Elements::write(first, len) })
    }

    pub(super) fn is_copied(&self, whole: &Operand<T>, name: &str) {
        let [_, k, n] = whole.extents;
        for (p, col) in (0..k).flat_map(|p| (self.first..n).map(move |col| (p, col))) {
            let (got, want) = (self.b.element(p, col).widened(), whole.element(p, col).widened());
            assert_eq!(got, want, "{name}: beside, ({p}, {col})");
        }
        assert_eq!(self.words, [0; COUNTERS], "{name}");
    }
}
