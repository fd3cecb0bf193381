//! What slices cannot tell is computed again, from A and B themselves.
//!
//! * **A sum that is no number.** Infinity is cut into infinity and NaN, and 0 times infinity is NaN; sums of slices may
//!   overflow where the sum does not, and the other way round. All of that ends in an infinity or NaN.
//! * **A sum that is too small** for what may have been lost on the way ([`range`](super::range), [`halves`](super::halves)):
//!   subnormal numbers, mostly; of scaled slices also what is small beside its neighbours. But not the zeros that a row or a column
//!   of zeros makes.
//!
//! Such an element is the sum of k fused multiply-adds of f32, as of a plain kernel. So what comes out is as IEEE 754 has it, but
//! for the order. Where there is none of it, a few instructions for each sum are all of it ([`Confidence`]).
//!
//! * **A few** of a warp's 16 x 32 elements: the warp computes one after the other. Its lanes take every 32nd step of k each,
//!   beginning at +0, and their sums are added in pairs: within `(k / 32 + 6) 2^-24` of the exact sum.
//! * **Many**: all of them at once, as a block of a plain kernel does, whose sums of 32 steps are added to others: within
//!   `(k / 32 + 33) 2^-24`.
//!
//! Of each such part how many these are is counted ([`counters`]): a product that is slow for their sake can be told from others.
//!
//! (In the loops here, but in that of a single element, all lanes go round as often. Behind others ptxas may keep what is the same
//! in all lanes, the ring's turn among it, in registers of each, and the main loop brings it back: with 48 instructions, once.)

use super::{
    collective::{accumulators::ROWS, vector::FOUR},
    device::*,
    stream_counters,
};
use crate::params::GemmParams;

/// Columns that are on their way at a time: of a row a line of C's memory.
pub const COLS: usize = 32;

/// Elements from one row to the next: what lies below each other is eight banks apart, so that four lanes' pairs of four rows, which
/// are put down at once, are in all 32 banks.
pub const PITCH: usize = COLS + 8;

/// A and B themselves, for what is computed again; and where that is counted.
#[derive(Clone, Copy)]
pub struct Originals<'a> {
    /// A.
    pub a: &'a In<f32>,
    /// B.
    pub b: &'a In<f32>,
    /// The words of the stream.
    pub counters: &'a Out<u32>,
}

/// Elements of a warp's 16 x 32 from more than which on all are computed again: one alone takes as long as some twenty of them
/// together.
const MAX_SINGLE: u32 = 16;
/// Steps of k that these have at a time.
const STEPS: usize = 8;

/// What stands for a zero that may be nothing but what was lost. No sum is that by itself: they begin at +0.
const UNCERTAIN_ZERO: f32 = -0.0;

/// What is left of a sum that may not be `certain`: else it is no number.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn uncertain(sum: f32, certain: bool) -> f32 {
    match certain {
        true => sum,
        false if sum == 0.0 => UNCERTAIN_ZERO,
        false => f32::NAN,
    }
}

/// Is a sum a number that nobody doubts?
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn is_certain(sum: f32) -> bool {
    sum.to_bits() & 0x7fff_ffff < f32::INFINITY.to_bits()
        && sum.to_bits() != UNCERTAIN_ZERO.to_bits()
}

/// Can a thread's sums be relied on? Asked of all of them at once, in two instructions for each, and what its size takes.
#[derive(Clone, Copy)]
pub struct Confidence {
    /// The least that speaks for one of them.
    least: f32,
    /// Zero; and no number, if one of them is none or is infinite.
    zero: f32,
}

impl Confidence {
    /// No sum yet.
    pub const ALL: Confidence = Confidence { least: f32::INFINITY, zero: 0.0 };

    /// This sum, too, for which so much speaks.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn include(&mut self, sum: f32, size: f32) {
        self.least = self.least.min(size);
        self.zero = fma(sum, 0.0, self.zero);
    }

    /// Is each of a warp's sums a number for which at least so much speaks? All of its lanes come here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn on(self, least: f32) -> bool {
        warp::all(warp::ALL, self.least >= least && self.zero == 0.0)
    }
}

/// Which rows of A and which columns of B are not zeros alone: a bit for each.
#[derive(Clone, Copy)]
pub struct NonZeros {
    /// Of a warp's 16 rows.
    pub rows: u32,
    /// Of 16 columns for each lane: of the first 16 for the first.
    pub cols: u32,
}

impl NonZeros {
    /// Nobody knows of any that is not.
    pub const ALL: NonZeros = NonZeros { rows: !0, cols: !0 };

    /// That of the `part`th columns that are on their way, for this lane. All lanes of a warp come here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn of_part(self, part: usize, lane: usize) -> NonZeros {
        let first = part * COLS / 16;
        let cols = warp::shuffle(warp::ALL, self.cols, (first + lane % (COLS / 16)) as u32);
        NonZeros { rows: self.rows, cols }
    }
}

/// A warp's 16 x 32 sums that have been put down, and what they are computed again from.
pub struct Recompute<'a> {
    /// The product.
    pub problem: &'a GemmParams,
    /// A and B.
    pub originals: Originals<'a>,
    /// Its number in the batch.
    pub product: usize,
    /// Where they are in C: row and column of the first.
    pub first: (usize, usize),
    /// Where they have been put down.
    pub base: usize,
    /// The lane's number.
    pub lane: usize,
}

