//! Warp roles, for any split scheme. In a block, one warp is the producer, up to two compute error
//! bounds, and one or two warpgroups multiply.

use super::{
    collective::{
        ordered_barrier::OrderedBarrier,
        tma::TmaOperand,
        wgmma_shape::{BLOCK_K, WGMMA_M},
    },
    device::{
        warpgroup::{Operand as InShared, *},
        *,
    },
    recompute::{Originals, PITCH},
    stream_counters,
    two_widths::Tiles,
};
use crate::params::GemmParams;

/// How f32 is split into slices, and how their products are summed.
pub trait SplitScheme: Sized {
    /// The type of the slices, and of what is known of their patches.
    type Element: Factor<Sum = f32>;

    /// Slices of a number.
    const SLICES: usize;

    /// Whether clusters keep pace ([`grid::Pace`]).
    const IS_PACED: bool;

    /// The error bound of 64 rows and `COLS` columns, in the form that [`compute`](Self::compute)
    /// reads. The first element is (product, row, col). All lanes of a warp call this.
    fn error_bound<A: Layout, B: Layout, const COLS: usize>(
        problem: &GemmParams,
        patches: Patches<Self>,
        place: (u32, u32, u32),
    ) -> [u32; 2];

    /// Computes a warpgroup's tiles of `COLS` columns. A stage has room for `MOST` columns.
    fn compute<
        A: Layout,
        B: Layout,
        S: Scope,
        W: Tiles,
        const STAGES: usize,
        const GROUPS: usize,
        const TILE_ROWS: usize,
        const COLS: usize,
        const MOST: usize,
    >(
        args: &mut TileArguments<Self, S, STAGES, GROUPS, TILE_ROWS>,
        order: &OrderedBarrier,
        ring: &mut Ring<STAGES, S>,
    );
}

/// What the splitting kernel has written about the patches of A and of B.
pub type Patches<'a, K> =
    (&'a In<<K as SplitScheme>::Element>, &'a In<<K as SplitScheme>::Element>);

/// The arguments of all tiles.
pub struct TileArguments<
    'a,
    K: SplitScheme,
    S: Scope,
    const STAGES: usize,
    const GROUPS: usize,
    const STAGED: usize,
> {
    /// The product's parameters.
    pub problem: &'a GemmParams,
    /// A and B themselves.
    pub originals: Originals<'a>,
    /// What is known of their patches.
    pub patches: Patches<'a, K>,
    /// C.
    pub c: &'a mut Out<f32>,
    /// The bias.
    pub bias: &'a In<f32>,
    /// The pipeline of slices.
    pub pipeline: &'a Pipeline<STAGES, S>,
    /// The error bounds.
    pub bounds: &'a mut ErrorBounds<GROUPS>,
    /// The staged sums.
    pub staged: &'a mut Shared<f32, STAGED, PITCH>,
}

/// The error bound of the next tile, for each consumer warpgroup. An idle warp computes it while
/// the tile before is multiplied. It is a pipeline of one stage for each warpgroup.
pub struct ErrorBounds<const GROUPS: usize> {
    /// One stage for each warpgroup.
    pub rings: Pipeline<GROUPS>,
    /// Two words for each warpgroup.
    pub words: Shared<u32, GROUPS, 2>,
}

impl<const GROUPS: usize> ErrorBounds<GROUPS> {
    /// Reads the error bound of the next tile for a warpgroup. All lanes of its warps call this.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn read(&self, group: usize, ring: &mut Consumer<1>) -> [u32; 2] {
        ring.wait_warp();
        let words = [0, 1].map(|word| self.words[(group, word)]);
        // Each thread releases for itself: racecheck does not accept one lane's release for the
        // reads of others.
        ring.release();
        ring.advance();
        words
    }
}

/// A warpgroup's place in the pipeline of slices, and in that of its error bounds.
pub struct Ring<'p, const STAGES: usize, S> {
    /// The next slices to be multiplied.
    pub next: Consumer<'p, STAGES, S>,
    /// The next slices to be released.
    pub read: Consumer<'p, STAGES, S>,
    /// The next error bound.
    pub bounds: Consumer<'p, 1>,
}

impl<const STAGES: usize, S: Scope> Ring<'_, STAGES, S> {
    /// Waits for the next slices, and returns them: the warpgroup's 64 rows of A, and B. A stage
    /// has `ROWS` rows and room for `MOST` columns. All lanes of a warp call this.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn slice<
        E: Factor<Sum = f32>,
        A: Layout,
        B: Layout,
        const ROWS: usize,
        const MOST: usize,
    >(
        &mut self,
        group: usize,
    ) -> (InShared<E, A>, InShared<E, B>) {
        let tiles = dynamic_shared![E];
        let (len_a, len) = const { stage_lens(ROWS, MOST) };
        let at = self.next.wait_warp() * len;
        self.next.advance();
        (tiles.operand::<A>(at + group * WGMMA_M * BLOCK_K), tiles.operand::<B>(at + len_a))
    }

    /// Releases the oldest slices. All warps of the warpgroup call this with their number.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn release(&mut self, warp: usize) {
        // The tensor cores have read for the whole warpgroup.
        if warp == 0 {
            self.read.release_multiplied();
        }
        self.read.advance();
    }
}

