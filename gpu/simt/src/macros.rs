//! Shared arrays, declared where a kernel uses them.

/// An array in shared memory, one for all threads of a block and not initialised:
/// `shared![f32; 256]`, or with rows and columns `shared![f32; 16, 16]`.
///
/// Indexed like a slice, `tile[i]`, or by row and column, `tile[(row, col)]`; rows lie one after another.
/// Declare it at the top of the kernel: every place in the source is one array.
#[macro_export]
macro_rules! shared {
    ($element:ty; $length:expr) => {
        $crate::device::Shared::<$element, { $length }, 1>::declare()
    };
    ($element:ty; $rows:expr, $cols:expr) => {
        $crate::device::Shared::<$element, { $rows }, { $cols }>::declare()
    };
}

/// The shared memory whose size in bytes the launch gives: `dynamic_shared![f32]`.
#[macro_export]
macro_rules! dynamic_shared {
    ($element:ty) => {
        $crate::device::DynamicShared::<$element>::declare()
    };
}

/// [`shared!`] for a checked launch.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_shared {
    ($element:ty; $length:expr) => {
        $crate::checked::Shared::<$element, { $length }, 1>::declare()
    };
    ($element:ty; $rows:expr, $cols:expr) => {
        $crate::checked::Shared::<$element, { $rows }, { $cols }>::declare()
    };
}

/// [`dynamic_shared!`] for a checked launch.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_dynamic_shared {
    ($element:ty) => {
        $crate::checked::DynamicShared::<$element>::declare()
    };
}

/// Rust-CUDA's `cuda_std::shared_array!`: a raw pointer to an array in shared memory. An access through
/// it cannot be checked; [`shared!`] is the way to write a new kernel.
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $length:expr) => {
        $crate::device::Shared::<$element, { $length }, 1>::declare().as_mut_ptr()
    };
}
