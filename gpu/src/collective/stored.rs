//! The types that matrices are stored in, and how their elements are loaded and stored.
//!
//! ```text
//!              computed in    to shared memory                        to C
//!   f32, f64   itself         asynchronous copies, not through        16-byte accesses if aligned
//!   and i32                   registers
//!   i8         i32            through registers, which widens it      (C is i32, f32, Bf16 or F16)
//!   E4m3, E5m2 f32            the same                                (C is f32, Bf16 or F16)
//!   Bf16, F16  f32            through registers, which widens it      rounded to the nearest, 8-byte accesses if aligned
//! ```
//!
//! An asynchronous copy moves at least four bytes, from a multiple of four, and cannot convert. An
//! element of two bytes may start between two multiples of four.

use super::{activation::half, device::*, real::Real, vector::FOUR};

/// f32, f64, i32, i8, [`E4m3`], [`E5m2`], [`Bf16`], [`F16`], or [`Fp8`] and [`Half`], which are
/// each one of two. Of another type this says what it is computed in; elements are then loaded and
/// stored one by one.
pub trait Stored: Element {
    /// The type that it is computed in.
    type Real: Real;

    /// Widens the number.
    fn widened(self) -> Self::Real;

    /// Rounds to the nearest number of this type.
    fn nearest(value: Self::Real) -> Self;

    /// A smooth [activation](super::activation) of four numbers, as exact as a number of this type
    /// can show. `kind` is [`GELU`](crate::params::GELU), [`GELU_TANH`](crate::params::GELU_TANH)
    /// or [`SILU`](crate::params::SILU).
    #[inline(always)]
    fn activated(kind: u32, four: [Self::Real; FOUR]) -> [Self::Real; FOUR] {
        Self::Real::activated_exactly(kind, four)
    }

    /// Loads four elements from a multiple of four on.
    #[inline(always)]
    #[track_caller]
    fn load(view: &Out<Self>, index: usize) -> [Self::Real; FOUR] {
        let mut four = [Self::Real::ZERO; FOUR];
        for i in 0..FOUR {
            four[i] = view[index + i].widened();
        }
        four
    }

    /// Stores four elements from a multiple of four on.
    #[inline(always)]
    #[track_caller]
    fn store(view: &mut Out<Self>, index: usize, four: [Self::Real; FOUR]) {
        for i in 0..FOUR {
            view[index + i] = Self::nearest(four[i]);
        }
    }

    /// Issues the copy of an element to a shared array. If it is not `valid`, the copy is a zero.
    #[inline(always)]
    #[track_caller]
    fn copy_one<const ROWS: usize, const COLS: usize>(
        tile: &mut Shared<Self::Real, ROWS, COLS>,
        to: usize,
        view: &In<Self>,
        from: usize,
        valid: bool,
    ) {
        tile[to] = if valid { view[from].widened() } else { Self::Real::ZERO };
    }

    /// The same for four neighbours, from multiples of four on in both.
    #[inline(always)]
    #[track_caller]
    fn copy_four<const ROWS: usize, const COLS: usize>(
        tile: &mut Shared<Self::Real, ROWS, COLS>,
        to: usize,
        view: &In<Self>,
        from: usize,
        valid: bool,
    ) {
        for i in 0..FOUR {
            Self::copy_one(tile, to + i, view, from + i, valid);
        }
    }
}

macro_rules! reals {
    ($($real:ident)*) => {$(
        impl Stored for $real {
            type Real = $real;

            #[inline(always)]
            fn widened(self) -> $real {
                self
            }

            #[inline(always)]
            fn nearest(value: $real) -> $real {
                value
            }

            #[inline(always)]
            #[track_caller]
            fn load(view: &Out<$real>, index: usize) -> [$real; FOUR] {
                let mut four = [$real::ZERO; FOUR];
                for i in (0..FOUR).step_by(16 / size_of::<$real>()) {
                    let part: [$real; 16 / size_of::<$real>()] = view.load128(index + i);
                    four[i..i + part.len()].copy_from_slice(&part);
                }
                four
            }

            #[inline(always)]
            #[track_caller]
            fn store(view: &mut Out<$real>, index: usize, four: [$real; FOUR]) {
                const WIDE: usize = 16 / size_of::<$real>();
                for i in (0..FOUR).step_by(WIDE) {
                    let mut part = [$real::ZERO; WIDE];
                    part.copy_from_slice(&four[i..i + WIDE]);
                    view.store128(index + i, part);
                }
            }

            #[inline(always)]
            #[track_caller]
            fn copy_one<const ROWS: usize, const COLS: usize>(
                tile: &mut Shared<$real, ROWS, COLS>,
                to: usize,
                view: &In<$real>,
                from: usize,
                valid: bool,
            ) {
                tile.copy_async::<1>(to, view, from, valid);
            }

            #[inline(always)]
            #[track_caller]
            fn copy_four<const ROWS: usize, const COLS: usize>(
                tile: &mut Shared<$real, ROWS, COLS>,
                to: usize,
                view: &In<$real>,
                from: usize,
                valid: bool,
            ) {
                const WIDE: usize = 16 / size_of::<$real>();
                for i in (0..FOUR).step_by(WIDE) {
                    tile.copy_async::<WIDE>(to + i, view, from + i, valid);
                }
            }
        }
    )*};
}

reals! { f32 f64 i32 }

impl Stored for i8 {
    type Real = i32;

    #[inline(always)]
    fn widened(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn nearest(value: i32) -> i8 {
        value.clamp(i8::MIN.into(), i8::MAX.into()) as i8
    }
}

macro_rules! float8 {
    ($($ty:ident)*) => {$(
        impl Stored for $ty {
            type Real = f32;

            #[inline(always)]
            fn widened(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn nearest(value: f32) -> $ty {
                $ty::from_f32(value)
            }
        }
    )*};
}

float8! { E4m3 E5m2 Fp8 }

macro_rules! halves {
    ($($half:ident)*) => {$(
        impl Stored for $half {
            type Real = f32;

            #[inline(always)]
            fn widened(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn nearest(value: f32) -> $half {
                $half::from_f32(value)
            }

            #[inline(always)]
            fn activated(kind: u32, four: [f32; FOUR]) -> [f32; FOUR] {
                half::activated(kind, four)
            }

            #[inline(always)]
            #[track_caller]
            fn load(view: &Out<$half>, index: usize) -> [f32; FOUR] {
                view.load64::<FOUR>(index).map($half::to_f32)
            }

            #[inline(always)]
            #[track_caller]
            fn store(view: &mut Out<$half>, index: usize, four: [f32; FOUR]) {
                let [a, b, c, d] = four;
                let ([a, b], [c, d]) = ($half::from_two_f32([a, b]), $half::from_two_f32([c, d]));
                view.store64(index, [a, b, c, d]);
            }
        }
    )*};
}

halves! { Bf16 F16 Half }
