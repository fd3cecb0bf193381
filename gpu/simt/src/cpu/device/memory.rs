//! Views of global memory: an address and a length, every access bounds-checked.

use std::ops::{Index, IndexMut};

use crate::Element;

/// The place of `N` elements that are moved as sixteen bytes. Panics where a GPU would fault: outside
/// the buffer, or at an address that is no multiple of sixteen.
#[inline(always)]
#[track_caller]
pub(super) fn vector<T, const N: usize>(base: *mut T, len: usize, index: usize) -> *mut [T; N] {
    const { assert!(N * size_of::<T>() == 16, "a 128-bit access moves sixteen bytes") };
    if index > len || len - index < N {
        outside(index, N, len);
    }
    // SAFETY: inside the buffer, as just checked.
    let place = unsafe { base.add(index) };
    assert!(
        place.addr().is_multiple_of(16),
        "128-bit access at index {index}: not 16-byte aligned"
    );
    place.cast()
}

#[cold]
#[track_caller]
pub(super) fn outside(index: usize, count: usize, len: usize) -> ! {
    match count {
        1 => panic!("index {index} is outside: there are {len} elements"),
        _ => panic!("{count} elements from index {index} on are outside: there are {len} elements"),
    }
}

macro_rules! view {
    ($(#[$doc:meta])* $name:ident, $pointer:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<T> {
            base: $pointer,
            len: usize,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> $name<T> {
            /// A view of `len` elements at `base`: for a kernel on the CPU an address in this process,
            /// for one on a GPU an address there.
            ///
            /// # Safety
            /// 1. Where the view is indexed, which happens in a kernel on the CPU, `base` points to `len`
            ///    elements of this process that stay valid as long as the view is used.
            /// 2. Nobody else writes them meanwhile; nor reads them, if the kernel writes.
            #[inline]
            pub const unsafe fn new(base: $pointer, len: usize) -> Self {
                $name { base, len }
            }

            /// The first element's address.
            pub const fn as_ptr(&self) -> $pointer {
                self.base
            }

            pub(crate) const fn len(&self) -> usize {
                self.len
            }
        }

        impl<T: Element> Index<usize> for $name<T> {
            type Output = T;

            #[inline(always)]
            #[track_caller]
            fn index(&self, index: usize) -> &T {
                if index >= self.len {
                    outside(index, 1, self.len);
                }
                // SAFETY: inside the buffer, which is valid (`new`).
                unsafe { &*self.base.add(index) }
            }
        }

        impl<T: Element> $name<T> {
            /// The `N` elements from `index` on, sixteen bytes in one access. Their address must be a
            /// multiple of sixteen.
            #[inline(always)]
            #[track_caller]
            pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: `vector` checked the bounds; the buffer is valid (`new`).
                unsafe { *vector(self.base as *mut T, self.len, index) }
            }
        }
    };
}

view! {
    /// Global memory that the kernel reads, indexed like a slice.
    In, *const T
}

view! {
    /// Global memory that the kernel writes (and may read), indexed like a slice. Every thread holds the
    /// same view: that they write different elements is the kernel's duty.
    Out, *mut T
}

impl<T: Element> IndexMut<usize> for Out<T> {
    #[inline(always)]
    #[track_caller]
    fn index_mut(&mut self, index: usize) -> &mut T {
        if index >= self.len {
            outside(index, 1, self.len);
        }
        // SAFETY: inside the buffer, which is valid (`new`).
        unsafe { &mut *self.base.add(index) }
    }
}

impl<T: Element> Out<T> {
    /// Writes `N` elements from `index` on, sixteen bytes in one access. Their address must be a multiple
    /// of sixteen.
    #[inline(always)]
    #[track_caller]
    pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
        // SAFETY: `vector` checked the bounds; the buffer is valid (`new`).
        unsafe { *vector(self.base, self.len, index) = values }
    }
}
