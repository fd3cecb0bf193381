//! The main loop of persistent CTAs.

use super::{
    b_fragment::BFragment,
    collective::{epilogue::Epilogue, tile_scheduler::TileScheduler},
    device::{warpgroup::*, *},
    epilogue,
    rows::Rows,
    tile::{BLOCK_K, SPAN, WGMMA_K, WGMMA_M},
};
use crate::params::GemmParams;

/// Tiles of `TILE_ROWS x TILE_COLS` elements of C, one after the other, by one warpgroup for each 64 columns and one more.
/// `STAGED` is the rows of what is on its way to C: `ROWS` for each warpgroup, whose warps wait for each other at one of the
/// `GROUPS` barriers; all that multiply, so many threads, at another behind these. `BLOCKS` blocks of a cluster have tiles
/// beside each other, `ACROSS` columns in all, and each copies a `PART` of the rows.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    A: Rows,
    S: Scope,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const BLOCKS: usize,
    const PART: usize,
    const ACROSS: usize,
    const STAGES: usize,
    const ROWS: usize,
    const STAGED: usize,
    const GROUPS: u32,
    const MULTIPLYING: u32,
>(
    problem: &GemmParams,
    (a, b): (&A, &TensorMap<Tf32>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<f32, STAGED, WGMMA_M>,
    (barriers, together): (&NamedBarriers<1, GROUPS, 128>, NamedBarrier<MULTIPLYING>),
) {
    const {
        assert!(A::PART == PART && PART * BLOCKS == TILE_ROWS && ACROSS == TILE_COLS * BLOCKS);
        assert!(TILE_COLS == GROUPS as usize * WGMMA_M && MULTIPLYING == GROUPS * 128);
        assert!(STAGED == GROUPS as usize * ROWS, "each warpgroup has a part");
    }
    let cols_of_b = b.boxes::<BLOCK_K, SPAN, { 4 * SPAN }>();
    let mut tiles = dynamic_shared![Tf32];
    let (len_a, len_b) = (TILE_ROWS * BLOCK_K, TILE_COLS * BLOCK_K);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (group, warp) = (warp / 4, warp % 4);
    let groups = TILE_COLS / WGMMA_M;
    // Rows of a tile are `STEP` apart: a class of rows has whole tiles, and the classes lie one below the other.
    let step = A::STEP as u32;
    let of_class = problem.m.div_ceil(step).next_multiple_of(TILE_ROWS as u32);
    let m = if A::STEP == 1 { problem.m } else { of_class * step.min(problem.m) };
    // Where a block's rows to copy begin, and its columns.
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let (part, beside) = (rank * PART as u32, rank * TILE_COLS as u32);
    // A cluster has as many rows as the parts of its blocks one below the other.
    let mut scheduler =
        TileScheduler::<PART, ACROSS, BLOCKS>::new(&GemmParams { m, ..*problem }, 0);
    // A tile's first row among its class's, the class, the shift, and stages.
    let rows_of = |row: u32| {
        let (row, class) = if A::STEP == 1 { (row, 0) } else { (row % of_class, row / of_class) };
        let shift = A::shift(problem, class);
        (row, class, shift, (problem.k + shift).div_ceil(BLOCK_K as u32))
    };

    if t == 0 {
        // Every warp reads columns of B for itself.
        pipeline.init(4 * groups as u32);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == groups {
        // With one other warpgroup there are registers enough.
        if groups > 1 {
            give_registers::<40>();
        }
        if warp > 0 {
            return;
        }
        let mut producer = pipeline.producer();
        while let Some((product, row, col)) = scheduler.next_tile() {
            let (row, class, shift, stages) = rows_of(row);
            for stage in 0..stages {
                let at = producer.acquire_warp() * (len_a + len_b);
                if warp::elect() {
                    let p = stage * BLOCK_K as u32;
                    producer.announce(((len_a + len_b) * size_of::<Tf32>()) as u32);
                    let (of_part, place) = (at + part as usize * BLOCK_K, (product, row + part, p));
                    a.load::<BLOCKS>(&mut tiles, of_part, place, class, producer.full());
                    for span in 0..TILE_COLS / SPAN {
                        let (at, col) = (
                            at + len_a + span * SPAN * BLOCK_K,
                            col + beside + (span * SPAN) as u32,
                        );
                        let place = (product, p.wrapping_sub(shift), col);
                        tiles.load_box(at, &cols_of_b, place, producer.full());
                    }
                }
                producer.advance();
            }
        }
        if BLOCKS > 1 {
            producer.drain_warp();
        }
        return;
    }

    if groups > 1 {
        take_registers::<232>();
    }
    let b_fragment = BFragment::new(group * WGMMA_M, warp, t % 32);
    // What is begun, and what has been read: a stage behind.
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    while let Some((product, row, col)) = scheduler.next_tile() {
        let (row, class, shift, stages) = rows_of(row);
        if A::STEP > 1 && shift > 0 {
            let at = next.wait_warp() * (len_a + len_b);
            for row in (t..TILE_ROWS).step_by(MULTIPLYING as usize) {
                A::clear_before(&mut tiles, at, row, shift);
            }
            // Of what these threads have written, before what their tensor cores read: all warpgroups read all rows.
            fence_proxy_async();
            together.sync();
        }
        let mut sums = Accumulators::<TILE_ROWS>::zeroed();
        for stage in 0..stages {
            let at = next.wait_warp() * (len_a + len_b);
            let rows = tiles.operand::<KMajor<BLOCK_K, 4>>(at);
            next.advance();

            // (No branch may stand between two products, or ptxas does not see that they read other registers, and lets
            // each begin after the one before has ended: C7513.)
            for step in 0..BLOCK_K / WGMMA_K {
                // All but the last three have ended, also the one whose registers are loaded again.
                wait::<3>();
                let eight = b_fragment.load(&tiles, at + len_a, step);
                sums.multiply_add_registers(&[eight], rows, step);
                commit();
            }

            // And with these all of the stage before has been read.
            if stage > 0 {
                read.release_warp();
                read.advance();
            }
        }
        let sums = sums.wait::<0>();
        read.release_warp();
        read.advance();
        let first = (row as usize, (col + beside) as usize + group * WGMMA_M);
        let rows = (class as usize, A::STEP);
        let mut epilogue = Epilogue::of_rows(problem, product as usize, rows, c, bias);
        epilogue::store::<_, ROWS, _>(sums, staged, &mut epilogue, first, barriers.at(group));
    }
}
