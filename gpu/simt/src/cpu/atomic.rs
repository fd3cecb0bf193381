//! Atomic operations by the processor's own.

use std::sync::atomic::{
    AtomicI32, AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::{
    Atomic,
    atomic::{AtomicChange, AtomicInteger},
};

/// `$bits` is the integer of the type's size; `$into` and `$from` convert to and from it.
macro_rules! atomics {
    ($($ty:ty: $atomic:ty, |$place:ident, $value:ident| $add:expr, $into:expr, $from:expr;)*) => {$(
        impl Atomic for $ty {
            #[inline]
            unsafe fn atomic_add($place: *mut Self, $value: Self) -> Self {
                $add
            }

            #[inline]
            unsafe fn atomic_load<const ACQUIRE: bool>(place: *mut Self) -> Self {
                // SAFETY: the caller's; the integer has the type's size and alignment.
                let word = unsafe { <$atomic>::from_ptr(place.cast()) };
                $from(word.load(if ACQUIRE { Acquire } else { Relaxed }))
            }

            #[inline]
            unsafe fn atomic_store<const RELEASE: bool>(place: *mut Self, value: Self) {
                // SAFETY: as above.
                let word = unsafe { <$atomic>::from_ptr(place.cast()) };
                word.store($into(value), if RELEASE { Release } else { Relaxed });
            }

            #[inline]
            unsafe fn atomic_exchange(place: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                $from(unsafe { <$atomic>::from_ptr(place.cast()) }.swap($into(value), Relaxed))
            }

            #[inline]
            unsafe fn atomic_compare_exchange(
                place: *mut Self,
                expected: Self,
                value: Self,
            ) -> Self {
                // SAFETY: as above.
                let word = unsafe { <$atomic>::from_ptr(place.cast()) };
                let (expected, value) = ($into(expected), $into(value));
                let (Ok(old) | Err(old)) =
                    word.compare_exchange(expected, value, Relaxed, Relaxed);
                $from(old)
            }

            #[inline]
            fn has_bits_of(self, other: Self) -> bool {
                $into(self) == $into(other)
            }
        }
    )*};
}

macro_rules! integers {
    ($($ty:ty: $atomic:ty;)*) => {
        atomics! {$(
            $ty: $atomic,
            // SAFETY: the caller's.
            |place, value| unsafe { <$atomic>::from_ptr(place) }.fetch_add(value, Relaxed),
            std::convert::identity, std::convert::identity;
        )*}
        $(
            impl AtomicInteger for $ty {
                #[inline]
                unsafe fn atomic_change(
                    place: *mut Self,
                    change: AtomicChange,
                    value: Self,
                ) -> Self {
                    // SAFETY: the caller's.
                    let word = unsafe { <$atomic>::from_ptr(place) };
                    match change {
                        AtomicChange::Min => word.fetch_min(value, Relaxed),
                        AtomicChange::Max => word.fetch_max(value, Relaxed),
                        AtomicChange::And => word.fetch_and(value, Relaxed),
                        AtomicChange::Or => word.fetch_or(value, Relaxed),
                        AtomicChange::Xor => word.fetch_xor(value, Relaxed),
                    }
                }
            }
        )*
    };
}

integers! {
    u32: AtomicU32;
    i32: AtomicI32;
    u64: AtomicU64;
    i64: AtomicI64;
}

macro_rules! floats {
    ($($ty:ty: $atomic:ty;)*) => {
        atomics! {$(
            $ty: $atomic,
            |place, value| {
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
            },
            <$ty>::to_bits, <$ty>::from_bits;
        )*}
    };
}

floats! {
    f32: AtomicU32;
    f64: AtomicU64;
}
