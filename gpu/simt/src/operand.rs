//! Operands of the tensor cores: of what numbers they are, and how they lie in shared memory.
//!
//! ```text
//!   KMajor<DEPTH>    a row of A (a column of B) is DEPTH elements of k, side by side: a box of
//!                    boxes::<ROWS, DEPTH, {2 * DEPTH}>, swizzled over its row
//!   KMajor<DEPTH, 4> the same of tf32, whose elements have four bytes: boxes::<ROWS, DEPTH, {4 * DEPTH}>
//!   MnMajor<DEPTH>   for each of DEPTH steps of k 64 rows of A (columns of B), side by side: a box of
//!                    boxes::<DEPTH, 64, 128>; the next 64 are the next box
//!   MnMajor<DEPTH, 32> the same of 16 alone: a box of boxes::<DEPTH, 16, 32>
//!   EitherMajorA<DEPTH>, EitherMajorB<DEPTH>   KMajor or MnMajor, as a constant says when the kernel is loaded
//! ```
//!
//! An instruction multiplies 32 bytes of k: 16 steps of 16 bits, 8 of tf32. Of tf32 it reads K-major operands alone.

use core::marker::PhantomData;

use crate::{Bf16, Element, F16, Half, Tf32};

/// A number that the tensor cores multiply.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Factor: Element + Sealed {
    #[doc(hidden)]
    const NUMBERS: Numbers;

    /// Steps of k that an instruction multiplies.
    #[doc(hidden)]
    const STEP: usize = 32 / size_of::<Self>();
}

/// What fragments are loaded of, for one warp's tensor cores: numbers of 16 bits, which are multiplied as they are, or f32,
/// which is rounded to tf32 on the way to registers.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Loaded: Element + Sealed {
    /// What it is multiplied as.
    type Factor: Factor;
}

impl Loaded for Bf16 {
    type Factor = Bf16;
}

impl Loaded for F16 {
    type Factor = F16;
}

impl Loaded for Half {
    type Factor = Half;
}

impl Loaded for f32 {
    type Factor = Tf32;
}

/// The formats, by name: the instruction's.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Bf16,
    F16,
    Tf32,
    /// One of the first two, by a constant.
    Half,
}

impl Factor for Bf16 {
    const NUMBERS: Numbers = Numbers::Bf16;
}

impl Factor for F16 {
    const NUMBERS: Numbers = Numbers::F16;
}

impl Factor for Half {
    const NUMBERS: Numbers = Numbers::Half;
}

impl Factor for Tf32 {
    const NUMBERS: Numbers = Numbers::Tf32;
}

/// How an operand lies in shared memory.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Layout: Copy + Sealed + 'static {
    /// Steps of k.
    const DEPTH: usize;
    /// Bytes of an element.
    #[doc(hidden)]
    const BYTES: usize;
    /// How an instruction is told which side is the major one.
    #[doc(hidden)]
    const MAJOR: Major;

    /// Do its rows (columns of B) lie side by side, and not its steps of k?
    fn is_mn_major() -> bool;

    /// What its descriptor says of it.
    #[doc(hidden)]
    fn shape() -> Shape;
}

/// How an instruction is told which side of an operand is the major one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    K,
    Mn,
    /// By the constant `a_mn_major`, of A.
    OfA,
    /// By the constant `b_mn_major`, of B.
    OfB,
}

/// What an operand's descriptor says of its layout.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Bytes of the swizzle's span.
    pub(crate) span: u32,
    /// Bytes of the leading dimension's offset, and of the stride dimension's.
    pub(crate) offsets: (u32, u32),
    /// Bytes from what one instruction multiplies, 32 bytes of k, to what the next does.
    pub(crate) advance: u32,
}

/// Steps of k side by side, `DEPTH` of them, each of `BYTES` bytes: 128 or 64 in all.
#[derive(Clone, Copy, Debug)]
pub struct KMajor<const DEPTH: usize, const BYTES: usize = 2>(PhantomData<()>);

/// Rows of A (columns of B) side by side, in boxes of a span of the swizzle, which are 64 of 128 bytes or 16 of 32, by `DEPTH`
/// steps of k, a multiple of 16 up to 256.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor<const DEPTH: usize, const SPAN: usize = 128>(PhantomData<()>);

