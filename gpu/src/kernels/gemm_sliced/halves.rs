//! The pass that cuts f32 into two scaled slices of f16, for both operands in one launch.
//!
//! ```text
//!   x0 = f16(2^-e x)      x1 = f16(2^-e x - x0)      each rounded to the nearest
//!   x  = 2^e (x0 + x1)
//! ```
//!
//! Of a patch of 64 rows by 128 columns the largest absolute value becomes one of [2^14, 2^15), which gives `e`. A block
//! holds the patch in registers meanwhile: an element is read once, and four bytes of it are written. Three blocks have place on a
//! multiprocessor, so that some read while others write.
//!
//! What is left of a number is at most 2^-23 of it, and x1 at most 2^-11, where 2^-e |x| >= 2^-2: of numbers down to 2^-17 of
//! the largest. Below,
//!
//! * f16's last digit leaves up to 2^-25;
//! * x1 may be all that there is of x; but x1 y1 is left out of the product, which is up to 2^-11 |2^-e x - x0| |y|, at most 2^-36
//!   |y|.
//!
//! The sum of all that a patch loses so is written beside its exponent, and [`certain`] makes a bound of it. And so that a sum of
//! nothing but zeros need not be doubted, it is written which rows and columns of a patch are not zero.

use super::{
    super::device::{warpgroup::Layout, *},
    slices::{EIGHT, is_even, plane_pitch, rows_of_eight},
};
use crate::problem::{Matrices, Problem};

/// Slices of a number.
pub const SLICES: usize = 2;
/// Rows of a patch.
pub const PATCH_ROWS: usize = 64;
/// Columns of a patch: eight for each lane of half a warp.
pub const PATCH_COLS: usize = HALF * EIGHT;

/// Warps of a block.
const WARPS: usize = 8;
/// Lanes of half a warp, each of which has other rows: there are so many halves, and each has so many rows.
const HALF: usize = 16;
const HALVES: usize = 2 * WARPS;
const ROWS_OF_HALF: usize = PATCH_ROWS / HALVES;

/// What is written of a patch: [`Scale`] and what is lost; and behind all of these, of every 16 rows, then of every 16 columns a bit for
/// each that is not zero.
pub const WORDS: usize = 2 + FILLED;
const FILLED: usize = (PATCH_ROWS + PATCH_COLS) / 16;

/// What is added to an exponent that is written, in the lower bits; 0 is written of a patch of zeros.
const BIAS: i32 = 256;
const EXPONENT_BITS: u32 = 9;
/// Added to an integer below 2^22, it makes an f32 whose last bits are the integer's.
const INTEGERS: f32 = 12582912.0;

/// What is written of a patch beside what it loses.
#[derive(Clone, Copy)]
struct Scale {
    /// Numbers are scaled by 2 to minus this.
    exponent: i32,
    /// All scaled numbers are multiples of 2 to this, which is 14 at most; where some are no integers it is less than any sum.
    unit: i32,
}

impl Scale {
    const NONE: Scale = Scale { exponent: 0, unit: NO_UNIT };

