//! Batches of matrices in memory: their elements, what surrounds them, and a hash of everything.

use std::{
    fmt,
    hash::{DefaultHasher, Hasher},
};

use simt::{
    Bf16, Bound, E4m3, E5m2, Element, Elements, F16,
    check::Memory,
    device::{BoxShape, TensorMap, TensorMapMut},
};

/// A type of elements.
pub trait Number: Element + Into<f64> {
    /// The content of memory that was not written. For floats it is a NaN that no arithmetic makes.
    const UNTOUCHED: Self;

    fn of(value: f64) -> Self;

    fn bits(self) -> u64;

    /// The value for the hash. Every NaN is the same, except [`UNTOUCHED`](Self::UNTOUCHED).
    fn word(self) -> u64 {
        let [it, untouched] = [self, Self::UNTOUCHED].map(|number| number.into().to_bits());
        if self.into().is_nan() && it != untouched { u64::MAX } else { it }
    }
}

macro_rules! numbers {
    ($($number:ident: $untouched:expr, $bits:expr, |$value:ident| $of:expr;)*) => {$(
        impl Number for $number {
            const UNTOUCHED: $number = $untouched;

            fn of($value: f64) -> $number {
                $of
            }

            fn bits(self) -> u64 {
                $bits(self).into()
            }
        }
    )*};
}

numbers! {
    f32: f32::from_bits(0x7fed_cba9), f32::to_bits, |value| value as f32;
    f64: f64::from_bits(0x7ffe_dcba_9876_5432), f64::to_bits, |value| value;
    Bf16: Bf16::from_bits(0x7fed), Bf16::to_bits, |value| Bf16::from_f32(value as f32);
    F16: F16::from_bits(0x7fed), F16::to_bits, |value| F16::from_f32(value as f32);
    E4m3: E4m3::from_bits(0xff), E4m3::to_bits, |value| E4m3::from_f32(value as f32);
    E5m2: E5m2::from_bits(0xfd), E5m2::to_bits, |value| E5m2::from_f32(value as f32);
    i8: 0x5d, |it| it as u8, |value| value as i8;
    i32: 0x7fed_cba9, |it| it as u32, |value| value as i32;
    u8: 0xed, u64::from, |value| value as u8;
    u16: 0x7fed, u64::from, |value| value as u16;
    u32: 0x7fed_cba9, u64::from, |value| value as u32;
}

/// The places of the elements.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// The strides from one row to the next, and from one column to the next.
    pub strides: [usize; 2],
    /// Elements from a 16-byte boundary to the first element.
    pub offset: usize,
    /// Elements from one matrix to the next.
    pub step: usize,
    /// Rows are whole pieces of sixteen bytes, also the last one: a kernel may write anything to
    /// the rest of a last piece.
    pub padded: bool,
}

impl Place {
    pub fn strided(strides: [usize; 2]) -> Self {
        Place { strides, ..Place::default() }
    }

    /// Rows with that pitch.
    pub fn padded(rows: usize, pitch: usize) -> Self {
        Place { step: rows * pitch, padded: true, ..Place::strided([pitch, 1]) }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} from {} by {}", self.strides, self.offset, self.step)
    }
}

/// Elements before and after.
const BAND: usize = 64;

pub struct Matrix<T> {
    memory: Vec<T>,
    /// The index of the first element.
    start: usize,
    /// Matrices, rows, columns.
    pub size: [usize; 3],
    pub place: Place,
    /// Elements that the kernel gets.
    pub len: usize,
}

impl<T: Number> Matrix<T> {
    /// All elements are [`Number::UNTOUCHED`].
    pub fn new(size @ [count, rows, cols]: [usize; 3], place: Place) -> Self {
        let [between_rows, between_cols] = place.strides;
        let len = match count * rows * cols {
            0 => 0,
            _ if place.padded => count * place.step,
            _ => {
                (count - 1) * place.step + (rows - 1) * between_rows + (cols - 1) * between_cols + 1
            }
        };
        let memory = vec![T::UNTOUCHED; 2 * BAND + place.offset + len + 16];
        let start = BAND + memory[BAND..].as_ptr().align_offset(16) + place.offset;
        Matrix { memory, start, size, place, len }
    }

    pub fn vector(len: usize) -> Self {
        Matrix::new([1, 1, len], Place::strided([0, 1]))
    }

