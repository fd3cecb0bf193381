//! Exponents of patches, and what is known of them.

use super::{
    device::{warpgroup::Layout, *},
    planes::EIGHT,
};
use crate::params::GemmParams;

/// Slices of a number.
pub const SLICES: usize = 2;
/// Rows of a patch.
pub const PATCH_ROWS: usize = 64;
/// Columns of a patch: eight for each lane of half a warp.
pub const PATCH_COLS: usize = HALF * EIGHT;

/// Warps of a block.
pub const WARPS: usize = 8;
/// Lanes of half a warp, each of which has other rows: there are so many halves, and each has so many rows.
pub const HALF: usize = 16;
/// Half-warps of a CTA.
pub const HALVES: usize = 2 * WARPS;
/// Rows of a patch that a half-warp splits.
pub const ROWS_OF_HALF: usize = PATCH_ROWS / HALVES;

/// What is written of a patch: [`Scale`] and what is lost; and behind all of these, of every 16 rows, then of every 16 columns a bit for
/// each that is not zero.
pub const WORDS: usize = 2 + NON_ZERO_WORDS;
/// Words of a patch that tell its non-zero rows and columns.
pub const NON_ZERO_WORDS: usize = (PATCH_ROWS + PATCH_COLS) / 16;

/// What is added to an exponent that is written, in the lower bits; 0 is written of a patch of zeros.
const BIAS: i32 = 256;
const EXPONENT_BITS: u32 = 9;

/// What is written of a patch beside what it loses.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Numbers are scaled by 2 to minus this.
    pub exponent: i32,
    /// All scaled numbers are multiples of 2 to this, which is 14 at most; where some are no integers it is less than any sum.
    pub unit: i32,
}

impl Scale {
    const NONE: Scale = Scale { exponent: 0, unit: NO_UNIT };

    /// In 16 bits.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn to_bits(self) -> u32 {
        (self.exponent + BIAS) as u32 | ((self.unit + 1).max(0) as u32) << EXPONENT_BITS
    }

    /// Of these bits, unless they are 0: of a patch of zeros.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn from_bits(bits: u32) -> Option<Scale> {
        let exponent = (bits & const { (1 << EXPONENT_BITS) - 1 }) as i32 - BIAS;
        let unit = (bits >> EXPONENT_BITS) as i32 - 1;
        let scale = Scale { exponent, unit: if unit < 0 { NO_UNIT } else { unit } };
        if bits == 0 { None } else { Some(scale) }
    }
}

/// The unit of numbers that are no integers.
const NO_UNIT: i32 = -64;

/// Patches of matrices of so many rows and columns: down and across.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn patches(rows: u32, cols: u32) -> (u32, u32) {
    (rows.div_ceil(PATCH_ROWS as u32), cols.div_ceil(PATCH_COLS as u32))
}

/// 2 to that power, of normal numbers.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// Where the scales of an operand's rows (columns of B) of a tile are, in one matrix.
#[derive(Clone, Copy)]
pub struct Scales<'a> {
    scales: &'a In<F16>,
    /// Do rows (columns of B) lie side by side?
    mn_major: bool,
    /// Patches before the matrix, across it, and down and across to the last.
    first: u32,
    across: u32,
    last: u32,
    /// Of all matrices.
    patches: u32,
}

