//! Tiles of few rows or few columns. The blocks of a cluster may split k.
//!
//! ```text
//!   kernel                    warpgroups    tile (m x n)    stages (32 k-steps)
//!   wgmma_tf32_32x32x32_nn        2           32 x 32               20
//!   wgmma_tf32_64x32x32_nn        2           64 x 32               16
//! ```
//!
//! A product of few rows is bound by memory: all SMs together stream B. With few columns they
//! stream A. 16 x 4096 x 4096 and 4096 x 16 x 4096 are 128 tiles of 32 x 32. Superfluous MMAs cost
//! nothing if they take less time than the stream, and TMA fills in zeros for what lies outside,
//! and reads nothing.
//!
//! * **Few rows** are few columns of the instruction: with 32 it takes a quarter of the time of
//!   128.
//! * **Few columns** are few of its 64 rows. With 32 columns, a span of the swizzle, half of the
//!   warps repeat what the others compute, and their sums are ignored.
//! * **A block** computes one tile after the other, or the part of one that its share of k gives.
//! * **The warpgroups** take stages in turn. While one waits for its stage, loads it or waits for
//!   its MMAs, the other multiplies. An MMA starts and ends within its stage.
//! * **One more warp** is the producer.
//!
//! So each sum has two parts for each block that splits k. Row `r` of the tile belongs to the block
//! of rank `r mod splits`, as in [`wgmma::split_k`](super::super::wgmma). The other blocks store
//! their parts to its shared memory. It adds them in the order of the ranks, and for each rank in
//! the order of its warpgroups: the result is the same in every run.

use super::{
    b_fragment::{BFragment, WARP_COLS},
    collective::{
        epilogue::Epilogue, tile_scheduler::TileScheduler, tma::TmaOperand, vector::FOUR,
    },
    device::{warpgroup::*, *},
    epilogue::swizzled,
    tile::{BLOCK_K, SPAN, TmaA, TmaB},
};
use crate::params::GemmParams;

/// Warpgroups that multiply.
const GROUPS: usize = 2;
/// Their warps. The next one is the producer.
const WARPS: usize = 4 * GROUPS;
/// Blocks of a cluster, at most.
pub const MAX_SPLITS: usize = 8;

/// Staged rows. Each block has a multiple of the number of splits, for each warpgroup.
pub const fn staged_rows(tile_rows: usize) -> usize {
    GROUPS * (tile_rows + MAX_SPLITS)
}

/// Threads of a block.
pub const THREADS: usize = 32 * (WARPS + 1);
/// Threads that multiply.
pub const MULTIPLYING: u32 = 32 * WARPS as u32;

/// Computes all tiles of a block, of `ROWS x COLS` elements.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<const ROWS: usize, const COLS: usize, const STAGES: usize, const STAGED: usize>(
    problem: &GemmParams,
    (a, b): (&TmaA<ROWS>, &TmaB<COLS>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES>,
    staged: &mut Shared<f32, STAGED, COLS>,
    together: NamedBarrier<MULTIPLYING>,
) {
    const { assert!(COLS.is_multiple_of(SPAN) && STAGED == staged_rows(ROWS)) };
    let mut tiles = dynamic_shared![Tf32];
    let (len_a, len_b) = (ROWS * BLOCK_K, COLS * BLOCK_K);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (rank, splits) = (cluster::block_rank(), cluster::blocks());
    let stages = problem.k.div_ceil(BLOCK_K as u32);
    let (begin, end) = (stages * rank / splits, stages * (rank + 1) / splits);
    let mut scheduler = TileScheduler::<ROWS, COLS, 1>::new(problem, 0);

    if t == 0 {
        // The four warps of the warpgroup whose turn it is release a stage.
        pipeline.init(4);
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

    if warp == WARPS {
        let mut producer = pipeline.producer();
        while let Some((product, row, col)) = scheduler.next_tile() {
            for stage in begin..end {
                let at = producer.acquire_warp() * (len_a + len_b);
                if warp::elect() {
                    let p = stage * BLOCK_K as u32;
                    producer.announce(((len_a + len_b) * size_of::<Tf32>()) as u32);
                    a.load::<1>(&mut tiles, at, (product, row, p), 0, producer.full());
                    b.load::<1>(&mut tiles, at + len_a, (product, col, p), 0, producer.full());
                }
                producer.advance();
            }
            // A cluster that splits k has one tile.
            if splits > 1 {
                break;
            }
        }
        if splits > 1 {
            cluster::wait();
            cluster::sync();
        }
        return;
    }

    let (group, warp) = (warp / 4, warp % 4);
    let b_fragment = BFragment::new(0, warp % (COLS / WARP_COLS), t % 32);
    let mut ring = pipeline.consumer();
    while let Some((product, row, col)) = scheduler.next_tile() {
        let mut sums = Accumulators::<ROWS>::zeroed();
        for stage in 0..end - begin {
            if stage as usize % GROUPS == group {
                let at = ring.wait_warp() * (len_a + len_b);
                let rows = tiles.operand::<KMajor<BLOCK_K, 4>>(at);
                let eights = [0, 1, 2, 3].map(|step| b_fragment.load(&tiles, at + len_a, step));
                sums.multiply_add_registers(&eights, rows, 0);
                commit();
                wait::<0>();
                ring.release_warp();
            }
            ring.advance();
        }
        let sums = sums.wait::<0>();
        let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
        let first = (row as usize, col as usize);
        let (rank, splits) = (rank as usize, splits as usize);
        if splits > 1 {
            cluster::wait();
        }
        if warp < COLS / WARP_COLS {
            stage_partials(sums, staged, (rank, splits), (group, warp), first, &epilogue);
        }
        match splits {
            1 => together.sync(),
            _ => cluster::sync(),
        }
        reduce::<ROWS, COLS, STAGED>(staged, (rank, splits), first, &mut epilogue);
        if splits > 1 {
            break;
        }
        together.sync();
    }
}

/// The first staged row of the parts of a row of the tile. The parts of all ranks and warpgroups
/// follow each other.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn first_part(row: usize, splits: usize) -> usize {
    row / splits * (splits * GROUPS)
}

