//! Tiles of operands whose rows begin anywhere, which warps gather themselves: for products that are small, of which a copy
//! that is launched before would take as long as all the rest.
//!
//! ```text
//!   warps        64 x 128 elements
//!   4            a warpgroup that multiplies, as elsewhere
//!   6            gather stages 0, 2, 4, ..: 32 rows each of what a stage needs, two of them A's, four B's
//!   6            gather stages 1, 3, 5, ..
//! ```
//!
//! What is on its way from the second-level cache waits in registers, a stage of each six warps: while these put theirs down,
//! the others' is on its way. Six warps read 24 KiB at once, and twice that is what a multiprocessor draws in the time in
//! which one read is answered.
//!
//! A piece of a row is read twice, by the lanes of both pieces of the row into which it goes ([`gather`]); the second time it
//! comes from the first-level cache. That, the writes to shared memory and what the tensor cores read there share a path of
//! 128 bytes a cycle: 32 KiB and more, 24 and 24 for a stage, 770 cycles at least, of which the tensor cores are busy for 256.
//! Where rows do begin at multiples of sixteen bytes the accelerator is faster.

use super::{
    super::{
        device::{warpgroup::*, *},
        gemm::{epilogue::Epilogue, stored::Stored},
    },
    DEPTH, add_products,
    gather::{Place, Rows},
    operand::GROUP,
    output,
    walk::Walk,
};
use crate::problem::Problem;

/// Stages that are gathered at a time, each by warps of their own.
const TEAMS: usize = 2;
/// Rows of a stage that a warp gathers.
const HALF: usize = GROUP / 2;

/// Warps that gather a stage.
const fn team(tile_rows: usize, tile_cols: usize) -> usize {
    (tile_rows + tile_cols) / HALF
}

/// How an operand lies.
trait Way {
    /// In shared memory.
    type Layout: Layout;

    /// Are its steps of k side by side?
    const ALONG_K: bool;
}

/// k side by side (A row-major, B column-major).
enum AlongK {}

impl Way for AlongK {
    type Layout = KMajor<DEPTH>;

    const ALONG_K: bool = true;
}

/// m side by side (n of B).
enum AcrossK {}

impl Way for AcrossK {
    type Layout = MnMajor<DEPTH>;

    const ALONG_K: bool = false;
}

/// Tiles of `TILE_ROWS x TILE_COLS` elements of C, one after the other.
#[inline(always)]
#[track_caller]
fn multiply<
    T: Factor,
    A: Way,
    B: Way,
    C: Stored<Real = f32>,
    const TILE_ROWS: usize,
    const TILE_COLS: usize,
    const STAGES: usize,
    const STAGED: usize,
>(
    problem: &Problem,
    (a, b): (&In<T>, &In<T>),
    (c, bias): (&mut Out<C>, &In<C>),
    pipeline: &Pipeline<STAGES>,
    staged: &mut Shared<f32, STAGED, { output::PITCH }>,
) {
    const {
        assert!(TILE_ROWS.is_multiple_of(GROUP) && TILE_COLS.is_multiple_of(GROUP));
        assert!(STAGED == TILE_ROWS, "each row of the tile is that of one warp");
    }
    let mut tiles = dynamic_shared![T];
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize;
    let groups = TILE_ROWS / GROUP;
    let of_team = team(TILE_ROWS, TILE_COLS);
    let stages = problem.k.div_ceil(DEPTH as u32);
    let mut walk = Walk::<TILE_ROWS, TILE_COLS, 1>::new(problem, 0);

    if t == 0 {
        pipeline.init_for_writers(of_team as u32, groups as u32);
    }
    thread::sync_threads();
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if warp >= 4 * groups {
        let (team, half) = ((warp - 4 * groups) / of_team, (warp - 4 * groups) % of_team);
        let mut producer = pipeline.producer();
        // The team whose turn it is.
        let mut turn = 0;
        while let Some((product, row, col)) = walk.next() {
            let Problem { m, n, k, .. } = *problem;
            let (from, place, half_of_operand) = match half < TILE_ROWS / HALF {
                true => {
                    let [between_outer, between_steps] = problem.a;
                    let start = product as usize * problem.batch[0] as usize;
                    let (along_k, count) = (A::ALONG_K, (m, k));
                    (
                        *a,
                        Place { along_k, between_outer, between_steps, start, count, outer: row },
                        half,
                    )
                }
                false => {
                    let [between_steps, between_outer] = problem.b;
                    let start = product as usize * problem.batch[1] as usize;
                    let (along_k, count) = (B::ALONG_K, (n, k));
                    let place =
                        Place { along_k, between_outer, between_steps, start, count, outer: col };
                    (*b, place, half - TILE_ROWS / HALF)
                }
            };
            let rows = Rows::new(from, place, half_of_operand);
            for stage in 0..stages {
                if turn == team {
                    let fetched = rows.fetch(stage);
                    let at = producer.acquire_warp() * ((TILE_ROWS + TILE_COLS) * DEPTH);
                    // B's groups lie behind A's.
                    rows.put(stage, &fetched, &mut tiles, at + half / 2 * GROUP * DEPTH);
                    producer.filled_warp();
                }
                turn = (turn + 1) % TEAMS;
                producer.advance();
            }
        }
        return;
    }

    let (mut next, mut read) = (pipeline.consumer(), pipeline.consumer());
    while let Some((product, row, col)) = walk.next() {
        let mut sums = Accumulators::<TILE_COLS>::zeroed();
        let sums = add_products::<_, A::Layout, B::Layout, _, TILE_ROWS, TILE_COLS, STAGES>(
            &tiles,
            (warp / 4, warp % 4),
            stages,
            (&mut next, &mut read),
            &mut sums,
        );
        let mut epilogue = Epilogue::of_product(problem, product as usize, c, bias);
        let first = (row as usize + warp / 4 * GROUP, col as usize);
        output::store_anywhere(sums, staged, &mut epilogue, first);
    }
}

