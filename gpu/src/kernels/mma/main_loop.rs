//! The main loop: a block's tile, stage by stage.

use super::{
    collective::{
        cp_async::wait_for_all_but, epilogue::Epilogue, real::OfSum, scales::Scaled, stored::Stored,
    },
    device::{
        mma::{self, Accumulators},
        *,
    },
    element::MmaElement,
    epilogue,
    operand::{self, Operand, one},
    tile::{SIDE, Which, threads},
};
use crate::params::GemmParams;

/// Elements of a stage: A's, B's, and those that misaligned rows leave over.
pub const fn stage_len<T: MmaElement>(rows: usize, cols: usize, depth: usize, any: bool) -> usize {
    let ends = operand::ends_len(rows, depth) + operand::ends_len(cols, depth);
    operand::tile_len::<T>(rows + cols, depth) + if any && T::MAY_BE_MISALIGNED { ends } else { 0 }
}

/// Computes a tile of `ROWS x COLS` elements of C. A warp computes `16 M x 16 N` of them. Rows may
/// start anywhere.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    T: MmaElement,
    C: Stored<Real = T::Real>,
    const ROWS: usize,
    const COLS: usize,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const THREADS: usize,
>(
    problem: &GemmParams,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    k_major: [bool; 2],
) {
    const {
        assert!(ROWS.is_multiple_of(SIDE * M) && COLS.is_multiple_of(SIDE * N), "whole warps");
        assert!(THREADS == threads([ROWS, COLS], [M, N]));
        // The part of a warp starts with a panel.
        assert!(M.is_multiple_of(2) && N.is_multiple_of(2) && T::PANEL == 2 * SIDE);
        assert!(STAGES >= 2 && STAGES <= 4);
        let stage_len = stage_len::<T>(ROWS, COLS, BLOCK_K, true);
        // In shared memory groups of elements are swizzled by their number.
        assert!(
            stage_len.is_multiple_of(64)
                && operand::tile_len::<T>(ROWS, BLOCK_K).is_multiple_of(64)
        );
        let staged = epilogue::staged_len(THREADS, N) * size_of::<T::Real>();
        assert!(staged <= STAGES * stage_len * size_of::<T>());
    }
    let first = (thread::block_idx_y() as usize * ROWS, thread::block_idx_x() as usize * COLS);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let across = const { ROWS / (SIDE * M) };
    let of_warp = (warp % across * SIDE * M, warp / across * SIDE * N);
    let mut sums = Accumulators::<M, N, T::Real>::zeroed();
    let operands = (
        Operand::new(Which::A, a, problem, first.0, k_major[0], false),
        Operand::new(Which::B, b, problem, first.1, k_major[1], false),
    );
    let stages = Stages::<T, ROWS, COLS, STAGES, BLOCK_K, true, THREADS>::start(operands);
    stages.accumulate::<M, N>(problem.k, of_warp, &mut sums);
    store(problem, (c, bias), &sums, warp, (first, of_warp), None);
}

/// Stores a warp's sums, multiplied by their `scales`: of the tile that starts at `first`, those
/// from `of_warp` on.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<S: mma::Sum, C: Stored<Real: OfSum<S>>, const M: usize, const N: usize>(
    problem: &GemmParams,
    (c, bias): (&mut Out<C>, &In<C>),
    sums: &Accumulators<M, N, S>,
    warp: usize,
    (first, of_warp): ((usize, usize), (usize, usize)),
    scales: Option<&Scaled>,
) {
    // The sums take the place of the stages. Nothing is in flight to these any more, and everybody
    // has read them.
    copies::wait_group::<0>();
    thread::sync_threads();
    let mut epilogue = Epilogue::new(problem, c, bias);
    let first = (first.0 + of_warp.0, first.1 + of_warp.1);
    let scales = scales.map(|scales| (problem, scales));
    epilogue::store(sums, warp, &mut epilogue, first, epilogue::pairs, scales);
}

/// The stages in shared memory, and the operands that fill them.
pub struct Stages<
    'a,
    T,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
    const THREADS: usize,
> {
    tiles: DynamicShared<T>,
    a: Operand<'a, T, ROWS, BLOCK_K, UNALIGNED, THREADS>,
    b: Operand<'a, T, COLS, BLOCK_K, UNALIGNED, THREADS>,
}

impl<
    'a,
    T: MmaElement,
    const ROWS: usize,
    const COLS: usize,
    const STAGES: usize,
    const BLOCK_K: usize,
    const UNALIGNED: bool,
    const THREADS: usize,
