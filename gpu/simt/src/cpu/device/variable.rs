//! Variables that outlive a launch, in global and in constant memory. Every access is
//! bounds-checked.

use std::{cell::UnsafeCell, marker::PhantomData, mem::MaybeUninit, ops::Index};

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::atomic::Of;
#[cfg(feature = "cpu")]
use super::memory::{is_allowed, reason};
use super::{atomic::AtomicRef, memory::views::Out};
#[cfg(feature = "cpu")]
use crate::cpu::{access::Access, block};
use crate::{
    Atomic, Element,
    cpu::{fast::Fast, mode::Mode},
};

/// An array in global memory, made by [`global!`](crate::global).
pub type Global<T, const N: usize> = variables::Global<T, N, Fast>;
/// An array in constant memory, made by [`constant!`](crate::constant).
pub type Constant<T, const N: usize> = variables::Constant<T, N, Fast>;
/// A pointer in global memory, made by [`global_pointer!`](crate::global_pointer).
pub type GlobalPointer<T> = variables::GlobalPointer<T, Fast>;

/// The types behind the names, generic in the [`Mode`].
pub(crate) mod variables {
    use super::*;

    /// An array in global memory. All threads of all launches share it until the program ends.
    #[derive(Debug)]
    pub struct Global<T, const N: usize, M> {
        pub(crate) name: &'static str,
        elements: UnsafeCell<MaybeUninit<[T; N]>>,
        mode: PhantomData<fn() -> M>,
    }

    // SAFETY: kernels copy its elements, and must order their threads' accesses, as for a view. The
    // host accesses it between launches (`cpu::symbol`).
    unsafe impl<T: Element, const N: usize, M: Mode> Sync for Global<T, N, M> {}

    impl<T: Element, const N: usize, M: Mode> Global<T, N, M> {
        /// Zeros.
        #[doc(hidden)]
        pub const fn declare(name: &'static str) -> Self {
            let elements = UnsafeCell::new(MaybeUninit::zeroed());
            Global { name, elements, mode: PhantomData }
        }

        pub(crate) fn first(&self) -> *mut T {
            self.elements.get().cast()
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, const N: usize, M: Mode> Global<T, N, M> {
        #[inline(always)]
        #[track_caller]
        fn at(&self, index: usize, access: Access) -> *mut T {
            block::assert_in_kernel();
            let (base, tag) = (self.first(), M::global_at(self.first().cast(), self.name));
            if !is_allowed(base, N, index, 1) {
                return M::refuse_global(tag, reason::<T>(N, index, 1), access);
            }
            // SAFETY: inside, as just checked.
            unsafe {
                let place = base.add(index);
                M::global(tag, place, 1, access);
                place
            }
        }

        /// An element.
        #[inline(always)]
        #[track_caller]
        pub fn load(&self, index: usize) -> T {
            // SAFETY: inside the array, and every bit pattern is an element. Only a kernel calls
            // this, and its launch's caller is responsible for the order of its threads' accesses.
            unsafe { *self.at(index, Access::Read) }
        }

        /// Writes an element.
        #[inline(always)]
        #[track_caller]
        pub fn store(&self, index: usize, value: T) {
            // SAFETY: inside the array.
            unsafe { *self.at(index, Access::Write) = value }
        }

        /// An element for atomic operations.
        #[inline(always)]
        #[track_caller]
        pub fn atomic(&self, index: usize) -> AtomicRef<'_, T, M>
        where
            T: Atomic,
        {
            block::assert_in_kernel();
            let (base, tag) = (self.first(), M::global_at(self.first().cast(), self.name));
            let (place, of) = match index < N {
                // SAFETY: inside, as just checked.
                true => (unsafe { base.add(index) }, Of::Global(tag)),
                false => {
                    let refused = reason::<T>(N, index, 1);
                    (M::refuse_global(tag, refused, Access::Atomic), Of::Outside)
                }
            };
            // SAFETY: inside the array, and aligned like every element; or memory for accesses
            // outside.
            unsafe { AtomicRef::new(place, of) }
        }

        /// Adds `value` to an element atomically, and gives the element's old value. The order in
        /// which threads add is not fixed.
        #[inline(always)]
        #[track_caller]
        pub fn atomic_add(&self, index: usize, value: T) -> T
        where
            T: Atomic,
        {
            self.atomic(index).add(value)
        }
    }

    /// An array in constant memory: kernels read it, the host writes it.
    #[derive(Debug)]
    pub struct Constant<T, const N: usize, M>(pub(crate) Global<T, N, M>);

    impl<T: Element, const N: usize, M: Mode> Constant<T, N, M> {
        /// Zeros.
        #[doc(hidden)]
        pub const fn declare(name: &'static str) -> Self {
            const { assert!(N * size_of::<T>() <= 64 << 10, "a GPU has 64 KiB of constant memory") };
            Constant(Global::declare(name))
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, const N: usize, M: Mode> Index<usize> for Constant<T, N, M> {
        type Output = T;

        #[inline(always)]
        #[track_caller]
        fn index(&self, index: usize) -> &T {
            block::assert_in_kernel();
            let base = self.0.first();
            let place = match is_allowed(base, N, index, 1) {
                // SAFETY: inside, as just checked.
                true => unsafe { base.add(index) },
                // No kernel writes it, so there is nothing else to check.
                false => M::refuse_global(M::WRITTEN, reason::<T>(N, index, 1), Access::Read),
            };
            // SAFETY: inside the array, which nobody writes while a kernel runs, and only a kernel
            // comes here; every bit pattern is an element. The kernel lets no reference outlive
            // itself (the fourth condition of `launch`).
            unsafe { &*place }
        }
    }

    /// A pointer in global memory. The host lets it point to a buffer, which kernels read and
    /// write.
    #[derive(Debug)]
    pub struct GlobalPointer<T, M> {
        pub(crate) name: &'static str,
        /// The buffer's address and number of elements. On a GPU it is the address alone.
        pub(crate) target: UnsafeCell<(*mut T, usize)>,
        mode: PhantomData<fn() -> M>,
    }

    // SAFETY: kernels read it, and the host writes it between launches (`cpu::symbol`).
    unsafe impl<T: Element, M: Mode> Sync for GlobalPointer<T, M> {}

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, M: Mode> GlobalPointer<T, M> {
        /// A null pointer.
        #[doc(hidden)]
        pub const fn declare(name: &'static str) -> Self {
            let target = UnsafeCell::new((std::ptr::null_mut(), 0));
            GlobalPointer { name, target, mode: PhantomData }
        }

        /// The buffer that it points to. It has no elements if the pointer is null.
        #[inline(always)]
        #[track_caller]
        pub fn view(&self) -> Out<T, M> {
            block::assert_in_kernel();
            // SAFETY: nobody writes it while a kernel runs.
            let (base, len) = unsafe { *self.target.get() };
            // SAFETY: what the host has set, for which the launch's caller is responsible.
            let mut view = unsafe { Out::new(base, len) };
            if len > 0 {
                view.tag = M::global_at(base.cast(), self.name);
            }
            view
        }
    }
}
