//! Variables that outlive a launch, in global and in constant memory.

use core::{cell::UnsafeCell, marker::PhantomData, mem::MaybeUninit, ops::Index};

use super::{atomic::AtomicRef, memory::Out};
use crate::{Atomic, Element};

unsafe extern "C" {
    // device.ll
    safe fn simt_constant_pointer(address: u64) -> *const u8;
    safe fn simt_global_pointer(address: u64) -> *mut u8;
}

// The symbol itself: for a GPU the compiler places statics in global memory.
#[repr(transparent)]
pub struct Global<T, const N: usize>(UnsafeCell<MaybeUninit<[T; N]>>);

// SAFETY: its elements are only copied. The kernel must order its threads' accesses, as for a view.
unsafe impl<T: Element, const N: usize> Sync for Global<T, N> {}

impl<T: Element, const N: usize> Global<T, N> {
    #[doc(hidden)]
    pub const fn declare(_name: &'static str) -> Self {
        Global(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    #[inline(always)]
    fn at(&self, index: usize) -> *mut T {
        // SAFETY: inside the array, as the kernel promises; not checked on the GPU.
        unsafe { self.0.get().cast::<T>().add(index) }
    }

    #[inline(always)]
    pub fn load(&self, index: usize) -> T {
        // SAFETY: as in `at`; every bit pattern is an element.
        unsafe { *self.at(index) }
    }

    #[inline(always)]
    pub fn store(&self, index: usize, value: T) {
        // SAFETY: as in `at`.
        unsafe { *self.at(index) = value }
    }

    #[inline(always)]
    pub fn atomic(&self, index: usize) -> AtomicRef<'_, T>
    where
        T: Atomic,
    {
        // SAFETY: as in `at`.
        unsafe { AtomicRef::new(self.at(index)) }
    }

    #[inline(always)]
    pub fn atomic_add(&self, index: usize, value: T) -> T
    where
        T: Atomic,
    {
        // SAFETY: as in `at`.
        unsafe { T::atomic_add(self.at(index), value) }
    }
}

// The symbol is declared in PTX, because Rust has no statics in constant memory; `address` gives
// its address.
pub struct Constant<T, const N: usize> {
    address: fn() -> u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element, const N: usize> Constant<T, N> {
    /// # Safety
    /// 1. `address` gives the address, in constant memory, of `N` elements.
    #[doc(hidden)]
    pub const unsafe fn declare(address: fn() -> u64) -> Self {
        Constant { address, elements: PhantomData }
    }
}

impl<T: Element, const N: usize> Index<usize> for Constant<T, N> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        let start = simt_constant_pointer((self.address)()).cast::<T>();
        // SAFETY: inside the array, as the kernel promises; nobody writes it while a kernel runs.
        unsafe { &*start.add(index) }
    }
}

#[repr(transparent)]
pub struct GlobalPointer<T>(UnsafeCell<u64>, PhantomData<fn() -> T>);

// SAFETY: the address is only read by kernels.
unsafe impl<T> Sync for GlobalPointer<T> {}

impl<T: Element> GlobalPointer<T> {
    #[doc(hidden)]
    pub const fn declare(_name: &'static str) -> Self {
        GlobalPointer(UnsafeCell::new(0), PhantomData)
    }

    #[inline(always)]
    pub fn view(&self) -> Out<T> {
        // SAFETY: the host has written the address of a buffer, and nobody writes it while a kernel
        // runs.
        let address = unsafe { *self.0.get() };
        Out::from_pointer(simt_global_pointer(address).cast())
    }
}
