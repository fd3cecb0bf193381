//! The types that matrices are stored in, and their elements' ways from and to global memory.
//!
//! ```text
//!              computed in   to shared memory                        to C
//!   f32, f64   itself        asynchronous copies, past registers     accesses of sixteen bytes where they are aligned
//!   Bf16, F16  f32           through registers, where it is widened  rounded to the nearest, of eight bytes likewise
//! ```
//!
//! An asynchronous copy moves at least four bytes, and changes none: elements of two bytes could begin anywhere between.

use super::{super::device::*, FOUR, real::Real};

/// f32, f64, [`Bf16`], [`F16`], or [`Half`], which is one of these two.
pub trait Stored: Element {
    /// The type that it is computed in.
    type Real: Real;

    /// The same number.
    fn widened(self) -> Self::Real;

    /// The nearest number of this type.
    fn nearest(value: Self::Real) -> Self;

    /// Four elements of a view, the first of which lies at a multiple of four elements.
    fn load(view: &Out<Self>, index: usize) -> [Self::Real; FOUR];

    /// Writes four elements, the first of which lies at a multiple of four elements.
    fn store(view: &mut Out<Self>, index: usize, four: [Self::Real; FOUR]);

    /// Begins to copy four elements to a shared array: zeros, where they are not `valid`. The first is copied from there to there, and
    /// to the next it is so far.
    fn copy_each<const ROWS: usize, const COLS: usize>(
        tile: &mut Shared<Self::Real, ROWS, COLS>,
        to: (usize, usize),
        view: &In<Self>,
        from: (usize, usize),
        valid: impl Fn(usize) -> bool,
    );

    /// The same of four neighbours, the first of which lies at multiples of four elements, in both.
    fn copy_four<const ROWS: usize, const COLS: usize>(
        tile: &mut Shared<Self::Real, ROWS, COLS>,
        to: usize,
        view: &In<Self>,
        from: usize,
        valid: bool,
    );
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
                let mut four = [0.0; FOUR];
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
                    let mut part = [0.0; WIDE];
                    part.copy_from_slice(&four[i..i + WIDE]);
                    view.store128(index + i, part);
                }
            }

            #[inline(always)]
            #[track_caller]
            fn copy_each<const ROWS: usize, const COLS: usize>(
                tile: &mut Shared<$real, ROWS, COLS>,
                (to, to_step): (usize, usize),
                view: &In<$real>,
                (from, from_step): (usize, usize),
                valid: impl Fn(usize) -> bool,
            ) {
                for i in 0..FOUR {
                    let (to, from) = (to + i * to_step, from + i * from_step);
                    tile.copy_async::<1>(to, view, from, valid(i));
                }
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

reals! { f32 f64 }

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
            #[track_caller]
            fn load(view: &Out<$half>, index: usize) -> [f32; FOUR] {
                $half::to_f32s(view.load64(index))
            }

            #[inline(always)]
            #[track_caller]
            fn store(view: &mut Out<$half>, index: usize, four: [f32; FOUR]) {
                let [a, b, c, d] = four;
                let ([a, b], [c, d]) = ($half::from_two_f32([a, b]), $half::from_two_f32([c, d]));
                view.store64(index, [a, b, c, d]);
            }

            #[inline(always)]
            #[track_caller]
            fn copy_each<const ROWS: usize, const COLS: usize>(
                tile: &mut Shared<f32, ROWS, COLS>,
                (to, to_step): (usize, usize),
                view: &In<$half>,
                (from, from_step): (usize, usize),
                valid: impl Fn(usize) -> bool,
            ) {
                let zero = $half::from_bits(0);
                let load = |i: usize| if valid(i) { view[from + i * from_step] } else { zero };
                // On the CPU four are widened at once. On a GPU there are no registers for them beside the sums.
                let four = match cfg!(target_arch = "nvptx64") {
                    true => [0.0; FOUR],
                    false => $half::to_f32s(core::array::from_fn(load)),
                };
                for i in 0..FOUR {
                    tile[to + i * to_step] = match cfg!(target_arch = "nvptx64") {
                        true => load(i).to_f32(),
                        false => four[i],
                    };
                }
            }

            #[inline(always)]
            #[track_caller]
            fn copy_four<const ROWS: usize, const COLS: usize>(
                tile: &mut Shared<f32, ROWS, COLS>,
                to: usize,
                view: &In<$half>,
                from: usize,
                valid: bool,
            ) {
                $half::copy_each(tile, (to, 1), view, (from, 1), |_| valid);
            }
        }
    )*};
}

halves! { Bf16 F16 Half }
