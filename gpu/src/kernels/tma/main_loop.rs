//! The main loop of the kernels whose warps all multiply.

use super::{
    collective::{
        epilogue::Epilogue,
        fragment::{Fragment, ROWS, SLAB, STEPS, Steps, Sums, ThreadRows, idle, place_of},
        vector::FOUR,
    },
    device::*,
    operand::Operand,
    split_k,
};
use crate::params::GemmParams;

/// Computes a tile of C of `TILE_ROWS x TILE_COLS` elements. A warp has `ROW_LANES x COL_LANES`
/// lanes of 8 rows and `COLS` columns each. A stage has `SLABS` slabs of 32 k-steps. `SLICES`
/// warps share the same elements and split the steps of a stage.
#[inline(always)]
#[track_caller]
pub fn multiply<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const COLS: usize,
    const SLABS: usize,
    const SLICES: usize,
    const THREADS: usize,
    const STAGES: usize,
>(
    problem: &GemmParams,
    (a, b): (&A, &B),
    (c, bias): (&mut Out<f32>, &In<f32>),
    pipeline: &Pipeline<STAGES>,
) {
    let (warps, warp_rows, warp_cols) = (THREADS / 32, ROW_LANES * ROWS, COL_LANES * COLS);
    const {
        let warps = TILE_ROWS / (ROW_LANES * ROWS) * (TILE_COLS / (COL_LANES * COLS));
        assert!(warps * SLICES == THREADS / 32, "each warp has a part of the tile, or of k");
        assert!(SLABS <= SLICES, "a warp's steps are of one slab");
    }
    let mut tiles = dynamic_shared![f32];
    let (slab_a, slab_b) = (TILE_ROWS * SLAB, TILE_COLS * SLAB);
    let stage_elements = (slab_a + slab_b) * SLABS;
    let stage_steps = (SLAB * SLABS) as u32;
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (down, across) = (TILE_ROWS / warp_rows, TILE_COLS / warp_cols);
    let (warp_row, warp_col) = (warp / across % down * warp_rows, warp % across * warp_cols);
    let first_row = thread::block_idx_y() as usize * TILE_ROWS;
    let first_col = thread::block_idx_x() as usize * TILE_COLS;
    // Blocks along z: those of a cluster share a tile, and each takes its share of the phases.
    let (rank, blocks) = match SLICES {
        1 => (0, 1),
        _ => (cluster::block_rank(), cluster::blocks()),
    };
    let product = thread::block_idx_z() / blocks;
    let phases = problem.k.div_ceil(stage_steps);
    let (mut next, end) = (phases * rank / blocks, phases * (rank + 1) / blocks);
    let mut left = end - next;

    if t == 0 {
        pipeline.init(warps as u32);
    }
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    thread::sync_threads();
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();

    let mut producer = pipeline.producer();
    let mut fill = |tiles: &mut DynamicShared<f32>, by: usize| {
        if warp == by {
            let stage = producer.acquire_warp() * stage_elements;
            if warp::elect() {
                producer.announce((stage_elements * size_of::<f32>()) as u32);
                for slab in 0..SLABS {
                    let p = next * stage_steps + (slab * SLAB) as u32;
                    let at = stage + slab * (slab_a + slab_b);
                    a.load(tiles, at, product, (first_row as u32, p), producer.full());
                    let at = at + slab_a;
                    b.load(tiles, at, product, (first_col as u32, p), producer.full());
                }
            }
        }
        producer.advance();
        next += 1;
    };
    // The last stage stays free. It is filled when the first one has been read, and so on.
    for _ in 0..left.min(STAGES as u32 - 1) {
        fill(&mut tiles, 0);
    }

    // The warp's steps of a stage: from `first` to `end` of one slab.
    let slice = warp / (down * across);
    let (slab, first) = (slice * SLABS / SLICES, slice * SLABS % SLICES * SLAB / SLICES);
    let (first, end) = (first as u32, (first + SLAB * SLABS / SLICES) as u32);
    let slab = slab * (slab_a + slab_b);
    let (lane_row, lane_col) = place_of::<ROW_LANES>(lane);
    let rows = ThreadRows::<A, TILE_ROWS, ROW_LANES>::new(slab, warp_row, lane_row);
    let cols = ThreadRows::<B, TILE_COLS, COL_LANES>::new(slab + slab_a, warp_col, lane_col);
    let mut sums: Sums<ROWS, COLS> = [[0.0; COLS]; ROWS];
    let mut consumer = pipeline.consumer();
    if left > 0 {
        let steps = |stage, step: u32| Steps::new(&rows, &cols, stage, step as usize);
        let mut stage = consumer.wait_warp() * stage_elements;
        let mut step = first;
        let mut now = steps(stage, step);
        let mut fragment = Fragment::load(&rows, &cols, &tiles, now);
        while left > 0 {
            let mut next = now;
            fragment.multiply_add(&mut tiles, now, &mut sums, (false, idle), |tiles| {
                step += STEPS as u32;
                if step == end {
                    step = first;
                    left -= 1;
                    if left > 0 {
                        consumer.release_warp();
                        consumer.advance();
                        // The warps take turns at filling the stages.
                        if left >= STAGES as u32 - 1 {
                            fill(tiles, left as usize % warps);
                        }
                        stage = consumer.wait_warp() * stage_elements;
                    }
                }
                next = steps(stage, step);
                next
            });
            now = next;
        }
    }

    let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
    let first = (first_row, first_col);
    if SLICES == 1 && epilogue.is_scaled_tile(first, (TILE_ROWS, TILE_COLS)) {
        match epilogue.is_wide() {
            true => store::<A, B, _, _, _, _, _, true>(&mut epilogue, first, &rows, &cols, &sums),
            false => store::<A, B, _, _, _, _, _, false>(&mut epilogue, first, &rows, &cols, &sums),
        }
        return;
    }
    // Everybody has read the last stages. The sums take their place.
    thread::sync_threads();
    let part = const { split_k::part_len(TILE_ROWS, TILE_COLS) };
    split_k::store::<_, _, _, _, _, _, _, _, SLICES>(&mut tiles, slice * part, &rows, &cols, &sums);
    split_k::reduce::<A, TILE_ROWS, TILE_COLS, SLICES, THREADS, 4>(
        &mut tiles,
        part,
        (rank, blocks),
        first,
        &mut epilogue,
    );
}

/// Stores a thread's elements of a tile that is `alpha A B`.
#[inline(always)]
#[track_caller]
fn store<
    A: Operand,
    B: Operand,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const ROW_LANES: usize,
    const COL_LANES: usize,
    const COLS: usize,
    const WIDE: bool,
>(
    epilogue: &mut Epilogue<f32>,
    (first_row, first_col): (usize, usize),
    rows: &ThreadRows<A, TILE_ROWS, ROW_LANES>,
    cols: &ThreadRows<B, TILE_COLS, COL_LANES>,
    sums: &Sums<ROWS, COLS>,
) {
    for i in 0..ROWS {
        for j in (0..COLS).step_by(FOUR) {
            let four = [sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]];
            epilogue.store::<WIDE>(
                (first_row + rows.outer::<ROWS>(i), first_col + cols.outer::<COLS>(j)),
                four,
            );
        }
    }
}
