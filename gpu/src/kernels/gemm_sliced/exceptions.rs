//! What slices cannot tell is computed again, from A and B themselves.
//!
//! * **A sum that is no number.** Infinity is cut into infinity and NaN, and 0 times infinity is NaN; sums of slices may
//!   overflow where the sum does not, and the other way round. All of that ends in an infinity or NaN.
//! * **A sum that is too small** for what may have been lost on the way ([`range`](super::range), [`halves`](super::halves)):
//!   subnormal numbers, mostly; of scaled slices also what is small beside its neighbours. But not the zeros that a row or a column
//!   of zeros makes.
//!
//! Such an element is the sum of k fused multiply-adds of f32, as of a plain kernel. So what comes out is as IEEE 754 has it, but
//! for the order. Where there is none of it, each thread compares its sums with two numbers.
//!
//! * **A few** of a warp's 16 x 64 elements: the warp computes one after the other. Its lanes take every 32nd step of k each,
//!   beginning at +0, and their sums are added in pairs: within `(k / 32 + 6) 2^-24` of the exact sum.
//! * **Many**: all of them at once, as a block of a plain kernel does, whose sums of 32 steps are added to others: within
//!   `(k / 32 + 33) 2^-24`.
//!
//! Of each such part how many these are is counted ([`board`]): a product that is slow for their sake can be told from others.
//!
//! (In the loops here, but in that of a single element, all lanes go round as often. Behind others ptxas may keep what is the same
//! in all lanes, the ring's turn among it, in registers of each, and the main loop brings it back: with 48 instructions, once.)

use super::{
    super::{
        device::{warpgroup::*, *},
        gemm::{FOUR, epilogue::Epilogue},
        gemm_wgmma::output::{COLS, PITCH, ROWS},
    },
    Originals, board,
};
use crate::problem::Problem;

/// Elements of a warp's 16 x 64 from more than which on all are computed again: one alone takes as long as some twenty of them
/// together.
const MANY: u32 = 32;
/// Steps of k that these have at a time.
const STEPS: usize = 8;

/// What stands for a zero that may be nothing but what was lost. No sum is that by itself: they begin at +0.
const DOUBTFUL_ZERO: f32 = -0.0;

/// What is left of a sum that may not be `certain`: else it is no number.
#[inline(always)]
pub fn doubted(sum: f32, certain: bool) -> f32 {
    match certain {
        true => sum,
        false if sum == 0.0 => DOUBTFUL_ZERO,
        false => f32::NAN,
    }
}

/// Is a sum a number that nobody doubts?
#[inline(always)]
fn is_certain(sum: f32) -> bool {
    sum.to_bits() & 0x7fff_ffff < f32::INFINITY.to_bits()
        && sum.to_bits() != DOUBTFUL_ZERO.to_bits()
}

/// Are all sums of a warp so? All of its lanes come here.
#[inline(always)]
pub fn are_certain<const N: usize>(sums: &Fragment<N>) -> bool {
    let mut certain = true;
    sums.for_each_pair(|_, _, [first, second]| {
        certain &= is_certain(first) & is_certain(second);
    });
    warp::all(warp::ALL, certain)
}

/// Which rows of A and which columns of B are not zeros alone: a bit for each.
pub struct Filled {
    /// Of a warp's 16 rows.
    pub rows: u32,
    /// Of 16 columns for each lane: of the first 16 for the first.
    pub cols: u32,
}

impl Filled {
    /// Nobody knows of any that is not.
    pub const ALL: Filled = Filled { rows: !0, cols: !0 };
}

/// Which of 32 sums beside each other that have been put down are not certain, and are to be written: a bit for each. Those that
/// zeros alone have made are put down as zeros. All lanes of the warp come here.
#[inline(always)]
#[track_caller]
fn doubts<const STAGED: usize>(
    staged: &mut Shared<f32, STAGED, PITCH>,
    base: usize,
    filled: &Filled,
    (rows, cols): (usize, usize),
    (row, first): (usize, usize),
    lane: u32,
) -> u32 {
    let at = base + row * PITCH + first + lane as usize;
    let of_lane = warp::shuffle(warp::ALL, filled.cols, first as u32 / 16 + lane / 16);
    let is_filled = filled.rows >> row & of_lane >> (lane % 16) & 1 == 1;
    let sum = staged[at];
    let is_zero = sum == 0.0 && !is_filled;
    if is_zero {
        staged[at] = 0.0;
    }
    let is_inside = row < rows && first + (lane as usize) < cols;
    warp::ballot(warp::ALL, is_inside && !is_zero && !is_certain(sum))
}

