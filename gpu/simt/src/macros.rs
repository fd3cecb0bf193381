//! Macros that declare shared arrays, barriers, pipelines and variables.

/// An array in shared memory, shared by all threads of a block and not initialised:
/// `shared![f32; 256]`, or with rows and columns `shared![f32; 16, 16]`.
///
/// Indexed like a slice, `tile[i]`, or by row and column, `tile[(row, col)]`; the layout is
/// row-major. Declare it at the top of the kernel: every place in the source is one array.
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

/// Mbarriers: `mbarriers![2]` declares two. Hopper and later.
#[macro_export]
macro_rules! mbarriers {
    ($count:expr) => {
        $crate::device::Mbarriers::<{ $count }>::declare()
    };
}

/// Named barriers: `named_barriers![1, 2; 256]` declares two, with ids 1 and 2, for 256 threads
/// each.
///
/// A block has the ids 1 to 15 (id 0 is used by
/// [`sync_threads`](crate::device::thread::sync_threads)), and each is declared at one place of a
/// kernel's code. The number of threads is a multiple of 32: whole warps.
#[macro_export]
macro_rules! named_barriers {
    ($first:expr, $count:expr; $threads:expr) => {
        $crate::device::NamedBarriers::<{ $first }, { $count }, { $threads }>::declare()
    };
}

/// The mbarriers of a pipeline with that number of stages: `pipeline![4]`. Hopper and later.
#[macro_export]
macro_rules! pipeline {
    ($stages:expr) => {
        $crate::device::Pipeline::<{ $stages }>::declare()
    };
}

/// The mbarriers of a pipeline in each block of a cluster, whose copies may go to several blocks:
/// `cluster_pipeline![4]`. Hopper and later.
#[macro_export]
macro_rules! cluster_pipeline {
    ($stages:expr) => {
        $crate::device::ClusterPipeline::<{ $stages }>::declare()
    };
}

/// A loop over the numbers `0, 1, 2, ..` that is written out on a GPU, where registers cannot be
/// indexed by a computed number: `unrolled!(for i in [0 1 2] { sums[i] += 1.0; })`. The compiler
/// unrolls short loops by itself, and leaves long ones.
///
/// In the body `i` is a `usize`, and a constant on a GPU. On the CPU it is a loop, which compiles
/// sooner. So the body has no `break` or `continue` without a label.
#[macro_export]
macro_rules! unrolled {
    (for $number:ident in [$($each:literal)+] $body:block) => {
        #[cfg(not(target_arch = "nvptx64"))]
        for $number in [$($each),+] as [usize; _] $body
        #[cfg(target_arch = "nvptx64")]
        {$({
            let $number: usize = $each;
            $body
        })+}
    };
}

/// A function of a number that a numeric constant of the kernel chooses. It is called with the
/// constant's value and the number. For a value without a function the number stays as it is.
///
/// ```
/// use simt::device::*;
///
/// function_by_constant! { fn shaped by "shape" { 1 => negated, 2 => halved } }
///
/// fn negated(x: f32) -> f32 {
///     -x
/// }
///
/// fn halved(x: f32) -> f32 {
///     0.5 * x
/// }
///
/// assert_eq!([0, 1, 2].map(|shape| shaped(shape, 3.0)), [3.0, -3.0, 1.5]);
/// ```
///
/// On a GPU the function that the kernel was loaded with is inlined at each call, and the others
/// are not there: a call is a line of the PTX, however long the functions are. They have no branch,
/// and call nothing. A function's name in the PTX is the constant's with the value, so it must be
/// unique in its crate.
#[macro_export]
macro_rules! function_by_constant {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident by $constant:literal {
        $($value:literal => $function:path),* $(,)?
    }) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                // SAFETY: no other function of the crate has the name.
                #[unsafe(export_name = concat!($constant, "_", $value))]
                fn inlined_at_load(number: f32) -> f32 {
                    $function(number)
                }
            };
        )*

        $(#[$attribute])*
        #[inline(always)]
        $visibility fn $name(value: u32, number: f32) -> f32 {
            #[cfg(target_arch = "nvptx64")]
            {
                let _ = value;
                let result: f32;
                // SAFETY: arithmetic.
                unsafe {
                    $crate::device::__private::asm!(
                        concat!("mov.b32 {}, /* simt.function ", $constant, " */ {};"),
                        out(reg32) result,
                        in(reg32) number,
                        options(pure, nomem, nostack, preserves_flags),
                    )
                };
                result
            }
            #[cfg(not(target_arch = "nvptx64"))]
            match value {
                $($value => $function(number),)*
                _ => number,
            }
        }
    };
}

/// An array in global memory that outlives launches, like a CUDA `__device__` variable:
/// `global! { pub static TOTALS: [u32; 4]; }`.
///
/// It begins as zeros. Kernels `load`, `store` and `atomic_add` its elements; the host reads and
/// writes it as a [`Symbol`](crate::Symbol). A GPU has one for each module that is loaded, the CPU
/// one for each process. Its name is the symbol's name in the PTX, so it must be unique in its
/// crate.
#[macro_export]
macro_rules! global {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: [$element:ty; $length:expr];) => {
        $(#[$attribute])*
        #[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle))]
        $visibility static $name: $crate::device::Global<$element, { $length }> =
            $crate::device::Global::declare(stringify!($name));
    };
}

/// An array in constant memory, like a CUDA `__constant__` variable:
/// `constant! { pub static WEIGHTS: [f32; 256]; }`.
///
/// It begins as zeros. Kernels read it, indexed like a slice; only the host writes it, as a
/// [`Symbol`](crate::Symbol). A GPU serves lanes of a warp that read the same element as fast as
/// from a register; different elements are read one after another. A module has 64 KiB of it. Names
/// are as for [`global!`].
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

/// A pointer in global memory, like a CUDA `__device__ float *`:
/// `global_pointer! { pub static SAMPLES: f32; }`.
///
/// The host lets it point to a buffer; a kernel takes a view of the buffer. On the CPU the pointer
/// has the buffer's length, so that the view is bounds-checked. Names are as for [`global!`].
#[macro_export]
macro_rules! global_pointer {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $element:ty;) => {
        $(#[$attribute])*
        // No other variable has such a name. The host finds pointers by their names, and may write
        // any value to variables that are no pointers.
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

/// Rust-CUDA's `cuda_std::shared_array!`: a raw pointer to an array in shared memory. An access
/// through it cannot be checked; [`shared!`] is the way to write a new kernel.
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $length:expr) => {
        $crate::device::Shared::<$element, { $length }, 1>::declare().as_mut_ptr()
    };
}
