//! The values of A and B.

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Numbers {
    /// Small integers, none of them zero.
    #[default]
    Integers,
    /// The same, and a C with which GELU reaches its ends.
    Ends,
    /// The same with infinities and a NaN at the ends of rows and columns. If a zero is missing, or
    /// a load is from the wrong place, C has more of them.
    Corners,
    /// Numbers of 24 bits, so that no slice is zero. They are larger in each further patch.
    Full,
    /// And infinities, NaN, zeros, and rows of A of another size. A few of a warp's elements are
    /// uncertain, or many.
    Special,
    /// A few numbers that slices of bf16 do not hold, one of 2^100, and columns of zeros, which
    /// become uncertain.
    Tiny,
    /// Each product of a batch is near one end of the range of bf16 and f32.
    Small,
    /// Each patch of f16 has another size, and some have all sizes.
    Scaled,
    /// Each product of a batch is near one end of the range of a factor of scaled slices, or of
    /// exact results.
    Far,
    /// Uncertain because of the last k-steps only.
    Last,
    /// Zeros of either sign.
    Zeros,
    /// Multiples of 8, but of all sizes where rows begin: behind the ends of the rows before them.
    Edge,
    /// Multiples of 8, with single exceptions. Each of these alone determines a property of its
    /// patch of f16. The rows after the patch have another size.
    Lonely,
}

impl Numbers {
    /// The element of A (0) or B (1), of product `i`, in row (column of B) `outer` of `size`, at
    /// step `p` of `k`.
    pub fn at(self, which: usize, [i, outer, p]: [usize; 3], [size, k]: [usize; 2]) -> f32 {
        let hash = hash(which, [i, outer, p]);
        let full = f32::from_bits((hash >> 32) as u32 & 0x807f_ffff | 0x3f80_0000);
        let times = |exponent: i32| full * 2f32.powi(exponent);
        match self {
            Numbers::Integers | Numbers::Ends => integer(which, [i, outer, p]),
            Numbers::Corners => match (which, outer, p) {
                (0, _, 0) if outer + 1 == size => f32::NAN,
                (0, 0, _) if p + 1 == k => f32::INFINITY,
                (1, ..) if [outer + 1, p + 1] == [size, k] => f32::NEG_INFINITY,
                (1, 0, 0) => f32::INFINITY,
                _ => integer(which, [i, outer, p]),
            },
            Numbers::Full => times((outer / 128) as i32),
            Numbers::Special => match (which, outer + i, p) {
                (0, 5, 3) => f32::INFINITY,
                (0, 9, _) | (1, 6, _) => 0.0,
                (0, 11 | 16..32, _) => times(-40),
                (0, 13, 2) => f32::MAX,
                (1, 3, 1) => f32::NAN,
                (1, 69, 0) => f32::NEG_INFINITY,
                _ => full,
            },
            Numbers::Tiny => match (which, outer, p) {
                _ if which == 0 && outer + 1 == size => times(100),
                (1, 5, _) => 0.0,
                (0, 40, 0) if i == 0 => times(-120),
                (1, 70 | 256, _) if i == 0 => times(-112),
                _ => full,
            },
            Numbers::Small => match (i, which, outer, p) {
                (_, 1, 5, _) => 0.0,
                (0, 0, 3, _) | (1, 1, 3, _) => times(-112),
                // The smallest numbers that slices hold, for A and for B; and the smallest product
                // whose last digit is in f32.
                (2, 0, 3, 0) | (3, 1, 3, 0) => 2f32.powi(-110),
                (2, 1, ..) | (3, 0, ..) => times(10),
                (4, 0, 3, 0) => 2f32.powi(-50),
                (4, 1, 3, 0) => 2f32.powi(-51),
                _ => full,
            },
            Numbers::Scaled => match (which, outer, p) {
                (0, 128.., 0..128) => 0.0,
                (0, 33, 0..64) => 0.0,
                _ if which == 0 && outer % 16 == 9 || which == 1 && outer % 32 == 20 => 0.0,
                _ if which == 0 && outer % 64 == 13 => times(-30),
                // In no slice of the only patch in which it is not zero.
                (0, _, 64..128) if outer % 64 == 40 => times(-60),
                (0, ..) if outer % 64 == 40 => 0.0,
                // Decreasing rows: few sums are certain.
                (0, 48..64, _) => times(-2 * (outer as i32 - 48)),
                // A patch with a large loss, next to tiles without it.
                (1, 258, 3) => times(40),
                _ if p % 32 == 21 => 0.0,
                _ => times((outer / 64 * 7 + p / 64 * 3 + which * 5) as i32 % 9 * 3 - 12),
            },
            Numbers::Far => match (i, which, outer, p) {
                // The sum of their exponents is too large for a factor, or the largest possible;
                (0 | 1, 0, 3, 0) => 2f32.powi(73),
                (0, 1, 4, 1) => 2f32.powi(72),
                (1, 1, 4, 1) => 2f32.powi(71),
                (0 | 1, ..) => 0.0,
                // the smallest, or nearly;
                (2 | 3, 0, ..) => times(-40),
                (2, 1, ..) => times(-33),
                (3, 1, ..) => times(-32),
                // and integers of 13 bits times integers of 5 and of 6.
                (4 | 5, 0, ..) => (4096 + (hash >> 40) % 4096) as f32,
                (4, 1, ..) => (16 + (hash >> 40) % 16) as f32,
                (5, 1, ..) => (32 + (hash >> 40) % 32) as f32,
                // Integers of 15 bits times integers of 3; and a patch of zeros next to exact ones.
                (6, 0, ..) => (16385 + (hash >> 40) % 8192 * 2) as f32,
                (6, 1, ..) => (5 + (hash >> 40) % 2 * 2) as f32,
                (7, 0, _, 64..) | (8, 1, _, 64..) => 0.0,
                (7 | 8, ..) => (1 + (hash >> 40) % 3) as f32,
                _ => full,
            },
            Numbers::Zeros => 0.0f32.copysign(full),
            Numbers::Edge if p > 0 => (8 + (hash >> 40) % 3 * 8) as f32,
            Numbers::Edge => full,
            Numbers::Lonely => match (outer, p) {
                (2, 11) => 0.0,
                (11, 9) => 1.0,
                (0..11 | 12..64, 17) => 0.0,
                (7, 5) => f32::INFINITY,
                (53, 174) => times(20),
                // Small compared with the others, and held exactly.
                (65, 13) => 2f32.powi(22),
                (64.., _) => times(40),
                _ => (8 + (hash >> 40) % 3 * 8) as f32,
            },
            Numbers::Last => match (which, outer) {
                (1, 1) => 0.0,
                (0, 2) if p + 52 < k => 0.0,
                (0, 2) => times(-50),
                (1, _) if p + 3 >= k => times(-112),
                _ => full,
            },
        }
    }
}

/// A small integer that is not zero. It depends on the operand (`salt`) and the element. Sums of
/// their products are exact.
pub fn integer(salt: usize, at: [usize; 3]) -> f32 {
    [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0][(hash(salt, at) >> 40) as usize % 6]
}

fn hash(salt: usize, [i, outer, p]: [usize; 3]) -> u64 {
    let number = ((salt * 5 + i) * 4099 + outer) * 8209 + p;
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
