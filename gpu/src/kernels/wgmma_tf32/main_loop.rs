//! The main loop of persistent CTAs.
//!
//! * **A block** computes `TILE_ROWS x TILE_COLS` tiles of C, one after the other.
//! * **A warpgroup** computes 64 columns of a tile. One more warpgroup is the producer.
//! * **A warp** of the consumers loads 16 columns of B to registers.
//! * **A thread** holds `TILE_ROWS / 2` sums.

use super::{
    b_fragment::BFragment,
    collective::{epilogue::Epilogue, tile_scheduler::TileScheduler, tma::TmaOperand},
    device::{warpgroup::*, *},
    epilogue,
    tile::{BLOCK_K, WGMMA_K, WGMMA_M},
};
use crate::params::GemmParams;

/// Computes all tiles of a block.
///
/// The `BLOCKS` blocks of a cluster have tiles side by side, `ACROSS` columns in all, and each
/// copies `PART` rows of A to all. Each warpgroup stages `ROWS` rows at a time; its warps wait at
/// one of the `GROUPS` barriers. All `MULTIPLYING` threads of the consumers wait at the barrier
/// `together`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    A: TmaOperand<Element = Tf32>,
    B: TmaOperand<Element = Tf32>,
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
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<f32, STAGED, WGMMA_M>,
    (barriers, together): (&NamedBarriers<1, GROUPS, 128>, NamedBarrier<MULTIPLYING>),
) {
    const {
        assert!(A::TILE == PART && B::TILE == TILE_COLS);
        assert!(PART * BLOCKS == TILE_ROWS && ACROSS == TILE_COLS * BLOCKS);
        assert!(TILE_COLS == GROUPS as usize * WGMMA_M && MULTIPLYING == GROUPS * 128);
        assert!(STAGED == GROUPS as usize * ROWS, "each warpgroup has a part");
    }
    let mut tiles = dynamic_shared![Tf32];
    let (len_a, len_b) = (TILE_ROWS * BLOCK_K, TILE_COLS * BLOCK_K);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (group, warp) = (warp / 4, warp % 4);
    let groups = TILE_COLS / WGMMA_M;
    // The rows of a tile are of one alignment class. The classes are stacked: each has whole tiles.
    let classes = A::CLASSES as u32;
    let of_class = problem.m.div_ceil(classes).next_multiple_of(TILE_ROWS as u32);
    let m = if A::CLASSES == 1 { problem.m } else { of_class * classes.min(problem.m) };
    // The first row that this block copies, and its first column.
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let (part, block_col) = (rank * PART as u32, rank * TILE_COLS as u32);
    // To the scheduler, the cluster is one tile: its blocks' parts are one below the other.
    let mut scheduler =
        TileScheduler::<PART, ACROSS, BLOCKS>::new(&GemmParams { m, ..*problem }, 0);
    // For a tile: its first row in its class, the class, the shift, and the stages.
    let rows_of = |row: u32| {
        let (row, class) =
            if A::CLASSES == 1 { (row, 0) } else { (row % of_class, row / of_class) };
        let shift = A::shift(problem, class);
        (row, class, shift, (problem.k + shift).div_ceil(BLOCK_K as u32))
    };

    if t == 0 {
        // Every warp reads B itself, so every warp releases a stage.
        pipeline.init(4 * groups as u32);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == groups {
        // With one consumer warpgroup the registers suffice.
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
                    let p_of_a = p.wrapping_sub(A::whole_pieces(shift));
                    let place = (product, row + part, p_of_a);
                    let of_part = at + part as usize * BLOCK_K;
                    a.load::<BLOCKS>(&mut tiles, of_part, place, class, producer.full());
                    let place = (product, col + block_col, p.wrapping_sub(shift));
                    b.load::<1>(&mut tiles, at + len_a, place, 0, producer.full());
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
    // The stage whose MMAs are issued next, and the one before it, which is released next.
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    while let Some((product, row, col)) = scheduler.next_tile() {
        let (row, class, shift, stages) = rows_of(row);
        if A::CLASSES > 1 && shift > 0 {
            let at = next.wait_warp() * (len_a + len_b);
            for row in (t..TILE_ROWS).step_by(MULTIPLYING as usize) {
                A::clear_row(&mut tiles, at, row, shift);
            }
            // The tensor cores read through the async proxy what these threads have written. All
            // warpgroups read all rows.
            fence_proxy_async();
            together.sync();
        }
        let mut sums = Accumulators::<TILE_ROWS>::zeroed();
        for stage in 0..stages {
            let at = next.wait_warp() * (len_a + len_b);
            let rows = tiles.operand::<KMajor<BLOCK_K, 4>>(at);
            next.advance();

            // No branch may stand between two MMAs. Otherwise ptxas does not see that they read
            // different registers, and serialises them (C7513).
            for step in 0..BLOCK_K / WGMMA_K {
                // All but the last three MMAs have ended, among them the one that reads the
                // registers loaded next.
                wait::<3>();
                let eight = b_fragment.load(&tiles, at + len_a, step);
                sums.multiply_add_registers(&[eight], rows, step);
                commit();
            }

            // With these, all of the stage before has been read.
            if stage > 0 {
                read.release_warp();
                read.advance();
            }
        }
        let sums = sums.wait::<0>();
        read.release_warp();
        read.advance();
        let first = (row as usize, (col + block_col) as usize + group * WGMMA_M);
        let rows = (class as usize, A::CLASSES);
        let mut epilogue = Epilogue::of_rows(problem, product as usize, rows, c, bias);
        // With several alignment classes registers would spill.
        let together = (barriers.at(group), A::CLASSES == 1);
        epilogue::store::<_, ROWS, _>(sums, staged, &mut epilogue, first, together);
    }
}
