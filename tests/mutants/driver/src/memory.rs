//! Matrices in memory: where their elements are, what surrounds them, and a hash of it all.

use std::{
    hash::{DefaultHasher, Hasher},
    marker::PhantomData,
};

use simt::{
    Bf16, Element, F16, Tf32,
    checked::{In, Out, TensorMap, TensorMaps},
    device::BoxShape,
};

/// What matrices are of.
pub trait Number: Element + Into<f64> {
    /// What is in memory before anybody writes: of floats a NaN that no arithmetic makes.
    const UNTOUCHED: Self;

    fn of(value: f64) -> Self;

    fn bits(self) -> u64;

    /// What is hashed: every NaN is the same one, except for [`UNTOUCHED`](Self::UNTOUCHED).
    fn word(self) -> u64 {
        let is_other_nan = self.into().is_nan() && self.bits() != Self::UNTOUCHED.bits();
        if is_other_nan { u64::MAX } else { self.bits() }
    }
}

macro_rules! numbers {
    ($($number:ident: $untouched:expr, |$value:ident| $of:expr, |$it:ident| $bits:expr;)*) => {$(
        impl Number for $number {
            const UNTOUCHED: $number = $untouched;

            fn of($value: f64) -> $number {
                $of
            }

            fn bits(self) -> u64 {
                let $it = self;
                $bits.into()
            }
        }
    )*};
}

numbers! {
    f32: f32::from_bits(0x7fed_cba9), |value| value as f32, |it| it.to_bits();
    f64: f64::from_bits(0x7ffe_dcba_9876_5432), |value| value, |it| it.to_bits();
    Tf32: Tf32::from_bits(0x7fff_e001), |value| Tf32::from_f32(value as f32), |it| it.to_bits();
    Bf16: Bf16::from_bits(0x7fed), |value| Bf16::from_f32(value as f32), |it| it.to_bits();
    F16: F16::from_bits(0x7fed), |value| F16::from_f32(value as f32), |it| it.to_bits();
    u16: 0x7fed, |value| value as u16, |it| it;
    u32: 0x7fed_cba9, |value| value as u32, |it| it;
}

/// A small integer that is not zero, different ones for different operands (`salt`) and elements. Sums of products of them are exact.
pub fn integer(salt: usize, [i, outer, inner]: [usize; 3]) -> f64 {
    [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0][(scramble(salt, [i, outer, inner]) >> 40) as usize % 6]
}

pub fn scramble(salt: usize, [i, outer, inner]: [usize; 3]) -> u64 {
    let number = ((salt * 5 + i) * 4099 + outer) * 8209 + inner;
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Where the elements of a batch of matrices are.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Elements from one row to the next, and from one column to the next.
    pub strides: [usize; 2],
    /// From a 16-byte boundary to the first element.
    pub offset: usize,
    /// From one matrix to the next.
    pub step: usize,
}

impl Place {
    pub fn strided(strides: [usize; 2]) -> Self {
        Place { strides, offset: 0, step: 0 }
    }

    pub fn at(self, offset: usize) -> Self {
        Place { offset, ..self }
    }

    pub fn step(self, step: usize) -> Self {
        Place { step, ..self }
    }
}

/// Elements before and after a batch of matrices; a multiple of sixteen bytes.
const BAND: usize = 64;

/// A batch of matrices, and what is between and around them.
pub struct Matrix<T> {
    /// Aligned to sixteen bytes.
    memory: Vec<u128>,
    /// Matrices, rows, columns.
    pub size: [usize; 3],
    pub place: Place,
    /// Elements that a kernel is given.
    pub len: usize,
    /// Rows are whole pieces of sixteen bytes: a kernel may write anything to the rest of a row's last piece.
    padded: bool,
    elements: PhantomData<T>,
}

impl<T: Number> Matrix<T> {
    /// All of it is [`Number::UNTOUCHED`]. A kernel is given what is between the first element and the last.
    pub fn new(size: [usize; 3], place: Place) -> Self {
        let [count, rows, cols] = size;
        let [between_rows, between_cols] = place.strides;
        let len = match count * rows * cols {
            0 => 0,
            _ => {
                let last = (rows - 1) * between_rows + (cols - 1) * between_cols;
                (count - 1) * place.step + last + 1
            }
        };
        Matrix::with_len(size, place, len, false)
    }