    /// Fills in elements. `value` gets the matrix, row and column.
    pub fn filled(mut self, value: impl Fn([usize; 3]) -> f64) -> Self {
        let ([count, rows, cols], [between_rows, between_cols]) = (self.size, self.place.strides);
        for n in 0..count * rows * cols {
            let [i, row, col] = [n / (rows * cols), n / cols % rows, n % cols];
            let at = i * self.place.step + row * between_rows + col * between_cols;
            self.memory[self.start + at] = T::of(value([i, row, col]));
        }
        self
    }

    pub fn pointer(&mut self) -> *mut T {
        self.memory[self.start..].as_mut_ptr()
    }

    /// Whether its elements are contiguous.
    pub fn is_dense(&self) -> bool {
        self.len == self.size.iter().product::<usize>()
    }

    /// What is between its elements.
    pub fn gaps(&self) -> Vec<Memory> {
        let ([count, rows, cols], [between_rows, between_cols]) = (self.size, self.place.strides);
        let mut is_gap = vec![true; self.len];
        for n in 0..count * rows * cols {
            let [i, row, col] = [n / (rows * cols), n / cols % rows, n % cols];
            is_gap[i * self.place.step + row * between_rows + col * between_cols] = false;
        }
        let gaps = (0..self.len).filter(|&at| is_gap[at]);
        gaps.map(|at| Memory::new(&self.memory[self.start + at], 1, true)).collect()
    }

    /// The argument for reading.
    pub fn view(&mut self) -> Bound<'static> {
        // SAFETY: a trial keeps its matrices until its launch has ended, and has this many
        // elements.
        Bound::Elements(unsafe { Elements::read(self.pointer(), self.len) })
    }

    /// The argument for writing, from its element `first` on. `holds_values`: the elements are
    /// written before the launch.
    pub fn out(&mut self, first: usize, holds_values: bool) -> Bound<'static> {
        let (pointer, len) = (self.pointer().wrapping_add(first), self.len - first);
        // SAFETY: as in `view`.
        let elements = unsafe { Elements::write(pointer, len) };
        Bound::Elements(if holds_values { elements } else { elements.uninit() })
    }

    /// A map for each alignment class of rows. It starts at the multiple of 16 bytes before the
    /// class's first row. A class without rows has the first row's map.
    pub fn maps(&mut self, shape: BoxShape, classes: usize) -> Bound<'static> {
        let ([count, rows, cols], Place { strides: [pitch, _], step, .. }) =
            (self.size, self.place);
        let map = |class: usize| {
            let (start, rows) = match rows.saturating_sub(class) {
                0 => (0, 1),
                rows => (class * pitch, rows.div_ceil(classes)),
            };
            let skipped = start % (16 / size_of::<T>());
            let base = self.pointer().wrapping_add(start - skipped);
            let extents = [count, rows, cols + skipped];
            let strides = [step, classes * pitch];
            // SAFETY: as in `view`.
            let map = unsafe { TensorMap::new(base.cast_const(), extents, strides, shape) };
            map.expect("cases are as TMA takes them").skipping(skipped).erased()
        };
        Bound::Maps((0..classes).map(map).collect())
    }

    /// A map of a matrix that a kernel stores by TMA. The matrix has no values before the launch.
    pub fn stored(&mut self, shape: BoxShape) -> Bound<'static> {
        let Place { strides: [pitch, _], step, .. } = self.place;
        // SAFETY: as in `view`.
        let map = unsafe { TensorMapMut::new(self.pointer(), self.size, [step, pitch], shape) };
        Bound::Maps(vec![map.expect("cases are as TMA takes them").erased().uninit()])
    }

    /// Hashes the elements and what surrounds them, except what may be anything. `word`: of an
    /// element.
    pub fn hash(&self, hasher: &mut DefaultHasher, word: fn(T) -> u64) {
        let (cols, pitch) = (self.size[2], self.place.strides[0]);
        let may_be_any = cols..cols.next_multiple_of(16 / size_of::<T>());
        for (at, element) in
            (0usize..).zip(&self.memory[self.start - BAND..][..self.len + 2 * BAND])
        {
            let at = at.wrapping_sub(BAND);
            if !self.place.padded || at >= self.len || !may_be_any.contains(&(at % pitch)) {
                hasher.write_u64(word(*element));
            }
        }
    }
}
