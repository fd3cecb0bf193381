//! Recomputing what slices cannot represent, from A and B themselves.
//!
//! * **A sum that is infinite or NaN.** Infinity is split into infinity and NaN, and 0 times
//!   infinity is NaN. Sums of slices may overflow where the sum does not, and the other way round.
//!   All of this ends in infinity or NaN.
//! * **A sum that is smaller than its error bound** ([`value_range`](super::value_range),
//!   [`scales`](super::scales)): mostly subnormal numbers; with scaled slices also numbers that are
//!   small compared with their neighbours. Zeros that a row or a column of zeros makes are no such
//!   sums.
//!
//! A recomputed element is the sum of k fused multiply-adds of f32, like that of a plain kernel. So
//! it follows IEEE 754, except for the order. Where nothing is recomputed, this costs a few
//! instructions for each sum ([`Confidence`]).
//!
//! * **A few** of a warp's 16 x 32 elements: the warp computes one after the other. Each lane takes
//!   every 32nd k-step, starting at +0, and the lanes' sums are added in pairs: within `(k / 32
//!   + 6) 2^-24` of the exact sum.
//! * **Many**: all of them at once, as a block of a plain kernel does. Sums of 32 steps are added
//!   to others: within `(k / 32 + 33) 2^-24`.
//!
//! The recomputed elements are counted ([`stream_counters`]), so that one can tell why a product is
//! slow.
//!
//! (In these loops all lanes run equally often, except in that of a single element. After other
//! loops ptxas may keep numbers that are the same in all lanes, such as the pipeline's state, in
//! registers of each lane. The main loop would have to convert them back: once that was 48
//! instructions.)

use super::{
    collective::{accumulators::ROWS, vector::FOUR},
    device::*,
    stream_counters,
};
use crate::params::GemmParams;

/// Columns that are staged at a time: a 128-byte line of C.
pub const COLS: usize = 32;

/// Elements from one staged row to the next. Rows are eight banks apart, so that the pairs that a
/// half-warp stages, of four rows, are in 32 banks.
pub const PITCH: usize = COLS + 8;

/// A and B themselves, and the counters of recomputed elements.
#[derive(Clone, Copy)]
pub struct Originals<'a> {
    /// A.
    pub a: &'a In<f32>,
    /// B.
    pub b: &'a In<f32>,
    /// The counters of the stream.
    pub counters: &'a Out<u32>,
}

/// If more of a warp's 16 x 32 elements are uncertain, all are recomputed. One by itself takes as
/// long as some twenty of them together.
const MAX_SINGLE: u32 = 16;
/// K-steps in shared memory at a time, when all are recomputed.
const STEPS: usize = 8;

/// Marks a zero that may be a lost number. No sum is -0 by itself: they start at +0.
const UNCERTAIN_ZERO: f32 = -0.0;

/// The sum if it is `certain`. Otherwise a mark: NaN, or `UNCERTAIN_ZERO`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn uncertain(sum: f32, certain: bool) -> f32 {
    match certain {
        true => sum,
        false if sum == 0.0 => UNCERTAIN_ZERO,
        false => f32::NAN,
    }
}

/// Whether a sum is a certain number.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn is_certain(sum: f32) -> bool {
    sum.to_bits() & 0x7fff_ffff < f32::INFINITY.to_bits()
        && sum.to_bits() != UNCERTAIN_ZERO.to_bits()
}

/// Whether a thread's sums are certain, for all of them at once. It takes two instructions a sum,
/// and those of its size.
#[derive(Clone, Copy)]
pub struct Confidence {
    /// The least size of a sum.
    least: f32,
    /// Zero; NaN if one of the sums is infinite or NaN.
    zero: f32,
}

impl Confidence {
    /// No sum yet.
    pub const ALL: Confidence = Confidence { least: f32::INFINITY, zero: 0.0 };

    /// Adds a sum and its size.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn include(&mut self, sum: f32, size: f32) {
        self.least = self.least.min(size);
        self.zero = fma(sum, 0.0, self.zero);
    }

    /// Whether each of a warp's sums is a number with a size of at least `least`. All lanes call
    /// this.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn on(self, least: f32) -> bool {
        warp::all(warp::ALL, self.least >= least && self.zero == 0.0)
    }
}

/// The non-zero rows of A and columns of B: a bit for each.
#[derive(Clone, Copy)]
pub struct NonZeros {
    /// A warp's 16 rows.
    pub rows: u32,
    /// 16 columns for each lane; lane 0 has the first 16.
    pub cols: u32,
}

impl NonZeros {
    /// No zeros are known.
    pub const ALL: NonZeros = NonZeros { rows: !0, cols: !0 };

    /// For this lane, those of the `part`th staged columns. All lanes of a warp call this.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn of_part(self, part: usize, lane: usize) -> NonZeros {
        let first = part * COLS / 16;
        let cols = warp::shuffle(warp::ALL, self.cols, (first + lane % (COLS / 16)) as u32);
        NonZeros { rows: self.rows, cols }
    }
}

/// A warp's staged 16 x 32 sums, and what they are recomputed from.
pub struct Recompute<'a> {
    /// The product's parameters.
    pub problem: &'a GemmParams,
    /// A and B.
    pub originals: Originals<'a>,
    /// The number of the product in the batch.
    pub product: usize,
    /// Row and column of the first sum.
    pub first: (usize, usize),
    /// The index of the first staged sum.
    pub base: usize,
    /// The lane's number.
    pub lane: usize,
}

impl Recompute<'_> {
    /// Recomputes the uncertain sums. All lanes of the warp call this.
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
        // Zeros have been staged for other lanes, which may have read what is overwritten now.
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

    /// Rows of the 16 that C has.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn rows(&self) -> usize {
        (self.problem.m as usize).saturating_sub(self.first.0).min(ROWS)
    }

    /// Columns of the 32 that C has.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn cols(&self) -> usize {
        (self.problem.n as usize).saturating_sub(self.first.1).min(COLS)
    }

    /// The uncertain sums of a row, one for each lane, that C has: a bit for each. Sums of zeros
    /// alone are staged as zeros. All lanes of the warp call this.
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

    /// Recomputes the uncertain sums, one after the other.
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

    /// Recomputes all 16 x 32 elements: a product as on CUDA cores, in which a lane has 4 x 4 sums.
    /// Its operands go through shared memory, [`STEPS`] k-steps at a time, in place of the
    /// staged sums: B's rows in the first eight rows, A's columns in the others.
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
        // Added to -0, a sum of 32 steps stays as it is, also if it is -0.
        let (mut p, mut sums, mut parts) = (0, [[-0.0; FOUR]; 4], [[0.0; FOUR]; 4]);
        while p < k {
            let steps = (k - p).min(STEPS);
            // Elements outside are zero.
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
            // Short sums, so that the result is as accurate as an element that is computed alone.
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

    /// An element of A B, computed by a warp.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn sum(&self, (row, col): (usize, usize)) -> f32 {
        let GemmParams { k, a, b, batch, .. } = *self.problem;
        let from_a = self.product * batch[0] as usize + row * a[0] as usize;
        let from_b = self.product * batch[1] as usize + col * b[1] as usize;
        let mut p = self.lane;
        // A lane without a k-step has -0. Added to any sum it leaves that as it is, also -0.
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
