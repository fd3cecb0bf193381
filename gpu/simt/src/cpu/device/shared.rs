//! Shared memory: one array for all threads of a block, every access bounds-checked.

use std::ops::{Index, IndexMut};

use super::memory::{outside, vector};
use crate::{Element, cpu::worker};

/// An array in shared memory, made by [`shared!`](crate::shared). Rows lie one after another.
#[derive(Debug)]
pub struct Shared<T, const ROWS: usize, const COLS: usize = 1>(*mut T);

impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    /// Sets the array aside, 16-byte aligned.
    #[doc(hidden)]
    #[inline]
    pub fn declare() -> Self {
        const {
            let elements = ROWS.checked_mul(COLS).expect("more elements than can be counted");
            let bytes = elements.checked_mul(size_of::<T>());
            let bytes = bytes.expect("more bytes than can be counted");
            assert!(bytes <= worker::SHARED_BYTES, "a block has 227 KiB of shared memory");
        }
        Shared(worker::declare_shared(ROWS * COLS * size_of::<T>()).cast())
    }

    /// The first element's address, for kernels in Rust-CUDA's raw-pointer idiom.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0
    }

    const fn len(&self) -> usize {
        ROWS * COLS
    }
}

/// The shared memory whose size the launch gives, made by [`dynamic_shared!`](crate::dynamic_shared).
#[derive(Debug)]
pub struct DynamicShared<T>(*mut T, usize);

impl<T: Element> DynamicShared<T> {
    /// All of it.
    #[doc(hidden)]
    #[inline]
    pub fn declare() -> Self {
        const { assert!(size_of::<T>() > 0, "an element of no bytes") };
        let (base, bytes) = worker::dynamic_shared();
        DynamicShared(base.cast(), bytes / size_of::<T>())
    }

    const fn len(&self) -> usize {
        self.1
    }
}

impl<T: Element, const ROWS: usize, const COLS: usize> Index<(usize, usize)>
    for Shared<T, ROWS, COLS>
{
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, (row, col): (usize, usize)) -> &T {
        // A column past the row's end would be an element of the next row: on the GPU silently so.
        if row >= ROWS || col >= COLS {
            outside_2d((row, col), (ROWS, COLS));
        }
        // SAFETY: inside the array, which lives as long as the block.
        unsafe { &*self.0.add(row * COLS + col) }
    }
}

impl<T: Element, const ROWS: usize, const COLS: usize> IndexMut<(usize, usize)>
    for Shared<T, ROWS, COLS>
{
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut T {
        if row >= ROWS || col >= COLS {
            outside_2d((row, col), (ROWS, COLS));
        }
        // SAFETY: inside the array, which lives as long as the block.
        unsafe { &mut *self.0.add(row * COLS + col) }
    }
}

#[cold]
#[track_caller]
fn outside_2d(place: (usize, usize), shape: (usize, usize)) -> ! {
    panic!("index {place:?} is outside: the shared array has {shape:?} rows and columns");
}

macro_rules! indexed {
    ([$($generics:tt)*] $array:ty) => {
        impl<$($generics)*> Index<usize> for $array {
            type Output = T;

            #[inline(always)]
            #[track_caller]
            fn index(&self, index: usize) -> &T {
                if index >= self.len() {
                    outside(index, 1, self.len());
                }
                // SAFETY: inside the array, which lives as long as the block.
                unsafe { &*self.0.add(index) }
            }
        }

        impl<$($generics)*> IndexMut<usize> for $array {
            #[inline(always)]
            #[track_caller]
            fn index_mut(&mut self, index: usize) -> &mut T {
                if index >= self.len() {
                    outside(index, 1, self.len());
                }
                // SAFETY: inside the array, which lives as long as the block.
                unsafe { &mut *self.0.add(index) }
            }
        }

        impl<$($generics)*> $array {
            /// The `N` elements from `index` on, sixteen bytes in one access. Their address must be a
            /// multiple of sixteen.
            #[inline(always)]
            #[track_caller]
            pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: `vector` checked the bounds.
                unsafe { *vector(self.0, self.len(), index) }
            }

            /// Writes `N` elements from `index` on, sixteen bytes in one access. Their address must be
            /// a multiple of sixteen.
            #[inline(always)]
            #[track_caller]
            pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                // SAFETY: `vector` checked the bounds.
                unsafe { *vector(self.0, self.len(), index) = values }
            }
        }
    };
}

indexed! { [T: Element, const ROWS: usize, const COLS: usize] Shared<T, ROWS, COLS> }
indexed! { [T: Element] DynamicShared<T> }
