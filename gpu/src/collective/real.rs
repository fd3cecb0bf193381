//! The types that a product is computed in.

use super::{
    activation::exact::{of_f32, of_f64},
    device::*,
    vector::FOUR,
};

/// f32, f64 or i32, and what differs between them. Sums and products of i32 wrap around.
pub trait Real: Element + MultiplyAdd + Shuffle + PartialEq {
    /// 0.
    const ZERO: Self;

    /// 1.
    const ONE: Self;

    /// Whether C is `alpha A B + beta C` alone: without a bias and an activation.
    const IS_SCALED_SUM: bool;

    /// Rounds to the nearest number of this type.
    fn from_f64(value: f64) -> Self;

    /// Whether they differ. (The compiler inlines `!=` of a generic type later than this.)
    fn differs(self, other: Self) -> bool;

    /// The sum of both.
    fn plus(self, other: Self) -> Self;

    /// The product of both.
    fn times(self, other: Self) -> Self;

    /// The greater of the number and 0. NaN stays NaN.
    fn relu(self) -> Self;

    /// An [exact activation](super::activation::exact) of four numbers.
    fn activated_exactly(kind: u32, four: [Self; FOUR]) -> [Self; FOUR];

    /// Loads four elements of a shared array, by 128-bit accesses.
    fn load_shared<const ROWS: usize, const COLS: usize>(
        tile: &Shared<Self, ROWS, COLS>,
        index: usize,
    ) -> [Self; FOUR];

    /// Stores four elements to a shared array, by 128-bit accesses.
    fn store_sums<const ROWS: usize, const COLS: usize>(
        tile: &mut Shared<Self, ROWS, COLS>,
        index: usize,
        four: [Self; FOUR],
    );

    /// Loads what [`store_sums`](Self::store_sums) has stored.
    fn load_sums<const ROWS: usize, const COLS: usize>(
        tile: &Shared<Self, ROWS, COLS>,
        index: usize,
    ) -> [Self; FOUR];

    /// Loads four elements of the dynamic shared memory by 128-bit accesses: two pairs, which are
    /// side by side if one access is enough.
    fn load_four(staged: &DynamicShared<Self>, pairs: [usize; 2]) -> [Self; FOUR];

    /// Stores two elements to the dynamic shared memory by one access.
    fn store_pair(staged: &mut DynamicShared<Self>, index: usize, pair: [Self; 2]);
}

/// A number that sums of type `S` become before they are finished.
pub trait OfSum<S>: Sized {
    /// Rounds to the nearest numbers of this type.
    fn of_sums<const N: usize>(sums: [S; N]) -> [Self; N];
}

impl<S> OfSum<S> for S {
    #[inline(always)]
    fn of_sums<const N: usize>(sums: [S; N]) -> [S; N] {
        sums
    }
}

impl OfSum<i32> for f32 {
    #[inline(always)]
    fn of_sums<const N: usize>(sums: [i32; N]) -> [f32; N] {
        sums.map(|sum| sum as f32)
    }
}

macro_rules! reals {
    ($($real:ident: $is_plain:literal, |$a:ident, $b:ident| [$sum:expr, $product:expr], $activated:expr, $store_pair:ident, $four:ident: $($at:literal [$($i:literal),+] $part:expr),+;)*) => {$(
        impl Real for $real {
            const ZERO: $real = 0 as $real;
            const ONE: $real = 1 as $real;
            const IS_SCALED_SUM: bool = $is_plain;

            #[inline(always)]
            fn from_f64(value: f64) -> $real {
                value as $real
            }

            #[inline(always)]
            fn differs(self, other: $real) -> bool {
                self != other
            }

            #[inline(always)]
            fn plus(self, $b: $real) -> $real {
                let $a = self;
                $sum
            }

            #[inline(always)]
            fn times(self, $b: $real) -> $real {
                let $a = self;
                $product
            }

            #[inline(always)]
            fn relu(self) -> $real {
                if self < Self::ZERO { Self::ZERO } else { self }
            }

            #[inline(always)]
            fn activated_exactly(kind: u32, four: [$real; FOUR]) -> [$real; FOUR] {
                $activated(kind, four)
            }

            #[inline(always)]
            #[track_caller]
            fn load_shared<const ROWS: usize, const COLS: usize>(
                tile: &Shared<$real, ROWS, COLS>,
                index: usize,
            ) -> [$real; FOUR] {
                let mut four = [$real::ZERO; FOUR];
                for i in (0..FOUR).step_by(16 / size_of::<$real>()) {
                    let part: [$real; 16 / size_of::<$real>()] = tile.load128(index + i);
                    four[i..i + part.len()].copy_from_slice(&part);
                }
                four
            }

            #[inline(always)]
            #[track_caller]
            fn store_sums<const ROWS: usize, const COLS: usize>(
                tile: &mut Shared<$real, ROWS, COLS>,
                index: usize,
                $four: [$real; FOUR],
            ) {
                $(tile.store128(index + $at, $part);)+
            }

            #[inline(always)]
            #[track_caller]
            fn load_sums<const ROWS: usize, const COLS: usize>(
                tile: &Shared<$real, ROWS, COLS>,
                index: usize,
            ) -> [$real; FOUR] {
                let mut four = [$real::ZERO; FOUR];
                $([$(four[$i]),+] = tile.load128(index + $at);)+
                four
            }

            #[inline(always)]
            #[track_caller]
            fn load_four(staged: &DynamicShared<$real>, pairs: [usize; 2]) -> [$real; FOUR] {
                const WIDE: usize = 16 / size_of::<$real>();
                let mut four = [$real::ZERO; FOUR];
                for i in (0..FOUR).step_by(WIDE) {
                    let part: [$real; WIDE] = staged.load128(pairs[i / 2]);
                    four[i..i + WIDE].copy_from_slice(&part);
                }
                four
            }

            #[inline(always)]
            #[track_caller]
            fn store_pair(staged: &mut DynamicShared<$real>, index: usize, pair: [$real; 2]) {
                staged.$store_pair(index, pair);
            }
        }
    )*};
}

reals! {
    f32: false, |a, b| [a + b, a * b], of_f32::activated, store64, four: 0 [0, 1, 2, 3] four;
    f64: false, |a, b| [a + b, a * b], of_f64::activated, store128, four: 0 [0, 1] [four[0], four[1]], 2 [2, 3] [four[2], four[3]];
    i32: true, |a, b| [a.wrapping_add(b), a.wrapping_mul(b)], |_, four| four, store64, four: 0 [0, 1, 2, 3] four;
}
