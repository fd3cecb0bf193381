//! Small tiles, for products that are small, narrow or many. The blocks of a cluster may split k.
//!
//! * **A block** computes a tile of C, or the part of its sums that its share of k gives. If no
//!   cluster splits k, blocks are persistent.
//! * **A warpgroup** computes 64 rows of the tile. One more warp is the producer. (With 32 or 64
//!   sums a thread, nobody has to give up registers.)
//! * **A thread** holds `TILE_COLS / 2` sums.
//!
//! ```text
//!   kernel                    warpgroups    stages (64 k-steps)       blocks an SM    for
//!   wgmma_half_128x128x64          2                  5                     1         small products
//!   wgmma_half_64x128x64           1                  7                     1         few rows
//!   wgmma_half_128x64x64           2                  7                     1         few columns
//!   wgmma_half_64x64x64            1                  3                     3         batches of small products
//!   wgmma_half_64x64x64_s12        1                 12                     1         17 to 64 rows or columns
//!   wgmma_half_64x16x64            1                 20                     1         up to 16 rows or columns
//! ```
//!
//! # Few rows or columns
//! A product of few rows is bound by memory: it streams B. (With few columns it streams A.) 16 x
//! 4096 x 4096 has 32 tiles of 64 x 128, but all SMs together must load B, each with as many bytes
//! in flight as its shared memory holds. So the blocks of a cluster share a tile, and each takes a
//! part of k. The 48 rows that A lacks are not read: TMA fills in zeros.
//!
//! The zeros still take space that bytes in flight could use, and time: TMA is slower with boxes
//! that are mostly outside. (In tiles of 64 x 64 with 12 stages, 16 x 4096 x 4096 takes 17.2 us,
//! and 64 x 4096 x 4096 only 11.8.) The MMA needs 64 rows, but may have fewer columns. So the few
//! rows become columns: A and B are swapped, `C^T = B^T A^T` has tiles of 64 x 16, and 8 of the 10
//! KiB of a stage are the stream. C^T is stored element by element, which is 128 KiB.
//!
//! ```text
//!   16 x 4096 x 4096      blocks    bytes in flight a block    of which useful
//!   64 x 128, 7 stages      32             168 KiB                 126 KiB
//!   64 x 16, 20 stages      64             200 KiB                 200 KiB
//! ```
//!
//! # Whole sums
//! A block that does not split k finishes its sums in registers and stores them packed
//! ([`packed_store`]), as the [persistent](super::persistent) kernels do. Meanwhile the producer
//! has asked for the old C in L2. What cannot be finished there is staged: a C of columns, of i32,
//! or of 16 columns, and of f32 if C is read or rows have a bias.
//!
//! # Reduction
//! In a cluster that splits k, at the end each block has a part of every sum. Row `r` of the tile
//! belongs to the block of rank `r mod splits`, so that each has some rows however few there are.
//! The other blocks store their parts to its shared memory, two elements at a time. After a barrier
//! of the cluster it adds them in the order of the ranks: the result is the same in every run.
//!
//! ```text
//!                         the rows that each block adds, with three splits      (four rows of the tile)
//!   rank 0's memory       row 0 by rank 0, 1, 2;  row 3 by rank 0, 1, 2
//!   rank 1's              row 1 by rank 0, 1, 2
//!   rank 2's              row 2 by rank 0, 1, 2
//! ```

use super::{
    collective::{
        accumulators::{OfSums, ROWS},
        epilogue::Epilogue,
        packed_element::PackedStore,
        packed_store::{self, Early},
        real::Real,
        staged_rows::{Old, Rows, StagedRows},
        stored::Stored,
        tile_scheduler::TileScheduler,
        tma::TmaOperand,
        vector::FOUR,
        wgmma_shape::WGMMA_M,
    },
    device::{warpgroup::*, *},
    main_loop::{accumulate_stages, add_stages, k_steps_of_last},
    scales::Scales,
};
use crate::params::GemmParams;

