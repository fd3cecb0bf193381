//! Views of global memory: an address and a length. Every access is bounds-checked.

use std::{
    ops::{Index, IndexMut},
    panic::Location,
};

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

use super::atomic::AtomicRef;
#[cfg(feature = "cpu")]
use super::atomic::{self, Of};
#[cfg(feature = "cpu")]
use crate::cpu::access::{Access, Refused};
use crate::{
    Atomic, Element,
    cpu::{fast::Fast, mode::Mode},
};

/// Global memory that the kernel reads, indexed like a slice.
pub type In<T> = views::In<T, Fast>;
/// Global memory that the kernel writes (and may read), indexed like a slice. Every thread has the
/// same view; the kernel must make them write different elements.
pub type Out<T> = views::Out<T, Fast>;

/// Whether `count` elements from `index` on are inside, and aligned for one access.
#[inline(always)]
pub(super) fn is_allowed<T>(base: *const T, len: usize, index: usize, count: usize) -> bool {
    match count {
        1 => index < len,
        _ => {
            let address = base.addr().wrapping_add(index * size_of::<T>());
            index <= len && count <= len - index && address.is_multiple_of(alignment::<T>(count))
        }
    }
}

/// The alignment in bytes of an access to that number of elements.
fn alignment<T>(count: usize) -> usize {
    (count * size_of::<T>()).min(16)
}

/// Why [`is_allowed`] does not hold.
#[cfg(feature = "cpu")]
#[inline(always)]
pub(super) fn reason<T>(len: usize, index: usize, count: usize) -> Refused {
    match index > len || len - index < count {
        true => Refused::Outside { index, count, len },
        false => Refused::Misaligned { index, bytes: alignment::<T>(count) },
    }
}

/// Whether a bulk copy may access `count` elements from `index` on, and if not, why.
#[cfg(feature = "cpu")]
pub(super) fn is_bulk_allowed<T>(
    base: *const T,
    len: usize,
    index: usize,
    count: usize,
) -> Result<(), Refused> {
    let (address, bytes) = (base.wrapping_add(index).addr(), count.saturating_mul(size_of::<T>()));
    if count > len || index > len - count {
        Err(Refused::Outside { index, count, len })
    } else if count == 0 || !address.is_multiple_of(16) || !bytes.is_multiple_of(16) {
        Err(Refused::Bulk { index, bytes })
    } else {
        Ok(())
    }
}

/// The types behind the names, generic in the [`Mode`].
pub(crate) mod views {
    use super::*;

