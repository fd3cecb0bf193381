//! Atomic additions by the processor's own.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::Atomic;

macro_rules! integers {
    ($($ty:ty: $atomic:ty;)*) => {$(
        impl Atomic for $ty {
            #[inline]
            unsafe fn atomic_add(place: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's.
                unsafe { <$atomic>::from_ptr(place) }.fetch_add(value, Relaxed)
            }
        }
    )*};
}

integers! {
    u32: AtomicU32;
    i32: AtomicI32;
    u64: AtomicU64;
}

macro_rules! floats {
    ($($ty:ty: $atomic:ty;)*) => {$(
        impl Atomic for $ty {
            #[inline]
            unsafe fn atomic_add(place: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's; the integer has the float's size and alignment.
                let bits = unsafe { <$atomic>::from_ptr(place.cast()) };
                let mut old = bits.load(Relaxed);
                loop {
                    let new = (<$ty>::from_bits(old) + value).to_bits();
                    match bits.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                        Ok(_) => return <$ty>::from_bits(old),
                        Err(now) => old = now,
                    }
                }
            }
        }
    )*};
}

floats! {
    f32: AtomicU32;
    f64: AtomicU64;
}
