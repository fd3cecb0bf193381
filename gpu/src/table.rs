//! Tables of kernels: a row makes a kernel, and says what it is and how fast.

/// A family's table. A row is a call of a macro that makes a kernel, and its measured speeds:
///
/// ```text
///   tiled! { gemm_f32_32x32x8: f32 -> f32, 32 x 32, .. } gpu { gflops: 160.0, .. } cpu { .. };
///   makes the kernel             its name and what it is   Speed on a GPU, unless    and on the CPU
///                                                          another kernel is always  device, if
///                                                          faster                    measured
/// ```
///
/// With `row` in place of the name, the macro says what the kernel is: a `registry::Row`. The list
/// of all rows is `DESIGNS`, which the registry reads.
macro_rules! kernels {
    ($family:ident; $($kind:ident! $row:tt $(gpu $on_gpu:tt)? $(cpu $on_cpu:tt)?;)*) => {
        $($kind! $row)*
        designs! { $family; $($kind $row [$($on_gpu)?] [$($on_cpu)?])* }
    };
}

/// The list `DESIGNS`. A GPU has no use for it.
#[cfg(target_arch = "nvptx64")]
macro_rules! designs {
    ($($row:tt)*) => {};
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! designs {
    ($family:ident; $($kind:ident { $name:ident: $($row:tt)+ } [$($on_gpu:tt)?] [$($on_cpu:tt)?])*) => {
        /// The rows, in order.
        pub(crate) static DESIGNS: &[$crate::registry::Design] = &[$({
            let design = $crate::registry::Design::product(
                &$name,
                $kind!(row $($row)+),
                speed!($($on_gpu)?),
                speed!($($on_cpu)?),
            );
            #[cfg(feature = "cpu")]
            let design = design.checked(&$crate::checked::kernels::$family::$name);
            design
        }),*];
    };
}

/// A measured `Speed`: its fields. Without `of` it holds for all products.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! speed {
    () => {
        None
    };
    ({ $($field:ident: $value:expr),+ }) => {{
        #[allow(unused_imports, reason = "a speed may hold for all products")]
        use $crate::registry::Products;
        #[allow(clippy::needless_update, reason = "a row may have all fields")]
        let speed = $crate::registry::Speed { $($field: $value,)+ ..$crate::registry::Speed::OF_ALL };
        Some(speed)
    }};
}