/// Fours of a lane that are finished together: a warp's 16 rows are whole steps.
pub const fn together(cols: usize) -> usize {
    if cols < 128 { 2 } else { 4 }
}

/// Padding of a staged row: the eight rows that a warp stores pairs to at a time are in different
/// banks.
pub const PAD: usize = 8;

/// Elements from one staged row to the next: all columns of the tile if the 48 KiB of static shared
/// memory suffice, else 64.
pub const fn staged_pitch(tile_rows: usize, tile_cols: usize) -> usize {
    PAD + if tile_rows == 64 { tile_cols } else { 64 }
}

/// Blocks of a cluster that may split k: a cluster has up to eight.
pub const MAX_SPLITS: usize = 8;

/// Staged rows. Each of the blocks has a multiple of the number of splits.
pub const fn staged_rows(tile_rows: usize) -> usize {
    tile_rows + MAX_SPLITS
}

/// Blocks an SM. With the shortest pipeline a lone block would wait for each tile, so there are
/// three.
pub const fn min_blocks(stages: usize) -> u32 {
    if stages <= 3 { 3 } else { 1 }
}

/// Computes all tiles of a block. Accumulators that are not finished in registers are staged
/// `PITCH - 8` columns at a time. `smooth` is the smooth activation that the kernel was loaded
/// with. Only 8-bit numbers have `scales`. With `ALL` registers suffice for old elements of C.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    A: TmaOperand<Element: Factor<Sum: Real>>,
    B: TmaOperand<Element = A::Element>,
    C: PackedStore<Real: OfSums<<A::Element as Factor>::Sum>>,
    X: Scales,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const STAGES: usize,
    const STAGED: usize,
    const PITCH: usize,
    const COLS: usize,
    const TOGETHER: usize,
    const ALL: bool,
