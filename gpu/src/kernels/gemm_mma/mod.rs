//! The general product of 16-bit numbers, and of f32 that is rounded to tf32, on the tensor cores that every GPU has from Ampere
//! (compute capability 8.0) on: sums of f32, operands that begin anywhere.
//!
//! An instruction (`mma.sync`) multiplies 16 x 16 elements of A by 16 x 8 of B, of tf32 16 x 8 by 8 x 8, and all it takes and gives
//! is in the registers of one warp. Hence:
//!
//! * **a warp** computes some 16 x 16 parts of C side by side and one below the other: a *fragment* of A, once it is in
//!   registers, serves all parts of its rows, one of B all of its columns. With 64 x 64 elements a warp reads 8 fragments
//!   from shared memory for 32 instructions;
//! * **a block** of four warps computes a tile, stage by stage of `DEPTH` steps of k. `STAGES` stages are in shared
//!   memory, two to four: one in use, the others on their way by asynchronous copies ([`operand`]), as in
//!   [`async_copy`](super::async_copy). As soon as a stage's last fragments are in registers its place is filled again,
//!   before these are multiplied;
//! * **an operand** is K-major or MN-major, as the kernel's constants `a_mn_major` and `b_mn_major` say, and its rows may begin
//!   anywhere. The constants decide which instruction reads a fragment (`ldmatrix` or `ldmatrix.trans`) and which side copies go
//!   along. An operand of any other strides is copied element by element, so that either value gives the right product;
//! * **at the end** the sums go by way of shared memory, so that neighbours are written together ([`output`]).
//!
//! ```text
//!   kernel                      a warp's part   stages of steps of k   rows begin    blocks a multiprocessor
//!   mma_.._64x64x64             32 x 32           4 of 64            anywhere        2 (A100, Hopper)
//!   mma_.._128x128x32           64 x 64           4 of 32            at pieces       2 (A100, Hopper)
//!   mma_tf32_64x64x32           32 x 32           4 of 32            anywhere        2 (A100, Hopper)
//!   mma_tf32_128x128x32         64 x 64           2 of 32            at pieces       2 (A100, Hopper)
//! ```
//!
//! *At pieces*, at multiples of sixteen bytes: others are right too, and slow. Shared memory is that of the smallest devices
//! (compute capability 8.6, 8.9 and 12.0: 99 KiB a block). Of 128 x 128 elements a stage of 32 steps of f32 is 32 KiB, so there are
//! two: while one is multiplied, for 1024 cycles of an A100's tensor cores, the other comes.
//!
//! Operands are of bf16, or of f16 (`_f16`), as the kernel's constant `half` says, and C of the same, or of f32 (`_f32`). On
//! Hopper `wgmma` ([`gemm_wgmma`](super::gemm_wgmma)) is faster, whose operands need not come through registers: these kernels
//! are in the PTX for every GPU alone, from which Hopper takes them too.
//!
//! **tf32** (`_tf32`): A, B and C are of f32, and each factor is rounded to the nearest tf32, 11 bits of significand, when a warp has
//! it in registers: the tensor cores would cut it off. In shared memory it is f32, so that copies change nothing and the asynchronous
//! ones will do. Each fragment is rounded by the two warps that read it, in two instructions an element, 64 beside 32 products
//! where a warp has 64 x 64 elements. What else is different is in [`number`].

mod entries;
mod number;
mod operand;
mod output;

pub use entries::*;

use self::{
    number::Number,
    operand::{Operand, PANEL, Which},
};
use super::{
    device::{mma::Accumulators, *},
    gemm::{epilogue::Epilogue, stored::Stored, wait_for_all_but},
};
use crate::problem::Problem;

/// Rows or columns of a fragment.
const SIDE: usize = 16;

/// Threads of a block: four warps, in two rows of two.
const THREADS: usize = 128;

/// Elements of a stage of such a tile: A's, B's, and, of `any` rows, what those that begin one element late have left over.
const fn stage_len<T: Number>(rows: usize, cols: usize, depth: usize, any: bool) -> usize {
    let ends = operand::ends_len(rows, depth) + operand::ends_len(cols, depth);
    (rows + cols) * depth + if any && T::MAY_BE_LATE { ends } else { 0 }
}

/// A tile of `ROWS x COLS` elements of C, of which each warp, of two rows of two, computes `16 M x 16 N`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn multiply<
    T: Number,
    C: Stored<Real = f32>,
    const ROWS: usize,
    const COLS: usize,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const DEPTH: usize,
    const ANY: bool,
>(
    problem: &Problem,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    k_major: [bool; 2],
) {
    const {
        assert!(ROWS == 2 * SIDE * M && COLS == 2 * SIDE * N, "two rows of two warps");
        // A warp's part begins with a panel.
        assert!(M.is_multiple_of(2) && N.is_multiple_of(2) && PANEL == 2 * SIDE);
        assert!(STAGES >= 2 && STAGES <= 4);
        let stage_len = stage_len::<T>(ROWS, COLS, DEPTH, ANY);
        // In shared memory groups of elements change places by their number.
        assert!(stage_len.is_multiple_of(64) && (ROWS * DEPTH).is_multiple_of(64));
        assert!(output::staged_len(THREADS, N) * 4 <= STAGES * stage_len * size_of::<T>());
    }
    let first = (thread::block_idx_y() as usize * ROWS, thread::block_idx_x() as usize * COLS);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let of_warp = (warp % 2 * SIDE * M, warp / 2 * SIDE * N);
    let mut sums = Accumulators::<M, N>::zeroed();
    let stages =
        Stages::<T, ROWS, COLS, STAGES, DEPTH, ANY>::start(problem, (a, b), first, k_major);
    stages.accumulate::<M, N>(problem.k, of_warp, &mut sums);
    // The sums take the place of the stages, to which nothing is on its way any more, and which everybody has read.
    copies::wait_group::<0>();
    thread::sync_threads();
    let mut epilogue = Epilogue::new(problem, c, bias);
    let first = (first.0 + of_warp.0, first.1 + of_warp.1);
    output::store::<C, M, N, THREADS>(&sums, warp, &mut epilogue, first);
}

