//! Operands of the kernels, and a B that they pack themselves.

use gpu::{
    collective::{background::COUNTERS, stored::Stored},
    params::MatrixBatch,
};
use simt::{Bound, Elements};

use crate::operand::{Operand, number};

/// The distance between rows. Those of each alignment class have another misalignment, and there is
/// padding between all rows.
pub(super) fn pitch<T>(anywhere: bool) -> impl Fn(usize) -> usize {
    move |cols| cols.next_multiple_of(16 / size_of::<T>()) + if anywhere { 19 } else { 0 }
}

/// A B whose tail, from the last tile on, is not packed yet. The kernel packs it in the background
/// from unaligned rows, `from`.
pub(super) struct Beside<T> {
    pub(super) from: Operand<T>,
    pub(super) b: Operand<T>,
    pub(super) first: usize,
    pub(super) words: [u32; COUNTERS],
}

impl<T: Stored<Real: std::fmt::Debug>> Beside<T> {
    pub(super) fn new(whole: &Operand<T>, tile_cols: u32) -> Self {
        let ([_, k, n], tile_cols) = (whole.extents, tile_cols as usize);
        let first = (n - 1) / tile_cols * tile_cols;
        let sizes = [1, n - first, k];
        let from = Operand::new(sizes, false, pitch::<T>(true), whole.shape, |_, col, p| {
            whole.element(p, first + col)
        });
        let b = Operand::new([1, n, k], false, pitch::<T>(false), whole.shape, |_, col, p| {
            if col < first { whole.element(p, col) } else { number(f32::NAN) }
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

    /// All elements of the unaligned rows, with the padding between them.
    pub(super) fn memory(&self) -> Bound<'static> {
        let [_, rows, len] = self.from.extents;
        let len = (rows - 1) * self.from.pitch + len;
        // SAFETY: this many elements exist, and nobody writes them.
        Bound::Elements(unsafe { Elements::read(self.from.values.as_ptr().cast::<T>(), len) })
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
