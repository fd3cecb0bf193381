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

/// Barriers in shared memory, for copies and threads to arrive at: `mbarriers![2]`. Hopper and later.
#[macro_export]
macro_rules! mbarriers {
    ($count:expr) => {
        $crate::device::Mbarriers::<{ $count }>::declare()
    };
}

/// Barriers for some of a block's warps: `named_barriers![1, 2; 256]` are two, of the ids 1 and 2, for 256 threads each.
///
/// A block has the ids 1 to 15 (0 is [`sync_threads`](crate::device::thread::sync_threads)'s), and each is declared at one
/// place of a kernel's code. Threads are whole warps: a multiple of 32.
#[macro_export]
macro_rules! named_barriers {
    ($first:expr, $count:expr; $threads:expr) => {
        $crate::device::NamedBarriers::<{ $first }, { $count }, { $threads }>::declare()
    };
}

/// A ring of so many stages in shared memory, its barriers: `pipeline![4]`. Hopper and later.
#[macro_export]
macro_rules! pipeline {
    ($stages:expr) => {
        $crate::device::Pipeline::<{ $stages }>::declare()
    };
}

/// A ring of so many stages in the shared memory of each block of a cluster, whose copies may go to several of the blocks:
/// `cluster_pipeline![4]`. Hopper and later.
#[macro_export]
macro_rules! cluster_pipeline {
    ($stages:expr) => {
        $crate::device::ClusterPipeline::<{ $stages }>::declare()
    };
}

/// An array in global memory that outlives launches, CUDA's `__device__` variable:
/// `global! { pub static TOTALS: [u32; 4]; }`.
///
/// It begins as zeros. Kernels `load`, `store` and `atomic_add` its elements; the host reads and writes it as a
/// [`Symbol`](crate::Symbol). A GPU has one for each program that is loaded on it, the CPU one a process. Its name
/// is that of the symbol in the PTX, so it must be the only one of that name in its crate.
#[macro_export]
macro_rules! global {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $length:expr];) => {
        $(#[$attribute])*
        #[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle))]
        $visibility static $name: $crate::device::Global<$element, { $length }> =
            $crate::device::Global::declare(stringify!($name));
    };
}

/// An array in constant memory, CUDA's `__constant__` variable:
/// `constant! { pub static WEIGHTS: [f32; 256]; }`.
///
/// It begins as zeros. Kernels read it, indexed like a slice; only the host writes it, as a
/// [`Symbol`](crate::Symbol). A GPU serves a warp whose lanes read the same element as fast as from a register, and
/// one after another where they do not. A program has 64 KiB of it. Names are as for [`global!`].
#[macro_export]
macro_rules! constant {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $length:expr];) => {
        #[cfg(target_arch = "nvptx64")]
        $crate::device::__private::global_asm!(
            concat!(".visible .const .align 16 .b8 ", stringify!($name), "[{bytes}];"),
            bytes = const $length * size_of::<$element>(),
        );

        $(#[$attribute])*
        $visibility static $name: $crate::device::Constant<$element, { $length }> = {
            #[cfg(target_arch = "nvptx64")]
            {
                #[inline(always)]
                fn address() -> u64 {
                    let address: u64;
                    // SAFETY: takes the address of the symbol that is declared above.
                    unsafe {
                        $crate::device::__private::asm!(
                            concat!("mov.u64 {}, ", stringify!($name), ";"),
                            out(reg64) address,
                            options(pure, nomem, nostack, preserves_flags),
                        )
                    };
                    address
                }
                // SAFETY: the symbol has so many elements.
                unsafe { $crate::device::Constant::declare(address) }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            $crate::device::Constant::declare(stringify!($name))
        };
    };
}

/// A pointer in global memory, CUDA's `__device__ float *`: `global_pointer! { pub static SAMPLES: f32; }`.
///
/// The host lets it point to a buffer; a kernel takes a view of that. On the CPU the pointer knows the buffer's
/// length, so that the view is bounds-checked. Names are as for [`global!`].
#[macro_export]
macro_rules! global_pointer {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $element:ty;) => {
        $(#[$attribute])*
        // A name that no other variable has: the host finds it by name, and may write any number to a variable that is no pointer.
        #[cfg_attr(
            target_arch = "nvptx64",
            unsafe(export_name = concat!("pointer$", stringify!($name)))
        )]
        $visibility static $name: $crate::device::GlobalPointer<$element> =
            $crate::device::GlobalPointer::declare(stringify!($name));
    };
}

/// [`global!`] for a checked launch.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_global {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $length:expr];) => {
        $(#[$attribute])*
        $visibility static $name: $crate::checked::Global<$element, { $length }> =
            $crate::checked::Global::declare(stringify!($name));
    };
}

/// [`constant!`] for a checked launch.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_constant {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $length:expr];) => {
        $(#[$attribute])*
        $visibility static $name: $crate::checked::Constant<$element, { $length }> =
            $crate::checked::Constant::declare(stringify!($name));
    };
}

/// [`global_pointer!`] for a checked launch.
#[doc(hidden)]
#[macro_export]
macro_rules! checked_global_pointer {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $element:ty;) => {
        $(#[$attribute])*
        $visibility static $name: $crate::checked::GlobalPointer<$element> =
            $crate::checked::GlobalPointer::declare(stringify!($name));
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
