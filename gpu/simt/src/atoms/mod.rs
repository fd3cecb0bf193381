//! Atoms: the instructions that multiply on tensor cores, of a warp (`mma.sync`) or of a warpgroup
//! (`wgmma`), a type each.
//!
//! An atom has the types of its factors and of its sums, its size along k, the registers that a
//! lane gives and gets, the instruction on the GPU, and its model on the CPU. What is made of atoms
//! ([`mma`](crate::mma): fragments, accumulators; main loops, epilogues) is generic over them.
//!
//! ```text
//!   atom                          factors           sums   compute capability   its sums on the CPU
//!   M16n8k16<Bf16, F16, Half>     bf16 or f16       f32    8.0                  cut off as on Hopper
//!   M16n8k8<Tf32>                 f32, as tf32      f32    8.0                  cut off as on Hopper
//!   M8n8k4<f64>                   f64               f64    8.0                  a chain of fused multiply-adds along k
//!   M16n8k4, k8, k16<f64>         f64               f64    9.0                  the same: the same bits
//!   M16n8k32<i8>                  signed 8 bits     i32    8.0                  exact
//!   M64k16<Bf16, F16, Half>       bf16 or f16       f32    9.0                  cut off as on Hopper
//!   M64k8<Tf32>                   f32, as tf32      f32    9.0                  cut off as on Hopper
//!   M64k32<i8>                    signed 8 bits     i32    9.0                  exact
//!   M64k32<E4m3, E5m2, Fp8>       e4m3 or e5m2      f32    9.0                  cut off as on Hopper, says the literature
//! ```
//!
//! An instruction of a warp multiplies 16 (or 8) rows of A by 8 columns of B. Here an atom
//! multiplies a *fragment* of 16 rows by one of 16 columns, by two or four instructions: so both
//! operands are loaded alike. An instruction of a warpgroup multiplies 64 rows by as many columns
//! as its accumulators have ([`WgmmaAtom`]).

mod f64;
mod half;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
mod lanes;
mod s8;
mod tf32;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub(crate) mod wgmma;

use core::marker::PhantomData;

use crate::Element;

#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
pub(crate) use lanes::accumulator;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub use wgmma::{Factor, M64k8, M64k16, M64k32, WgmmaAtom, WgmmaSum};

/// An instruction `m16n8k4`.
#[derive(Clone, Copy, Debug)]
pub struct M16n8k4<T>(PhantomData<T>);

/// An instruction `m16n8k8`.
#[derive(Clone, Copy, Debug)]
pub struct M16n8k8<T>(PhantomData<T>);

/// An instruction `m16n8k16`.
#[derive(Clone, Copy, Debug)]
pub struct M16n8k16<T>(PhantomData<T>);

/// An instruction `m16n8k32`.
#[derive(Clone, Copy, Debug)]
pub struct M16n8k32<T>(PhantomData<T>);

/// An instruction `m8n8k4`.
#[derive(Clone, Copy, Debug)]
pub struct M8n8k4<T>(PhantomData<T>);

/// An instruction of a warp that multiplies matrices.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Atom: Copy + Sealed + 'static {
    /// The numbers that it multiplies.
    type Factor: Element;

    /// The numbers that it adds to.
    type Sum: Sum;

    /// What a lane has of a fragment.
    #[doc(hidden)]
    type Registers: Copy + core::fmt::Debug;

    /// Elements of a fragment along k.
    const STEP: usize;

    /// Instructions that multiply a fragment of A by one of B.
    #[doc(hidden)]
    const INSTRUCTIONS: usize = 2;

    /// Adds the product of two fragments to a lane's sums of 16 x 16 elements.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    fn multiply_add(sums: &mut [Self::Sum; 8], a: Self::Registers, b: Self::Registers);

    /// A lane's part of a fragment as the words that the lanes exchange.
    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    #[doc(hidden)]
    fn words(registers: &Self::Registers) -> impl Iterator<Item = u32>;

    /// Adds the products of fragments to a lane's sums: the `i`th of A by the `j`th of B to
    /// `sums[i][j]`. `words` are those of each lane: of all fragments of A, and then of B.
    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    #[doc(hidden)]
    fn model<const M: usize, const N: usize>(
        lane: usize,
        words: &[&[u32]; 32],
        sums: &mut [[[Self::Sum; 8]; N]; M],
    );
}

/// A type of sums: f32, f64 or i32.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Sum: Element + core::fmt::Debug + Sealed {
    /// 0.
    const ZERO: Self;
}

impl Sum for f32 {
    const ZERO: f32 = 0.0;
}

impl Sum for f64 {
    const ZERO: f64 = 0.0;
}

impl Sum for i32 {
    const ZERO: i32 = 0;
}

trait Sealed {}

impl Sealed for f32 {}
impl Sealed for f64 {}
impl Sealed for i32 {}
impl<T> Sealed for M8n8k4<T> {}
impl<T> Sealed for M16n8k4<T> {}
impl<T> Sealed for M16n8k8<T> {}
impl<T> Sealed for M16n8k16<T> {}
impl<T> Sealed for M16n8k32<T> {}

/// An instruction that multiplies a fragment of A by eight columns of B, and adds to four sums from
/// number `$first` on.
#[cfg(target_arch = "nvptx64")]
macro_rules! instruction {
    ($name:literal, $class:ident, $sums:ident[$first:literal..], [$($a:expr),+], [$($b:expr),+]) => {
        core::arch::asm!(
            concat!(
                "mma.sync.aligned.", $name, " {{{d0}, {d1}, {d2}, {d3}}}, {{",
                $crate::atoms::instruction!(@ $($a),+), "}}, {{",
                $crate::atoms::instruction!(@ $($b),+), "}}, {{{d0}, {d1}, {d2}, {d3}}};",
            ),
            $(in($class) $a,)+
            $(in($class) $b,)+
            d0 = inout($class) $sums[$first], d1 = inout($class) $sums[$first + 1],
            d2 = inout($class) $sums[$first + 2], d3 = inout($class) $sums[$first + 3],
            options(nomem, nostack, preserves_flags),
        )
    };
    (@ $first:expr $(, $rest:expr)*) => {
        concat!("{}", $($crate::atoms::instruction!(! $rest)),*)
    };
    (! $operand:expr) => {
        ", {}"
    };
}

/// The method `multiply_add` of an atom whose fragments are four registers: of B two of eight
/// columns each.
#[cfg(target_arch = "nvptx64")]
macro_rules! of_four_registers {
    ($sum:ident, $name:literal) => {
        #[inline(always)]
        fn multiply_add(sums: &mut [$sum; 8], [a, b, c, d]: [u32; 4], right: [u32; 4]) {
            // SAFETY: arithmetic; all lanes call it, as the kernel promises. Not `pure`: it is not
            // moved to where some of them do not run.
            unsafe {
                $crate::atoms::instruction!(
                    $name,
                    reg32,
                    sums[0..],
                    [a, b, c, d],
                    [right[0], right[2]]
                );
                $crate::atoms::instruction!(
                    $name,
                    reg32,
                    sums[4..],
                    [a, b, c, d],
                    [right[1], right[3]]
                );
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
pub(crate) use {instruction, of_four_registers};
