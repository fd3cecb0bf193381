//! The scales of the patches of f16x3, and the error bound of a tile.
//!
//! A patch of 64 rows by 128 columns has one exponent. [`split_f16x2`](super::split_f16x2) writes
//! it, with what the patch loses and which of its rows and columns are not zero.

use super::{
    device::{warpgroup::Layout, *},
    planes::EIGHT,
};
use crate::params::GemmParams;

/// Slices of a number.
pub const SLICES: usize = 2;
/// Rows of a patch.
pub const PATCH_ROWS: usize = 64;
/// Columns of a patch: eight for each lane of a half-warp.
pub const PATCH_COLS: usize = HALF * EIGHT;

/// Warps of a block that splits.
pub const WARPS: usize = 8;
/// Lanes of a half-warp. Each half-warp has rows of its own.
pub const HALF: usize = 16;
/// Half-warps of a block that splits.
pub const HALVES: usize = 2 * WARPS;
/// Rows of a patch that a half-warp splits.
pub const ROWS_OF_HALF: usize = PATCH_ROWS / HALVES;

/// Words of a patch: its [`Scale`], what it loses, and (after those of all patches) the non-zero
/// rows and columns.
pub const WORDS: usize = 2 + NON_ZERO_WORDS;
/// Words of a patch for its non-zero rows and columns, 16 in each.
pub const NON_ZERO_WORDS: usize = (PATCH_ROWS + PATCH_COLS) / 16;

/// Added to an exponent in the lower bits. A patch of zeros is written as 0.
const BIAS: i32 = 256;
const EXPONENT_BITS: u32 = 9;

/// The scale of a patch.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Numbers are multiplied by 2^-exponent.
    pub exponent: i32,
    /// All scaled numbers are multiples of 2^unit, at most 2^14. If some are no integers, it is
    /// less than any sum.
    pub unit: i32,
}

impl Scale {
    const NONE: Scale = Scale { exponent: 0, unit: NO_UNIT };

    /// The scale in 16 bits.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn to_bits(self) -> u32 {
        (self.exponent + BIAS) as u32 | ((self.unit + 1).max(0) as u32) << EXPONENT_BITS
    }

    /// Reads these bits. `None` for a patch of zeros.
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

/// Patches of a matrix: down and across.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn patches(rows: u32, cols: u32) -> (u32, u32) {
    (rows.div_ceil(PATCH_ROWS as u32), cols.div_ceil(PATCH_COLS as u32))
}

/// 2^exponent, a normal number.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub const fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// The scales of an operand's rows (columns of B), in one matrix.
#[derive(Clone, Copy)]
pub struct Scales<'a> {
    scales: &'a In<F16>,
    /// Whether the operand is MN-major.
    mn_major: bool,
    /// Patches before the matrix, across it, and the last one on the outer side.
    first: u32,
    across: u32,
    last: u32,
    /// Patches of all matrices.
    patches: u32,
}

impl<'a> Scales<'a> {
    /// The scales of `size` rows (columns of B), for one of several matrices.
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

    /// The patch of 64 rows (columns of B) from `outer` on, or of the last ones, and of 64
    /// k-steps.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn patch(self, outer: u32, stage: u32) -> usize {
        let (row, col) = if self.mn_major {
            (stage, (outer / PATCH_COLS as u32).min(self.last))
        } else {
            ((outer / PATCH_ROWS as u32).min(self.last), stage / (PATCH_COLS as u32 / 64))
        };
        (self.first + row * self.across + col) as usize
    }

    /// The exponent of 64 k-steps, for 64 rows (columns of B) whose first patch is `first`. 0
    /// for zeros.
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

    /// The scale of a patch, if it is not zero, and what it loses.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn of(self, outer: u32, stage: u32) -> (Option<Scale>, f32) {
        let at = 2 * self.patch(outer, stage);
        let (scale, lost) = (self.scales[at].to_bits(), self.scales[at + 1].to_bits());
        (Scale::from_bits(scale.into()), f32::from_bits(u32::from(lost) << 16))
    }

    /// The non-zero ones of `64 N` rows (columns of B) from `outer` on, a multiple of 64: a bit for
    /// each, 16 in a word. All lanes of a warp call this.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn non_zeros<const N: usize>(self, outer: u32, k: u32) -> [[u32; 4]; N] {
        let mut non_zeros = [[0; 4]; N];
        let deep = if self.mn_major { 1 } else { const { PATCH_COLS as u32 / 64 } };
        // All lanes run equally often, so that the compiler knows what is the same in all of them.
        let (mut first_stage, stages) = (0, k.div_ceil(64));
        while first_stage < stages {
            // The last stage once more does no harm.
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

/// The error bound of a tile.
pub struct ErrorBound {
    /// Sums of at least this size are certain. It is 2^23 times what is lost at most: that of A
    /// times the largest of B in the same 64 k-steps, which is below 2^15, and the other way
    /// round. NaN if no sum is certain.
    pub least: f32,
    /// Whether the tensor cores truncate nothing: all numbers are integers below 2^15, times a
    /// power of two, and 64 products together are below 2^24.
    pub exact: bool,
}

/// The error bound of a tile of 64 rows and `COLS` columns. Its first element is (row, col). All
/// lanes of a warp call this.
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
    // All lanes run equally often, so that the compiler knows what is the same in all of them.
    let (mut first_stage, stages) = (0, problem.k.div_ceil(64));
    while first_stage < stages {
        let stage = first_stage + thread::lane_id();
        let is_one = stage < stages;
        let stage = stage.min(stages - 1);
        let mut col = col;
        while col < end {
            let ((a, lost_a), (b, lost_b)) = (a.of(row, stage), b.of(col, stage));
            // Zeros lose nothing.
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
    // The product of two such factors is an f32, and it multiplies what is below 2^37.
    if largest > 116 {
        return ErrorBound { least: f32::NAN, exact };
    }
    // Below this, 64 products are at most 2^-63. If their factor is no normal number, 2^-89 is
    // lost.
    if smallest < -100 {
        least += problem.k as f32 * const { power(-70) };
    }
    // An infinite sum is as large as infinity.
    ErrorBound { least: if least < f32::INFINITY { least } else { f32::NAN }, exact }
}
