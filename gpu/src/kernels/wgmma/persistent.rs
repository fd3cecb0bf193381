//! Persistent CTAs with large tiles.
//!
//! * **A block** computes `TILE_ROWS x TILE_COLS` tiles of C, one after the other.
//! * **A warpgroup** computes 64 rows of a tile. One more warpgroup is the producer.
//! * **A warp** of the consumers stores 16 rows. Of the producer warpgroup, warp 0 issues copies,
//!   and the other three have [background work](super::collective::background), or none.
//! * **A thread** holds `TILE_COLS / 2` sums.

use super::{
    collective::{
        accumulators::OfSums, background::Background, epilogue::Epilogue,
        ordered_barrier::OrderedBarrier, packed_element::PackedStore, real::Real, staged_epilogue,
        tile_scheduler::TileScheduler, tma::TmaOperand, wgmma_shape::WGMMA_M,
    },
    device::{warpgroup::*, *},
    main_loop::{accumulate_stages, add_stages, k_steps_of_last},
    scales::Scales,
};
use crate::params::GemmParams;

/// The type of an operand's sums.
type Sum<A> = <<A as TmaOperand>::Element as Factor>::Sum;

/// Computes all tiles of a CTA of a cluster of `BLOCKS`, whose tiles are one below the other.
/// `staged` has a row for each row of the tile. The tiles that wait for background work are the
/// last. `smooth` is the smooth activation that the kernel was loaded with. Only sums of 8-bit
/// numbers have `scales`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<
    A: TmaOperand<Element: Factor<Sum: Real>>,
    B: TmaOperand<Element = A::Element>,
    C: PackedStore<Real: OfSums<Sum<A>>>,
    S: Scope,
    W: Background,
    X: Scales,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const BLOCKS: usize,
    const STAGES: usize,
    const STAGED: usize,
    const ALL: bool,