/// Elements of a stage: of A, and of A and B together.
pub const fn stage_lens(rows: usize, cols: usize) -> (usize, usize) {
    (rows * BLOCK_K, (rows + cols) * BLOCK_K)
}

/// Initialises the pipelines of a block with `GROUPS` consumer warpgroups, and waits for earlier
/// launches.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn begin<S: Scope, const BLOCKS: usize, const STAGES: usize, const GROUPS: usize>(
    pipeline: &Pipeline<STAGES, S>,
    bounds: &Pipeline<GROUPS>,
) {
    if thread::thread_idx_x() == 0 {
        pipeline.init(GROUPS as u32);
        // Written by one warp, read by the 128 threads of a warpgroup.
        bounds.init_for_writers(1, 128);
    }
    match BLOCKS {
        1 => thread::sync_threads(),
        _ => cluster::sync(),
    }
    // Nothing before this point depends on earlier launches.
    grid::let_next_begin();
    grid::wait_for_earlier();
}

/// Computes the error bounds of all tiles of `COLS` columns, for a warpgroup. All lanes of a warp
/// call this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn find_bounds<
    K: SplitScheme,
    A: Layout,
    B: Layout,
    S: Scope,
    W: Tiles,
    const STAGES: usize,
    const GROUPS: usize,
    const TILE_ROWS: usize,
    const COLS: usize,
>(
    args: &mut TileArguments<K, S, STAGES, GROUPS, TILE_ROWS>,
    group: usize,
    ring: &mut Producer<1>,
) {
    let problem = args.problem;
    let mut scheduler = W::new(problem);
    while !scheduler.are_done(problem) {
        let (product, row, col) = scheduler.place(problem);
        let place = (product, row + (group * WGMMA_M) as u32, col);
        let words = K::error_bound::<A, B, COLS>(problem, args.patches, place);
        ring.acquire_warp();
        if warp::elect() {
            for i in 0..2 {
                args.bounds.words[(group, i)] = words[i];
            }
        }
        ring.filled_warp();
        ring.advance();
        scheduler.advance(problem);
    }
}

/// The producer: copies the slices of tiles of `COLS` columns to the pipeline, whose stages have
/// room for `MOST`. All lanes of a warp call this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn copy<
    K: SplitScheme,
    A: TmaOperand<Element = K::Element>,
    B: TmaOperand<Element = K::Element>,
    W: Tiles,
    const BLOCKS: usize,
    const STAGES: usize,
    const COLS: usize,
    const MOST: usize,
>(
    (a, b): (&A, &B),
    problem: &GemmParams,
    mut counters: Out<u32>,
    producer: &mut Producer<STAGES>,
) {
    const {
        assert!(B::TILE * BLOCKS == COLS, "a cluster's blocks copy columns for each other");
        assert!(COLS <= MOST, "a stage has room for the tile");
    }
    let mut tiles = dynamic_shared![K::Element];
    let (len_a, len) = const { stage_lens(A::TILE, MOST) };
    let bytes = const { stage_lens(A::TILE, COLS).1 * size_of::<K::Element>() };
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let mut scheduler = W::new(problem);
    let rounds = if K::IS_PACED && BLOCKS > 1 { scheduler.rounds(problem) } else { None };
    // One thread of the cluster sets the pace. The copies of the other block wait for the same
    // readers.
    let sets_pace = rounds.is_some() && rank == 0;
    let mut pace = grid::Pace::new(cluster::numbers().1, rounds.unwrap_or(0));
    let mut arrive = |count: u32| counters.atomic_add(stream_counters::PACE, count);
    while !scheduler.are_done(problem) {
        let (product, row, col) = scheduler.place(problem);
        if sets_pace && warp::elect() {
            pace.wait(&mut arrive);
        }
        for stage in 0..problem.k.div_ceil(BLOCK_K as u32) {
            let p = stage * BLOCK_K as u32;
            for slice in (0..K::SLICES as u32).rev() {
                let at = producer.acquire_warp() * len;
                if warp::elect() {
                    let plane = product * K::SLICES as u32 + slice;
                    producer.announce(bytes as u32);
                    a.load::<1>(&mut tiles, at, (plane, row, p), 0, producer.full());
                    b.load_part::<BLOCKS>(
                        &mut tiles,
                        at + len_a,
                        (plane, col, p),
                        rank,
                        producer.full(),
                    );
                }
                producer.advance();
            }
        }
        scheduler.advance(problem);
    }
    if sets_pace && warp::elect() {
        pace.finish(arrive);
    }
}
