//! `wgmma.m64nNk32` of signed 8-bit integers, with sums of i32. Operands are K-major.
//!
//! Products are exact. A sum that leaves the range of i32 wraps around (without `.satfinite`).

use super::{Factor, M64k32, WgmmaAtom};
#[cfg(target_arch = "nvptx64")]
use super::{MOST, each_columns, of_columns};
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::tensor_core::format::Format;
#[cfg(target_arch = "nvptx64")]
use crate::operand::Layout;

#[cfg(target_arch = "nvptx64")]
macro_rules! function {
    ($name:ident $columns:literal [$first:literal $($i:literal)*] []) => {
        #[inline(always)]
        pub fn $name(d: &mut [i32; MOST], a: u64, b: u64, kept: bool) {
            // SAFETY: as in `half`.
            unsafe {
                core::arch::asm!(
                    "{{ .reg .pred kept; setp.ne.b32 kept, {kept}, 0;",
                    concat!(
                        "wgmma.mma_async.sync.aligned.m64n", $columns, "k32.s32.s8.s8",
                        " {{{", $first, "}" $(, ", {", $i, "}")*, "}}, {a}, {b}, kept; }}",
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

#[cfg(target_arch = "nvptx64")]
mod s8 {
    use super::*;

    each_columns! { function [] }
}

impl Factor for i8 {
    type Sum = i32;
    type Atom = M64k32<i8>;
}

impl WgmmaAtom for M64k32<i8> {
    type Factor = i8;
    type Sum = i32;

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn multiply_add<const N: usize, A: Layout, B: Layout>(
        sums: &mut [i32; MOST],
        a: u64,
        b: u64,
        kept: bool,
    ) {
        of_columns!(i32, N, s8, (sums, a, b, kept))
    }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn format() -> Format {
        Format::S8
    }
}