> Stages<'a, T, ROWS, COLS, STAGES, BLOCK_K, UNALIGNED, THREADS>
{
    /// The start of B's tile in a stage, and of what misaligned rows of A and of B leave over.
    const OF_B: usize = operand::tile_len::<T>(ROWS, BLOCK_K);
    const ENDS_A: usize = operand::tile_len::<T>(ROWS + COLS, BLOCK_K);
    const ENDS_B: usize = Self::ENDS_A + operand::ends_len(ROWS, BLOCK_K);
    /// A stage is identified by its first element.
    const STAGE: usize = stage_len::<T>(ROWS, COLS, BLOCK_K, UNALIGNED);
    const END: usize = STAGES * Self::STAGE;

    /// Issues the copies of all stages, and waits for the first.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn start(
        (a, b): (
            Operand<'a, T, ROWS, BLOCK_K, UNALIGNED, THREADS>,
            Operand<'a, T, COLS, BLOCK_K, UNALIGNED, THREADS>,
        ),
    ) -> Self {
        let mut stages = Stages { tiles: dynamic_shared![T], a, b };
        let mut stage = 0;
        while stage < Self::END {
            stages.fill(stage);
            stage += Self::STAGE * one::<THREADS>();
        }
        stages.wait(0, STAGES - 1);
        stages
    }

    /// Issues the copies of the next k-steps. Past the last one they fill in zeros, so no
    /// condition is needed.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fill(&mut self, stage: usize) {
        self.a.begin_copies(&mut self.tiles, stage, stage + Self::ENDS_A);
        self.b.begin_copies(&mut self.tiles, stage + Self::OF_B, stage + Self::ENDS_B);
        copies::commit_group();
    }

    /// Waits for a stage with `in_flight` stages in flight after it: first for this thread's
    /// copies, then for everybody's.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn wait(&mut self, stage: usize, in_flight: usize) {
        wait_for_all_but(in_flight);
        self.a.realign(&mut self.tiles, stage, stage + Self::ENDS_A);
        self.b.realign(&mut self.tiles, stage + Self::OF_B, stage + Self::ENDS_B);
        thread::sync_threads();
    }

    /// Adds all k-steps to the sums of the warp whose part of the tile starts at (row, col).
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn accumulate<const M: usize, const N: usize>(
        mut self,
        k: u32,
        (row, col): (usize, usize),
        sums: &mut Accumulators<M, N, T::Real>,
    ) {
        // The place of a panel follows from its first outer element.
        let of_a = operand::tile_len::<T>(row, BLOCK_K);
        let of_b = Self::OF_B + operand::tile_len::<T>(col, BLOCK_K);
        let mut now = 0;
        for _ in 0..k.div_ceil(BLOCK_K as u32) {
            // With 64 rows a warp of f32 or f64, all steps unrolled would exceed the registers.
            if size_of::<T>() == 8 || size_of::<T>() == 4 && M == 4 || BLOCK_K > 4 * T::STEP {
                let mut step = 0;
                while step < BLOCK_K {
                    self.multiply::<M, N, false>(&mut now, (of_a, of_b), step, sums);
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), step + T::STEP, sums);
                    step += 2 * T::STEP * one::<THREADS>();
                }
            } else {
                // Unrolled by hand: the compiler does not unroll a loop around code that depends on
                // the constants.
                const { assert!(BLOCK_K >= 2 * T::STEP && BLOCK_K.is_power_of_two()) };
                self.multiply::<M, N, true>(&mut now, (of_a, of_b), 0, sums);
                self.multiply::<M, N, true>(&mut now, (of_a, of_b), T::STEP, sums);
                if BLOCK_K == 4 * T::STEP {
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), 2 * T::STEP, sums);
                    self.multiply::<M, N, true>(&mut now, (of_a, of_b), 3 * T::STEP, sums);
                }
            }
        }
    }

    /// Multiplies the fragments of a few k-steps. After the last fragments of a stage, the next
    /// stage becomes `now`, and this one is filled again.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn multiply<const M: usize, const N: usize, const MAY_BE_LAST: bool>(
        &mut self,
        now: &mut usize,
        (of_a, of_b): (usize, usize),
        step: usize,
        sums: &mut Accumulators<M, N, T::Real>,
    ) {
        let rows: [_; M] =
            core::array::from_fn(|i| self.a.fragment(&self.tiles, *now + of_a, i * SIDE, step));
        let cols: [_; N] =
            core::array::from_fn(|j| self.b.fragment(&self.tiles, *now + of_b, j * SIDE, step));
        if MAY_BE_LAST && step == BLOCK_K - T::STEP {
            let done = *now;
            *now = if done + Self::STAGE < Self::END { done + Self::STAGE } else { 0 };
            // When the next stage has arrived, everybody has this one in registers.
            self.wait(*now, STAGES - 2);
            self.fill(done);
        }
        sums.multiply_add(&rows, &cols);
    }
}