>(
    problem: &GemmParams,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<C>, &In<C>),
    pipeline: &Pipeline<STAGES>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (smooth, scales): (u32, &X),
) {
    let rounds = TILE_COLS / COLS;
    const {
        assert!(A::TILE == TILE_ROWS && B::TILE == TILE_COLS, "a block copies its own tiles");
        assert!(STAGED == staged_rows(TILE_ROWS) && PITCH == staged_pitch(TILE_ROWS, TILE_COLS));
        assert!(COLS == PITCH - PAD, "padding is not of C");
        assert!(COLS == TILE_COLS || COLS == 64, "a round is of all columns or of 64");
        let step = StagedRows::<COLS, TOGETHER>::STEP as usize;
        assert!(ROWS.is_multiple_of(step), "a warp's rows are whole steps");
    }
    let mut tiles = dynamic_shared![A::Element];
    let (len_a, len_b) = (TILE_ROWS * A::BLOCK_K, TILE_COLS * A::BLOCK_K);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let warps = TILE_ROWS / ROWS;
    let (rank, splits) = (cluster::block_rank(), cluster::blocks());
    let stages = problem.k.div_ceil(A::BLOCK_K as u32);
    let (begin, end) = (stages * rank / splits, stages * (rank + 1) / splits);
    let of_last = k_steps_of_last::<A::Element>(if end == stages { problem.k } else { 0 });
    let mut scheduler = TileScheduler::<TILE_ROWS, TILE_COLS, 1>::new(problem, 0);

    // A warp that does not initialise the pipeline meanwhile.
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    if t == 0 {
        pipeline.init((warps / 4) as u32);
    }
    // A block must have started before another writes to its shared memory. Nobody waits for it
    // until then.
    if splits > 1 {
        cluster::arrive_relaxed();
    }
    thread::sync_threads();
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if warp == warps {
        let mut producer = pipeline.producer();
        while let Some((product, row, col)) = scheduler.next_tile() {
            for stage in begin..end {
                let at = producer.acquire_warp() * (len_a + len_b);
                if warp::elect() {
                    let p = stage * A::BLOCK_K as u32;
                    producer.announce(((len_a + len_b) * size_of::<A::Element>()) as u32);
                    a.load::<1>(&mut tiles, at, (product, row, p), 0, producer.full());
                    b.load::<1>(&mut tiles, at + len_a, (product, col, p), 0, producer.full());
                }
                producer.advance();
            }
            // Now the last stages are multiplied. What follows may need the old C.
            let epilogue = Epilogue::of_product(problem, product as usize, c, bias);
            let first = (row as usize, col as usize);
            epilogue.prefetch_tile(first, (TILE_ROWS as u32, TILE_COLS as u32));
            // A cluster that splits k has one tile.
            if splits > 1 {
                break;
            }
        }
        if splits > 1 {
            cluster::wait();
            for _ in 0..2 * rounds - 1 {
                cluster::sync();
            }
        }
        return;
    }

    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    while let Some((product, row, col)) = scheduler.next_tile() {
        let epilogue = Epilogue::of_product(problem, product as usize, c, bias);
        let mut epilogue = epilogue.with_smooth(smooth);
        // Whole rows of sums are in this block. (For numbers of 8 bits no constant chooses the
        // activation of a packed C.)
        let is_known = const { size_of::<A::Element>() > 1 || C::PER_WORD == 1 };
        let is_whole = splits == 1 && is_known && packed_store::suits::<C>(COLS);
        let in_registers = is_whole && epilogue.is_finished_in_registers::<ALL>();
        let of_warp = (row as usize + warp * ROWS, col as usize);
        let lane = thread::lane_id() as usize;
        let early = match in_registers {
            true => {
                Early::load::<{ packed_store::WORDS }, TILE_COLS, ALL>(&epilogue, lane, of_warp)
            }
            false => Early::nothing(),
        };
        let mut sums = Accumulators::<TILE_COLS, _>::zeroed();
        let (mut total, mut room) = (Fragment::zeroed(), Fragment::zeroed());
        let of_group = (row as usize + warp / 4 * WGMMA_M, col as usize);
        let sums = if const { A::Element::HAS_SHORT_SUMS } {
            let mut odd = Accumulators::zeroed();
            add_stages::<_, A::Layout, B::Layout, _, X, TILE_ROWS, TILE_COLS, STAGES>(
                &mut tiles,
                (warp / 4, warp % 4),
                (begin, end - begin),
                (&mut next, &mut read),
                [&mut sums, &mut odd],
                &mut total,
                (problem, scales, of_group),
                |_| (),
            );
            &mut total
        } else {
            accumulate_stages::<_, A::Layout, B::Layout, _, TILE_ROWS, TILE_COLS, STAGES>(
                &mut tiles,
                (warp / 4, warp % 4),
                (end - begin, of_last),
                (&mut next, &mut read),
                &mut sums,
                |_, _, _| (),
                || (),
            )
        };
        let sums = C::Real::of_accumulators(sums, &mut room);
        scales.finish::<C, TILE_COLS>(problem, sums, of_group);
        if splits > 1 {
            cluster::wait();
        }
        if in_registers {
            let place = (warp * ROWS * PITCH, lane);
            packed_store::store::<_, { packed_store::WORDS }, _, _, _, ALL>(
                sums,
                staged,
                place,
                (&mut epilogue, early),
                of_warp,
            );
            continue;
        }
        let part = (rank as usize, splits as usize);
        for round in 0..rounds {
            let first = (row as usize, col as usize + round * COLS);
            let rows = own_rows::<COLS, TOGETHER>(part, first, (warp, warps));
            let old = rows.0.old(&epilogue, 0);
            if round > 0 && splits > 1 {
                cluster::sync();
            }
            stage_partials(sums, round, staged, part, first, warp, &epilogue);
            match splits {
                1 => warp::sync_warp(warp::ALL),
                _ => cluster::sync(),
            }
            reduce(staged, rows, part.1, old, &mut epilogue);
            if splits == 1 {
                warp::sync_warp(warp::ALL);
            }
        }
        if splits > 1 {
            break;
        }
    }
}