/// From what a product's sums are computed again.
pub struct Again<'a> {
    /// The product.
    pub problem: &'a Problem,
    /// A and B.
    pub originals: Originals<'a>,
    /// Its number in the batch.
    pub product: usize,
}

impl Again<'_> {
    /// Writes the sums of a warp's part of 64 x `N` elements of C, the first of which is (row, col), those that are not certain
    /// computed again.
    #[inline(always)]
    #[track_caller]
    pub fn store<const N: usize, const STAGED: usize>(
        &self,
        sums: &Fragment<N>,
        filled: &Filled,
        staged: &mut Shared<f32, STAGED, PITCH>,
        epilogue: &mut Epilogue<f32>,
        (first_row, first_col): (usize, usize),
    ) {
        let t = thread::thread_idx_x();
        let warp = warp::shuffle(warp::ALL, t / 32, 0) as usize;
        // Through a shuffle too: what follows from it would else be computed before the main loop, and take registers there.
        let lane = warp::shuffle(warp::ALL, t % 32, t % 32);
        let base = warp * ROWS * PITCH;
        let first_row = first_row + warp % 4 * ROWS;
        for part in 0..N / COLS {
            let mut put = |row: u32, col: u32, two: [f32; 2]| {
                staged.store64(base + row as usize % ROWS * PITCH + col as usize, two);
            };
            // A register has no number that is computed.
            match part {
                0 => sums.for_each_pair_of::<0>(&mut put),
                1 => sums.for_each_pair_of::<1>(&mut put),
                _ => sums.for_each_pair_of::<2>(&mut put),
            }
            warp::sync_warp(warp::ALL);
            let first_col = first_col + part * COLS;
            // Of 64 columns at a time: the first 16 are the first lane's.
            let lane_of_part = (part * COLS / 16) as u32;
            let cols = warp::shuffle(warp::ALL, filled.cols, lane_of_part + lane % 4);
            let filled = Filled { rows: filled.rows, cols };
            let first = (first_row, first_col);
            let left = epilogue.left(first);
            let mut count = 0;
            let (mut at, ends) = (0, 2 * left.0.min(ROWS));
            while at < ends {
                let place = (at / 2, at % 2 * 32);
                count += doubts(staged, base, &filled, left, place, lane).count_ones();
                at += 1;
            }
            let again = match count {
                0..=MANY => {
                    self.replace(staged, base, &filled, left, first, lane);
                    count
                }
                _ => {
                    self.compute(staged, base, first, lane);
                    (left.0.min(ROWS) * left.1.min(COLS)) as u32
                }
            };
            if again > 0 && lane == 0 {
                board::count(*self.originals.board, again);
            }
            let (first_of_lane, col) = (lane as usize / 16, lane as usize % 16 * FOUR);
            for row in (first_of_lane..ROWS).step_by(2) {
                let four = staged.load128(base + row * PITCH + col);
                epilogue.finish::<false>((first_row + row, first_col + col), four);
            }
            warp::sync_warp(warp::ALL);
        }
    }

    /// Computes again what is not certain of a warp's sums that have been put down, one after the other.
    #[inline(always)]
    #[track_caller]
    fn replace<const STAGED: usize>(
        &self,
        staged: &mut Shared<f32, STAGED, PITCH>,
        base: usize,
        filled: &Filled,
        left: (usize, usize),
        (first_row, first_col): (usize, usize),
        lane: u32,
    ) {
        let (mut row, rows) = (0, left.0.min(ROWS));
        while row < rows {
            let mut first = 0;
            while first < left.1.min(COLS) {
                let mut doubted = doubts(staged, base, filled, left, (row, first), lane);
                while doubted != 0 {
                    let next = doubted.trailing_zeros();
                    doubted &= doubted - 1;
                    let place = (first_row + row, first_col + first + next as usize);
                    let sum = self.sum(place, lane);
                    if lane == next {
                        staged[base + row * PITCH + first + next as usize] = sum;
                    }
                }
                first += 32;
            }
            row += 1;
        }
        warp::sync_warp(warp::ALL);
    }

    /// All elements of a warp's 16 x 64, computed again: a product as on CUDA cores, of eight rows at a time, of which a lane has
    /// 4 x 4 sums. What they are of goes by shared memory, [`STEPS`] steps of k at a time: B's rows where the second eight rows of
    /// sums are put down in the end, and A's columns behind the rows, where nothing else lies.
    #[inline(always)]
    #[track_caller]
    fn compute<const STAGED: usize>(
        &self,
        staged: &mut Shared<f32, STAGED, PITCH>,
        base: usize,
        (first_row, first_col): (usize, usize),
        lane: u32,
    ) {
        const { assert!(STEPS * 2 == ROWS && PITCH == COLS + FOUR) };
        let Problem { m, n, k, a, b, batch, .. } = *self.problem;
        let (m, n, k) = (m as usize, n as usize, k as usize);
        let lane = lane as usize;
        let (group, col) = (lane / 16, lane % 16 * FOUR);
        let at_a = |step: usize, group: usize| base + (2 * step + group) * PITCH + COLS;
        let at_b = |step: usize| base + (STEPS + step) * PITCH;
        let mut half = 0;
        while half < 2 {
            // Added to -0 a sum of 32 steps stays as it is, also -0.
            let (mut p, mut sums, mut parts) = (0, [[-0.0; FOUR]; 4], [[0.0; FOUR]; 4]);
            while p < k {
                let steps = (k - p).min(STEPS);
                // What there is not is zero.
                for i in 0..2 {
                    let (row, step) = (first_row + half * 8 + i * 4 + lane / STEPS, lane % STEPS);
                    let from = self.product * batch[0] as usize + row * a[0] as usize;
                    staged[at_a(step, i) + lane / STEPS] = match row < m && step < steps {
                        true => self.originals.a[from + (p + step) * a[1] as usize],
                        false => 0.0,
                    };
                }
                let mut at = 0;
                while at < 2 * steps {
                    let (step, place) = (at / 2, at % 2 * 32 + lane);
                    let col = first_col + place;
                    let from = self.product * batch[1] as usize + col * b[1] as usize;
                    staged[at_b(step) + place] = match col < n {
                        true => self.originals.b[from + (p + step) * b[0] as usize],
                        false => 0.0,
                    };
                    at += 1;
                }
                warp::sync_warp(warp::ALL);
                for step in 0..steps {
                    let x: [f32; FOUR] = staged.load128(at_a(step, group));
                    let y: [f32; FOUR] = staged.load128(at_b(step) + col);
                    for i in 0..4 {
                        for j in 0..FOUR {
                            parts[i][j] = fma(x[i], y[j], parts[i][j]);
                        }
                    }
                }
                warp::sync_warp(warp::ALL);
                p += STEPS;
                // Short sums, so that what comes out is as near as an element that is computed alone.
                if p.is_multiple_of(32) || p >= k {
                    for i in 0..4 {
                        for j in 0..FOUR {
                            sums[i][j] += parts[i][j];
                            parts[i][j] = 0.0;
                        }
                    }
                }
            }
            for i in 0..4 {
                staged.store128(base + (half * 8 + group * 4 + i) * PITCH + col, sums[i]);
            }
            warp::sync_warp(warp::ALL);
            half += 1;
        }
    }

    /// An element of A B, by a warp together.
    #[inline(always)]
    #[track_caller]
    fn sum(&self, (row, col): (usize, usize), lane: u32) -> f32 {
        let Problem { k, a, b, batch, .. } = *self.problem;
        let from_a = self.product * batch[0] as usize + row * a[0] as usize;
        let from_b = self.product * batch[1] as usize + col * b[1] as usize;
        let mut p = lane as usize;
        // A lane without a step of k has -0: added to any sum, that leaves it as it is, also -0.
        let mut sum = if p < k as usize { 0.0 } else { -0.0 };
        while p < k as usize {
            let x = self.originals.a[from_a + p * a[1] as usize];
            let y = self.originals.b[from_b + p * b[0] as usize];
            sum = fma(x, y, sum);
            p += 32;
        }
        let mut lanes = 16;
        while lanes > 0 {
            sum += warp::shuffle_xor(warp::ALL, sum, lanes);
            lanes /= 2;
        }
        sum
    }
}
