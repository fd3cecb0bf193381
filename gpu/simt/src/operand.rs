//! Operands of the tensor cores: of what numbers they are, and how they lie in shared memory.
//!
//! ```text
//!   KMajor<DEPTH>    a row of A (a column of B) is DEPTH elements of k, side by side: a box of
//!                    boxes::<ROWS, DEPTH, {2 * DEPTH}>, swizzled over its row
//!   KMajor<DEPTH, 4> the same of tf32, whose elements have four bytes: boxes::<ROWS, DEPTH, {4 * DEPTH}>
//!   MnMajor<DEPTH>   for each of DEPTH steps of k 64 rows of A (columns of B), side by side: a box of
//!                    boxes::<DEPTH, 64, 128>; the next 64 are the next box
//!   MnMajor<DEPTH, 32> the same of 16 alone: a box of boxes::<DEPTH, 16, 32>
//! ```
//!
//! An instruction multiplies 32 bytes of k: 16 steps of 16 bits, 8 of tf32. Of tf32 it reads K-major operands alone.

use core::marker::PhantomData;

use crate::{Bf16, Element, F16, Tf32};

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
}

impl Factor for Bf16 {
    const NUMBERS: Numbers = Numbers::Bf16;
}

impl Factor for F16 {
    const NUMBERS: Numbers = Numbers::F16;
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
    /// Do its rows (columns of B) lie side by side, and not its steps of k? (1 or 0, as the instruction wants it.)
    #[doc(hidden)]
    const MN_MAJOR: u32;
    /// Bytes of the swizzle's span.
    #[doc(hidden)]
    const SPAN: u32;
    /// The descriptor's offsets in bytes: the leading dimension's, the stride dimension's.
    #[doc(hidden)]
    const OFFSETS: (u32, u32);
    /// Bytes from what one instruction multiplies, 32 bytes of k, to what the next does.
    #[doc(hidden)]
    const ADVANCE: u32;
}

/// Steps of k side by side, `DEPTH` of them, each of `BYTES` bytes: 128 or 64 in all.
#[derive(Clone, Copy, Debug)]
pub struct KMajor<const DEPTH: usize, const BYTES: usize = 2>(PhantomData<()>);

/// Rows of A (columns of B) side by side, in boxes of a span of the swizzle, which are 64 of 128 bytes or 16 of 32, by `DEPTH`
/// steps of k, a multiple of 16 up to 256.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor<const DEPTH: usize, const SPAN: usize = 128>(PhantomData<()>);

impl<const DEPTH: usize, const BYTES: usize> Layout for KMajor<DEPTH, BYTES> {
    const DEPTH: usize = {
        let row = DEPTH * BYTES;
        assert!(row == 128 || row == 64, "a row is 128 or 64 bytes, a span of the swizzle");
        DEPTH
    };
    const BYTES: usize = BYTES;
    const MN_MAJOR: u32 = 0;
    const SPAN: u32 = (Self::DEPTH * BYTES) as u32;
    // One instruction's steps lie within the span, so that nothing leads along k.
    const OFFSETS: (u32, u32) = (16, 8 * Self::SPAN);
    const ADVANCE: u32 = 32;
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
    const MN_MAJOR: u32 = 1;
    const SPAN: u32 = SPAN as u32;
    const OFFSETS: (u32, u32) = (Self::SPAN * Self::DEPTH as u32, 8 * Self::SPAN);
    const ADVANCE: u32 = 16 * Self::SPAN;
}

trait Sealed {}

impl Sealed for Bf16 {}
impl Sealed for F16 {}
impl Sealed for Tf32 {}
impl Sealed for f32 {}
impl<const DEPTH: usize, const BYTES: usize> Sealed for KMajor<DEPTH, BYTES> {}
impl<const DEPTH: usize, const SPAN: usize> Sealed for MnMajor<DEPTH, SPAN> {}