impl<'a> Scales<'a> {
    /// Those of `size` rows (columns of B) of matrix `matrix` of so many.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new<L: Layout>(
        scales: &'a In<F16>,
        (matrix, matrices): (u32, u32),
        size: u32,
        k: u32,
    ) -> Self {
        let mn_major = L::is_mn_major();
        let (down, across) = if mn_major { patches(k, size) } else { patches(size, k) };
        let last = (if mn_major { across } else { down }) - 1;
        let of_matrix = down * across;
        Scales {
            scales,
            mn_major,
            first: matrix * of_matrix,
            across,
            last,
            patches: matrices * of_matrix,
        }
    }

    /// The patch of 64 rows (columns of B) from `outer` on, below the last the last one's, and 64 steps of k.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn patch(self, outer: u32, stage: u32) -> usize {
        let (row, col) = if self.mn_major {
            (stage, (outer / PATCH_COLS as u32).min(self.last))
        } else {
            ((outer / PATCH_ROWS as u32).min(self.last), stage / (PATCH_COLS as u32 / 64))
        };
        (self.first + row * self.across + col) as usize
    }

    /// The exponent of 64 steps of k, of 64 rows (columns of B) whose first patch is `first`; of zeros none.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn exponent(self, first: u32, stage: u32) -> i32 {
        let further = match self.mn_major {
            true => stage * self.across,
            false => stage / const { PATCH_COLS as u32 / 64 },
        };
        let written = u32::from(self.scales[2 * (first + further) as usize].to_bits());
        Scale::from_bits(written).map_or(0, |scale| scale.exponent)
    }

    /// What is written of a patch, if it is not zero, and what it loses.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn of(self, outer: u32, stage: u32) -> (Option<Scale>, f32) {
        let at = 2 * self.patch(outer, stage);
        let (scale, lost) = (self.scales[at].to_bits(), self.scales[at + 1].to_bits());
        (Scale::from_bits(scale.into()), f32::from_bits(u32::from(lost) << 16))
    }

    /// Which of `64 N` rows (columns of B) from `outer` on, a multiple of 64, are not zero: a bit for each, 16 in a word. All lanes
    /// of a warp come here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn non_zeros<const N: usize>(self, outer: u32, k: u32) -> [[u32; 4]; N] {
        let mut non_zeros = [[0; 4]; N];
        let deep = if self.mn_major { 1 } else { const { PATCH_COLS as u32 / 64 } };
        // All lanes go round as often, so that what is the same in all of them stays known to be.
        let (mut first_stage, stages) = (0, k.div_ceil(64));
        while first_stage < stages {
            // Once more the last is no harm.
            let stage = (first_stage + thread::lane_id() * deep).min(stages - 1);
            for i in 0..N {
                let outer = outer + 64 * i as u32;
                let first = match self.mn_major {
                    true => ROWS_OF_HALF + outer as usize % PATCH_COLS / 16,
                    false => 0,
                };
                let patch = 2 * self.patches as usize + self.patch(outer, stage) * NON_ZERO_WORDS;
                for j in 0..4 {
                    non_zeros[i][j] |= u32::from(self.scales[patch + first + j].to_bits());
                }
            }
            first_stage += 32 * deep;
        }
        let mut lanes = 16;
        while lanes > 0 {
            for i in 0..N {
                for j in 0..4 {
                    non_zeros[i][j] |= warp::shuffle_xor(warp::ALL, non_zeros[i][j], lanes);
                }
            }
            lanes /= 2;
        }
        non_zeros
    }
}

/// How far the sums of a tile can be relied on.
pub struct ErrorBound {
    /// The size from which on they can be: 2^23 times as much as is lost at most, of A with the largest of B in the same 64 steps of
    /// k, which is below 2^15, and the other way round. No number, as large as which nothing is, where none can be.
    pub least: f32,
    /// The tensor cores cut nothing off: all numbers are integers below 2^15, times a power of two, and their products so small
    /// that 64 of them together are below 2^24.
    pub exact: bool,
}

/// How far the sums of a tile of 64 rows and `COLS` columns can be relied on, whose first element is (row, col). All lanes of a warp
/// come here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn tile_bound<const COLS: usize>(
    problem: &GemmParams,
    (a, b): (Scales, Scales),
    (row, col): (u32, u32),
) -> ErrorBound {
    let (mut smallest, mut largest, mut unit, mut least) = (i32::MAX, i32::MIN, 2 * 14, 0.0);
    let size = if b.mn_major { PATCH_COLS as u32 } else { PATCH_ROWS as u32 };
    let end = (col + COLS as u32).min(problem.n);
    // All lanes go round as often, so that what is the same in all of them stays known to be.
    let (mut first_stage, stages) = (0, problem.k.div_ceil(64));
    while first_stage < stages {
        let stage = first_stage + thread::lane_id();
        let is_one = stage < stages;
        let stage = stage.min(stages - 1);
        let mut col = col;
        while col < end {
            let ((a, lost_a), (b, lost_b)) = (a.of(row, stage), b.of(col, stage));
            // Zeros are right.
            let counts = is_one && a.is_some() && b.is_some();
            let (a, b) = (a.unwrap_or(Scale::NONE), b.unwrap_or(Scale::NONE));
            let exponent = a.exponent + b.exponent;
            smallest = if counts { smallest.min(exponent) } else { smallest };
            largest = if counts { largest.max(exponent) } else { largest };
            unit = if counts { unit.min(a.unit + b.unit) } else { unit };
            let factor = power(exponent.clamp(-126, 127));
            let lost = (lost_a + lost_b) * const { power(15 + 23) } * factor;
            least += if counts { lost } else { 0.0 };
            // The next patch.
            col = (col / size + 1) * size;
        }
        first_stage += 32;
    }
    let mut lanes = 16;
    while lanes > 0 {
        let of_other = |own: i32| warp::shuffle_xor(warp::ALL, own as u32, lanes) as i32;
        smallest = of_other(smallest).min(smallest);
        largest = of_other(largest).max(largest);
        unit = of_other(unit).min(unit);
        least += warp::shuffle_xor(warp::ALL, least, lanes);
        lanes /= 2;
    }
    // 64 products are below 2^36.
    let exact = unit >= 36 - 24;
    // A factor of two such exponents is an f32, and what it multiplies is below 2^37.
    if largest > 116 {
        return ErrorBound { least: f32::NAN, exact };
    }
    // Below, 64 products are at most 2^-63; where their factor is no normal number, 2^-89 is lost.
    if smallest < -100 {
        least += problem.k as f32 * const { power(-70) };
    }
    // (As large as infinity is a sum that is infinite.)
    ErrorBound { least: if least < f32::INFINITY { least } else { f32::NAN }, exact }
}
