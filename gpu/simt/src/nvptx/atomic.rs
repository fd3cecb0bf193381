//! Atomic operations in the scope of the GPU. In global memory the GPU treats subnormal `f32`s that
//! are added as zeros (PTX ISA, `atom`).

use core::marker::PhantomData;

use crate::{
    Atomic,
    atomic::{AtomicChange, AtomicInteger},
};

macro_rules! library {
    ($($bits:ty: $add:ident $load:ident $store:ident $exchange:ident $compare:ident
       $acquire:ident $release:ident $and:ident $or:ident $xor:ident;)*) => {
        unsafe extern "C" {
            // device.ll
            $(
                fn $add(place: *mut $bits, value: $bits) -> $bits;
                fn $load(place: *mut $bits) -> $bits;
                fn $store(place: *mut $bits, value: $bits);
                fn $exchange(place: *mut $bits, value: $bits) -> $bits;
                fn $compare(place: *mut $bits, expected: $bits, value: $bits) -> $bits;
                fn $acquire(place: *mut $bits) -> $bits;
                fn $release(place: *mut $bits, value: $bits);
                fn $and(place: *mut $bits, value: $bits) -> $bits;
                fn $or(place: *mut $bits, value: $bits) -> $bits;
                fn $xor(place: *mut $bits, value: $bits) -> $bits;
            )*
        }
    };
}

library! {
    u32: simt_atomic_add_u32 simt_atomic_load_u32 simt_atomic_store_u32 simt_atomic_exchange_u32
         simt_atomic_compare_exchange_u32 simt_load_acquire_u32 simt_store_release_u32
         simt_atomic_and_u32 simt_atomic_or_u32 simt_atomic_xor_u32;
    u64: simt_atomic_add_u64 simt_atomic_load_u64 simt_atomic_store_u64 simt_atomic_exchange_u64
         simt_atomic_compare_exchange_u64 simt_load_acquire_u64 simt_store_release_u64
         simt_atomic_and_u64 simt_atomic_or_u64 simt_atomic_xor_u64;
}

unsafe extern "C" {
    // device.ll
    fn simt_atomic_add_f32(place: *mut f32, value: f32) -> f32;
    fn simt_atomic_add_f64(place: *mut f64, value: f64) -> f64;
    fn simt_atomic_min_u32(place: *mut u32, value: u32) -> u32;
    fn simt_atomic_max_u32(place: *mut u32, value: u32) -> u32;
    fn simt_atomic_min_i32(place: *mut i32, value: i32) -> i32;
    fn simt_atomic_max_i32(place: *mut i32, value: i32) -> i32;
    fn simt_atomic_min_u64(place: *mut u64, value: u64) -> u64;
    fn simt_atomic_max_u64(place: *mut u64, value: u64) -> u64;
    fn simt_atomic_min_i64(place: *mut i64, value: i64) -> i64;
    fn simt_atomic_max_i64(place: *mut i64, value: i64) -> i64;
}

/// `$into` and `$from` convert to and from the integer of the type's size.
macro_rules! atomics {
    ($($ty:ty: $bits:ty, $add:expr, $load:ident $store:ident $exchange:ident $compare:ident
       $acquire:ident $release:ident, |$value:ident| $into:expr, |$word:ident| $from:expr;)*) => {$(
        impl Atomic for $ty {
            #[inline(always)]
            unsafe fn atomic_add(place: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's.
                unsafe { $add(place, value) }
            }

            #[inline(always)]
            unsafe fn atomic_load<const ACQUIRE: bool>(place: *mut Self) -> Self {
                let load = if ACQUIRE { $acquire } else { $load };
                // SAFETY: the caller's; the integer has the type's size and alignment.
                let $word = unsafe { load(place.cast()) };
                $from
            }

            #[inline(always)]
            unsafe fn atomic_store<const RELEASE: bool>(place: *mut Self, $value: Self) {
                let store = if RELEASE { $release } else { $store };
                // SAFETY: as above.
                unsafe { store(place.cast(), $into) }
            }

            #[inline(always)]
            unsafe fn atomic_exchange(place: *mut Self, $value: Self) -> Self {
                // SAFETY: as above.
                let $word = unsafe { $exchange(place.cast(), $into) };
                $from
            }

            #[inline(always)]
            unsafe fn atomic_compare_exchange(
                place: *mut Self,
                expected: Self,
                value: Self,
            ) -> Self {
                let into = |$value: Self| $into;
                // SAFETY: as above.
                let $word = unsafe { $compare(place.cast(), into(expected), into(value)) };
                $from
            }

            #[inline(always)]
            fn has_bits_of(self, other: Self) -> bool {
                let into = |$value: Self| $into;
                into(self) == into(other)
            }
        }
    )*};
}

/// In two's complement additions with and without sign are the same.
macro_rules! added_as {
    ($bits:ty, $add:ident) => {
        |place: *mut Self, value| $add(place.cast::<$bits>(), value as $bits) as Self
    };
}

