//! Atoms of a warpgroup (`wgmma`): 64 rows of A by N columns of B, by 32 bytes along k. Compute
//! capability 9.0.
//!
//! A is in shared memory, of tf32 also in registers; B is in shared memory. The sums are in
//! registers of 128 threads (`cpu/tensor_core/fragment.rs`; PTX ISA, the figures of wgmma's
//! fragment D).
//!
//! The instruction names its registers. So it is a function of its own for each N: a loop over
//! accumulators that LLVM does not unroll would put them into memory.

mod float8;
mod half;
mod s8;
pub(crate) mod tf32;

use core::marker::PhantomData;

use super::Sum;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::tensor_core::format::Format;
#[cfg(target_arch = "nvptx64")]
use crate::operand::Layout;
use crate::{Bf16, E4m3, E5m2, Element, F16, Fp8, Half, Tf32};

/// The most sums of a thread. Those that an instruction does not have are never used, and so take
/// no register.
pub(crate) const MOST: usize = 128;

/// An instruction `wgmma.m64nNk8`.
#[derive(Clone, Copy, Debug)]
pub struct M64k8<T>(PhantomData<T>);

/// An instruction `wgmma.m64nNk16`.
#[derive(Clone, Copy, Debug)]
pub struct M64k16<T>(PhantomData<T>);

/// An instruction `wgmma.m64nNk32`.
#[derive(Clone, Copy, Debug)]
pub struct M64k32<T>(PhantomData<T>);

/// A number type that a warpgroup's tensor cores multiply.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Factor: Element + Sealed {
    /// The type of the sums.
    type Sum: WgmmaSum;

    /// The instruction that multiplies it.
    #[doc(hidden)]
    type Atom: WgmmaAtom<Factor = Self, Sum = Self::Sum>;

    /// Elements along k that an instruction multiplies.
    #[doc(hidden)]
    const STEP: usize = 32 / size_of::<Self>();

    /// Whether the sums have fewer bits in the tensor cores than their type. Then long sums are to
    /// be made of parts, outside of them.
    const HAS_SHORT_SUMS: bool = false;
}

/// An instruction of a warpgroup that multiplies matrices.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait WgmmaAtom: Copy + Sealed + 'static {
    /// The numbers that it multiplies.
    type Factor: Factor<Sum = Self::Sum, Atom = Self>;

    /// The numbers that it adds to.
    type Sum: WgmmaSum;

    /// Begins the product of A and B, given by their descriptors. It is added to the first `N / 2`
    /// sums if they are `kept`, and overwrites them otherwise.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    fn multiply_add<const N: usize, A: Layout, B: Layout>(
        sums: &mut [Self::Sum; MOST],
        a: u64,
        b: u64,
        kept: bool,
    );

    /// The bits of an element. Products and sums follow from it (`cpu::tensor_core`).
    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    #[doc(hidden)]
    fn format() -> Format;
}

/// A type of sums of a warpgroup: f32 or i32.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait WgmmaSum: Sum + Sealed {
    /// The numbers of columns that instructions with these sums have here.
    #[doc(hidden)]
    const COLUMNS: &'static [usize];

    /// An unspecified number.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    fn unspecified() -> Self;

    /// A number that stands for unspecified ones. No test takes it for a sum.
    #[cfg(not(target_arch = "nvptx64"))]
    #[doc(hidden)]
    const UNSPECIFIED: Self;

    /// A barrier for both compilers: nothing is done with the first `N / 2` sums before this.
    #[cfg(target_arch = "nvptx64")]
    #[doc(hidden)]
    fn finish<const N: usize>(sums: &mut [Self; MOST]);

    /// Adds what `step` adds to f32.
    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    #[doc(hidden)]
    fn add(sums: &mut [Self], step: impl FnOnce(&mut [f32]));
}

/// Whether there is an instruction with that number of columns here.
pub(crate) const fn valid<S: WgmmaSum>(columns: usize) {
    let mut i = 0;
    while i < S::COLUMNS.len() && S::COLUMNS[i] != columns {
        i += 1;
    }
    assert!(
        i < S::COLUMNS.len(),
        "f32: 16, 32, 64, 96, 128, 192 or 256 columns; i32: 8, 16, 24, 32, 48, 64, then steps of 16 to 256"
    );
}

/// For each number of columns a function of that name: `$make! { n64 64 [registers] arguments }`.
/// Each line has the registers of the previous one, and more.
#[cfg(target_arch = "nvptx64")]
macro_rules! each_columns {
    ($make:ident $arguments:tt) => {
        $crate::atoms::wgmma::each_columns! { @ $make $arguments []
            8 n8 [0 1 2 3]
            16 n16 [4 5 6 7]
            24 n24 [8 9 10 11]
            32 n32 [12 13 14 15]
            48 n48 [16 17 18 19 20 21 22 23]
            64 n64 [24 25 26 27 28 29 30 31]
            80 n80 [32 33 34 35 36 37 38 39]
            96 n96 [40 41 42 43 44 45 46 47]
            112 n112 [48 49 50 51 52 53 54 55]
            128 n128 [56 57 58 59 60 61 62 63]
            144 n144 [64 65 66 67 68 69 70 71]
            160 n160 [72 73 74 75 76 77 78 79]
            176 n176 [80 81 82 83 84 85 86 87]
            192 n192 [88 89 90 91 92 93 94 95]
            208 n208 [96 97 98 99 100 101 102 103]
            224 n224 [104 105 106 107 108 109 110 111]
            240 n240 [112 113 114 115 116 117 118 119]
            256 n256 [120 121 122 123 124 125 126 127]
        }
    };
    (@ $make:ident $arguments:tt [$($d:literal)*]) => {};
    (@ $make:ident $arguments:tt [$($d:literal)*] $columns:literal $name:ident [$($more:literal)*] $($rest:tt)*) => {
        $make! { $name $columns [$($d)* $($more)*] $arguments }
        $crate::atoms::wgmma::each_columns! { @ $make $arguments [$($d)* $($more)*] $($rest)* }
    };
}

