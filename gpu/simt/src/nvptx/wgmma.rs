//! The instructions `wgmma.mma_async`, which name their accumulator registers.
//!
//! There is no loop over accumulators: one that LLVM does not unroll would put them into memory.
//! Macros name each by its number.

use core::arch::asm;

use crate::{
    Tf32,
    operand::{Factor, Layout, Major, Numbers},
};

/// The most accumulators of a thread. Those that an instruction does not have are never used, and
/// so take no register.
pub(super) const MOST: usize = 128;

/// Whether there is an instruction with that number of columns here.
pub(super) const fn valid(columns: usize) {
    assert!(
        matches!(columns, 16 | 32 | 64 | 96 | 128 | 192 | 256),
        "16, 32, 64, 96, 128, 192 or 256 columns"
    );
}

/// Repeats code for the number of each accumulator.
macro_rules! each {
    (|$i:ident| $then:expr) => {
        $crate::device::wgmma::numbered! { $i $then;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90
            91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114
            115 116 117 118 119 120 121 122 123 124 125 126 127
        }
    };
}

/// Repeats code for the number of each pair of accumulators.
macro_rules! each_pair {
    (|$i:ident| $then:expr) => {
        $crate::device::wgmma::numbered! { $i $then;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63
        }
    };
}

/// Repeats code for the number of each four accumulators, two of either row.
macro_rules! each_square {
    (|$i:ident| $then:expr) => {
        $crate::device::wgmma::numbered! { $i $then;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        }
    };
}

macro_rules! numbered {
    ($i:ident $then:expr; $($number:literal)*) => {$({
        let $i: usize = $number;
        $then
    })*};
}

pub(super) use {each, each_pair, each_square, numbered};

/// Whether constants of the kernel decide the major dimensions of A and B.
const fn by_constants<A: Layout, B: Layout>() -> bool {
    match (A::MAJOR, B::MAJOR) {
        (Major::OfA, Major::OfB) => true,
        (Major::K | Major::Mn, Major::K | Major::Mn) => false,
        _ => panic!("A is EitherMajorA and B EitherMajorB, or neither"),
    }
}

/// The major dimension of an operand, where no constant decides it, as the instruction encodes it.
const fn major<L: Layout>() -> u32 {
    matches!(L::MAJOR, Major::Mn) as u32
}

