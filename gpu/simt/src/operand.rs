//! Operands of the tensor cores: of what numbers they are, and how they lie in shared memory.
//!
//! ```text
//!   KMajor<DEPTH>    a row of A (a column of B) is DEPTH elements of k, side by side: a box of
//!                    boxes::<ROWS, DEPTH, {2 * DEPTH}>, swizzled over its row
//!   MnMajor<DEPTH>   for each of DEPTH steps of k 64 rows of A (columns of B), side by side: a box of
//!                    boxes::<DEPTH, 64, 128>; the next 64 are the next box
//! ```

use core::marker::PhantomData;

use crate::{Bf16, Element, F16};

/// A number that the tensor cores multiply.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Factor: Element + Sealed {
    /// Is it the upper half of an `f32`, and not IEEE's number of 16 bits?
    #[doc(hidden)]
    const IS_BF16: bool;
}

impl Factor for Bf16 {
    const IS_BF16: bool = true;
}

impl Factor for F16 {
    const IS_BF16: bool = false;
}

/// How an operand lies in shared memory.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Layout: Copy + Sealed + 'static {
    /// Steps of k.
    const DEPTH: usize;
    /// Do its rows (columns of B) lie side by side, and not its steps of k? (1 or 0, as the instruction wants it.)
    #[doc(hidden)]
    const MN_MAJOR: u32;
    /// Bytes of the swizzle's span.
    #[doc(hidden)]
    const SPAN: u32;
    /// The descriptor's offsets in bytes: the leading dimension's, the stride dimension's.
    #[doc(hidden)]
    const OFFSETS: (u32, u32);
    /// Bytes from what one instruction multiplies, 16 steps of k, to what the next does.
    #[doc(hidden)]
    const ADVANCE: u32;
}

/// Steps of k side by side, `DEPTH` of them: 64 or 32.
#[derive(Clone, Copy, Debug)]
pub struct KMajor<const DEPTH: usize>(PhantomData<()>);

/// Rows of A (columns of B) side by side, in boxes of 64 by `DEPTH` steps of k, a multiple of 16 up to 256.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor<const DEPTH: usize>(PhantomData<()>);

impl<const DEPTH: usize> Layout for KMajor<DEPTH> {
    const DEPTH: usize = {
        assert!(DEPTH == 64 || DEPTH == 32, "a row is 128 or 64 bytes, a span of the swizzle");
        DEPTH
    };
    const MN_MAJOR: u32 = 0;
    const SPAN: u32 = 2 * Self::DEPTH as u32;
    // One instruction's steps lie within the span, so that nothing leads along k.
    const OFFSETS: (u32, u32) = (16, 8 * Self::SPAN);
    const ADVANCE: u32 = 32;
}

impl<const DEPTH: usize> Layout for MnMajor<DEPTH> {
    const DEPTH: usize = {
        assert!(
            DEPTH.is_multiple_of(16) && DEPTH > 0 && DEPTH <= 256,
            "an instruction multiplies 16 steps"
        );
        DEPTH
    };
    const MN_MAJOR: u32 = 1;
    const SPAN: u32 = 128;
    const OFFSETS: (u32, u32) = (128 * Self::DEPTH as u32, 8 * 128);
    const ADVANCE: u32 = 16 * 128;
}

trait Sealed {}

impl Sealed for Bf16 {}
impl Sealed for F16 {}
impl<const DEPTH: usize> Sealed for KMajor<DEPTH> {}
impl<const DEPTH: usize> Sealed for MnMajor<DEPTH> {}
