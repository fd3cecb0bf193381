//! Operands in memory as kernels take them: K-major or MN-major, aligned or unaligned.

use gpu::collective::{real::Real, stored::Stored};
use simt::{
    Bound, Elements, Map,
    device::{BoxShape, TensorMap},
};

/// A multiple of sixteen bytes, aligned.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct Sixteen<T>(#[allow(dead_code, reason = "only its address is used")] [T; 16]);

/// At least `len` elements.
fn memory<T>(len: usize, at: impl Fn(usize) -> T) -> Vec<Sixteen<T>> {
    let all = (0..len.div_ceil(16)).map(|i| Sixteen(std::array::from_fn(|j| at(16 * i + j))));
    all.collect()
}

/// The number of this type.
pub(super) fn number<T: Stored>(value: f32) -> T {
    T::nearest(T::Real::from_f64(value.into()))
}

/// A batch of matrices that TMA copies: `outer` rows of A (columns of B) and `k` steps.
pub(super) struct Operand<T> {
    pub(super) values: Vec<Sixteen<T>>,
    /// Matrices, and their rows and columns in memory.
    pub(super) extents: [usize; 3],
    pub(super) pitch: usize,
    step: usize,
    pub(super) shape: BoxShape,
}

impl<T: Stored> Operand<T> {
    /// `pitch` is of the length of a row: the distance between rows.
    pub(super) fn new(
        [count, outer, k]: [usize; 3],
        along_k: bool,
        pitch: impl Fn(usize) -> usize,
        shape: BoxShape,
        value: impl Fn(usize, usize, usize) -> T,
    ) -> Self {
        let (rows, cols) = if along_k { (outer, k) } else { (k, outer) };
        let pitch = pitch(cols);
        let step = (rows * pitch).next_multiple_of(16 / size_of::<T>());
        let at = |place: usize| {
            let (i, row, col) = (place / step, place % step / pitch, place % step % pitch);
            match () {
                // The padding is not zero: it must not be read.
                _ if i >= count || row >= rows || col >= cols => number(f32::NAN),
                _ if along_k => value(i, row, col),
                _ => value(i, col, row),
            }
        };
        let values = memory(count * step, at);
        Operand { values, extents: [count, rows, cols], pitch, step, shape }
    }

    /// A map for each alignment class of rows. It starts at the multiple of 16 bytes before the
    /// class's first row.
    pub(super) fn maps(&self, classes: usize) -> Bound<'static> {
        let [count, rows, len] = self.extents;
        let map = |class: usize| -> Map {
            let (start, rows) = match rows.saturating_sub(class) {
                // A class without a row has a map of another row, which must not be read.
                0 => (0, 1),
                rows => (class * self.pitch, rows.div_ceil(classes)),
            };
            let skipped = start % (16 / size_of::<T>());
            let first = self.values.as_ptr().cast::<T>().wrapping_add(start - skipped);
            let (extents, strides) =
                ([count, rows, len + skipped], [self.step, classes * self.pitch]);
            // SAFETY: this many elements exist, and nobody writes them.
            let map = unsafe { TensorMap::new(first, extents, strides, self.shape) };
            map.unwrap().skipping(skipped).erased()
        };
        Bound::Maps((0..classes).map(map).collect())
    }

    /// The element of the first matrix at that row and column in memory.
    pub(super) fn element(&self, row: usize, col: usize) -> T {
        let first = self.values.as_ptr().cast::<T>();
        // SAFETY: one of its elements, which nobody writes meanwhile.
        unsafe { *first.add(row * self.pitch + col) }
    }
}

/// The layout of an operand: K-major or not, elements before it, and padding between rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way(pub(super) bool, pub(super) usize, pub(super) usize);

/// A batch of matrices that may be unaligned: `outer` rows of A (columns of B) by `k` steps.
pub(super) struct Unaligned<T> {
    values: Vec<Sixteen<T>>,
    start: usize,
    len: usize,
    /// Strides along the outer side and along k, and between matrices.
    pub(super) strides: [u64; 2],
    pub(super) step: u64,
}

impl<T: Stored> Unaligned<T> {
    pub(super) fn new(
        [count, outer, k]: [usize; 3],
        Way(along_k, start, between): Way,
        value: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let (rows, cols) = if along_k { (outer, k) } else { (k, outer) };
        let pitch = cols + between;
        // The last row ends at its last element: nothing after it may be read.
        let (step, len) = (rows * pitch, (count * rows - 1) * pitch + cols);
        let at = |at: usize| {
            let Some(at) = at.checked_sub(start).filter(|&at| at < len && at % pitch < cols) else {
                return f32::NAN;
            };
            let (row, col) = (at % step / pitch, at % pitch);
            let (outer, p) = if along_k { (row, col) } else { (col, row) };
            value(at / step, outer, p)
        };
        let values = memory(start + len + 16, |place| number(at(place)));
        let strides = if along_k { [pitch, 1] } else { [1, pitch] };
        Unaligned { values, start, len, strides: strides.map(|s| s as u64), step: step as u64 }
    }

    /// All elements, with the padding between rows.
    ///
    /// # Safety
    /// They outlive the launch.
    pub(super) unsafe fn elements(&self) -> Bound<'static> {
        let first = self.values.as_ptr().cast::<T>().wrapping_add(self.start);
        // SAFETY: this many elements exist, nobody writes them; and the caller's.
        Bound::Elements(unsafe { Elements::read(first, self.len) })
    }
}

/// Integers repeat after this many rows of A and columns of B.
pub(super) const INTEGERS: usize = 11;

/// Small integers, whose sums are exact.
pub(super) fn integer(row: usize, col: usize, salt: usize) -> f32 {
    ((row * 7 + col * 3 + salt) % 11) as f32 - 5.0
}

/// From -1 to 1, with all 24 bits.
pub(super) fn real(row: usize, col: usize, salt: usize) -> f32 {
    let bits = (row << 40 | col << 20 | salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
}