/// Stages a thread's sums of a round's columns, row `r` of the tile in row `r`, or in the block
/// that adds that row. Elements outside C are left out.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn stage_partials<
    C: Stored<Real: WgmmaSum>,
    const N: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    sums: &Fragment<N, C::Real>,
    round: usize,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (rank, splits): (usize, usize),
    (first_row, first_col): (usize, usize),
    warp: usize,
    epilogue: &Epilogue<C>,
) {
    let group = warp / 4 * WGMMA_M;
    let is_inside = |row: usize, col: usize| {
        epilogue.is_inside((first_row + row, first_col + col / FOUR * FOUR))
    };
    if splits == 1 {
        each_pair_of_round::<_, N, PITCH>(sums, round, |row, col, two| {
            let row = group + row;
            if is_inside(row, col) {
                staged.store64(row * PITCH + col, two);
            }
        });
    } else {
        each_pair_of_round::<_, N, PITCH>(sums, round, |row, col, two| {
            let row = group + row;
            if is_inside(row, col) {
                let owner = row % splits;
                staged.remote(owner as u32).store64((row - owner + rank) * PITCH + col, two);
            }
        });
    }
}

/// Calls `put` for each pair of neighbours in a round's columns.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn each_pair_of_round<S: WgmmaSum, const N: usize, const PITCH: usize>(
    sums: &Fragment<N, S>,
    round: usize,
    mut put: impl FnMut(usize, usize, [S; 2]),
) {
    let put = |row: u32, col: u32, two| put(row as usize, col as usize, two);
    // Registers cannot be indexed by a computed number.
    match round {
        _ if PITCH - PAD == N => sums.for_each_pair(put),
        0 => sums.for_each_pair_of::<64>(0, put),
        _ => sums.for_each_pair_of::<64>(1, put),
    }
}

/// The rows of a tile that a warp adds and finishes. Of every `splits` rows one is this block's.
/// The first is (row, col), and that row is number `start` of the block's.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn own_rows<const COLS: usize, const TOGETHER: usize>(
    (rank, splits): (usize, usize),
    (first_row, first_col): (usize, usize),
    (warp, warps): (usize, usize),
) -> (StagedRows<COLS, TOGETHER>, usize) {
    let of_block = (warps * ROWS - rank).div_ceil(splits.max(1));
    let step = StagedRows::<COLS, TOGETHER>::STEP as usize;
    let of_warp = of_block.div_ceil(warps).next_multiple_of(step);
    let start = warp * of_warp;
    let rows = Rows {
        first: (first_row + start * splits + rank) as u32,
        step: splits as u32,
        count: of_block.saturating_sub(start).min(of_warp) as u32,
    };
    (StagedRows::new(rows, first_col as u32), start)
}

/// Adds the parts of a warp's rows in the order of the ranks, and finishes them. In a block without
/// a cluster, these are the rows that the warp has staged itself.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn reduce<
    C: Stored<Real: WgmmaSum>,
    const COLS: usize,
    const TOGETHER: usize,
    const STAGED: usize,
    const PITCH: usize,
>(
    staged: &Shared<C::Real, STAGED, PITCH>,
    (rows, start): (StagedRows<COLS, TOGETHER>, usize),
    splits: usize,
    old: Old<C::Real, TOGETHER>,
    epilogue: &mut Epilogue<C>,
) {
    let sum = |row: u32, col: u32| {
        let at = (start + row as usize) * splits * PITCH + col as usize;
        let mut four: [C::Real; FOUR] = staged.load128(at);
        for part in 1..splits {
            let more: [C::Real; FOUR] = staged.load128(at + part * PITCH);
            for i in 0..FOUR {
                four[i] = four[i].plus(more[i]);
            }
        }
        four
    };
    match epilogue.is_in_fours() {
        true => rows.finish(epilogue, old, sum),
        false => rows.finish_any(epilogue, sum),
    }
}
