//! Sums of partial products: the second launch of split-K over the grid.
//!
//! Each partial product is of a range of k. It is a C of f32, of f64 if operands are f64, or of i32
//! if they are i8. They are added in a fixed order: every run gives the same bits.
//!
//! * **A block** of eight warps computes 128 neighbours of a row, and goes on with the row a grid
//!   further down.
//! * **A warp** adds every eighth partial product. The first warp adds the eight sums, and applies
//!   the [`epilogue`](super::collective::epilogue).
//! * **A thread** has four neighbours. It loads those of eight partial products before it adds the
//!   first of them.
//!
//! A partial product is written once and read once. It is small, and comes from L2.

use super::{
    collective::{epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR},
    device::*,
};
use crate::params::GemmParams;

/// Warps of a block.
const WARPS: usize = 8;

/// Partial products that a thread loads before it adds the first of them.
const AHEAD: usize = 8;

/// Columns of C that a block computes.
pub const COLS: usize = 32 * FOUR;

/// Threads of a block.
pub const BLOCK: [u32; 3] = [32, WARPS as u32, 1];

/// The function for a type. (A generic one would add with operands in the other order, by which
/// the machine code of f32 is another.)
macro_rules! reduces {
    ($($reduce:ident: $real:ident;)*) => {$(
        /// [`reduce_f32`] for a C of any type that is computed in this one.
        #[inline(always)]
        #[track_caller]
        fn $reduce<O: Stored<Real = $real>>(
            problem: &GemmParams,
            count: u32,
            partials: &In<$real>,
            c: &mut Out<O>,
            bias: &In<O>,
            mut sums: Shared<$real, WARPS, COLS>,
        ) {
            // Nothing before this point depends on earlier launches.
            grid::let_next_begin();
            grid::wait_for_earlier();
            let (m, n, count) = (problem.m as usize, problem.n as usize, count as usize);
            let (lane, warp) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
            let col = thread::block_idx_x() as usize * COLS + lane * FOUR;
            let mut epilogue = Epilogue::new(problem, c, bias);
            let columns = epilogue.columns(core::array::from_fn(|i| (col + i) as u32));
            let mut row = thread::block_idx_y() as usize;
            while row < m {
                let mut sum = [<$real>::ZERO; FOUR];
                let mut partial = warp;
                while partial < count {
                    let mut loaded = [[<$real>::ZERO; FOUR]; AHEAD];
                    for ahead in 0..AHEAD {
                        let of = partial + ahead * WARPS;
                        // What is outside reads the last one inside, so that no load waits for a
                        // branch.
                        let at = (of.min(count - 1) * m + row) * n;
                        for i in 0..FOUR {
                            let value = partials[at + (col + i).min(n - 1)];
                            loaded[ahead][i] = if of < count && col + i < n { value } else { <$real>::ZERO };
                        }
                    }
                    for four in loaded {
                        for i in 0..FOUR {
                            sum[i] = sum[i].plus(four[i]);
                        }
                    }
                    partial += AHEAD * WARPS;
                }
                <$real>::store_sums(&mut sums, warp * COLS + lane * FOUR, sum);
                thread::sync_threads();
                if warp == 0 {
                    let mut all = [<$real>::ZERO; FOUR];
                    for warp in 0..WARPS {
                        let sum = <$real>::load_sums(&sums, warp * COLS + lane * FOUR);
                        for i in 0..FOUR {
                            all[i] = all[i].plus(sum[i]);
                        }
                    }
                    epilogue.finish_any_fours(&[&columns], [row as u32], [all]);
                }
                // The sums have been read. Those of the next row may take their place.
                thread::sync_threads();
                row += thread::grid_dim_y() as usize;
            }
        }
    )*};
}

reduces! {
    reduce: f32;
    reduce_in_f64: f64;
    reduce_in_i32: i32;
}

/// Adds `count` partial products, each dense and row-major, and applies the epilogue of `problem`.
#[kernel(block = (32, WARPS), shared = WARPS * COLS * size_of::<f32>(), barriers = 2, dependent)]
pub fn reduce_f32(
    problem: GemmParams,
    count: u32,
    partials: In<f32>,
    mut c: Out<f32>,
    bias: In<f32>,
) {
    let sums = shared![f32; WARPS, COLS];
    reduce(&problem, count, &partials, &mut c, &bias, sums);
}

/// [`reduce_f32`] for a C of bf16 or f16.
#[kernel(
    block = (32, WARPS),
    shared = WARPS * COLS * size_of::<f32>(),
    barriers = 2,
    dependent,
    constants(half = bf16 | f16)
)]
pub fn reduce_half(
    problem: GemmParams,
    count: u32,
    partials: In<f32>,
    mut c: Out<Half>,
    bias: In<Half>,
) {
    let sums = shared![f32; WARPS, COLS];
    reduce(&problem, count, &partials, &mut c, &bias, sums);
}

/// [`reduce_f32`] for a C and partial products of f64.
#[kernel(block = (32, WARPS), shared = WARPS * COLS * size_of::<f64>(), barriers = 2, dependent)]
pub fn reduce_f64(
    problem: GemmParams,
    count: u32,
    partials: In<f64>,
    mut c: Out<f64>,
    bias: In<f64>,
) {
    let sums = shared![f64; WARPS, COLS];
    reduce_in_f64(&problem, count, &partials, &mut c, &bias, sums);
}

/// [`reduce_f32`] for a C and partial products of i32.
#[kernel(block = (32, WARPS), shared = WARPS * COLS * size_of::<i32>(), barriers = 2, dependent)]
pub fn reduce_i32(
    problem: GemmParams,
    count: u32,
    partials: In<i32>,
    mut c: Out<i32>,
    bias: In<i32>,
) {
    let sums = shared![i32; WARPS, COLS];
    reduce_in_i32(&problem, count, &partials, &mut c, &bias, sums);
}
