//! Element types that a GPU changes atomically: of 32 and of 64 bits.

use crate::Element;

/// An element type with atomic operations, all relaxed and in the scope of the GPU (PTX ISA,
/// `atom`).
pub trait Atomic: Element {
    /// Adds `value` to the element at `place` and gives its old value.
    ///
    /// # Safety
    /// 1. `place` is valid and aligned, and accessed by nothing but atomic operations meanwhile.
    #[doc(hidden)]
    unsafe fn atomic_add(place: *mut Self, value: Self) -> Self;

    /// Gives the element, with acquire semantics if `ACQUIRE`.
    ///
    /// # Safety
    /// 1. As of [`atomic_add`](Self::atomic_add).
    #[doc(hidden)]
    unsafe fn atomic_load<const ACQUIRE: bool>(place: *mut Self) -> Self;

    /// Writes the element, with release semantics if `RELEASE`.
    ///
    /// # Safety
    /// 1. As of [`atomic_add`](Self::atomic_add).
    #[doc(hidden)]
    unsafe fn atomic_store<const RELEASE: bool>(place: *mut Self, value: Self);

    /// Writes the element and gives its old value.
    ///
    /// # Safety
    /// 1. As of [`atomic_add`](Self::atomic_add).
    #[doc(hidden)]
    unsafe fn atomic_exchange(place: *mut Self, value: Self) -> Self;

    /// Writes the element if its bits are those of `expected`, and gives its old value.
    ///
    /// # Safety
    /// 1. As of [`atomic_add`](Self::atomic_add).
    #[doc(hidden)]
    unsafe fn atomic_compare_exchange(place: *mut Self, expected: Self, value: Self) -> Self;

    /// Whether two elements have the same bits.
    #[doc(hidden)]
    fn has_bits_of(self, other: Self) -> bool;
}

/// An integer with the atomic operations that a GPU has for integers alone.
pub trait AtomicInteger: Atomic {
    /// Changes the element at `place` to the result of the operation with `value`, and gives its
    /// old value.
    ///
    /// # Safety
    /// 1. As of [`Atomic::atomic_add`].
    #[doc(hidden)]
    unsafe fn atomic_change(place: *mut Self, change: AtomicChange, value: Self) -> Self;
}

/// An atomic operation of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum AtomicChange {
    Min,
    Max,
    And,
    Or,
    Xor,
}