impl Recompute<'_> {
    /// Computes again what is not certain. All lanes of the warp come here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn recompute_uncertain<const STAGED: usize>(
        &self,
        staged: &mut Shared<f32, STAGED, PITCH>,
        non_zeros: NonZeros,
    ) {
        let (mut count, mut row) = (0, 0);
        while row < self.rows() {
            count += self.uncertain_lanes(staged, non_zeros, row).count_ones();
            row += 1;
        }
        // Zeros have been put down for other lanes, which may have looked at what is written over now.
        warp::sync_warp(warp::ALL);
        if count == 0 {
            return;
        }
        if count <= MAX_SINGLE {
            self.compute_each(staged, non_zeros);
        } else {
            self.compute_all(staged);
            count = (self.rows() * self.cols()) as u32;
        }
        if self.lane == 0 {
            stream_counters::count_recomputed(*self.originals.counters, count);
        }
    }

    /// Rows that C has of them.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn rows(&self) -> usize {
        (self.problem.m as usize).saturating_sub(self.first.0).min(ROWS)
    }

    /// Columns that C has of them.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn cols(&self) -> usize {
        (self.problem.n as usize).saturating_sub(self.first.1).min(COLS)
    }

    /// Which of a row's sums, one for each lane, are not certain, and are to be written: a bit for each. Those that zeros alone have
    /// made are put down as zeros. All lanes of the warp come here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn uncertain_lanes<const STAGED: usize>(
        &self,
        staged: &mut Shared<f32, STAGED, PITCH>,
        non_zeros: NonZeros,
        row: usize,
    ) -> u32 {
        const { assert!(COLS == 32) };
        let at = self.base + row * PITCH + self.lane;
        let of_lane = warp::shuffle(warp::ALL, non_zeros.cols, self.lane as u32 / 16);
        let is_filled = non_zeros.rows >> row & of_lane >> (self.lane % 16) & 1 == 1;
        let sum = staged[at];
        let is_zero = sum == 0.0 && !is_filled;
        if is_zero {
            staged[at] = 0.0;
        }
        warp::ballot(warp::ALL, self.lane < self.cols() && !is_zero && !is_certain(sum))
    }

    /// Computes again what is not certain, one after the other.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn compute_each<const STAGED: usize>(
        &self,
        staged: &mut Shared<f32, STAGED, PITCH>,
        non_zeros: NonZeros,
    ) {
        let mut row = 0;
        while row < self.rows() {
            let mut uncertain = self.uncertain_lanes(staged, non_zeros, row);
            while uncertain != 0 {
                let next = uncertain.trailing_zeros() as usize;
                uncertain &= uncertain - 1;
                let sum = self.sum((self.first.0 + row, self.first.1 + next));
                if self.lane == next {
                    staged[self.base + row * PITCH + next] = sum;
                }
            }
            row += 1;
        }
        warp::sync_warp(warp::ALL);
    }

    /// All elements of a warp's 16 x 32, computed again: a product as on CUDA cores, of which a lane has 4 x 4 sums. What they are of
    /// goes by shared memory, [`STEPS`] steps of k at a time, where sums are put down in the end: B's rows where the first eight
    /// are, A's columns where the others are.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn compute_all<const STAGED: usize>(&self, staged: &mut Shared<f32, STAGED, PITCH>) {
        const { assert!(STEPS * 2 == ROWS && ROWS <= COLS && COLS == 32) };
        let GemmParams { m, n, k, a, b, batch, .. } = *self.problem;
        let (m, n, k) = (m as usize, n as usize, k as usize);
        let (base, lane, (first_row, first_col)) = (self.base, self.lane, self.first);
        let (group, col) = (lane / 8, lane % 8 * FOUR);
        let at_a = |step: usize| base + (STEPS + step) * PITCH;
        let at_b = |step: usize| base + step * PITCH;
        // Added to -0 a sum of 32 steps stays as it is, also -0.
        let (mut p, mut sums, mut parts) = (0, [[-0.0; FOUR]; 4], [[0.0; FOUR]; 4]);
        while p < k {
            let steps = (k - p).min(STEPS);
            // What there is not is zero.
            let step = lane % STEPS;
            let of_step = self.product * batch[0] as usize + (p + step) * a[1] as usize;
            for first in (0..ROWS).step_by(4) {
                let row = first + lane / STEPS;
                staged[at_a(step) + row] = match first_row + row < m && step < steps {
                    true => self.originals.a[of_step + (first_row + row) * a[0] as usize],
                    false => 0.0,
                };
            }
            let from = self.product * batch[1] as usize + (first_col + lane) * b[1] as usize;
            let mut step = 0;
            while step < steps {
                staged[at_b(step) + lane] = match first_col + lane < n {
                    true => self.originals.b[from + (p + step) * b[0] as usize],
                    false => 0.0,
                };
                step += 1;
            }
            warp::sync_warp(warp::ALL);
            for step in 0..steps {
                let x: [f32; FOUR] = staged.load128(at_a(step) + group * 4);
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
            staged.store128(base + (group * 4 + i) * PITCH + col, sums[i]);
        }
        warp::sync_warp(warp::ALL);
    }

    /// An element of A B, by a warp together.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn sum(&self, (row, col): (usize, usize)) -> f32 {
        let GemmParams { k, a, b, batch, .. } = *self.problem;
        let from_a = self.product * batch[0] as usize + row * a[0] as usize;
        let from_b = self.product * batch[1] as usize + col * b[1] as usize;
        let mut p = self.lane;
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
