//! What slices cannot tell is computed again, from A and B themselves.
//!
//! * **A sum that is no number.** Infinity is cut into infinity and NaN, and 0 times infinity is NaN; sums of slices may
//!   overflow where the sum does not, and the other way round. All of that ends in an infinity or NaN.
//! * **A sum that is too small** for what may have been lost on the way ([`range`](super::range)): subnormal numbers, mostly.
//!
//! Such an element is the sum of k fused multiply-adds of f32, as of a plain kernel: a warp's lanes take every 32nd step of k
//! each, beginning at +0, and their sums are added in pairs. So what comes out is as IEEE 754 has it, but for the order, and
//! within `(k / 32 + 6) 2^-24` of the exact sum. It takes the time that it takes; where there is none of it, each thread
//! compares its sums with two numbers.

use super::{
    super::{
        device::{warpgroup::*, *},
        gemm::{FOUR, epilogue::Epilogue},
        gemm_wgmma::output::{COLS, PITCH, ROWS},
    },
    Originals,
};
use crate::problem::Problem;

/// Is a sum a number, and of that size at least?
#[inline(always)]
fn is_certain(sum: f32, least: f32) -> bool {
    let size = f32::from_bits(sum.to_bits() & 0x7fff_ffff);
    // Written so that NaN is not.
    size >= least && size <= f32::MAX
}

/// Are all sums of a warp so? All of its lanes come here.
#[inline(always)]
pub fn are_certain<const N: usize>(sums: &Fragment<N>, least: f32) -> bool {
    let mut certain = true;
    sums.for_each_pair(|_, _, [first, second]| {
        certain &= is_certain(first, least) & is_certain(second, least);
    });
    warp::all(warp::ALL, certain)
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
    /// Writes the sums of a warp's part of 64 x `N` elements of C, the first of which is (row, col), those that are not
    /// certain computed again.
    #[inline(always)]
    #[track_caller]
    pub fn store<const N: usize, const STAGED: usize>(
        &self,
        sums: &Fragment<N>,
        least: f32,
        staged: &mut Shared<f32, STAGED, PITCH>,
        epilogue: &mut Epilogue<f32>,
        (first_row, first_col): (usize, usize),
    ) {
        let t = thread::thread_idx_x() as usize;
        let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
        let base = warp * ROWS * PITCH;
        let first_row = first_row + warp % 4 * ROWS;
        for part in 0..N / COLS {
            let mut put = |row: u32, col: u32, two: [f32; 2]| {
                staged.store64(base + row as usize % ROWS * PITCH + col as usize, two);
            };
            // A register has no number that is computed.
            match part {
                0 => sums.for_each_pair_of::<0>(&mut put),
                _ => sums.for_each_pair_of::<1>(&mut put),
            }
            warp::sync_warp(warp::ALL);
            let first_col = first_col + part * COLS;
            self.replace(staged, base, least, epilogue, (first_row, first_col));
            let (first_of_lane, col) = (lane / 16, lane % 16 * FOUR);
            for row in (first_of_lane..ROWS).step_by(2) {
                let four = staged.load128(base + row * PITCH + col);
                epilogue.finish::<false>((first_row + row, first_col + col), four);
            }
            warp::sync_warp(warp::ALL);
        }
    }

    /// Computes again what is not certain of a warp's sums that have been put down.
    #[inline(always)]
    #[track_caller]
    fn replace<const STAGED: usize>(
        &self,
        staged: &mut Shared<f32, STAGED, PITCH>,
        base: usize,
        least: f32,
        epilogue: &Epilogue<f32>,
        (first_row, first_col): (usize, usize),
    ) {
        let lane = thread::lane_id();
        let (rows, cols) = epilogue.left((first_row, first_col));
        let (mut row, rows) = (0, rows.min(ROWS));
        while row < rows {
            let mut first = 0;
            while first < cols.min(COLS) {
                let at = base + row * PITCH + first;
                let is_inside = first + (lane as usize) < cols;
                let uncertain = is_inside && !is_certain(staged[at + lane as usize], least);
                let mut left = warp::ballot(warp::ALL, uncertain);
                while left != 0 {
                    let next = left.trailing_zeros();
                    left &= left - 1;
                    let sum = self.sum((first_row + row, first_col + first + next as usize));
                    if lane == next {
                        staged[at + next as usize] = sum;
                    }
                }
                first += 32;
            }
            row += 1;
        }
        warp::sync_warp(warp::ALL);
    }

    /// An element of A B, by a warp together.
    #[inline(always)]
    #[track_caller]
    fn sum(&self, (row, col): (usize, usize)) -> f32 {
        let Problem { k, a, b, batch, .. } = *self.problem;
        let from_a = self.product * batch[0] as usize + row * a[0] as usize;
        let from_b = self.product * batch[1] as usize + col * b[1] as usize;
        let mut p = thread::lane_id() as usize;
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
