//! `wgmma.m64nNk32` of 8-bit floating-point numbers, with sums of f32. Operands are K-major, and A
//! and B of one type.
//!
//! The sums have 13 bits after the point (`cpu/tensor_core/truncating.rs`).

use super::{Factor, M64k32, WgmmaAtom};
#[cfg(target_arch = "nvptx64")]
use super::{MOST, each_columns, of_columns};
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::{is_e5m2, tensor_core::format::Format};
#[cfg(target_arch = "nvptx64")]
use crate::operand::Layout;
use crate::{E4m3, E5m2, Fp8};

#[cfg(target_arch = "nvptx64")]
macro_rules! function {
    ($name:ident $columns:literal [$first:literal $($i:literal)*] [$ty:literal]) => {
        #[inline(always)]
        pub fn $name(d: &mut [f32; MOST], a: u64, b: u64, kept: bool) {
            // SAFETY: as in `half`.
            unsafe {
                core::arch::asm!(
                    "{{ .reg .pred kept; setp.ne.b32 kept, {kept}, 0;",
                    concat!(
                        "wgmma.mma_async.sync.aligned.m64n", $columns, "k32.f32", $ty, $ty,
                        " {{{", $first, "}" $(, ", {", $i, "}")*, "}}, {a}, {b}, kept, 1, 1; }}",
                    ),
                    inout(reg32) d[$first],
                    $(inout(reg32) d[$i],)*
                    a = in(reg64) a,
                    b = in(reg64) b,
                    kept = in(reg32) u32::from(kept),
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

macro_rules! float8 {
    ($($ty:ident $module:ident: $name:literal, $format:expr;)*) => {$(
        #[cfg(target_arch = "nvptx64")]
        #[allow(dead_code, reason = "i32 has more numbers of columns")]
        mod $module {
            use super::*;

            each_columns! { function [$name] }
        }

        impl Factor for $ty {
            type Sum = f32;
            type Atom = M64k32<$ty>;
            const HAS_SHORT_SUMS: bool = true;
        }

        impl WgmmaAtom for M64k32<$ty> {
            type Factor = $ty;
            type Sum = f32;

            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn multiply_add<const N: usize, A: Layout, B: Layout>(
                sums: &mut [f32; MOST],
                a: u64,
                b: u64,
                kept: bool,
            ) {
                of_columns!(f32, N, $module, (sums, a, b, kept))
            }

            #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
            fn format() -> Format {
                $format
            }
        }
    )*};
}

float8! {
    E4m3 e4m3: ".e4m3", Format::E4m3;
    E5m2 e5m2: ".e5m2", Format::E5m2;
    // By the kernel's constant `fp8`.
    Fp8 fp8: "/* simt.constant fp8 */.e4m3", if is_e5m2() { Format::E5m2 } else { Format::E4m3 };
}
