//! Thin products, straight from global memory: for a C of a few rows or columns, down to dot
//! products.
//!
//! * **A block** computes 4 x 64 elements of C. There is no tile in shared memory, which would be
//!   mostly zeros, and no barrier.
//! * **A warp** reads neighbouring columns of B.
//! * **A thread** computes four neighbours of a row. A thread outside C computes nothing.
//!
//! An element is one sum in the order of k by fused multiply-adds: the bits of the [main
//! loop](super::main_loop). (That adds zeros past k, so a -0 of an underflow may be 0 there.) A
//! warp waits for memory alone. On the CPU device a thread runs through all of k at once.

use super::{
    collective::{epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR},
    device::*,
};
use crate::params::GemmParams;

/// Rows and columns of a block's tile.
pub const TILE: [usize; 2] = [4, 64];

/// Computes and stores a thread's four elements.
#[inline(always)]
#[track_caller]
pub fn multiply<S: Stored, O: Stored<Real = S::Real>>(
    problem: &GemmParams,
    (a, b): (&In<S>, &In<S>),
    (c, bias): (&mut Out<O>, &In<O>),
) {
    let across = const { TILE[1] / FOUR };
    let t = thread::thread_idx_x() as usize;
    let row = thread::block_idx_y() as usize * TILE[0] + t / across;
    let col = thread::block_idx_x() as usize * TILE[1] + t % across * FOUR;
    let (m, n, k) = (problem.m as usize, problem.n as usize, problem.k as usize);
    if row >= m || col >= n {
        return;
    }
    let strides = |[row, col]: [u64; 2]| (row as usize, col as usize);
    let ((a_row, a_step), (b_step, b_col)) = (strides(problem.a), strides(problem.b));
    let product = thread::block_idx_z() as usize;
    let from_a = product * problem.batch[0] as usize + row * a_row;
    // A column outside B reads the last one inside.
    let from_b: [usize; FOUR] = core::array::from_fn(|j| {
        product * problem.batch[1] as usize + (col + j).min(n - 1) * b_col
    });
    let mut sums = [S::Real::ZERO; FOUR];
    for p in 0..k {
        let of_a = a[from_a + p * a_step].widened();
        for j in 0..FOUR {
            sums[j] = fma(of_a, b[from_b[j] + p * b_step].widened(), sums[j]);
        }
    }
    let mut epilogue = Epilogue::new(problem, c, bias);
    let columns = epilogue.columns(core::array::from_fn(|j| (col + j) as u32));
    epilogue.finish_any_fours(&[&columns], [row as u32], [sums]);
}
