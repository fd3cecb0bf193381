//! `wgmma.m64nNk8` of tf32, with sums of f32. Operands are K-major. A may be in registers.

use super::{Factor, M64k8, WgmmaAtom};
#[cfg(target_arch = "nvptx64")]
use super::{MOST, each_columns, of_columns};
use crate::Tf32;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::tensor_core::format::Format;
#[cfg(target_arch = "nvptx64")]
use crate::operand::Layout;

/// With A in shared memory or in registers. There are no bits for the operands' major dimensions.
#[cfg(target_arch = "nvptx64")]
macro_rules! function {
    (
        $name:ident $columns:literal [$first:literal $($i:literal)*]
        [$register:ident $ty:ty, ($($a:ident),*) $of_a:literal]
    ) => {
        #[inline(always)]
        pub fn $name(d: &mut [f32; MOST], [$($a),*]: $ty, b: u64, kept: bool) {
            // SAFETY: as in `half`; ptxas keeps A's registers until the product has been waited
            // for.
            unsafe {
                core::arch::asm!(
                    "{{ .reg .pred kept; setp.ne.b32 kept, {kept}, 0;",
                    concat!(
                        "wgmma.mma_async.sync.aligned.m64n", $columns, "k8.f32.tf32.tf32",
                        " {{{", $first, "}" $(, ", {", $i, "}")*, "}}, ", $of_a, ", {b}, kept, 1, 1; }}",
                    ),
                    inout(reg32) d[$first],
                    $(inout(reg32) d[$i],)*
                    $($a = in($register) $a,)*
                    b = in(reg64) b,
                    kept = in(reg32) u32::from(kept),
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
#[allow(dead_code, reason = "i32 has more numbers of columns")]
mod shared {
    use super::*;

    each_columns! { function [reg64 [u64; 1], (a) "{a}"] }
}

#[cfg(target_arch = "nvptx64")]
#[allow(dead_code, reason = "i32 has more numbers of columns")]
mod registers {
    use super::*;

    each_columns! { function [reg32 [u32; 4], (a0, a1, a2, a3) "{{{a0}, {a1}, {a2}, {a3}}}"] }
}

impl Factor for Tf32 {
    type Sum = f32;
    type Atom = M64k8<Tf32>;
}

impl WgmmaAtom for M64k8<Tf32> {
    type Factor = Tf32;
    type Sum = f32;

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn multiply_add<const N: usize, A: Layout, B: Layout>(
        sums: &mut [f32; MOST],
        a: u64,
        b: u64,
        kept: bool,
    ) {
        of_columns!(f32, N, shared, (sums, [a], b, kept))
    }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn format() -> Format {
        Format::Tf32
    }
}

/// Begins to add the product of A in registers and B to the first `N / 2` sums.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn multiply_add_registers<const N: usize>(sums: &mut [f32; MOST], a: [Tf32; 4], b: u64) {
    let a = a.map(Tf32::to_bits);
    of_columns!(f32, N, registers, (sums, a, b, true))
}