/// The stages in shared memory, and what fills them.
struct Stages<
    'a,
    T,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const DEPTH: usize,
    const ANY: bool,
> {
    tiles: DynamicShared<T>,
    a: Operand<'a, T, ROWS, DEPTH, ANY>,
    b: Operand<'a, T, COLS, DEPTH, ANY>,
}

impl<
    'a,
    T: Number,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const DEPTH: usize,
    const ANY: bool,
> Stages<'a, T, ROWS, COLS, STAGES, DEPTH, ANY>
{
    /// Where B's tile is in a stage, and what is left over of A's and of B's.
    const OF_B: usize = ROWS * DEPTH;
    const ENDS_A: usize = (ROWS + COLS) * DEPTH;
    const ENDS_B: usize = Self::ENDS_A + operand::ends_len(ROWS, DEPTH);
    /// Stages are counted by the element that they begin with.
    const STAGE: usize = stage_len::<T>(ROWS, COLS, DEPTH, ANY);
    const END: usize = STAGES * Self::STAGE;

    /// Begins to fill all stages, and waits for the first.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn start(
        problem: &Problem,
        (a, b): (&'a In<T>, &'a In<T>),
        first: (usize, usize),
        k_major: [bool; 2],
    ) -> Self {
        let a = Operand::new(Which::A, a, problem, first.0, k_major[0]);
        let b = Operand::new(Which::B, b, problem, first.1, k_major[1]);
        let mut stages = Stages { tiles: dynamic_shared![T], a, b };
        let mut stage = 0;
        while stage < Self::END {
            stages.fill(stage);
            stage += Self::STAGE * operand::one();
        }
        stages.wait(0, STAGES - 1);
        stages
    }

    /// Begins to fill a stage with the next steps of k: past the last one with zeros, so that nothing asks whether there is
    /// another.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fill(&mut self, stage: usize) {
        self.a.begin_copies(&mut self.tiles, stage, stage + Self::ENDS_A);
        self.b.begin_copies(&mut self.tiles, stage + Self::OF_B, stage + Self::ENDS_B);
        copies::commit_group();
    }

    /// Waits for a stage behind which so many are on their way: for this thread's copies, then for everybody's.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn wait(&mut self, stage: usize, behind: usize) {
        wait_for_all_but(behind);
        self.a.straighten(&mut self.tiles, stage, stage + Self::ENDS_A);
        self.b.straighten(&mut self.tiles, stage + Self::OF_B, stage + Self::ENDS_B);
        thread::sync_threads();
    }

    /// Adds all steps of k to the sums of the warp whose part of the tile begins at (row, col).
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn accumulate<const M: usize, const N: usize>(
        mut self,
        k: u32,
        (row, col): (usize, usize),
        sums: &mut Accumulators<M, N>,
    ) {
        // A panel's place in a tile follows from its first outer element.
        let (of_a, of_b) = (row * DEPTH, Self::OF_B + col * DEPTH);
        let mut now = 0;
        for _ in 0..k.div_ceil(DEPTH as u32) {
            // Of f32 and 64 x 64 elements a warp, all steps side by side would have more in registers than there are.
            if size_of::<T>() == 4 && M == 4 {
                let mut step = 0;
                while step < DEPTH {
                    self.multiply::<M, N, false>(&mut now, (of_a, of_b), step, sums);
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), step + T::STEP, sums);
                    step += 2 * T::STEP * operand::one();
                }
            } else {
                // By hand: a loop around what depends on the constants, the compiler leaves as it is.
                const { assert!(DEPTH == 2 * T::STEP || DEPTH == 4 * T::STEP) };
                self.multiply::<M, N, true>(&mut now, (of_a, of_b), 0, sums);
                self.multiply::<M, N, true>(&mut now, (of_a, of_b), T::STEP, sums);
                if DEPTH == 4 * T::STEP {
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), 2 * T::STEP, sums);
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), 3 * T::STEP, sums);
                }
            }
        }
    }

    /// Adds the products of a fragment's steps of k. With the last fragments of a stage the next one becomes the stage that is `now`,
    /// and the one before it is filled again.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn multiply<const M: usize, const N: usize, const MAY_BE_LAST: bool>(
        &mut self,
        now: &mut usize,
        (of_a, of_b): (usize, usize),
        step: usize,
        sums: &mut Accumulators<M, N>,
    ) {
        let rows: [_; M] =
            core::array::from_fn(|i| self.a.fragment(&self.tiles, *now + of_a, i * SIDE, step));
        let cols: [_; N] =
            core::array::from_fn(|j| self.b.fragment(&self.tiles, *now + of_b, j * SIDE, step));
        if MAY_BE_LAST && step == DEPTH - T::STEP {
            let done = *now;
            *now = if done + Self::STAGE < Self::END { done + Self::STAGE } else { 0 };
            // With the next stage's copies this stage is in everybody's registers.
            self.wait(*now, STAGES - 2);
            self.fill(done);
        }
        sums.multiply_add(&rows, &cols);
    }
}
