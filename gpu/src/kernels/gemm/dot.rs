//! Products of few rows: the threads of a block split k.
//!
//! A tile in shared memory would be mostly zeros, and its few blocks would each wait for a long k.
//! Here each thread reads its own k-steps from global memory, and nobody waits for anybody before
//! the end.
//!
//! * **A block** of eight warps computes a tile of C: 4 x 4, 8 x 16 or 8 x 128 elements (of f64 8 x
//!   64). The constant `cols` says which.
//! * **A warp** takes every eighth group of k-steps. Its lanes have `cols / 4` columns side by
//!   side; the other lanes split the group. With 128 columns a warp reads rows of B. With four it
//!   reads along k.
//! * **A thread** computes `ROWS x 4` sums in registers. Its columns are `cols / 4` apart, so
//!   that neighbouring lanes read neighbouring elements, aligned or not.
//!
//! At the end the lanes of a warp add their sums by shuffles, and the warps through shared memory,
//! both in a fixed order. The order differs from that of a single sum along k. So the bits differ
//! from those of the other kernels of this family, and are the same in every run.
//!
//! Each block loads the rows of A and the columns of B that it needs, from L2 where another block
//! has loaded them before. So these kernels are for a C of few elements or few rows.

use super::{
    collective::{epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR},
    device::*,
};
use crate::params::GemmParams;

/// Rows, columns, and k-steps that a block takes at a time, of each tile.
pub const TILES: [[u32; 3]; 3] = [[4, 4, 256], [8, 16, 64], [8, 128, 8]];

/// The same of f64, whose sums take twice the shared memory.
pub const TILES_F64: [[u32; 3]; 3] = [[4, 4, 256], [8, 16, 64], [8, 64, 16]];

/// Warps of a block.
const WARPS: usize = 8;

/// Threads of a block.
pub const THREADS: u32 = 32 * WARPS as u32;

/// Rows of the sums of a block: a tile of each warp.
pub const ROWS: usize = WARPS * 8;

/// How the lanes of a warp share a tile: a power of two has neighbouring columns, and the others
/// split k. (Shifts instead of divisions: a division by a constant of the load could be by zero for
/// all that the compiler knows.)
#[derive(Clone, Copy)]
struct Lanes {
    /// The logarithm of the number of lanes with neighbouring columns.
    across: u32,
}

impl Lanes {
    /// Columns of the tile.
    fn cols(self) -> usize {
        FOUR << self.across
    }

    /// Lanes that split k, and the logarithm of that.
    fn along_k(self) -> (usize, u32) {
        let log2 = 5 - self.across;
        (1 << log2, log2)
    }
}

/// Computes and stores a tile of `cols` columns, a power of two from 4 to `MOST`.
#[inline(always)]
#[track_caller]
pub fn multiply<S: Stored, O: Stored<Real = S::Real>, const MOST: usize>(
    problem: &GemmParams,
    operands: (&In<S>, &In<S>),
    (c, bias): (&mut Out<O>, &In<O>),
    mut sums: Shared<S::Real, ROWS, MOST>,
    cols: u32,
) {
    let lanes = Lanes { across: cols.trailing_zeros().wrapping_sub(FOUR.trailing_zeros()) };
    // Both are compiled, and the constant leaves one.
    let rows = match lanes.across {
        0 => add_in_warp::<_, 4, 16, 4, MOST>(problem, operands, &mut sums, lanes),
        _ => add_in_warp::<_, 8, 32, 2, MOST>(problem, operands, &mut sums, lanes),
    };
    let (t, cols) = (thread::thread_idx_x() as usize, lanes.cols());
    let (row, col) = (t >> lanes.across, (t * FOUR) & (cols - 1));
    let first_row = (thread::block_idx_y() as usize * rows + row) as u32;
    let first_col = (thread::block_idx_x() as usize * cols + col) as u32;
    let mut epilogue = Epilogue::new(problem, c, bias);
    // Before the barrier, so that nobody waits for it.
    let columns = epilogue.columns(core::array::from_fn(|i| first_col + i as u32));
    thread::sync_threads();
    if row < rows {
        let mut all = [S::Real::ZERO; FOUR];
        for warp in 0..WARPS {
            let four = S::Real::load_shared(&sums, (warp * rows + row) * cols + col);
            for i in 0..FOUR {
                all[i] = all[i].plus(four[i]);
            }
        }
        epilogue.finish_any_fours(&[&columns], [first_row], [all]);
    }
}

/// Computes the sums of a warp, of `OWN` rows, and stores them. Returns `OWN`. A thread has
/// `SUMS = 4 OWN` sums, and loads `AHEAD` k-steps before it multiplies the first of them.
#[inline(always)]
#[track_caller]
fn add_in_warp<
    S: Stored,
    const OWN: usize,
    const SUMS: usize,
    const AHEAD: usize,
    const MOST: usize,