    /// In 16 bits.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn to_bits(self) -> u32 {
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

/// Cuts A and B, each of as many patches as it says: blocks of A's come first. As
/// [`split_bf16x3`](super::slices::split_bf16x3).
#[kernel(
    block = (32, WARPS),
    shared = (3 * WARPS + HALVES + HALVES * HALF) * size_of::<u32>(),
    barriers = 2,
    min_blocks = 3,
    arch = 90,
    dependent
)]
pub fn split_f16x2(
    of_a: Matrices,
    of_b: Matrices,
    a: In<f32>,
    b: In<f32>,
    mut planes_a: Out<F16>,
    mut planes_b: Out<F16>,
    mut patches_a: Out<F16>,
    mut patches_b: Out<F16>,
) {
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();
    let block = thread::block_idx_x();
    let is_b = block >= of_a.patches;
    let number = if is_b { block - of_a.patches } else { block };
    // Number by number: a pointer to one of two structs would be one to local memory.
    let source = Matrices {
        rows: if is_b { of_b.rows } else { of_a.rows },
        cols: if is_b { of_b.cols } else { of_a.cols },
        count: if is_b { of_b.count } else { of_a.count },
        patches: 0,
        pitch: if is_b { of_b.pitch } else { of_a.pitch },
        step: if is_b { of_b.step } else { of_a.step },
    };
    let from = if is_b { &b } else { &a };

    let (down, across) = patches(source.rows, source.cols);
    // No divisor is zero where there are patches, which the compiler cannot know.
    let of_matrix = (down * across).max(1);
    let (matrix, patch) = ((number / of_matrix) as usize, number % of_matrix);
    let (down, across) = (patch / across.max(1), patch % across.max(1));
    let (rows, cols) = (source.rows as usize, source.cols as usize);
    let (pitch, step) = (source.pitch as usize, source.step as usize);
    let len = (source.count as usize - 1) * step + (rows - 1) * pitch + cols;
    let (lane, warp) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let (half, of_half) = (2 * warp + lane / HALF, lane % HALF);
    let col = across as usize * PATCH_COLS + of_half * EIGHT;
    let first_row = down as usize * PATCH_ROWS + half;
    let plane = rows * plane_pitch(cols);

    // All are read before one is waited for. Below the last row they are of the last one.
    let at = |i: usize| matrix * step + (first_row + i * HALVES).min(rows - 1) * pitch + col;
    let is_even = is_even(from, &source, across as usize * PATCH_COLS, PATCH_COLS);
    let numbers: [[f32; EIGHT]; ROWS_OF_HALF] = rows_of_eight(from, at, len, is_even);
    let mut largest = 0;
    for i in 0..ROWS_OF_HALF {
        for j in 0..EIGHT {
            let size = numbers[i][j].to_bits() & 0x7fff_ffff;
            // Infinities and NaN stay so, whatever the scale.
            if col + j < cols && size < 0x7f80_0000 {
                largest = size.max(largest);
            }
        }
    }
    let mut lanes = 16;
    while lanes > 0 {
        largest = warp::shuffle_xor(warp::ALL, largest, lanes).max(largest);
        lanes /= 2;
    }
    let mut of_warps = shared![u32; 3, WARPS];
    let mut of_rows = shared![u32; HALVES];
    let mut of_cols = shared![u32; HALVES, HALF];
    if lane == 0 {
        of_warps[(0, warp)] = largest;
    }
    thread::sync_threads();
    for other in 0..WARPS {
        largest = of_warps[(0, other)].max(largest);
    }
    // Both 2^e and 2^-e are normal numbers. What is smaller than that is cut off, and counted.
    let exponent = ((largest >> 23) as i32 - (127 + 14)).max(-110);
    let scale = power(-exponent);

    let (planes, scales) = match is_b {
        true => (&mut planes_b, &mut patches_b),
        false => (&mut planes_a, &mut patches_a),
    };
    // Of all numbers' parts behind the point, and of the integers.
    let (mut fractions, mut integers) = (0, 0);
    // Which are not zero: a bit for each of the lane's rows, and of its columns.
    let (mut filled_rows, mut filled_cols) = (0, 0);
    let mut lost = 0.0;
    let mut put = |i: usize, numbers: [f32; EIGHT]| {
        let row = first_row + i * HALVES;
        if row >= rows || col >= cols {
            return;
        }
        let [a, b, c, d, e, f, g, h] = numbers;
        let (mut number, mut filled) = (col, 0);
        let cut = [[a, b], [c, d], [e, f], [g, h]].map(|pair| {
            let scaled = pair.map(|x| x * scale);
            let first = F16::from_two_f32(scaled);
            let left = [scaled[0] - first[0].to_f32(), scaled[1] - first[1].to_f32()];
            let second = F16::from_two_f32(left);
            for i in 0..2 {
                let size_of = |x: f32| f32::from_bits(x.to_bits() & 0x7fff_ffff);
                let size = size_of(scaled[i]);
                // (Of infinity nothing follows for its neighbours.)
                if number < cols && pair[i] != 0.0 {
                    filled |= 1 << (number - col);
                }
                let inside = if number < cols && size <= f32::MAX { scaled[i] } else { 0.0 };
                let integer = inside + INTEGERS;
                fractions |= (inside - (integer - INTEGERS)).to_bits();
                integers |= integer.to_bits();
                if number < cols && size < const { power(-2) } && pair[i] != 0.0 {
                    let of_last = size_of(left[i] - second[i].to_f32());
                    let off = of_last + size_of(left[i]) * const { power(-11) };
                    // So that the bound does not become zero by being small.
                    if off > 0.0 || size < const { power(-60) } {
                        lost += off.max(const { power(-60) });
                    }
                }
                number += 1;
            }
            [first, second]
        });
        filled_cols |= filled;
        filled_rows |= u32::from(filled != 0) << i;
        let to = matrix * SLICES * plane + row * plane_pitch(cols) + col;
        for slice in 0..SLICES {
            let [[a, b], [c, d], [e, f], [g, h]] = cut.map(|pair| pair[slice]);
            planes.store128(to + slice * plane, [a, b, c, d, e, f, g, h]);
        }
    };
    // One after the other, not in a loop: a register has no number that is computed.
    put(0, numbers[0]);
    put(1, numbers[1]);
    put(2, numbers[2]);
    put(3, numbers[3]);

    // What is no integer has the lowest of all bits.
    let mut bits = if fractions == 0 { integers << 1 } else { 1 };
    let mut lanes = 16;
    while lanes > 0 {
        lost += warp::shuffle_xor(warp::ALL, lost, lanes);
        bits |= warp::shuffle_xor(warp::ALL, bits, lanes);
        if lanes < HALF as u32 {
            filled_rows |= warp::shuffle_xor(warp::ALL, filled_rows, lanes);
        }
        lanes /= 2;
    }
    of_cols[(half, of_half)] = filled_cols;
    if of_half == 0 {
        of_rows[half] = filled_rows;
    }
    if lane == 0 {
        of_warps[(1, warp)] = lost.to_bits();
        of_warps[(2, warp)] = bits;
    }
    thread::sync_threads();
    if warp > 0 {
        return;
    }
    if lane == 0 {
        let mut lost = 0.0;
        for other in 0..WARPS {
            lost += f32::from_bits(of_warps[(1, other)]);
            bits |= of_warps[(2, other)];
        }
        // Rounded up to the upper half of its bits.
        let lost = if lost > 0.0 { (lost.to_bits() >> 16) + 1 } else { 0 };
        let scale = Scale { exponent, unit: (bits.trailing_zeros() as i32 - 1).min(14) };
        let written = if largest == 0 { 0 } else { scale.to_bits() };
        scales[2 * number as usize] = F16::from_bits(written as u16);
        scales[2 * number as usize + 1] = F16::from_bits(lost as u16);
    }
    let patches = if is_b { of_b.patches } else { of_a.patches } as usize;
    let filled = 2 * patches + number as usize * FILLED;
    if lane < ROWS_OF_HALF {
        let mut rows = 0;
        for other in 0..HALVES {
            rows |= (of_rows[other] >> lane & 1) << other;
        }
        scales[filled + lane] = F16::from_bits(rows as u16);
    }
    let mut cols = 0;
    for other in 0..HALVES {
        cols |= of_cols[(other, of_half)];
    }
    let next = warp::shuffle_xor(warp::ALL, cols, 1);
    if lane < HALF && lane.is_multiple_of(2) {
        scales[filled + ROWS_OF_HALF + lane / 2] = F16::from_bits((cols | next << EIGHT) as u16);
    }
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
    pub fn filled<const N: usize>(self, outer: u32, k: u32) -> [[u32; 4]; N] {
        let mut filled = [[0; 4]; N];
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
                let patch = 2 * self.patches as usize + self.patch(outer, stage) * FILLED;
                for j in 0..4 {
                    filled[i][j] |= u32::from(self.scales[patch + first + j].to_bits());
                }
            }
            first_stage += 32 * deep;
        }
        let mut lanes = 16;
        while lanes > 0 {
            for i in 0..N {
                for j in 0..4 {
                    filled[i][j] |= warp::shuffle_xor(warp::ALL, filled[i][j], lanes);
                }
            }
            lanes /= 2;
        }
        filled
    }
}

/// How far the sums of a tile can be relied on.
pub struct Certain {
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
pub fn certain<const COLS: usize>(
    problem: &Problem,
    (a, b): (Scales, Scales),
    (row, col): (u32, u32),
) -> Certain {
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
        return Certain { least: f32::NAN, exact };
    }
    // Below, 64 products are at most 2^-63; where their factor is no normal number, 2^-89 is lost.
    if smallest < -100 {
        least += problem.k as f32 * const { power(-70) };
    }
    // (As large as infinity is a sum that is infinite.)
    Certain { least: if least < f32::INFINITY { least } else { f32::NAN }, exact }
}
