//! The types that a product is computed in.

use core::ops::{Add, Div, Mul};

use super::{
    activation::exact::{of_f32, of_f64},
    device::*,
    vector::FOUR,
};

/// f32 or f64, and what differs between them.
pub trait Real:
    Element
    + Float
    + Shuffle
    + PartialOrd
    + Add<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// 0.
    const ZERO: Self;

    /// Rounds to the nearest number of this type.
    fn from_f64(value: f64) -> Self;

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

macro_rules! reals {
    ($($real:ident: $module:ident, $store_pair:ident, $four:ident: $($at:literal [$($i:literal),+] $part:expr),+;)*) => {$(
        impl Real for $real {
            const ZERO: $real = 0.0;

            #[inline(always)]
            fn from_f64(value: f64) -> $real {
                value as $real
            }

            #[inline(always)]
            fn relu(self) -> $real {
                if self < 0.0 { 0.0 } else { self }
            }

            #[inline(always)]
            fn activated_exactly(kind: u32, four: [$real; FOUR]) -> [$real; FOUR] {
                $module::activated(kind, four)
            }

            #[inline(always)]
            #[track_caller]
            fn load_shared<const ROWS: usize, const COLS: usize>(
                tile: &Shared<$real, ROWS, COLS>,
                index: usize,
            ) -> [$real; FOUR] {
                let mut four = [0.0; FOUR];
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
                let mut four = [0.0; FOUR];
                $([$(four[$i]),+] = tile.load128(index + $at);)+
                four
            }

            #[inline(always)]
            #[track_caller]
            fn load_four(staged: &DynamicShared<$real>, pairs: [usize; 2]) -> [$real; FOUR] {
                const WIDE: usize = 16 / size_of::<$real>();
                let mut four = [0.0; FOUR];
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
    f32: of_f32, store64, four: 0 [0, 1, 2, 3] four;
    f64: of_f64, store128, four: 0 [0, 1] [four[0], four[1]], 2 [2, 3] [four[2], four[3]];
}