>(
    problem: &GemmParams,
    operands: (&In<S>, &In<S>),
    sums: &mut Shared<S::Real, ROWS, MOST>,
    lanes: Lanes,
) -> usize {
    const { assert!(SUMS == OWN * FOUR, "a thread has four columns") };
    let (t, (lanes_k, log2)) = (thread::thread_idx_x() as usize, lanes.along_k());
    let (warp, lane_k, lane_n) = (t / 32, t & (lanes_k - 1), (t % 32) >> log2);
    let col = (thread::block_idx_x() as usize * lanes.cols() + lane_n, 1 << lanes.across);
    let first_k = warp * lanes_k + lane_k;
    let mut values = sums_of_thread::<S, OWN, SUMS, AHEAD>(problem, operands, col, (first_k, log2));

    // In each round a lane adds one half of its elements for itself and for its partner, which adds
    // the other half. At last the lanes that split k have different elements.
    let (mut first, mut has_own) = (0, true);
    for round in 0..5 {
        let partner = 1 << round;
        if partner < lanes_k {
            let (half, is_upper) = (SUMS >> (round + 1), lane_k & partner != 0);
            for i in 0..half {
                let (lower, upper) = (values[i], values[i + half]);
                let (kept, sent) = if is_upper { (upper, lower) } else { (lower, upper) };
                values[i] = kept.plus(warp::shuffle_xor(u32::MAX, sent, partner as u32));
            }
            if half == 0 {
                // One element is left, and both lanes add it.
                values[0] = values[0].plus(warp::shuffle_xor(u32::MAX, values[0], partner as u32));
                has_own &= !is_upper;
            } else if is_upper {
                first += half;
            }
        }
    }
    for i in 0..SUMS {
        if (i == 0 || i < SUMS >> log2) && has_own {
            let element = first + i;
            let (row, col) = (element / FOUR, ((element % FOUR) << lanes.across) + lane_n);
            sums[(warp * OWN + row) * lanes.cols() + col] = values[i];
        }
    }
    OWN
}

/// The sums of a thread. Of columns it has the first one, and the step to the next. Of k-steps it
/// has the first one, and the logarithm of the lanes that split k.
#[inline(always)]
#[track_caller]
fn sums_of_thread<S: Stored, const ROWS: usize, const SUMS: usize, const AHEAD: usize>(
    problem: &GemmParams,
    (a, b): (&In<S>, &In<S>),
    (col, apart): (usize, usize),
    (first, lanes_log2): (usize, u32),
) -> [S::Real; SUMS] {
    let (m, n) = (problem.m as usize, problem.n as usize);
    let strides = |[row, col]: [u64; 2]| (row as usize, col as usize);
    let ((a_row, a_step), (b_step, b_col)) = (strides(problem.a), strides(problem.b));
    let product = thread::block_idx_z() as usize;
    let [start_a, start_b] = [problem.batch[0], problem.batch[1]].map(|of| product * of as usize);
    // A row or column outside reads the last one inside.
    let row = thread::block_idx_y() as usize * ROWS;
    let rows: [usize; ROWS] = core::array::from_fn(|i| (row + i).min(m - 1) * a_row);
    let cols: [usize; FOUR] = core::array::from_fn(|j| (col + j * apart).min(n - 1) * b_col);
    let mut at = (start_a + first * a_step, start_b + first * b_step);
    let step = WARPS << lanes_log2;
    let to_next = (step * a_step, step * b_step);
    let mut load = || {
        // Addresses are computed one after another: those of all loads do not fit in registers.
        let (at_a, at_b) = (thread::opaque(at.0), thread::opaque(at.1));
        at = (at_a + to_next.0, at_b + to_next.1);
        let (mut of_a, mut of_b) = ([S::Real::ZERO; ROWS], [S::Real::ZERO; FOUR]);
        for i in 0..ROWS {
            of_a[i] = a[at_a + rows[i]].widened();
        }
        for j in 0..FOUR {
            of_b[j] = b[at_b + cols[j]].widened();
        }
        (of_a, of_b)
    };
    let mut sums = [S::Real::ZERO; SUMS];
    let all = k_steps(problem, product);
    let steps = (all + step - 1).saturating_sub(first) >> (lanes_log2 + WARPS.trailing_zeros());
    for _ in 0..steps / AHEAD {
        let mut loaded = [([S::Real::ZERO; ROWS], [S::Real::ZERO; FOUR]); AHEAD];
        for step in 0..AHEAD {
            loaded[step] = load();
        }
        for step in 0..AHEAD {
            add_products(&mut sums, loaded[step]);
        }
    }
    for _ in 0..steps % AHEAD {
        add_products(&mut sums, load());
    }
    sums
}

/// K-steps of a product. The last of several partial products may have fewer than the others.
#[inline(always)]
fn k_steps(problem: &GemmParams, product: usize) -> usize {
    let k = problem.k as usize;
    match problem.all_k as usize {
        0 => k,
        all => k.min(all.saturating_sub(product * k)),
    }
}

/// Adds the products of one k-step.
#[inline(always)]
fn add_products<R: Real, const ROWS: usize, const SUMS: usize>(
    sums: &mut [R; SUMS],
    (of_a, of_b): ([R; ROWS], [R; FOUR]),
) {
    for i in 0..ROWS {
        for j in 0..FOUR {
            sums[i * FOUR + j] = fma(of_a[i], of_b[j], sums[i * FOUR + j]);
        }
    }
}