>(
    problem: &GemmParams,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<C>, &In<C>),
    pipeline: &Pipeline<STAGES, S>,
    staged: &mut Shared<C::Real, STAGED, { staged_epilogue::PITCH }>,
    background: &mut W,
    (smooth, scales): (u32, &X),
) {
    const {
        assert!(TILE_ROWS.is_multiple_of(WGMMA_M) && TILE_COLS.is_multiple_of(WGMMA_M));
        assert!(STAGED == TILE_ROWS, "each row of the tile is staged");
        assert!(A::TILE == TILE_ROWS, "a block copies its own rows");
        assert!(B::TILE * BLOCKS == TILE_COLS, "a cluster's blocks copy columns for each other");
    }
    let mut tiles = dynamic_shared![A::Element];
    let (len_a, len_b) = (TILE_ROWS * A::BLOCK_K, TILE_COLS * A::BLOCK_K);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (group, warp) = (warp / 4, warp % 4);
    let groups = TILE_ROWS / WGMMA_M;
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    // The rows of a tile are of one alignment class. The classes are stacked: each has whole tiles.
    let classes = A::CLASSES as u32;
    let of_class = problem.m.div_ceil(classes).next_multiple_of((TILE_ROWS * BLOCKS) as u32);
    let m = if A::CLASSES == 1 { problem.m } else { of_class * classes.min(problem.m) };
    // First the columns that wait for nothing. The tail, which waits for background work, follows.
    let first = GemmParams { m, n: problem.n - background.tail_columns(), ..*problem };
    let (mut start, mut scheduler) =
        (0, TileScheduler::<TILE_ROWS, TILE_COLS, BLOCKS>::new(&first, rank));
    // For a tile: its first row in its class, the class, the shift, and the stages.
    let rows_of = |row: u32| {
        let (row, class) =
            if A::CLASSES == 1 { (row, 0) } else { (row % of_class, row / of_class) };
        let shift = A::shift(problem, class);
        (row, class, shift, (problem.k + shift).div_ceil(A::BLOCK_K as u32))
    };
    // If the first stage has elements to clear, the second one is multiplied first, while they are
    // cleared. (Unless the second one is the last, which may have fewer MMAs.)
    let position_of_first = |shift: u32, stages: u32| u32::from(shift > 0 && stages > 2);

    // A warp that does not initialise the pipeline meanwhile.
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    if t == 0 {
        pipeline.init(groups as u32);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == groups {
        // Background copies go through registers. (Either way there are 3 x 168 in all: those that
        // a launch starts with.)
        if W::HAS_WORK {
            give_registers::<88>();
        } else {
            give_registers::<40>();
        }
        if warp > 0 {
            background.work();
            return;
        }
        let mut producer = pipeline.producer();
        loop {
            while let Some((product, row, col)) = scheduler.next_tile() {
                let (row, class, shift, stages) = rows_of(row);
                let col = start + col;
                let of_first = position_of_first(shift, stages);
                for position in 0..stages {
                    let at = producer.acquire_warp() * (len_a + len_b);
                    if warp::elect() {
                        let stage =
                            if position > of_first { position } else { of_first - position };
                        let p = stage * A::BLOCK_K as u32;
                        producer.announce(((len_a + len_b) * size_of::<A::Element>()) as u32);
                        let p_of_a = p.wrapping_sub(A::whole_pieces(shift));
                        let place = (product, row, p_of_a);
                        a.load::<1>(&mut tiles, at, place, class, producer.full());
                        let place = (product, col, p.wrapping_sub(shift));
                        b.load_part::<BLOCKS>(&mut tiles, at + len_a, place, rank, producer.full());
                    }
                    producer.advance();
                }
                if ALL {
                    // Now the last stages are multiplied. What follows may need the old C.
                    let (first, size) = ((row as usize, col as usize), (TILE_ROWS, TILE_COLS));
                    let epilogue = Epilogue::of_product(problem, product as usize, c, bias);
                    epilogue.prefetch_tile(first, (size.0 as u32, size.1 as u32));
                }
            }
            if start > 0 || background.tail_columns() == 0 {
                break;
            }
            start = scheduler.advance_to_tail(background.tail_columns());
            background.wait();
        }
        background.finish();
        if BLOCKS > 1 {
            producer.drain_warp();
        }
        return;
    }

    if W::HAS_WORK {
        take_registers::<208>();
    } else {
        take_registers::<232>();
    }
    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    let order = OrderedBarrier::new(group, groups);
    loop {
        while let Some((product, row, col)) = scheduler.next_tile() {
            let (row, class, shift, stages) = rows_of(row);
            let clear = |tiles: &mut DynamicShared<A::Element>, position: u32, at: usize| {
                if A::CLASSES > 1 && shift > 0 && position == position_of_first(shift, stages) {
                    let together = named_barriers![3, 2; 128].at(group);
                    A::clear_rows(tiles, at + group * WGMMA_M * A::BLOCK_K, shift, together);
                }
            };
            let mut sums = Accumulators::<TILE_COLS, Sum<A>>::zeroed();
            let (mut all, mut room) = (Fragment::zeroed(), Fragment::zeroed());
            let mine = (group, warp);
            // The second warpgroup has read all but these when its turn starts. Otherwise the
            // pipeline had no room for the last stage, which the first warpgroup waits for.
            let before = stages - stages.min(STAGES as u32);
            if const { A::Element::HAS_SHORT_SUMS } {
                let first = (row as usize + group * WGMMA_M, (start + col) as usize);
                let mut odd = Accumulators::zeroed();
                add_stages::<_, A::Layout, B::Layout, S, X, TILE_ROWS, TILE_COLS, STAGES>(
                    &mut tiles,
                    mine,
                    (0, stages),
                    (&mut next, &mut read),
                    [&mut sums, &mut odd],
                    &mut all,
                    (problem, scales, first),
                    // When a stage begins, the one before the last has been read.
                    |stage| {
                        if stage == before + 1 {
                            order.wait(group);
                        }
                    },
                );
                if stages < before + 2 {
                    order.wait(group);
                }
                order.arrive(group);
            } else {
                accumulate_stages::<_, A::Layout, B::Layout, S, TILE_ROWS, TILE_COLS, STAGES>(
                    &mut tiles,
                    mine,
                    (before, k_steps_of_last::<A::Element>(0)),
                    (&mut next, &mut read),
                    &mut sums,
                    clear,
                    || (),
                );
            }
            let rows = (class as usize, A::CLASSES);
            let epilogue = Epilogue::of_rows(problem, product as usize, rows, c, bias);
            let mut epilogue = epilogue.with_smooth(smooth);
            let first = (row as usize + group * WGMMA_M, (start + col) as usize);
            let early = staged_epilogue::load_early::<_, TILE_COLS, ALL>(&epilogue, first);
            let sums = if const { A::Element::HAS_SHORT_SUMS } {
                &mut all
            } else {
                order.wait(group);
                accumulate_stages::<_, A::Layout, B::Layout, S, TILE_ROWS, TILE_COLS, STAGES>(
                    &mut tiles,
                    mine,
                    (stages - before, k_steps_of_last::<A::Element>(problem.k + shift)),
                    (&mut next, &mut read),
                    &mut sums,
                    |tiles, position, at| clear(tiles, before + position, at),
                    || order.arrive(group),
                )
            };
            let sums = C::Real::of_accumulators(sums, &mut room);
            scales.finish::<C, TILE_COLS>(problem, sums, first);
            staged_epilogue::store::<_, _, _, ALL>(sums, staged, (&mut epilogue, early), first);
        }
        if start > 0 || background.tail_columns() == 0 {
            break;
        }
        start = scheduler.advance_to_tail(background.tail_columns());
    }
    order.finish(group);
}