/// A kernel, as those of [`entries`](super::entries): A and B are views.
macro_rules! gathered {
    ($name:ident: $t:ident -> $c:ident, $rows:tt x $cols:tt, $stages:tt stages, $a:ident, $b:ident) => {
        #[doc = concat!("A and B of [`", stringify!($t), "`] with rows that begin anywhere, C of [`", stringify!($c), "`], tiles of ",
            $rows, " x ", $cols, " elements; A lies [`", stringify!($a), "`], B [`", stringify!($b), "`].")]
        #[kernel(
            block = (128 * ($rows / GROUP) + 32 * TEAMS * team($rows, $cols)),
            dynamic_shared = $stages * DEPTH * ($rows + $cols) * size_of::<$t>(),
            shared = $rows * output::PITCH * size_of::<f32>() + $stages * 2 * size_of::<u64>(),
            barriers = 1,
            min_blocks = 1,
            arch = 90,
            dependent
        )]
        pub fn $name(problem: Problem, a: In<$t>, b: In<$t>, mut c: Out<$c>, bias: In<$c>) {
            let (out, ring) = ((&mut c, &bias), pipeline![$stages]);
            let mut staged = shared![f32; $rows, output::PITCH];
            multiply::<_, $a, $b, _, $rows, $cols, $stages, $rows>(&problem, (&a, &b), out, &ring, &mut staged);
        }
    };
}

gathered! { gemm_wgmma_any_64x128_nn:           Bf16 -> Bf16,  64 x 128, 4 stages, AlongK, AcrossK }
gathered! { gemm_wgmma_any_64x128_nt:           Bf16 -> Bf16,  64 x 128, 4 stages, AlongK, AlongK }
gathered! { gemm_wgmma_any_64x128_tn:           Bf16 -> Bf16,  64 x 128, 4 stages, AcrossK, AcrossK }
gathered! { gemm_wgmma_any_64x128_tt:           Bf16 -> Bf16,  64 x 128, 4 stages, AcrossK, AlongK }
gathered! { gemm_wgmma_any_f32_64x128_nn:       Bf16 -> f32,   64 x 128, 4 stages, AlongK, AcrossK }
gathered! { gemm_wgmma_any_f32_64x128_nt:       Bf16 -> f32,   64 x 128, 4 stages, AlongK, AlongK }
gathered! { gemm_wgmma_any_f32_64x128_tn:       Bf16 -> f32,   64 x 128, 4 stages, AcrossK, AcrossK }
gathered! { gemm_wgmma_any_f32_64x128_tt:       Bf16 -> f32,   64 x 128, 4 stages, AcrossK, AlongK }
gathered! { gemm_wgmma_any_f16_64x128_nn:       F16 -> F16,    64 x 128, 4 stages, AlongK, AcrossK }
gathered! { gemm_wgmma_any_f16_64x128_nt:       F16 -> F16,    64 x 128, 4 stages, AlongK, AlongK }
gathered! { gemm_wgmma_any_f16_64x128_tn:       F16 -> F16,    64 x 128, 4 stages, AcrossK, AcrossK }
gathered! { gemm_wgmma_any_f16_64x128_tt:       F16 -> F16,    64 x 128, 4 stages, AcrossK, AlongK }
gathered! { gemm_wgmma_any_f16_f32_64x128_nn:   F16 -> f32,    64 x 128, 4 stages, AlongK, AcrossK }
gathered! { gemm_wgmma_any_f16_f32_64x128_nt:   F16 -> f32,    64 x 128, 4 stages, AlongK, AlongK }
gathered! { gemm_wgmma_any_f16_f32_64x128_tn:   F16 -> f32,    64 x 128, 4 stages, AcrossK, AcrossK }
gathered! { gemm_wgmma_any_f16_f32_64x128_tt:   F16 -> f32,    64 x 128, 4 stages, AcrossK, AlongK }
