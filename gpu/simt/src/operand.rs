//! Operands of the tensor cores: their layouts in shared memory.
//!
//! ```text
//!   KMajor<DEPTH>    a row of A (a column of B) is DEPTH elements of k, side by side: a box of
//!                    boxes::<ROWS, DEPTH, {2 * DEPTH}>, swizzled over its row
//!   KMajor<DEPTH, 4> the same of tf32, whose elements have four bytes: boxes::<ROWS, DEPTH, {4 * DEPTH}>
//!   KMajor<DEPTH, 1> the same of 8-bit integers: boxes::<ROWS, DEPTH, DEPTH>
//!   MnMajor<DEPTH>   for each of DEPTH k-steps 64 rows of A (columns of B), side by side: a box of
//!                    boxes::<DEPTH, 64, 128>; the next 64 are the next box
//!   MnMajor<DEPTH, 32> the same of 16 alone: a box of boxes::<DEPTH, 16, 32>
//!   EitherMajorA<DEPTH>, EitherMajorB<DEPTH>   KMajor or MnMajor, as a constant says when the kernel is loaded
//! ```
//!
//! An instruction multiplies 32 bytes along k: 32 elements of 8 bits, 16 of 16 bits, or 8 of tf32.
//! Operands of 8 bits and of tf32 must be K-major.

use core::marker::PhantomData;

/// The layout of an operand in shared memory.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Layout: Copy + Sealed + 'static {
    /// Elements along k (`BLOCK_K`).
    const DEPTH: usize;
    /// Bytes of an element.
    #[doc(hidden)]
    const BYTES: usize;
    /// How the instruction learns which dimension is the major one.
    #[doc(hidden)]
    const MAJOR: Major;

    /// Whether it is MN-major: consecutive elements are along M or N, not along K.
    fn is_mn_major() -> bool;

    /// The layout's part of the matrix descriptor.
    #[doc(hidden)]
    fn shape() -> Shape;
}

/// How an instruction learns which dimension of an operand is the major one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    K,
    Mn,
    /// By the kernel's constant `a_mn_major`.
    OfA,
    /// By the kernel's constant `b_mn_major`.
    OfB,
}

/// A layout's part of the matrix descriptor.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Bytes of the swizzle's span.
    pub(crate) span: u32,
    /// The byte offsets of the leading and of the stride dimension.
    pub(crate) offsets: (u32, u32),
    /// Bytes between the operands of successive instructions, which multiply 32 bytes along k each.
    pub(crate) advance: u32,
}

/// K-major: `DEPTH` elements along k are contiguous, of `BYTES` bytes each, 128 or 64 bytes in all.
#[derive(Clone, Copy, Debug)]
pub struct KMajor<const DEPTH: usize, const BYTES: usize = 2>(PhantomData<()>);

/// MN-major: rows of A (or columns of B) are contiguous, in boxes of one swizzle span: 64 rows for
/// a span of 128 bytes, 16 for 32 bytes. `DEPTH` is the number of elements along k, a multiple of
/// 16 up to 256.
#[derive(Clone, Copy, Debug)]
pub struct MnMajor<const DEPTH: usize, const SPAN: usize = 128>(PhantomData<()>);

/// An operand A of 16-bit numbers that is [`KMajor`] or [`MnMajor`], by the kernel's constant
/// `a_mn_major` (0 or 1). B must be [`EitherMajorB`].
#[derive(Clone, Copy, Debug)]
pub struct EitherMajorA<const DEPTH: usize>(PhantomData<()>);

/// An operand B of 16-bit numbers that is [`KMajor`] or [`MnMajor`], by the kernel's constant
/// `b_mn_major` (0 or 1). A must be [`EitherMajorA`].
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
        // One instruction's elements along k are within the span, so the leading dimension has no
        // offset.
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

impl<const DEPTH: usize, const BYTES: usize> Sealed for KMajor<DEPTH, BYTES> {}
impl<const DEPTH: usize, const SPAN: usize> Sealed for MnMajor<DEPTH, SPAN> {}
impl<const DEPTH: usize> Sealed for EitherMajorA<DEPTH> {}
impl<const DEPTH: usize, const SPAN: usize> Sealed for EitherMajorB<DEPTH, SPAN> {}