    /// Rows that begin at 16-byte boundaries, so many elements apart. A kernel is given all of the last one, too.
    pub fn padded(size: [usize; 3], pitch: usize) -> Self {
        let step = size[1] * pitch;
        let place = Place::strided([pitch, 1]).step(step);
        Matrix::with_len(size, place, size[0] * step, true)
    }

    pub fn vector(len: usize) -> Self {
        Matrix::new([1, 1, len], Place::strided([0, 1]))
    }

    fn with_len(size: [usize; 3], place: Place, len: usize, padded: bool) -> Self {
        let bytes = (BAND + place.offset + len + BAND) * size_of::<T>();
        let memory = vec![0; bytes.div_ceil(16)];
        let mut matrix = Matrix { memory, size, place, len, padded, elements: PhantomData };
        matrix.all_mut().fill(T::UNTOUCHED);
        matrix
    }

    /// With such elements, given their matrix, row and column.
    pub fn filled(mut self, value: impl Fn([usize; 3]) -> f64) -> Self {
        let [count, rows, cols] = self.size;
        let Place { strides: [between_rows, between_cols], offset, step } = self.place;
        let all = self.all_mut();
        for n in 0..count * rows * cols {
            let [i, row, col] = [n / (rows * cols), n / cols % rows, n % cols];
            let at = i * step + row * between_rows + col * between_cols;
            all[BAND + offset + at] = T::of(value([i, row, col]));
        }
        self
    }

    fn all_mut(&mut self) -> &mut [T] {
        let len = self.memory.len() * (16 / size_of::<T>());
        // SAFETY: so many elements fit, any bits are one, and `u128` is aligned to more than they are.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), len) }
    }

    /// The first element.
    pub fn pointer(&mut self) -> *mut T {
        let first = BAND + self.place.offset;
        self.all_mut()[first..].as_mut_ptr()
    }

    /// Are there no elements between its own?
    pub fn is_dense(&self) -> bool {
        self.len == self.size.iter().product::<usize>()
    }

    pub fn view(&mut self) -> In<T> {
        // SAFETY: a trial keeps its matrices until its launch has ended, and `pointer` has so many elements.
        unsafe { In::new(self.pointer(), self.len) }
    }

    /// From its `first` element on. Does it hold values before the launch?
    pub fn out_from(&mut self, first: usize, holds_values: bool) -> Out<T> {
        // SAFETY: as in `view`.
        unsafe {
            let pointer = self.pointer().add(first);
            match holds_values {
                true => Out::new(pointer, self.len - first),
                false => Out::uninit(pointer, self.len - first),
            }
        }
    }

    /// The last so many columns of rows in boxes of that shape.
    pub fn map(&mut self, shape: BoxShape) -> TensorMap<T> {
        let Place { strides: [pitch, _], step, .. } = self.place;
        // SAFETY: as in `view`.
        unsafe { TensorMap::new(self.pointer(), self.size, [step, pitch], shape) }
            .expect("operands of a case are as TMA takes them")
    }

    /// A map for each alignment class of rows: of every `N`th row, from the multiple of `N` elements before it on. A class without
    /// rows has the map of the first row.
    pub fn maps_of_classes<const N: usize>(&mut self, shape: BoxShape) -> TensorMaps<T, N> {
        let ([count, rows, cols], Place { strides: [pitch, _], step, .. }) =
            (self.size, self.place);
        TensorMaps::new(std::array::from_fn(|class| {
            let (start, rows) = match rows.saturating_sub(class) {
                0 => (0, 1),
                rows => (class * pitch, rows.div_ceil(N)),
            };
            let extents = [count, rows, cols + start % N];
            let base = self.pointer().wrapping_add(start / N * N);
            // SAFETY: as in `view`.
            unsafe { TensorMap::new(base, extents, [step, N * pitch], shape) }
                .expect("operands of a case are as TMA takes them")
        }))
    }

    /// Hashes all of it and around it, except for what may be anything.
    pub fn hash(&mut self, hasher: &mut DefaultHasher) {
        let (first, len) = (BAND + self.place.offset, self.len);
        let ([.., cols], [pitch, _]) = (self.size, self.place.strides);
        let may_be_any = cols..cols.next_multiple_of(16 / size_of::<T>());
        let padded = self.padded;
        for (at, element) in self.all_mut().iter().enumerate() {
            let is_inside = padded && (first..first + len).contains(&at);
            if !is_inside || !may_be_any.contains(&((at - first) % pitch)) {
                hasher.write_u64(element.word());
            }
        }
    }
}
