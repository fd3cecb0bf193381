//! The main loop.

use super::{
    collective::wgmma_shape::{BLOCK_K, WGMMA_M},
    device::{warpgroup::*, *},
};

/// Instructions that the last stage of so many steps of k takes: behind these there are zeros. A whole one takes as many as that of
/// none.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn k_steps_of_last<T: Factor>(steps: u32) -> u32 {
    let beyond = steps % BLOCK_K as u32;
    (if beyond == 0 { BLOCK_K as u32 } else { beyond }).div_ceil(const { T::STEP as u32 })
}

/// Adds the products of so many stages of the ring, of the last one's first so many instructions, for a warpgroup of that number: 64
/// rows of the tile. Before each stage's begin, there is something to be done with what is in shared memory there; all have ended when
/// this does; when the last has `begun` that is told. Of the ring's two turns the one is at what is begun next, the other at what has
/// been read: a stage behind.
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
    sums: &'a mut Accumulators<TILE_COLS>,
    before: impl Fn(&mut DynamicShared<T>, u32, usize),
    begun: impl FnOnce(),
) -> &'a mut Fragment<TILE_COLS> {
    let release = |read: &mut Consumer<STAGES, S>| {
        // The tensor cores have read for all of the warpgroup.
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
        let at = next.wait_warp() * ((TILE_ROWS + TILE_COLS) * BLOCK_K);
        before(tiles, stage, at);
        let rows = tiles.operand::<A>(at + group * WGMMA_M * BLOCK_K);
        (rows, tiles.operand::<B>(at + TILE_ROWS * BLOCK_K))
    };
    // Is the last stage one of which not all is multiplied? Its instructions are a group each: how many they are is not known here.
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
        // Written out, so that where each instruction's operands begin is known before.
        let mut step = |number: u32| {
            sums.multiply_add_step(number, rows, cols);
            commit();
            if number == 0 && whole > 0 {
                release_one_before(read);
            }
        };
        const { assert!(BLOCK_K / T::STEP == 4, "so many instructions take a stage") };
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
