//! The types that a product is computed in.

use core::ops::{Add, Div, Mul};

use super::{super::device::*, FOUR};

/// f32 or f64: what differs between them.
pub trait Real:
    Element + Float + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// 0.
    const ZERO: Self;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;

    /// `x (1 + erf(x / sqrt(2))) / 2`, within four roundings of x.
    fn gelu(self) -> Self;

    /// The error function, as `x P(x²) / Q(x²)` up to where it is 1.
    ///
    /// The polynomials are those of the smallest relative error, found in 60 digits by least squares whose
    /// weights follow the error: 2.4e-8 up to 4 in f32, 4.4e-17 up to 6 in f64. None of their coefficients is
    /// negative, so that nothing cancels; and there is no branch in it and no table, so that it costs all lanes the
    /// same.
    fn error_function(self) -> Self;

    /// Four elements of a shared array, by 128-bit accesses.
    fn load_shared<const ROWS: usize, const COLS: usize>(
        tile: &Shared<Self, ROWS, COLS>,
        index: usize,
    ) -> [Self; FOUR];
}

macro_rules! reals {
    ($($real:ident: P = $p:expr, Q = $q:expr, end = $end:expr;)*) => {$(
        impl Real for $real {
            const ZERO: $real = 0.0;

            #[inline(always)]
            fn from_f64(value: f64) -> $real {
                value as $real
            }

            #[inline(always)]
            fn gelu(self) -> $real {
                0.5 * self * (1.0 + (self * core::$real::consts::FRAC_1_SQRT_2).error_function())
            }

            #[inline(always)]
            fn error_function(self) -> $real {
                // Comparisons that NaN fails: it stays.
                let x = if self > $end { $end } else { self };
                let x = if x < -$end { -$end } else { x };
                let square = x * x;
                let polynomial = |coefficients: &[$real], last: $real| {
                    let high = coefficients.iter().fold(0.0, |sum, &next| fma(sum, square, next));
                    fma(high, square, last)
                };
                // erf'(0) = 2 / sqrt(pi).
                let p = polynomial(&$p, core::$real::consts::FRAC_2_SQRT_PI);
                let erf = x * p / polynomial(&$q, 1.0);
                // Rounding may lead past the end, and GELU to the wrong sign; or not all the way, and GELU of a large
                // negative number to another large one in place of zero.
                let erf = if erf > 1.0 || self > $end { 1.0 } else { erf };
                if erf < -1.0 || self < -$end { -1.0 } else { erf }
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
        }
    )*};
}

reals! {
    f32:
        P = [1.9862364e-6, 0.0002845844, 0.003885218, 0.053108014, 0.19359303],
        Q = [3.7415175e-5, 0.0011859676, 0.015211226, 0.11536972, 0.5048999],
        end = 4.0;
    f64:
        P = [
            1.5086910033978406e-17,
            2.1724618807098618e-14,
            3.325402785887686e-12,
            1.7431687880773713e-10,
            6.834948559509808e-9,
            1.721303198922244e-7,
            3.9411311312797875e-6,
            5.7701955752852344e-5,
            8.617165786717083e-4,
            6.956764582506364e-3,
            6.633937297839913e-2,
            0.22140650277646323,
        ],
        Q = [
            8.561871050750183e-16,
            3.2704070741730214e-13,
            2.5693734732651214e-11,
            1.1384985467537325e-9,
            3.563161344921542e-8,
            8.459138066307173e-7,
            1.5680928055497613e-5,
            2.2837422073063794e-4,
            2.585740356005585e-3,
            2.2122594719652503e-2,
            0.1353083177392112,
            0.5295497375641623,
        ],
        end = 6.0;
}
