//! Shared memory: one array for all threads of a block, every access bounds-checked.

use std::{
    ops::{Index, IndexMut},
    panic::Location,
};

use super::memory::{place, sixteen_bytes};
use crate::{
    Atomic, Element,
    cpu::{
        block,
        mode::{Access, ArrayDeclaration, Fast, Mode, Refused},
    },
};

/// An array in shared memory, made by [`shared!`](crate::shared). Rows lie one after another.
pub type Shared<T, const ROWS: usize, const COLS: usize = 1> = arrays::Shared<T, ROWS, COLS, Fast>;
/// The shared memory whose size the launch gives, made by [`dynamic_shared!`](crate::dynamic_shared).
pub type DynamicShared<T> = arrays::DynamicShared<T, Fast>;

/// The types behind the names, generic in how accesses are carried out.
pub(crate) mod arrays {
    use super::*;

    /// An array in shared memory. Rows lie one after another.
    #[derive(Debug)]
    pub struct Shared<T, const ROWS: usize, const COLS: usize, M: Mode> {
        base: *mut T,
        tag: M::Shared,
    }

    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> Shared<T, ROWS, COLS, M> {
        /// Sets the array aside, 16-byte aligned.
        #[doc(hidden)]
        #[inline]
        #[track_caller]
        pub fn declare() -> Self {
            const {
                let elements = ROWS.checked_mul(COLS).expect("more elements than can be counted");
                let bytes = elements.checked_mul(size_of::<T>());
                let bytes = bytes.expect("more bytes than can be counted");
                assert!(bytes <= block::SHARED_BYTES, "a block has 227 KiB of shared memory");
            }
            let (base, array) = block::declare_shared(ArrayDeclaration {
                element: size_of::<T>(),
                shape: (ROWS, COLS),
                dynamic: false,
                place: Location::caller(),
            });
            // SAFETY: what the worker gave.
            Shared { base: base.cast(), tag: unsafe { M::shared_array(array) } }
        }

        /// The first element's address, for kernels in Rust-CUDA's raw-pointer idiom.
        #[inline(always)]
        pub fn as_mut_ptr(&mut self) -> *mut T {
            self.base
        }

        const fn len(&self) -> usize {
            ROWS * COLS
        }

        /// The index of an element. A column past the row's end would be an element of the next row: on
        /// the GPU silently so.
        #[inline(always)]
        fn linear(&self, (row, col): (usize, usize)) -> Result<usize, Refused> {
            match row < ROWS && col < COLS {
                true => Ok(row * COLS + col),
                false => Err(Refused::Outside2d { index: (row, col), shape: (ROWS, COLS) }),
            }
        }
    }

    /// The shared memory whose size the launch gives.
    #[derive(Debug)]
    pub struct DynamicShared<T, M: Mode> {
        base: *mut T,
        len: usize,
        tag: M::Shared,
    }

    impl<T: Element, M: Mode> DynamicShared<T, M> {
        /// All of it.
        #[doc(hidden)]
        #[inline]
        #[track_caller]
        pub fn declare() -> Self {
            const { assert!(size_of::<T>() > 0, "an element of no bytes") };
            let len = block::launch_config().dynamic_shared as usize / size_of::<T>();
            let (base, array) = block::declare_shared(ArrayDeclaration {
                element: size_of::<T>(),
                shape: (len, 1),
                dynamic: true,
                place: Location::caller(),
            });
            // SAFETY: what the worker gave.
            DynamicShared { base: base.cast(), len, tag: unsafe { M::shared_array(array) } }
        }

        const fn len(&self) -> usize {
            self.len
        }
    }

    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> Index<(usize, usize)>
        for Shared<T, ROWS, COLS, M>
    {
        type Output = T;

        #[inline(always)]
        #[track_caller]
        fn index(&self, index: (usize, usize)) -> &T {
            match self.linear(index) {
                Ok(index) => &self[index],
                // SAFETY: as many bytes that may be used.
                Err(refused) => unsafe { &*M::refuse_shared(self.tag, refused, Access::Read) },
            }
        }
    }

    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> IndexMut<(usize, usize)>
        for Shared<T, ROWS, COLS, M>
    {
        #[inline(always)]
        #[track_caller]
        fn index_mut(&mut self, index: (usize, usize)) -> &mut T {
            match self.linear(index) {
                Ok(index) => &mut self[index],
                // SAFETY: as many bytes that may be used.
                Err(refused) => unsafe { &mut *M::refuse_shared(self.tag, refused, Access::Write) },
            }
        }
    }

    macro_rules! indexed {
        ([$($generics:tt)*] $array:ty) => {
            impl<$($generics)*> $array {
                #[inline(always)]
                #[track_caller]
                fn at(&self, index: usize, count: usize, access: Access) -> *mut T {
                    match place(self.base, self.len(), index, count) {
                        Ok(place) => {
                            // SAFETY: inside, says `place`.
                            unsafe { M::shared::<T>(self.tag, index, count, access) };
                            place
                        }
                        Err(refused) => M::refuse_shared(self.tag, refused, access),
                    }
                }

                /// The `N` elements from `index` on, sixteen bytes in one access. Their address must be a
                /// multiple of sixteen.
                #[inline(always)]
                #[track_caller]
                pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// Writes `N` elements from `index` on, sixteen bytes in one access. Their address must be
                /// a multiple of sixteen.
                #[inline(always)]
                #[track_caller]
                pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Write).cast() = values }
                }

                /// Adds `value` to an element, so that no other thread's addition is lost, and gives what
                /// the element was before.
                #[inline(always)]
                #[track_caller]
                pub fn atomic_add(&mut self, index: usize, value: T) -> T
                where
                    T: Atomic,
                {
                    // SAFETY: inside the array, and aligned like every element.
                    unsafe { T::atomic_add(self.at(index, 1, Access::Atomic), value) }
                }
            }

            impl<$($generics)*> Index<usize> for $array {
                type Output = T;

                #[inline(always)]
                #[track_caller]
                fn index(&self, index: usize) -> &T {
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { &*self.at(index, 1, Access::Read) }
                }
            }

            impl<$($generics)*> IndexMut<usize> for $array {
                #[inline(always)]
                #[track_caller]
                fn index_mut(&mut self, index: usize) -> &mut T {
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { &mut *self.at(index, 1, Access::Write) }
                }
            }
        };
    }

    indexed! {
        [T: Element, const ROWS: usize, const COLS: usize, M: Mode] Shared<T, ROWS, COLS, M>
    }
    indexed! { [T: Element, M: Mode] DynamicShared<T, M> }
}