/// Stages a thread's sums: those of row `r` of the tile in the block that adds that row. Elements
/// outside C are left out.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn stage_partials<const ROWS: usize, const COLS: usize, const STAGED: usize>(
    sums: &Fragment<ROWS>,
    staged: &mut Shared<f32, STAGED, COLS>,
    (rank, splits): (usize, usize),
    (group, warp): (usize, usize),
    (first_row, first_col): (usize, usize),
    epilogue: &Epilogue<f32>,
) {
    let lane = thread::thread_idx_x() as usize % 32;
    // The rows of the fragment are columns of C.
    let col = BFragment::column(warp, lane / 4);
    let part = rank * GROUPS + group;
    sums.for_each_square_of(0, |_, row, [first, second]| {
        for i in 0..2 {
            // In this form the compiler knows all but the lane's part.
            let row = lane % 4 * 2 + row as usize / 8 * 8 + i;
            if epilogue.is_inside((first_row + row, first_col + col / FOUR * FOUR)) {
                let at = (first_part(row, splits) + part) * COLS + swizzled(row, col);
                let two = [first[i], second[i]];
                match splits {
                    1 => staged.store64(at, two),
                    _ => staged.remote((row % splits) as u32).store64(at, two),
                }
            }
        }
    });
}

/// Adds the parts of this block's rows and finishes them, four elements a thread.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn reduce<const ROWS: usize, const COLS: usize, const STAGED: usize>(
    staged: &Shared<f32, STAGED, COLS>,
    (rank, splits): (usize, usize),
    (first_row, first_col): (usize, usize),
    epilogue: &mut Epilogue<f32>,
) {
    let t = thread::thread_idx_x() as usize;
    let threads_of_row = COLS / FOUR;
    // Neighbouring threads have neighbours of a column, where those are contiguous in C.
    let down = splits == 1 && epilogue.is_in_columns();
    for four in (t..ROWS * threads_of_row).step_by(MULTIPLYING as usize) {
        let (row, col) = match down {
            true => (four % ROWS, four / ROWS * FOUR),
            false => (four / threads_of_row * splits + rank, four % threads_of_row * FOUR),
        };
        let at = (first_row + row, first_col + col);
        if row < ROWS && epilogue.is_inside(at) {
            let first = first_part(row, splits);
            let part_at = |part: usize| staged.load128((first + part) * COLS + swizzled(row, col));
            let mut four: [f32; FOUR] = part_at(0);
            for part in 1..splits * GROUPS {
                let more = part_at(part);
                for i in 0..FOUR {
                    four[i] += more[i];
                }
            }
            epilogue.finish(at, four);
        }
    }
}