    macro_rules! view {
        ($(#[$doc:meta])* $name:ident, $pointer:ty) => {
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name<T, M: Mode> {
                base: $pointer,
                len: usize,
                pub(crate) tag: M::Global,
            }

            impl<T, M: Mode> Clone for $name<T, M> {
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<T, M: Mode> Copy for $name<T, M> {}

            impl<T, M: Mode> $name<T, M> {
                /// A view of `len` elements at `base`: for a kernel on the CPU an address in this
                /// process, for one on a GPU an address there.
                ///
                /// # Safety
                /// 1. Where the view is indexed, which happens in a kernel on the CPU, `base`
                ///    points to `len` elements of this process that stay valid as long as the view
                ///    is used.
                /// 2. Nobody else writes them meanwhile; nor reads them, if the kernel writes.
                #[inline]
                pub const unsafe fn new(base: $pointer, len: usize) -> Self {
                    $name { base, len, tag: M::WRITTEN }
                }

                /// The first element's address.
                pub const fn as_ptr(&self) -> $pointer {
                    self.base
                }

                pub(crate) const fn len(&self) -> usize {
                    self.len
                }

                /// Whether the first element is aligned to 16 bytes.
                #[inline(always)]
                pub fn is_aligned128(&self) -> bool {
                    self.base.addr().is_multiple_of(16)
                }

                /// The misalignment of the first element to `BYTES` bytes, in whole elements.
                #[inline(always)]
                pub fn misalignment<const BYTES: usize>(&self) -> usize {
                    self.base.addr() % BYTES / size_of::<T>()
                }

                /// The first of `count` elements from `index` on, if a bulk copy may access them;
                /// otherwise reports it.
                #[cfg(feature = "cpu")]
                #[track_caller]
                pub(crate) fn bulk(
                    &self,
                    index: usize,
                    count: usize,
                    access: Access,
                ) -> Option<*const T> {
                    match is_bulk_allowed(self.base, self.len, index, count) {
                        Ok(()) => Some(self.base.wrapping_add(index)),
                        Err(refused) => {
                            M::refuse_global::<T>(self.tag, refused, access);
                            None
                        }
                    }
                }

                #[cfg(feature = "cpu")]
                #[inline(always)]
                #[track_caller]
                fn at(&self, index: usize, count: usize, access: Access) -> *mut T {
                    let base = self.base as *mut T;
                    if !is_allowed(base, self.len, index, count) {
                        let refused = reason::<T>(self.len, index, count);
                        return M::refuse_global(self.tag, refused, access);
                    }
                    // SAFETY: inside, as just checked.
                    unsafe {
                        let place = base.add(index);
                        M::global(self.tag, place, count, access);
                        place
                    }
                }
            }

            #[cfg_attr(not(feature = "cpu"), signatures)]
            impl<T: Element, M: Mode> Index<usize> for $name<T, M> {
                type Output = T;

                #[inline(always)]
                #[track_caller]
                fn index(&self, index: usize) -> &T {
                    // SAFETY: inside the buffer, which is valid (`new`).
                    unsafe { &*self.at(index, 1, Access::Read) }
                }
            }

            #[cfg_attr(not(feature = "cpu"), signatures)]
            impl<T: Element, M: Mode> $name<T, M> {
                /// The `N` elements from `index` on, in one access of 16 bytes. Their address must
                /// be a multiple of 16.
                #[inline(always)]
                #[track_caller]
                pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the buffer, which is valid (`new`).
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// The `N` elements from `index` on, in one access of 8 bytes. Their address must
                /// be a multiple of 8.
                #[inline(always)]
                #[track_caller]
                pub fn load64<const N: usize>(&self, index: usize) -> [T; N] {
                    const { eight_bytes::<T, N>() };
                    // SAFETY: inside the buffer, which is valid (`new`).
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// [`load128`](Self::load128) if `valid`, otherwise zeros; then `index` may have
                /// any value. It has no branch, so that many loads are issued before one is waited
                /// for.
                #[inline(always)]
                #[track_caller]
                pub fn load128_if<const N: usize>(&self, index: usize, valid: bool) -> [T; N] {
                    match valid {
                        true => self.load128(index),
                        // SAFETY: every pattern of an element's bytes is a value.
                        false => unsafe { std::mem::zeroed() },
                    }
                }

                /// [`load128_if`](Self::load128_if) of the sixteen bytes as words.
                #[inline(always)]
                #[track_caller]
                pub fn load_words_if(&self, index: usize, valid: bool) -> [u32; 4] {
                    match valid {
                        // SAFETY: inside the buffer, which is valid (`new`); a word may hold any
                        // bits.
                        true => unsafe {
                            *self.at(index, const { 16 / size_of::<T>() }, Access::Read).cast()
                        },
                        false => [0; 4],
                    }
                }
            }
        };
    }

    view! {
        /// Global memory that the kernel reads, indexed like a slice.
        In, *const T
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, M: Mode> In<T, M> {
        /// `N` elements from `index` on, in one access.
        #[inline(always)]
        #[track_caller]
        pub(crate) fn copy_of<const N: usize>(&self, index: usize) -> [T; N] {
            // SAFETY: inside the buffer, which is valid (`new`), and aligned.
            unsafe { *self.at(index, N, Access::Read).cast() }
        }

        /// The place of an access of `N` elements that reads nothing is aligned, too: otherwise PTX
        /// does not say what happens.
        #[inline(always)]
        #[track_caller]
        pub(crate) fn copy_of_nothing<const N: usize>(&self, index: usize) {
            let bytes = alignment::<T>(N);
            let address = self.base.addr().wrapping_add(index.wrapping_mul(size_of::<T>()));
            if !address.is_multiple_of(bytes) {
                M::refuse_global::<T>(self.tag, Refused::Misaligned { index, bytes }, Access::Read);
            }
        }
    }

    view! {
        /// Global memory that the kernel writes (and may read), indexed like a slice.
        Out, *mut T
    }

    impl<T, M: Mode> Out<T, M> {
        /// A view of memory whose elements hold no values yet, like a fresh device buffer: a
        /// checked launch reports a read before the first write. Otherwise it is `new`.
        ///
        /// # Safety
        /// As for `new`: `base` points to `len` elements, of whatever value.
        pub const unsafe fn uninit(base: *mut T, len: usize) -> Self {
            Out { base, len, tag: M::UNWRITTEN }
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, M: Mode> IndexMut<usize> for Out<T, M> {
        #[inline(always)]
        #[track_caller]
        fn index_mut(&mut self, index: usize) -> &mut T {
            // SAFETY: inside the buffer, which is valid (`new`).
            unsafe { &mut *self.at(index, 1, Access::Write) }
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, M: Mode> Out<T, M> {
        /// Writes `N` elements from `index` on, in one access of 16 bytes. Their address must be a
        /// multiple of 16.
        #[inline(always)]
        #[track_caller]
        pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
            const { sixteen_bytes::<T, N>() };
            // SAFETY: inside the buffer, which is valid (`new`).
            unsafe { *self.at(index, N, Access::Write).cast() = values }
        }

        /// Writes `N` elements from `index` on, in one access of 8 bytes. Their address must be a
        /// multiple of 8.
        #[inline(always)]
        #[track_caller]
        pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
            const { eight_bytes::<T, N>() };
            // SAFETY: inside the buffer, which is valid (`new`).
            unsafe { *self.at(index, N, Access::Write).cast() = values }
        }

        /// Asks for the cache line of an element in L2. Nothing waits for it. Here it does nothing:
        /// it is no access of the element.
        #[inline(always)]
        pub fn prefetch(&self, _index: usize) {}

        /// Writes `N` elements from `index` on if `valid`, in one access of 2, 4, 8 or 16 bytes.
        /// Their address must be a multiple of these bytes. It has no branch, so that earlier reads
        /// are not moved into one.
        #[inline(always)]
        #[track_caller]
        pub fn store_if<const N: usize>(&mut self, index: usize, values: [T; N], valid: bool) {
            const {
                assert!(
                    matches!(N * size_of::<T>(), 2 | 4 | 8 | 16),
                    "two, four, eight or sixteen bytes"
                )
            };
            if valid {
                // SAFETY: inside the buffer, which is valid (`new`).
                unsafe { *self.at(index, N, Access::Write).cast() = values }
            }
        }

        /// An element for atomic operations.
        #[inline(always)]
        #[track_caller]
        pub fn atomic(&self, index: usize) -> AtomicRef<'_, T, M>
        where
            T: Atomic,
        {
            let (place, of) = match index < self.len {
                // SAFETY: inside, as just checked.
                true => (unsafe { self.base.add(index) }, Of::Global(self.tag)),
                false => {
                    let refused = reason::<T>(self.len, index, 1);
                    (M::refuse_global(self.tag, refused, Access::Atomic), Of::Outside)
                }
            };
            // SAFETY: inside the buffer, which is valid (`new`), and aligned like every element; or
            // memory for accesses outside.
            unsafe { AtomicRef::new(place, of) }
        }

        /// Adds `value` to an element atomically, and gives the element's old value. The order in
        /// which threads add is not fixed, so a sum of floats may differ from run to run.
        #[inline(always)]
        #[track_caller]
        pub fn atomic_add(&mut self, index: usize, value: T) -> T
        where
            T: Atomic,
        {
            self.atomic(index).add(value)
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<M: Mode> Out<u32, M> {
        /// Adds to a flag for which threads of any block [wait](Self::wait_for_at_least): they then
        /// see what this thread has written, and what it has seen of others' writes (PTX
        /// `red.release.gpu`).
        #[inline(always)]
        #[track_caller]
        pub fn release_add(&mut self, index: usize, value: u32) {
            self.atomic(index).release_add(value);
        }

        /// Waits until a flag is at least that value. This thread then sees what the threads that
        /// [added](Self::release_add) to it had written (PTX `ld.acquire.gpu`).
        ///
        /// A block that has not begun may have no room on the GPU until this one has ended, so only
        /// blocks that have begun may be waited for. On the CPU a wait that no block can end is a
        /// fault.
        #[inline(always)]
        #[track_caller]
        pub fn wait_for_at_least(&self, index: usize, at_least: u32) {
            let place = self.at(index, 1, Access::Atomic);
            atomic::wait_for_at_least(place, at_least, Location::caller());
        }
    }
}

/// A 128-bit access moves sixteen bytes.
pub(super) const fn sixteen_bytes<T, const N: usize>() {
    assert!(N * size_of::<T>() == 16, "a 128-bit access moves sixteen bytes");
}

/// A 64-bit access moves eight bytes.
const fn eight_bytes<T, const N: usize>() {
    assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes");
}

/// An asynchronous copy moves four, eight or sixteen bytes.
pub(super) const fn four_eight_or_sixteen_bytes<T, const N: usize>() {
    assert!(
        matches!(N * size_of::<T>(), 4 | 8 | 16),
        "an asynchronous copy moves four, eight or sixteen bytes"
    );
}