/// An A of 16 bits that is [`KMajor`] or [`MnMajor`], as the kernel's constant `a_mn_major` says, which is 0 or 1. B is
/// [`EitherMajorB`] then.
#[derive(Clone, Copy, Debug)]
pub struct EitherMajorA<const DEPTH: usize>(PhantomData<()>);

/// A B of 16 bits that is [`KMajor`] or [`MnMajor`], as the kernel's constant `b_mn_major` says, which is 0 or 1. A is
/// [`EitherMajorA`] then.
#[derive(Clone, Copy, Debug)]
pub struct EitherMajorB<const DEPTH: usize, const SPAN: usize = 128>(PhantomData<()>);

impl<const DEPTH: usize, const BYTES: usize> Layout for KMajor<DEPTH, BYTES> {
    const DEPTH: usize = {
        let row = DEPTH * BYTES;
        assert!(row == 128 || row == 64, "a row is 128 or 64 bytes, a span of the swizzle");
        DEPTH
    };
    const BYTES: usize = BYTES;
    const MAJOR: Major = Major::K;

    #[inline(always)]
    fn is_mn_major() -> bool {
        false
    }

    #[inline(always)]
    fn shape() -> Shape {
        let span = (Self::DEPTH * BYTES) as u32;
        // One instruction's steps lie within the span, so that nothing leads along k.
        Shape { span, offsets: (16, 8 * span), advance: 32 }
    }
}

impl<const DEPTH: usize, const SPAN: usize> Layout for MnMajor<DEPTH, SPAN> {
    const DEPTH: usize = {
        assert!(
            DEPTH.is_multiple_of(16) && DEPTH > 0 && DEPTH <= 256,
            "an instruction multiplies 16 steps"
        );
        assert!(SPAN == 128 || SPAN == 32, "a span of the swizzle is 128 or 32 bytes here");
        DEPTH
    };
    const BYTES: usize = 2;
    const MAJOR: Major = Major::Mn;

    #[inline(always)]
    fn is_mn_major() -> bool {
        true
    }

    #[inline(always)]
    fn shape() -> Shape {
        let span = SPAN as u32;
        Shape { span, offsets: (span * Self::DEPTH as u32, 8 * span), advance: 16 * span }
    }
}

macro_rules! either {
    ($($name:ident<$($of:ident),*>: $span:expr, $major:ident, $constant:literal;)*) => {$(
        impl<$(const $of: usize),*> Layout for $name<$($of),*> {
            const DEPTH: usize = {
                assert!(KMajor::<DEPTH>::DEPTH == MnMajor::<DEPTH, { $span }>::DEPTH);
                DEPTH
            };
            const BYTES: usize = 2;
            const MAJOR: Major = Major::$major;

            #[inline(always)]
            #[cfg(target_arch = "nvptx64")]
            fn is_mn_major() -> bool {
                let value: u32;
                // SAFETY: moves a number to a register.
                unsafe {
                    core::arch::asm!(
                        concat!("mov.u32 {}, /* simt.constant ", $constant, " */ 0;"),
                        out(reg32) value,
                        options(pure, nomem, nostack, preserves_flags),
                    )
                };
                value != 0
            }

            #[inline(always)]
            #[track_caller]
            #[cfg(not(target_arch = "nvptx64"))]
            fn is_mn_major() -> bool {
                crate::cpu::constant($constant) != 0
            }

            #[inline(always)]
            fn shape() -> Shape {
                match Self::is_mn_major() {
                    true => MnMajor::<DEPTH, { $span }>::shape(),
                    false => KMajor::<DEPTH>::shape(),
                }
            }
        }
    )*};
}

either! {
    EitherMajorA<DEPTH>: 128, OfA, "a_mn_major";
    EitherMajorB<DEPTH, SPAN>: SPAN, OfB, "b_mn_major";
}

trait Sealed {}

impl Sealed for Bf16 {}
impl Sealed for F16 {}
impl Sealed for Half {}
impl Sealed for Tf32 {}
impl Sealed for f32 {}
impl<const DEPTH: usize, const BYTES: usize> Sealed for KMajor<DEPTH, BYTES> {}
impl<const DEPTH: usize, const SPAN: usize> Sealed for MnMajor<DEPTH, SPAN> {}
impl<const DEPTH: usize> Sealed for EitherMajorA<DEPTH> {}
impl<const DEPTH: usize, const SPAN: usize> Sealed for EitherMajorB<DEPTH, SPAN> {}
