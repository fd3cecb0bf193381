//! Tiles of few rows or few columns, whose steps of k the blocks of a cluster may split between them.
//!
//! ```text
//!   kernel                      warpgroups   tile (m x n)   stages of 32 steps
//!   wgmma_tf32_32x32x32_nn         2          32 x 32             20
//!   wgmma_tf32_64x32x32_nn         2          64 x 32             16
//! ```
//!
//! A product of few rows is a stream of B from global memory, and one of few columns a stream of A, which all
//! multiprocessors are to draw together: 16 x 4096 x 4096, and 4096 x 16 x 4096, are 128 tiles of 32 x 32. What is
//! multiplied besides does not count, as long as it takes less time than the stream, and what lies outside of A or B the
//! accelerator puts down as zeros by itself, and reads nothing:
//!
//! * **Few rows** are few columns of the instruction, 32: it takes a quarter of the time that it takes for 128.
//! * **Few columns** are few of its 64 rows. Of a tile of 32 columns, which are a span of the swizzle, half of the warps
//!   multiply what the other half does, and nobody looks at their sums.
//! * **The warpgroups take the stages in turn**, so that one waits for its stage, loads from it or waits for its products while
//!   the other multiplies. A product begins and ends within its stage.
//!
//! So there are twice as many splits of each sum as blocks that split k. Row `r` of the tile is finished by the block of rank
//! `r mod splits`, as in [`gemm_wgmma`](super::super::gemm_wgmma): the others put their splits into its shared memory, and it adds
//! them up in the order of the ranks, and of the warpgroups of each, the same in every run.

use super::{
    b_fragment::{BFragment, WARP_COLS},
    collective::{epilogue::Epilogue, tile_scheduler::TileScheduler, vector::FOUR},
    device::{warpgroup::*, *},
    epilogue::swizzled,
    tile::{BLOCK_K, SPAN},
};
use crate::params::GemmParams;

/// Warpgroups that multiply.
const GROUPS: usize = 2;
/// Their warps: the next one copies.
const WARPS: usize = 4 * GROUPS;
/// Blocks of a cluster at most.
const MAX_SPLITS: usize = 8;

/// Rows of splits of sums: of as many blocks as there are splits each has a multiple of that number.
pub const fn staged_rows(tile_rows: usize) -> usize {
    GROUPS * (tile_rows + MAX_SPLITS)
}

/// Threads of a block.
pub const THREADS: usize = 32 * (WARPS + 1);
/// Those that multiply.
pub const MULTIPLYING: u32 = 32 * WARPS as u32;

/// Tiles of `ROWS x COLS` elements of C, one after the other.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<const ROWS: usize, const COLS: usize, const STAGES: usize, const STAGED: usize>(
    problem: &GemmParams,
    (a, b): (&TensorMap<Tf32>, &TensorMap<Tf32>),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES>,
    staged: &mut Shared<f32, STAGED, COLS>,
    together: NamedBarrier<MULTIPLYING>,
) {
    const { assert!(COLS.is_multiple_of(SPAN) && STAGED == staged_rows(ROWS)) };
    let rows_of_a = a.boxes::<ROWS, BLOCK_K, { 4 * BLOCK_K }>();
    let cols_of_b = b.boxes::<BLOCK_K, SPAN, { 4 * SPAN }>();
    let mut tiles = dynamic_shared![Tf32];
    let (len_a, len_b) = (ROWS * BLOCK_K, COLS * BLOCK_K);
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let (rank, splits) = (cluster::block_rank(), cluster::blocks());
    let all = problem.k.div_ceil(BLOCK_K as u32);
    let (first, end) = (all * rank / splits, all * (rank + 1) / splits);
    let mut scheduler = TileScheduler::<ROWS, COLS, 1>::new(problem, 0);

    if t == 0 {
        // Of a stage, the warps of the group whose turn it is.
        pipeline.init(4);
    }
    // Before one block writes to another's shared memory, that has begun: nobody waits for it until then.
    if splits > 1 {
        cluster::arrive_relaxed();
    }
    thread::sync_threads();
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if warp == WARPS {
        let mut producer = pipeline.producer();
        while let Some((product, row, col)) = scheduler.next_tile() {
            for stage in first..end {
                let at = producer.acquire_warp() * (len_a + len_b);
                if warp::elect() {
                    let p = stage * BLOCK_K as u32;
                    producer.announce(((len_a + len_b) * size_of::<Tf32>()) as u32);
                    tiles.load_box(at, &rows_of_a, (product, row, p), producer.full());
                    for span in 0..COLS / SPAN {
                        let (at, col) =
                            (at + len_a + span * SPAN * BLOCK_K, col + (span * SPAN) as u32);
                        tiles.load_box(at, &cols_of_b, (product, p, col), producer.full());
                    }
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
        for stage in 0..end - first {
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

/// Where a block has splits of a row of the tile: those of its own and of other blocks' warpgroups, one after the other.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn first_part(row: usize, splits: usize) -> usize {
    row / splits * (splits * GROUPS)
}

/// Puts a thread's sums to where they are added up: those of the tile's row `r` to the block of the cluster that finishes it.
/// What is outside of C is left out.
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
    // The fragment's rows are C's columns.
    let col = BFragment::column(warp, lane / 4);
    let part = rank * GROUPS + group;
    sums.for_each_square_of::<0>(|_, row, [first, second]| {
        for i in 0..2 {
            // Put so, all but the lane's part is known to the compiler.
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

/// Adds up the splits of this block's rows and finishes them, four elements a thread.
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
    let (mut row, col) = (t / threads_of_row * splits + rank, t % threads_of_row * FOUR);
    while row < ROWS {
        let at = (first_row + row, first_col + col);
        if epilogue.is_inside(at) {
            let first = first_part(row, splits);
            let part_at = |part: usize| staged.load128((first + part) * COLS + swizzled(row, col));
            let mut four: [f32; FOUR] = part_at(0);
            for part in 1..splits * GROUPS {
                let more = part_at(part);
                for i in 0..FOUR {
                    four[i] += more[i];
                }
            }
            epilogue.finish::<false>(at, four);
        }
        row += MULTIPLYING as usize / threads_of_row * splits;
    }
}
