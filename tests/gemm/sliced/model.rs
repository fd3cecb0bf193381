//! The reference of emulated fp32: operands of every size, errors, and sums of slices in another
//! order.

use super::*;

/// `C = A B` of a row and a column.
pub(crate) fn single(a: &[f32], b: &[f32]) -> Case<f32> {
    let side = |values: &[f32], size| {
        Operand::new(size, Place::dense(size, Order::Rows), |_, row, col| values[row + col])
    };
    let place = Place::dense((1, 1), Order::Rows);
    Case::plain(side(a, (1, a.len())), side(b, (b.len(), 1)), place)
}

/// The same bits, or both NaN.
pub(crate) fn is_same(x: f32, y: f32) -> bool {
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
}

/// The values in the operands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Normal,
    Positive,
    /// Exponents from -20 to 20, for each element or each row (column of B).
    Wide,
    WideRows,
    /// One element of a row (column of B) is 2^20 times as large.
    Outlier,
    /// The second half of a row is the first with the other sign, except for 2^-12.
    Cancelling,
    /// Exponents from -130 to -60, or from 10 to 80: the loss of slices matters to some elements.
    Tiny,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Normal,
        Kind::Positive,
        Kind::Wide,
        Kind::WideRows,
        Kind::Outlier,
        Kind::Cancelling,
        Kind::Tiny,
    ];

    /// `outer` rows of `k` elements.
    pub(crate) fn draw(self, outer: usize, k: usize, is_b: bool, random: &mut Random) -> Vec<f32> {
        let mut uniform = || (random.next() >> 11) as f64 * 2f64.powi(-53);
        let mut values = Vec::<f64>::with_capacity(outer * k);
        for _ in 0..outer {
            let of_row = 2f64.powf(40.0 * uniform() - 20.0);
            let outlier = (uniform() * k as f64) as usize;
            let start = values.len();
            for p in 0..k {
                // The sum of twelve uniform numbers is close enough to normal here.
                let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                values.push(match self {
                    Kind::Normal => normal,
                    Kind::Positive => uniform(),
                    Kind::Wide => normal * 2f64.powf(40.0 * uniform() - 20.0),
                    Kind::WideRows => normal * of_row,
                    Kind::Outlier if p == outlier => normal * 2f64.powi(20),
                    Kind::Outlier => normal,
                    Kind::Cancelling if p >= k / 2 && !is_b => {
                        -values[start + p - k / 2] * (1.0 + 2f64.powi(-12) * normal)
                    }
                    Kind::Cancelling if p >= k / 2 => values[start + p - k / 2],
                    Kind::Cancelling => normal,
                    Kind::Tiny if is_b => normal * 2f64.powf(10.0 + 70.0 * uniform()),
                    Kind::Tiny => normal * 2f64.powf(-130.0 + 70.0 * uniform()),
                });
            }
        }
        values.into_iter().map(|value| value as f32).collect()
    }
}

/// The errors of C: the median and the largest relative error, the Frobenius norm's, and the
/// largest relative to the terms' absolute values. `want`: sums in f64, and the sums of the terms'
/// absolute values.
pub(crate) fn errors(c: &[f32], want: &[(f64, f64)]) -> [f64; 4] {
    let off = |(c, want): (&f32, &(f64, f64))| (f64::from(*c) - want.0).abs();
    let pairs = || c.iter().zip(want);
    let mut relative = pairs().map(|pair| off(pair) / pair.1.0.abs()).collect::<Vec<_>>();
    relative.sort_by(f64::total_cmp);
    let square = |sum: f64| sum.sqrt();
    let frobenius = square(pairs().map(|pair| off(pair).powi(2)).sum())
        / square(want.iter().map(|want| want.0.powi(2)).sum());
    let largest = pairs().map(|pair| off(pair) / pair.1.1).fold(0.0, f64::max);
    [relative[relative.len() / 2], relative[relative.len() - 1], frobenius, largest]
}

/// A step of the tensor cores as `simt` models it, for normal numbers. The sum so far and 16
/// products are truncated 25 bits below the largest exponent. A product's exponent is the sum of
/// its factors' exponents. The sum is truncated to f32.
pub(crate) fn step(sum: f32, a: &[f32], b: &[f32]) -> f32 {
    step_to(25, sum, a, b)
}

/// The same with so many bits.
pub(crate) fn step_to(bits: i32, sum: f32, a: &[f32], b: &[f32]) -> f32 {
    let exponent = |x: f32| (x.to_bits() >> 23 & 0xff) as i32 - 127;
    let exponents = a.iter().zip(b).filter(|(a, b)| **a * **b != 0.0);
    let greatest = exponents.map(|(a, b)| exponent(*a) + exponent(*b)).max().unwrap_or(-126);
    let last = 2f64.powi(greatest.max(exponent(sum).max(-126)) - bits);
    let kept = |x: f64| (x / last).trunc();
    let products = a.iter().zip(b).map(|(a, b)| kept(f64::from(*a) * f64::from(*b)));
    let exact = (products.sum::<f64>() + kept(sum.into())) * last;
    let nearest = exact as f32;
    match f64::from(nearest).abs() > exact.abs() {
        true => f32::from_bits(nearest.to_bits() - 1),
        false => nearest,
    }
}

/// A number's slices.
pub(crate) fn slices(x: f32) -> [f32; 3] {
    let mut left = x;
    [(); 3].map(|()| {
        let slice = host::Bf16::from_f32(left).to_f32();
        left -= slice;
        slice
    })
}

/// The sum of the slices' products, in that order within `together` k-steps, before they are
/// promoted.
pub(crate) fn sum_of_slices(
    a: &[f32],
    b: &[f32],
    order: &[(usize, usize)],
    together: usize,
) -> f32 {
    let mut master = 0.0;
    for (a, b) in a.chunks(together).zip(b.chunks(together)) {
        let [a, b] = [a, b].map(|of| of.iter().map(|x| slices(*x)).collect::<Vec<_>>());
        let plane = |of: &[[f32; 3]], s: usize| of.iter().map(|x| x[s]).collect::<Vec<_>>();
        let mut sum = 0.0;
        // All products of every 64 k-steps, as in the kernel's stages.
        for (a, b) in a.chunks(64).zip(b.chunks(64)) {
            for &(s, t) in order {
                let (a, b) = (plane(a, s), plane(b, t));
                sum = a.chunks(16).zip(b.chunks(16)).fold(sum, |sum, (a, b)| step(sum, a, b));
            }
        }
        master += sum;
    }
    master
}

/// A size of C, with partial tiles, at which the device has tiles of two widths: at least `wide`
/// wide ones across.
pub(crate) fn of_two_widths(device: &Device, wide: usize) -> (usize, usize) {
    let clusters = (device.sms() / 2).max(1) as usize;
    let sizes = [1usize, 2, 4, 8, 12].into_iter().flat_map(|down| (1..=20).map(move |w| (down, w)));
    let mut sizes = sizes.map(|(down, wide)| (256 * down - 30, 192 * wide + 77));
    let size = sizes.find(|&(m, n)| {
        let (across, _) = wide_tiles_across((m.div_ceil(256), n), (192, 128), clusters);
        across >= wide && 192 * across < n
    });
    size.expect("there is such a size")
}
