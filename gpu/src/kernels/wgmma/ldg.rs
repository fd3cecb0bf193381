//! Tiles of unaligned operands that threads load (`ldg`). They are for small products, where
//! packing the operands first would take as long as the rest.
//!
//! * **A block** computes tiles of 64 rows, one after the other.
//! * **A warpgroup** multiplies. Twelve more warps load.
//! * **A loading warp** has 32 rows of a stage. The warps of a stage are a *team*; the teams take
//!   stages in turn. While one team stores its stage to shared memory, the loads of the others are
//!   in flight, in registers. 48 KiB in flight is about what an SM loads in the latency of one
//!   load.
//! * **A lane** loads pieces of sixteen bytes ([`LdgRows`]).
//!
//! ```text
//!   kernel                      multiplying warps    loading warps    a warp's part of a stage
//!   wgmma_half_64x128x64_ldg            4                6 + 6         32 rows: two warps load A, four B
//!   wgmma_half_64x64x64_ldg             4              4 + 4 + 4       32 rows: two warps load A, two B
//! ```
//!
//! At first the multiplying warps have nothing to do. So they load a stage of the first tile: the
//! one after the teams' first stages.
//!
//! Each piece of a row is loaded by two lanes, the second time from L1. These loads, the stores to
//! shared memory and the reads of the tensor cores share a path of 128 bytes a cycle. For a stage
//! of 64 x 128 they are 48, 24 and 24 KiB: 770 cycles, and the tensor cores are busy for 256. If
//! rows are aligned, TMA is faster.

use super::{
    collective::{
        epilogue::Epilogue,
        ldg::{LdgRows, Place},
        packed_element::PackedStore,
        staged_epilogue,
        tile_scheduler::TileScheduler,
        wgmma_shape::{BLOCK_K, WGMMA_M},
    },
    device::{warpgroup::*, *},
    main_loop::{accumulate_stages, k_steps_of_last},
};
use crate::params::GemmParams;

/// Loading warps. With the multiplying ones there are 128 registers a thread. Loading warps give
/// some up; half of the rest holds loads in flight.
pub const LOAD_WARPS: usize = 12;
/// Rows of a stage that a warp loads.
const ROWS_PER_WARP: usize = WGMMA_M / 2;

/// Warps that load a stage.
const fn team(tile_rows: usize, tile_cols: usize) -> usize {
    (tile_rows + tile_cols) / ROWS_PER_WARP
}

/// Computes all tiles of a block, of `TILE_ROWS x TILE_COLS` elements. `smooth` is the smooth
/// activation that the kernel was loaded with.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    T: Factor<Sum = f32>,
    A: Layout,
    B: Layout,
    C: PackedStore<Real = f32>,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const STAGES: usize,
    const STAGED: usize,
>(
    problem: &GemmParams,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    pipeline: &Pipeline<STAGES>,
    staged: &mut Shared<f32, STAGED, { staged_epilogue::PITCH }>,
    smooth: u32,
) {
    const {
        assert!(TILE_ROWS.is_multiple_of(WGMMA_M) && TILE_COLS.is_multiple_of(WGMMA_M));
        assert!(STAGED == TILE_ROWS, "each row of the tile is staged");
        assert!(LOAD_WARPS.is_multiple_of(team(TILE_ROWS, TILE_COLS)));
        assert!(STAGES > LOAD_WARPS / team(TILE_ROWS, TILE_COLS), "one more stage is in flight");
    }
    let mut tiles = dynamic_shared![T];
    // Read once, so that the compiler computes what follows from it before the loop.
    let (a_k_major, b_k_major) = (!A::is_mn_major(), !B::is_mn_major());
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let groups = TILE_ROWS / WGMMA_M;
    let of_team = team(TILE_ROWS, TILE_COLS);
    let (teams, len) = (LOAD_WARPS / of_team, (TILE_ROWS + TILE_COLS) * BLOCK_K);
    let stages = problem.k.div_ceil(BLOCK_K as u32);
    let mut scheduler = TileScheduler::<TILE_ROWS, TILE_COLS, 1>::new(problem, 0);

    if t == 0 {
        pipeline.init_for_writers(of_team as u32, groups as u32);
    }
    thread::sync_threads();
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();

    // What is the same for all tiles is computed before the first.
    let operand_rows = |half: usize| {
        let GemmParams { m, n, k, .. } = *problem;
        let is_a = half < TILE_ROWS / ROWS_PER_WARP;
        let (from, [between_outer, between_steps], step) = match is_a {
            true => (a, problem.a, problem.batch[0]),
            false => (b, [problem.b[1], problem.b[0]], problem.batch[1]),
        };
        let (half, k_major, count) = match is_a {
            true => (half, a_k_major, (m, k)),
            false => (half - TILE_ROWS / ROWS_PER_WARP, b_k_major, (n, k)),
        };
        move |(product, row, col): (u32, u32, u32)| {
            let outer = if is_a { row } else { col };
            let start = product as usize * step as usize;
            let place = Place { k_major, between_outer, between_steps, start, count, outer };
            LdgRows::new(*from, place, half)
        }
    };
    let mut producer = pipeline.producer();

    if warp >= 4 * groups {
        give_registers::<112>();
        let (team, half) = ((warp - 4 * groups) / of_team, (warp - 4 * groups) % of_team);
        // The team whose turn it is, and the stage that the multiplying warps load.
        let (mut turn, mut of_others) = (0, teams as u32);
        let rows_of = operand_rows(half);
        while let Some(tile) = scheduler.next_tile() {
            let rows = rows_of(tile);
            for stage in 0..stages {
                if stage != of_others {
                    if turn == team {
                        let fetched = rows.fetch(stage);
                        let at = producer.acquire_warp() * len;
                        // B's groups follow A's.
                        rows.store(stage, &fetched, &mut tiles, at + half / 2 * WGMMA_M * BLOCK_K);
                        producer.filled_warp();
                    }
                    turn = (turn + 1) % teams;
                }
                producer.advance();
            }
            of_others = stages;
        }
        return;
    }

    // 64 sums a thread, and the epilogue.
    take_registers::<168>();
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    let mut is_first = stages > teams as u32;
    for _ in 0..teams {
        producer.advance();
    }
    while let Some(tile) = scheduler.next_tile() {
        if is_first {
            // There is nothing to multiply yet.
            let at = producer.acquire_warp() * len;
            let mut half = warp;
            while half < of_team {
                let rows = operand_rows(half)(tile);
                let fetched = rows.fetch(teams as u32);
                rows.store(teams as u32, &fetched, &mut tiles, at + half / 2 * WGMMA_M * BLOCK_K);
                producer.filled_warp();
                half += 4 * groups;
            }
            is_first = false;
        }
        let (product, row, col) = tile;
        let mut sums = Accumulators::<TILE_COLS>::zeroed();
        let sums = accumulate_stages::<_, A, B, _, TILE_ROWS, TILE_COLS, STAGES>(
            &mut tiles,
            (warp / 4, warp % 4),
            (stages, k_steps_of_last::<T>(problem.k)),
            (&mut next, &mut read),
            &mut sums,
            |_, _, _| (),
            || (),
        );
        let epilogue = Epilogue::of_product(problem, product as usize, c, bias);
        let mut epilogue = epilogue.with_smooth(smooth);
        let first = (row as usize + warp / 4 * WGMMA_M, col as usize);
        let early = staged_epilogue::load_early::<_, TILE_COLS, false>(&epilogue, first);
        staged_epilogue::store::<_, _, _, false>(sums, staged, (&mut epilogue, early), first);
    }
}
