//! The types of a product, and numbers of them.

use std::{fmt, sync::LazyLock};

use host::{Bf16, F16, Pod, gemm::Scalar};
use simt::{Element, Half};

/// Not a number.
pub const NAN: f64 = f64::NAN;
/// Infinity.
pub const INFINITY: f64 = f64::INFINITY;

/// f32, f64, bf16 or f16.
pub trait Number: Scalar + Into<f64> + PartialOrd + fmt::Debug {
    /// The type of the sums.
    type Sum: Number<Sum = Self::Sum>;

    /// The element type of the parameters of its kernels.
    type Taken: Element + fmt::Debug;

    /// The unit roundoff.
    const U: f64;
    /// The smallest positive number.
    const TINY: f64;
    /// The share of an error bound that is for the reference, which is computed in float64.
    const SLACK: f64;

    /// The nearest number of this type. For bf16 and f16 by way of the nearest f32.
    fn nearest(value: f64) -> Self;

    /// The same number in the type of the sums.
    fn widened(self) -> Self::Sum;

    /// The nearest number of this type.
    fn narrowed(sum: Self::Sum) -> Self;

    /// `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;

    /// `self * b`.
    fn times(self, b: Self) -> Self;

    /// `self + b`.
    fn plus(self, b: Self) -> Self;

    /// NaNs with various payloads, quiet and signalling.
    fn noise() -> &'static [Self];

    /// Its general kernels that round no factor.
    fn general() -> Vec<&'static str> {
        let general =
            Self::kernels().filter(|kernel| kernel.product.is_general() && !kernel.entry.is_tf32());
        let names = general.map(|kernel| kernel.entry.name()).collect::<Vec<_>>();
        assert!(!names.is_empty(), "no general kernel for {}: nothing would be tested", Self::NAME);
        names
    }

    /// The kernels for it whose sums are in other orders, and that need not be asked for.
    fn in_other_orders() -> Vec<&'static str> {
        let others = Self::kernels().filter(|kernel| {
            let in_other_orders = kernel.product.is_tma_or_ldg() || kernel.product.is_dot();
            in_other_orders && !kernel.entry.is_tf32() && !kernel.entry.is_emulated()
        });
        others.map(|kernel| kernel.entry.name()).collect()
    }
}

/// The number of NaNs: a prime, so that for no leading dimension every row has the same ones.
const NOISE: usize = 65_521;

/// [`Number::noise`] for numbers with these bits. The last bit is set, so none of them is an
/// infinity.
macro_rules! noise {
    ($bits:ident, $infinity:expr, $rest:expr, $from_bits:expr) => {{
        let mut random = Random::new(1);
        let next = |_| $infinity | random.next() as $bits & $rest | 1;
        (0..NOISE).map(next).map($from_bits).collect()
    }};
}

macro_rules! numbers {
    ($($number:ident, $bits:ident, $slack:expr, $infinity:expr, $rest:expr;)*) => {$(
        impl Number for $number {
            type Sum = $number;
            type Taken = $number;

            const U: f64 = $number::EPSILON as f64 / 2.0;
            const TINY: f64 = $number::from_bits(1) as f64;
            const SLACK: f64 = $slack;

            fn nearest(value: f64) -> $number {
                value as $number
            }

            fn widened(self) -> $number {
                self
            }

            fn narrowed(sum: $number) -> $number {
                sum
            }

            fn fused(self, b: $number, c: $number) -> $number {
                self.mul_add(b, c)
            }

            fn times(self, b: $number) -> $number {
                self * b
            }

            fn plus(self, b: $number) -> $number {
                self + b
            }

            fn noise() -> &'static [$number] {
                static POOL: LazyLock<Vec<$number>> =
                    LazyLock::new(|| noise!($bits, $infinity, $rest, $number::from_bits));
                &POOL
            }
        }
    )*};
}

numbers! {
    f32, u32, 1.0, 0x7f80_0000, 0x807f_ffff;
    f64, u64, 2.0, 0x7ff0_0000_0000_0000, 0x800f_ffff_ffff_ffff;
}

macro_rules! halves {
    ($($half:ident, $u:expr, $tiny:expr, $infinity:expr, $rest:expr;)*) => {$(
        impl Number for $half {
            type Sum = f32;
            type Taken = Half;

            const U: f64 = $u;
            const TINY: f64 = $tiny;
            const SLACK: f64 = 1.0;

            fn nearest(value: f64) -> $half {
                $half::from_f32(value as f32)
            }

            fn widened(self) -> f32 {
                self.to_f32()
            }

            fn narrowed(sum: f32) -> $half {
                $half::from_f32(sum)
            }

            fn fused(self, b: $half, c: $half) -> $half {
                $half::from_f32(self.to_f32().mul_add(b.to_f32(), c.to_f32()))
            }

            fn times(self, b: $half) -> $half {
                $half::from_f32(self.to_f32() * b.to_f32())
            }

            fn plus(self, b: $half) -> $half {
                $half::from_f32(self.to_f32() + b.to_f32())
            }

            fn noise() -> &'static [$half] {
                static POOL: LazyLock<Vec<$half>> =
                    LazyLock::new(|| noise!(u16, $infinity, $rest, $half::from_bits));
                &POOL
            }
        }
    )*};
}

halves! {
    Bf16, 1.0 / 256.0, f32::from_bits(1 << 16) as f64, 0x7f80, 0x807f;
    F16, 1.0 / 2048.0, 1.0 / (1 << 24) as f64, 0x7c00, 0x83ff;
}

/// The elements' bytes, for comparing bit by bit.
pub fn bytes<T: Pod>(values: &[T]) -> &[u8] {
    // SAFETY: a `Pod` has no padding, and every byte of it may be read.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The values in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Integers up to that magnitude, none of them 0.
    Integers(u32),
    /// Numbers from [-1, 1), with all bits drawn.
    Uniform,
}

impl Data {
    /// Integers so small that sums of `k` products are exact in any order, with scalars up to 4 and
    /// a bias.
    ///
    /// # Panics
    /// If there are none.
    pub fn exact(k: usize) -> Self {
        let fits = |s: &u32| (k as u64 + 2) * u64::from(s * s) * 4 < 1 << f32::MANTISSA_DIGITS;
        Data::Integers((1..=8).rev().find(fits).expect("a shorter sum"))
    }
}

/// Steele, Lea and Flood's SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator with that seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer below `end`.
    #[inline]
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// One of them.
    #[inline]
    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A number of that kind.
    pub fn number<T: Number>(&mut self, data: Data) -> T {
        let bits = self.next();
        T::nearest(match data {
            Data::Integers(magnitude) => {
                let value = (bits >> 1) % u64::from(magnitude) + 1;
                if bits.is_multiple_of(2) { value as f64 } else { -(value as f64) }
            }
            Data::Uniform => (bits >> 11) as f64 * 2f64.powi(-52) - 1.0,
        })
    }
}