atomics! {
    u32: u32, simt_atomic_add_u32,
        simt_atomic_load_u32 simt_atomic_store_u32 simt_atomic_exchange_u32
        simt_atomic_compare_exchange_u32 simt_load_acquire_u32 simt_store_release_u32,
        |value| value, |word| word;
    i32: u32, added_as!(u32, simt_atomic_add_u32),
        simt_atomic_load_u32 simt_atomic_store_u32 simt_atomic_exchange_u32
        simt_atomic_compare_exchange_u32 simt_load_acquire_u32 simt_store_release_u32,
        |value| value as u32, |word| word as i32;
    f32: u32, simt_atomic_add_f32,
        simt_atomic_load_u32 simt_atomic_store_u32 simt_atomic_exchange_u32
        simt_atomic_compare_exchange_u32 simt_load_acquire_u32 simt_store_release_u32,
        |value| value.to_bits(), |word| f32::from_bits(word);
    u64: u64, simt_atomic_add_u64,
        simt_atomic_load_u64 simt_atomic_store_u64 simt_atomic_exchange_u64
        simt_atomic_compare_exchange_u64 simt_load_acquire_u64 simt_store_release_u64,
        |value| value, |word| word;
    i64: u64, added_as!(u64, simt_atomic_add_u64),
        simt_atomic_load_u64 simt_atomic_store_u64 simt_atomic_exchange_u64
        simt_atomic_compare_exchange_u64 simt_load_acquire_u64 simt_store_release_u64,
        |value| value as u64, |word| word as i64;
    f64: u64, simt_atomic_add_f64,
        simt_atomic_load_u64 simt_atomic_store_u64 simt_atomic_exchange_u64
        simt_atomic_compare_exchange_u64 simt_load_acquire_u64 simt_store_release_u64,
        |value| value.to_bits(), |word| f64::from_bits(word);
}

macro_rules! integers {
    ($($ty:ty: $bits:ty, $min:ident $max:ident $and:ident $or:ident $xor:ident;)*) => {$(
        impl AtomicInteger for $ty {
            #[inline(always)]
            unsafe fn atomic_change(place: *mut Self, change: AtomicChange, value: Self) -> Self {
                let (at, bits) = (place.cast::<$bits>(), value as $bits);
                // SAFETY: the caller's; the two integers differ in their sign alone.
                unsafe {
                    match change {
                        AtomicChange::Min => $min(place, value),
                        AtomicChange::Max => $max(place, value),
                        AtomicChange::And => $and(at, bits) as Self,
                        AtomicChange::Or => $or(at, bits) as Self,
                        AtomicChange::Xor => $xor(at, bits) as Self,
                    }
                }
            }
        }
    )*};
}

integers! {
    u32: u32, simt_atomic_min_u32 simt_atomic_max_u32
        simt_atomic_and_u32 simt_atomic_or_u32 simt_atomic_xor_u32;
    i32: u32, simt_atomic_min_i32 simt_atomic_max_i32
        simt_atomic_and_u32 simt_atomic_or_u32 simt_atomic_xor_u32;
    u64: u64, simt_atomic_min_u64 simt_atomic_max_u64
        simt_atomic_and_u64 simt_atomic_or_u64 simt_atomic_xor_u64;
    i64: u64, simt_atomic_min_i64 simt_atomic_max_i64
        simt_atomic_and_u64 simt_atomic_or_u64 simt_atomic_xor_u64;
}

#[derive(Clone, Copy)]
pub struct AtomicRef<'a, T> {
    place: *mut T,
    view: PhantomData<&'a ()>,
}

// The elements are inside their view, and accessed atomically, as the kernel promises. On the GPU
// none of it is checked.
impl<T: Atomic> AtomicRef<'_, T> {
    /// # Safety
    /// 1. `place` is an element that lives as long as the kernel.
    #[inline(always)]
    pub(super) unsafe fn new(place: *mut T) -> Self {
        AtomicRef { place, view: PhantomData }
    }

    #[inline(always)]
    pub fn load(&self) -> T {
        // SAFETY: as above.
        unsafe { T::atomic_load::<false>(self.place) }
    }

    #[inline(always)]
    pub fn load_acquire(&self) -> T {
        // SAFETY: as above.
        unsafe { T::atomic_load::<true>(self.place) }
    }

    #[inline(always)]
    pub fn store(&self, value: T) {
        // SAFETY: as above.
        unsafe { T::atomic_store::<false>(self.place, value) }
    }

    #[inline(always)]
    pub fn store_release(&self, value: T) {
        // SAFETY: as above.
        unsafe { T::atomic_store::<true>(self.place, value) }
    }

    #[inline(always)]
    pub fn add(&self, value: T) -> T {
        // SAFETY: as above.
        unsafe { T::atomic_add(self.place, value) }
    }

    #[inline(always)]
    pub fn exchange(&self, value: T) -> T {
        // SAFETY: as above.
        unsafe { T::atomic_exchange(self.place, value) }
    }

    #[inline(always)]
    pub fn compare_exchange(&self, expected: T, value: T) -> T {
        // SAFETY: as above.
        unsafe { T::atomic_compare_exchange(self.place, expected, value) }
    }

    #[inline(always)]
    pub fn min(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Min, value)
    }

    #[inline(always)]
    pub fn max(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Max, value)
    }

    #[inline(always)]
    pub fn and(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::And, value)
    }

    #[inline(always)]
    pub fn or(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Or, value)
    }

    #[inline(always)]
    pub fn xor(&self, value: T) -> T
    where
        T: AtomicInteger,
    {
        self.change(AtomicChange::Xor, value)
    }

    #[inline(always)]
    fn change(&self, change: AtomicChange, value: T) -> T
    where
        T: AtomicInteger,
    {
        // SAFETY: as above.
        unsafe { T::atomic_change(self.place, change, value) }
    }
}