/// Calls the function of a module that has so many columns.
#[cfg(target_arch = "nvptx64")]
macro_rules! of_columns {
    (f32, $n:expr, $module:ident, $($call:tt)+) => {
        match $n {
            16 => $module::n16 $($call)+,
            32 => $module::n32 $($call)+,
            64 => $module::n64 $($call)+,
            96 => $module::n96 $($call)+,
            128 => $module::n128 $($call)+,
            192 => $module::n192 $($call)+,
            256 => $module::n256 $($call)+,
            _ => const { $crate::atoms::wgmma::valid::<f32>($n) },
        }
    };
    (i32, $n:expr, $module:ident, $($call:tt)+) => {
        match $n {
            8 => $module::n8 $($call)+,
            16 => $module::n16 $($call)+,
            24 => $module::n24 $($call)+,
            32 => $module::n32 $($call)+,
            48 => $module::n48 $($call)+,
            64 => $module::n64 $($call)+,
            80 => $module::n80 $($call)+,
            96 => $module::n96 $($call)+,
            112 => $module::n112 $($call)+,
            128 => $module::n128 $($call)+,
            144 => $module::n144 $($call)+,
            160 => $module::n160 $($call)+,
            176 => $module::n176 $($call)+,
            192 => $module::n192 $($call)+,
            208 => $module::n208 $($call)+,
            224 => $module::n224 $($call)+,
            240 => $module::n240 $($call)+,
            256 => $module::n256 $($call)+,
            _ => const { $crate::atoms::wgmma::valid::<i32>($n) },
        }
    };
}
#[cfg(target_arch = "nvptx64")]
pub(crate) use {each_columns, of_columns};

impl WgmmaSum for f32 {
    const COLUMNS: &'static [usize] = &[16, 32, 64, 96, 128, 192, 256];

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn unspecified() -> f32 {
        let number;
        // SAFETY: it does nothing; every bit pattern of a register is a number.
        unsafe {
            core::arch::asm!("/* {} */", out(reg32) number, options(nomem, nostack, preserves_flags))
        };
        number
    }

    #[cfg(not(target_arch = "nvptx64"))]
    const UNSPECIFIED: f32 = f32::NAN;

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn finish<const N: usize>(sums: &mut [f32; MOST]) {
        of_columns!(f32, N, finish_f32, (sums))
    }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn add(sums: &mut [f32], step: impl FnOnce(&mut [f32])) {
        step(sums);
    }
}

impl WgmmaSum for i32 {
    const COLUMNS: &'static [usize] =
        &[8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256];

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn unspecified() -> i32 {
        let number;
        // SAFETY: as for f32.
        unsafe {
            core::arch::asm!("/* {} */", out(reg32) number, options(nomem, nostack, preserves_flags))
        };
        number
    }

    #[cfg(not(target_arch = "nvptx64"))]
    const UNSPECIFIED: i32 = i32::MIN + 0x5eed;

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn finish<const N: usize>(sums: &mut [i32; MOST]) {
        of_columns!(i32, N, finish_i32, (sums))
    }

    /// The 32 products of a step are at most 2^19 in all, which f32 has exactly. A sum that leaves
    /// the range of i32 wraps around (without `.satfinite`).
    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn add(sums: &mut [i32], step: impl FnOnce(&mut [f32])) {
        let mut products = [0.0; MOST];
        step(&mut products[..sums.len()]);
        for (sum, product) in sums.iter_mut().zip(products) {
            *sum = sum.wrapping_add(product as i32);
        }
    }
}

#[cfg(target_arch = "nvptx64")]
macro_rules! finish {
    ($name:ident $columns:literal [$first:literal $($i:literal)*] $sum:ident) => {
        #[inline(always)]
        pub fn $name(d: &mut [$sum; super::MOST]) {
            // SAFETY: a comment.
            unsafe {
                core::arch::asm!(
                    concat!("// {", $first, "}" $(, " {", $i, "}")*),
                    inout(reg32) d[$first],
                    $(inout(reg32) d[$i],)*
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
#[allow(dead_code, reason = "i32 has more numbers of columns")]
mod finish_f32 {
    super::each_columns! { finish f32 }
}

#[cfg(target_arch = "nvptx64")]
mod finish_i32 {
    super::each_columns! { finish i32 }
}

trait Sealed {}

impl Sealed for f32 {}
impl Sealed for i32 {}
impl Sealed for i8 {}
impl Sealed for E4m3 {}
impl Sealed for E5m2 {}
impl Sealed for Fp8 {}
impl Sealed for Bf16 {}
impl Sealed for F16 {}
impl Sealed for Half {}
impl Sealed for Tf32 {}
impl<T> Sealed for M64k8<T> {}
impl<T> Sealed for M64k16<T> {}
impl<T> Sealed for M64k32<T> {}