/// The instruction with these encodings of the major dimensions of A and B.
macro_rules! begin {
    (
        $columns:literal $ty:literal [$first:literal $($i:literal)*] ($d:ident, $a:ident, $b:ident, $kept:ident)
        $of_a:literal $of_b:literal $($majors:tt)*
    ) => {
        // SAFETY: all threads of the warpgroup call it with the same operands, which are inside its
        // block's shared memory, as the kernel promises. Not `nomem`: it is not moved before what
        // precedes it.
        unsafe {
            asm!(
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

macro_rules! instruction {
    ($name:ident $columns:literal $ty:literal $registers:tt) => {
        #[inline(always)]
        fn $name<A: Layout, B: Layout>(d: &mut [f32; MOST], a: u64, b: u64, kept: bool) {
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

/// For tf32, with A in shared memory or in registers. There are no bits for the operands' major
/// dimensions.
macro_rules! tf32 {
    ($name:ident $columns:literal $register:ident $ty:ty, ($($a:ident),*) $of_a:literal [$first:literal $($i:literal)*]) => {
        #[inline(always)]
        fn $name(d: &mut [f32; MOST], [$($a),*]: $ty, b: u64, kept: bool) {
            // SAFETY: as in `instruction`; ptxas keeps A's registers until the product has been
            // waited for.
            unsafe {
                asm!(
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

macro_rules! finish {
    ($name:ident [$first:literal $($i:literal)*]) => {
        #[inline(always)]
        fn $name(d: &mut [f32; MOST]) {
            // SAFETY: a comment.
            unsafe {
                asm!(
                    concat!("// {", $first, "}" $(, " {", $i, "}")*),
                    inout(reg32) d[$first],
                    $(inout(reg32) d[$i],)*
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

/// Each line has the accumulators of the previous line, and more.
macro_rules! instructions {
    ([$($d:literal)*]) => {};
    (
        [$($d:literal)*] $columns:literal $bf16:ident $f16:ident $half:ident $tf32:ident $registers:ident $finish:ident
        [$($more:literal)*]
        $($rest:tt)*
    ) => {
        instruction! { $bf16 $columns ".bf16" [$($d)* $($more)*] }
        instruction! { $f16 $columns ".f16" [$($d)* $($more)*] }
        instruction! { $half $columns "/* simt.constant half */.bf16" [$($d)* $($more)*] }
        tf32! { $tf32 $columns reg64 [u64; 1], (a) "{a}" [$($d)* $($more)*] }
        tf32! {
            $registers $columns reg32 [u32; 4], (a0, a1, a2, a3) "{{{a0}, {a1}, {a2}, {a3}}}"
            [$($d)* $($more)*]
        }
        finish! { $finish [$($d)* $($more)*] }
        instructions! { [$($d)* $($more)*] $($rest)* }
    };
}

instructions! {
    []
    16 bf16_16 f16_16 half_16 tf32_16 tf32_registers_16 finish_16 [0 1 2 3 4 5 6 7]
    32 bf16_32 f16_32 half_32 tf32_32 tf32_registers_32 finish_32 [8 9 10 11 12 13 14 15]
    64 bf16_64 f16_64 half_64 tf32_64 tf32_registers_64 finish_64 [
        16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    ]
    96 bf16_96 f16_96 half_96 tf32_96 tf32_registers_96 finish_96 [
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
    ]
    128 bf16_128 f16_128 half_128 tf32_128 tf32_registers_128 finish_128 [
        48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    ]
    192 bf16_192 f16_192 half_192 tf32_192 tf32_registers_192 finish_192 [
        64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92
        93 94 95
    ]
    256 bf16_256 f16_256 half_256 tf32_256 tf32_registers_256 finish_256 [
        96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118
        119 120 121 122 123 124 125 126 127
    ]
}

/// Begins one instruction's product of A and B in the first `N / 2` accumulators. It is added to
/// them if they are `kept`, and overwrites them otherwise.
#[inline(always)]
pub(super) fn multiply_add<const N: usize, T: Factor, A: Layout, B: Layout>(
    d: &mut [f32; MOST],
    a: u64,
    b: u64,
    kept: bool,
) {
    match (N, T::NUMBERS) {
        (16, Numbers::Bf16) => bf16_16::<A, B>(d, a, b, kept),
        (16, Numbers::F16) => f16_16::<A, B>(d, a, b, kept),
        (16, Numbers::Half) => half_16::<A, B>(d, a, b, kept),
        (16, Numbers::Tf32) => tf32_16(d, [a], b, kept),
        (32, Numbers::Bf16) => bf16_32::<A, B>(d, a, b, kept),
        (32, Numbers::F16) => f16_32::<A, B>(d, a, b, kept),
        (32, Numbers::Half) => half_32::<A, B>(d, a, b, kept),
        (32, Numbers::Tf32) => tf32_32(d, [a], b, kept),
        (64, Numbers::Bf16) => bf16_64::<A, B>(d, a, b, kept),
        (64, Numbers::F16) => f16_64::<A, B>(d, a, b, kept),
        (64, Numbers::Half) => half_64::<A, B>(d, a, b, kept),
        (64, Numbers::Tf32) => tf32_64(d, [a], b, kept),
        (96, Numbers::Bf16) => bf16_96::<A, B>(d, a, b, kept),
        (96, Numbers::F16) => f16_96::<A, B>(d, a, b, kept),
        (96, Numbers::Half) => half_96::<A, B>(d, a, b, kept),
        (96, Numbers::Tf32) => tf32_96(d, [a], b, kept),
        (128, Numbers::Bf16) => bf16_128::<A, B>(d, a, b, kept),
        (128, Numbers::F16) => f16_128::<A, B>(d, a, b, kept),
        (128, Numbers::Half) => half_128::<A, B>(d, a, b, kept),
        (128, Numbers::Tf32) => tf32_128(d, [a], b, kept),
        (192, Numbers::Bf16) => bf16_192::<A, B>(d, a, b, kept),
        (192, Numbers::F16) => f16_192::<A, B>(d, a, b, kept),
        (192, Numbers::Half) => half_192::<A, B>(d, a, b, kept),
        (192, Numbers::Tf32) => tf32_192(d, [a], b, kept),
        (256, Numbers::Bf16) => bf16_256::<A, B>(d, a, b, kept),
        (256, Numbers::F16) => f16_256::<A, B>(d, a, b, kept),
        (256, Numbers::Half) => half_256::<A, B>(d, a, b, kept),
        (256, Numbers::Tf32) => tf32_256(d, [a], b, kept),
        _ => const { valid(N) },
    }
}

/// Begins to add one instruction's product of A in registers and B to the first `N / 2`
/// accumulators.
#[inline(always)]
pub(super) fn multiply_add_registers<const N: usize>(d: &mut [f32; MOST], a: [Tf32; 4], b: u64) {
    let a = a.map(Tf32::to_bits);
    match N {
        16 => tf32_registers_16(d, a, b, true),
        32 => tf32_registers_32(d, a, b, true),
        64 => tf32_registers_64(d, a, b, true),
        96 => tf32_registers_96(d, a, b, true),
        128 => tf32_registers_128(d, a, b, true),
        192 => tf32_registers_192(d, a, b, true),
        256 => tf32_registers_256(d, a, b, true),
        _ => const { valid(N) },
    }
}

/// A barrier for both compilers: nothing is done with the first `N / 2` accumulators before this.
/// The wait before it has seen them written.
#[inline(always)]
pub(super) fn finish<const N: usize>(d: &mut [f32; MOST]) {
    match N {
        16 => finish_16(d),
        32 => finish_32(d),
        64 => finish_64(d),
        96 => finish_96(d),
        128 => finish_128(d),
        192 => finish_192(d),
        256 => finish_256(d),
        _ => const { valid(N) },
    }
}
