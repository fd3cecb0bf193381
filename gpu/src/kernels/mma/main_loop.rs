//! The main loop.

use super::{
    collective::{cp_async::wait_for_all_but, epilogue::Epilogue, stored::Stored},
    device::{mma::Accumulators, *},
    element::MmaElement,
    epilogue,
    operand::{self, Operand, Which, one},
    tile::{PANEL, SIDE, THREADS},
};
use crate::params::GemmParams;

/// Elements of a stage of such a tile: A's, B's, and, of `any` rows, what those that begin one element late have left over.
pub const fn stage_len<T: MmaElement>(rows: usize, cols: usize, depth: usize, any: bool) -> usize {
    let ends = operand::ends_len(rows, depth) + operand::ends_len(cols, depth);
    (rows + cols) * depth + if any && T::MAY_BE_MISALIGNED { ends } else { 0 }
}

/// A tile of `ROWS x COLS` elements of C, of which each warp, of two rows of two, computes `16 M x 16 N`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    T: MmaElement,
    C: Stored<Real = f32>,
    const ROWS: usize,
    const COLS: usize,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
>(
    problem: &GemmParams,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    k_major: [bool; 2],
) {
    const {
        assert!(ROWS == 2 * SIDE * M && COLS == 2 * SIDE * N, "two rows of two warps");
        // A warp's part begins with a panel.
        assert!(M.is_multiple_of(2) && N.is_multiple_of(2) && PANEL == 2 * SIDE);
        assert!(STAGES >= 2 && STAGES <= 4);
        let stage_len = stage_len::<T>(ROWS, COLS, BLOCK_K, UNALIGNED);
        // In shared memory groups of elements change places by their number.
        assert!(stage_len.is_multiple_of(64) && (ROWS * BLOCK_K).is_multiple_of(64));
        assert!(epilogue::staged_len(THREADS, N) * 4 <= STAGES * stage_len * size_of::<T>());
    }
    let first = (thread::block_idx_y() as usize * ROWS, thread::block_idx_x() as usize * COLS);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let of_warp = (warp % 2 * SIDE * M, warp / 2 * SIDE * N);
    let mut sums = Accumulators::<M, N>::zeroed();
    let stages =
        Stages::<T, ROWS, COLS, STAGES, BLOCK_K, UNALIGNED>::start(problem, (a, b), first, k_major);
    stages.accumulate::<M, N>(problem.k, of_warp, &mut sums);
    // The sums take the place of the stages, to which nothing is on its way any more, and which everybody has read.
    copies::wait_group::<0>();
    thread::sync_threads();
    let mut epilogue = Epilogue::new(problem, c, bias);
    let first = (first.0 + of_warp.0, first.1 + of_warp.1);
    epilogue::store::<C, M, N, THREADS>(&sums, warp, &mut epilogue, first);
}

/// The stages in shared memory, and what fills them.
struct Stages<
    'a,
    T,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
> {
    tiles: DynamicShared<T>,
    a: Operand<'a, T, ROWS, BLOCK_K, UNALIGNED>,
    b: Operand<'a, T, COLS, BLOCK_K, UNALIGNED>,
}

impl<
    'a,
    T: MmaElement,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
> Stages<'a, T, ROWS, COLS, STAGES, BLOCK_K, UNALIGNED>
{
    /// Where B's tile is in a stage, and what is left over of A's and of B's.
    const OF_B: usize = ROWS * BLOCK_K;
    const ENDS_A: usize = (ROWS + COLS) * BLOCK_K;
    const ENDS_B: usize = Self::ENDS_A + operand::ends_len(ROWS, BLOCK_K);
    /// Stages are counted by the element that they begin with.
    const STAGE: usize = stage_len::<T>(ROWS, COLS, BLOCK_K, UNALIGNED);
    const END: usize = STAGES * Self::STAGE;

    /// Begins to fill all stages, and waits for the first.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn start(
        problem: &GemmParams,
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
            stage += Self::STAGE * one();
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
        self.a.realign(&mut self.tiles, stage, stage + Self::ENDS_A);
        self.b.realign(&mut self.tiles, stage + Self::OF_B, stage + Self::ENDS_B);
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
        let (of_a, of_b) = (row * BLOCK_K, Self::OF_B + col * BLOCK_K);
        let mut now = 0;
        for _ in 0..k.div_ceil(BLOCK_K as u32) {
            // Of f32 and 64 x 64 elements a warp, all steps side by side would have more in registers than there are.
            if size_of::<T>() == 4 && M == 4 {
                let mut step = 0;
                while step < BLOCK_K {
                    self.multiply::<M, N, false>(&mut now, (of_a, of_b), step, sums);
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), step + T::STEP, sums);
                    step += 2 * T::STEP * one();
                }
            } else {
                // By hand: a loop around what depends on the constants, the compiler leaves as it is.
                const { assert!(BLOCK_K == 2 * T::STEP || BLOCK_K == 4 * T::STEP) };
                self.multiply::<M, N, true>(&mut now, (of_a, of_b), 0, sums);
                self.multiply::<M, N, true>(&mut now, (of_a, of_b), T::STEP, sums);
                if BLOCK_K == 4 * T::STEP {
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
        if MAY_BE_LAST && step == BLOCK_K - T::STEP {
            let done = *now;
            *now = if done + Self::STAGE < Self::END { done + Self::STAGE } else { 0 };
            // With the next stage's copies this stage is in everybody's registers.
            self.wait(*now, STAGES - 2);
            self.fill(done);
        }
        sums.multiply_add(&rows, &cols);
    }
}
