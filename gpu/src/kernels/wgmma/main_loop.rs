//! The main loop: a warpgroup multiplies pipeline stages.

use super::{
    collective::{accumulators::ROWS, real::Real, wgmma_shape::WGMMA_M},
    device::{warpgroup::*, *},
    scales::Scales,
};
use crate::params::GemmParams;

/// MMAs of a stage: 128 bytes along k.
const MMAS: usize = 4;

/// MMAs of the last stage of `k` steps; past k there are zeros. A whole stage has as many as that
/// of k = 0.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn k_steps_of_last<T: Factor>(steps: u32) -> u32 {
    let block_k = const { (MMAS * T::STEP) as u32 };
    let beyond = steps % block_k;
    (if beyond == 0 { block_k } else { beyond }).div_ceil(const { T::STEP as u32 })
}

/// Adds the products of `stages` pipeline stages to `all`, each stage in the tensor cores first:
/// for sums that the tensor cores hold with few bits. All MMAs of a stage are issued: past k there
/// are zeros. Its sum is multiplied by the [`Scales`] of the stage. `even` and `odd` are such sums
/// in turn: a stage is multiplied while the one before is added. `first` is the first stage, and
/// `place` the first row and column of the warpgroup's sums. `before` is called before the MMAs of
/// a stage are issued. The other arguments are those of [`accumulate_stages`].
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn add_stages<
    T: Factor<Sum: Real>,
    A: Layout,
    B: Layout,
    S: Scope,
    X: Scales,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const STAGES: usize,
>(
    tiles: &mut DynamicShared<T>,
    (group, warp): (usize, usize),
    (first, stages): (u32, u32),
    (next, read): (&mut Consumer<STAGES, S>, &mut Consumer<STAGES, S>),
    [even, odd]: [&mut Accumulators<TILE_COLS, T::Sum>; 2],
    all: &mut Fragment<TILE_COLS, T::Sum>,
    (problem, scales, place): (&GemmParams, &X, (usize, usize)),
    before: impl Fn(u32),
) {
    if stages == 0 {
        return;
    }
    let row = place.0 + warp * ROWS + thread::lane_id() as usize / 4;
    let load = |stage: u32| scales.of_stage::<T::Sum>(problem, first + stage, (row, place.1));
    // They are loaded a stage before they are needed. (Two stages before was slower.)
    let mut ahead = load(0);
    let mut begin = |stage: u32, part: &mut Accumulators<TILE_COLS, T::Sum>| {
        before(stage);
        let at = next.wait_warp() * ((TILE_ROWS + TILE_COLS) * A::DEPTH);
        let rows = tiles.operand::<A>(at + group * WGMMA_M * A::DEPTH);
        part.multiply(rows, tiles.operand::<B>(at + TILE_ROWS * A::DEPTH));
        commit();
        next.advance();
        let [upper, lower, of_cols] = ahead;
        ahead = load((stage + 1).min(stages - 1));
        [upper.times(of_cols), lower.times(of_cols)]
    };
    let mut add = |part: &Fragment<TILE_COLS, T::Sum>, scale: [T::Sum; 2]| {
        // The tensor cores have read for the whole warpgroup.
        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();
        all.update_rows(part, |i, all, part| MultiplyAdd::fma(part, scale[i], all));
    };
    let (mut of_even, mut stage) = (begin(0, even), 1);
    loop {
        if stage == stages {
            add(even.wait::<0>(), of_even);
            return;
        }
        let of_odd = begin(stage, odd);
        add(even.wait::<1>(), of_even);
        stage += 1;
        if stage == stages {
            add(odd.wait::<0>(), of_odd);
            return;
        }
        of_even = begin(stage, even);
        add(odd.wait::<1>(), of_odd);
        stage += 1;
    }
}

/// Accumulates `stages` pipeline stages; of the last one only the first `of_last` MMAs.
///
/// `group` is the number of the warpgroup, which has 64 rows of the tile; `warp` is that of the
/// warp in it. `next` is the stage whose MMAs are issued next, `read` the one before it, which is
/// released when its MMAs have ended. `before` is called before the MMAs of a stage are issued,
/// with the number and the first element of the stage. `begun` is called when the last ones are
/// issued. All MMAs have ended on return.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn accumulate_stages<
    'a,
    T: Factor,
    A: Layout,
    B: Layout,
    S: Scope,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const STAGES: usize,
>(
    tiles: &mut DynamicShared<T>,
    (group, warp): (usize, usize),
    (stages, of_last): (u32, u32),
    (next, read): (&mut Consumer<STAGES, S>, &mut Consumer<STAGES, S>),
    sums: &'a mut Accumulators<TILE_COLS, T::Sum>,
    before: impl Fn(&mut DynamicShared<T>, u32, usize),
    begun: impl FnOnce(),
) -> &'a mut Fragment<TILE_COLS, T::Sum> {
    let release = |read: &mut Consumer<STAGES, S>| {
        // The tensor cores have read for the whole warpgroup.
        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();
    };
    let release_one_before = |read: &mut Consumer<STAGES, S>| {
        wait::<1>();
        release(read);
    };
    let mut operands = |stage: u32, next: &Consumer<STAGES, S>| {
        let at = next.wait_warp() * ((TILE_ROWS + TILE_COLS) * A::DEPTH);
        before(tiles, stage, at);
        let rows = tiles.operand::<A>(at + group * WGMMA_M * A::DEPTH);
        (rows, tiles.operand::<B>(at + TILE_ROWS * A::DEPTH))
    };
    // Whether only a part of the last stage is multiplied. Each of its MMAs is a group of its own,
    // since their number is not known at compile time.
    let is_less = stages > 0 && of_last < k_steps_of_last::<T>(0);
    let whole = stages - u32::from(is_less);
    for stage in 0..whole {
        let (rows, cols) = operands(stage, next);
        sums.multiply_add(rows, cols);
        commit();
        next.advance();
        if stage > 0 {
            release_one_before(read);
        }
    }
    if is_less {
        let (rows, cols) = operands(whole, next);
        // Written out, so that the compiler knows the descriptors of each MMA.
        let mut step = |number: u32| {
            sums.multiply_add_step(number, rows, cols);
            commit();
            if number == 0 && whole > 0 {
                release_one_before(read);
            }
        };
        const { assert!(A::DEPTH == MMAS * T::STEP, "a stage is four MMAs") };
        step(0);
        if of_last > 1 {
            step(1);
            if of_last > 2 {
                step(2);
            }
        }
        next.advance();
    }
    begun();
    let sums = sums.wait::<0>();
    if stages > 0 {
        release(read);
    }
    sums
}
