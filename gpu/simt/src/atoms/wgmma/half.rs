//! `wgmma.m64nNk16` of bf16 and f16, with sums of f32. Either operand is K-major or MN-major.

use super::{Factor, M64k16, WgmmaAtom};
#[cfg(target_arch = "nvptx64")]
use super::{MOST, each_columns, of_columns};
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::{is_f16, tensor_core::format::Format};
#[cfg(target_arch = "nvptx64")]
use crate::operand::{Layout, Major};
use crate::{Bf16, F16, Half};

/// Whether constants of the kernel decide the major dimensions of A and B.
#[cfg(target_arch = "nvptx64")]
const fn by_constants<A: Layout, B: Layout>() -> bool {
    match (A::MAJOR, B::MAJOR) {
        (Major::OfA, Major::OfB) => true,
        (Major::K | Major::Mn, Major::K | Major::Mn) => false,
        _ => panic!("A is EitherMajorA and B EitherMajorB, or neither"),
    }
}

/// The major dimension of an operand, where no constant decides it, as the instruction encodes it.
#[cfg(target_arch = "nvptx64")]
const fn major<L: Layout>() -> u32 {
    matches!(L::MAJOR, Major::Mn) as u32
}

/// The instruction with these encodings of the major dimensions of A and B.
#[cfg(target_arch = "nvptx64")]
macro_rules! begin {
    (
        $columns:literal $ty:literal [$first:literal $($i:literal)*] ($d:ident, $a:ident, $b:ident, $kept:ident)
        $of_a:literal $of_b:literal $($majors:tt)*
    ) => {
        // SAFETY: all threads of the warpgroup call it with the same operands, which are inside its
        // block's shared memory, as the kernel promises. Not `nomem`: it is not moved before what
        // precedes it.
        unsafe {
            core::arch::asm!(
                "{{ .reg .pred kept; setp.ne.b32 kept, {kept}, 0;",
                concat!(
                    "wgmma.mma_async.sync.aligned.m64n", $columns, "k16.f32", $ty, $ty,
                    " {{{", $first, "}" $(, ", {", $i, "}")*,
                    "}}, {a}, {b}, kept, 1, 1, ", $of_a, ", ", $of_b, "; }}",
                ),
                inout(reg32) $d[$first],
                $(inout(reg32) $d[$i],)*
                a = in(reg64) $a,
                b = in(reg64) $b,
                kept = in(reg32) u32::from($kept),
                $($majors)*
                options(nostack, preserves_flags),
            );
        }
    };
}

#[cfg(target_arch = "nvptx64")]
macro_rules! function {
    ($name:ident $columns:literal $registers:tt [$ty:literal]) => {
        #[inline(always)]
        pub fn $name<A: Layout, B: Layout>(d: &mut [f32; MOST], a: u64, b: u64, kept: bool) {
            if const { by_constants::<A, B>() } {
                begin! {
                    $columns $ty $registers (d, a, b, kept)
                    "/* simt.constant a_mn_major */ 0" "/* simt.constant b_mn_major */ 0"
                }
            } else {
                begin! {
                    $columns $ty $registers (d, a, b, kept)
                    "{of_a}" "{of_b}" of_a = const major::<A>(), of_b = const major::<B>(),
                }
            }
        }
    };
}

macro_rules! halves {
    ($($half:ident $module:ident: $ty:literal, $format:expr;)*) => {$(
        #[cfg(target_arch = "nvptx64")]
        #[allow(dead_code, reason = "i32 has more numbers of columns")]
        mod $module {
            use super::*;

            each_columns! { function [$ty] }
        }

        impl Factor for $half {
            type Sum = f32;
            type Atom = M64k16<$half>;
        }

        impl WgmmaAtom for M64k16<$half> {
            type Factor = $half;
            type Sum = f32;

            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn multiply_add<const N: usize, A: Layout, B: Layout>(
                sums: &mut [f32; MOST],
                a: u64,
                b: u64,
                kept: bool,
            ) {
                of_columns!(f32, N, $module, ::<A, B>(sums, a, b, kept))
            }

            #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
            fn format() -> Format {
                $format
            }
        }
    )*};
}

halves! {
    Bf16 bf16: ".bf16", Format::Bf16;
    F16 f16: ".f16", Format::F16;
    // By the kernel's constant `half`.
    Half half: "/* simt.constant half */.bf16", if is_f16() { Format::F16 } else { Format::Bf16 };
}
