//! What the warps of a block do, whatever the slices are of: one copies, some find out how far sums can be relied on, and two
//! warpgroups multiply, or one.

use super::{
    collective::{
        ordered_barrier::OrderedBarrier,
        tma::Operand,
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

/// A kind of slices, and how their products are summed.
pub trait SplitScheme: Sized {
    /// What slices are of, and what is written of their patches.
    type Element: Factor;

    /// Slices of a number.
    const SLICES: usize;

    /// Do clusters keep step ([`grid::Pace`])?
    const IS_PACED: bool;

    /// How far sums of 64 rows and `COLS` columns can be relied on, the first of which is (product, row, col): what
    /// [`compute`](Self::compute) is told. All lanes of a warp come here.
    fn error_bound<A: Layout, B: Layout, const COLS: usize>(
        problem: &GemmParams,
        patches: Patches<Self>,
        place: (u32, u32, u32),
    ) -> [u32; 2];

    /// Computes the tiles of `COLS` columns that are a warpgroup's, from a ring whose stages have place for such of `MOST`.
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

/// What the pass that cuts has written of A's patches, and of B's.
pub type Patches<'a, K> =
    (&'a In<<K as SplitScheme>::Element>, &'a In<<K as SplitScheme>::Element>);

/// What all tiles are computed of, and where to.
pub struct TileArguments<
    'a,
    K: SplitScheme,
    S: Scope,
    const STAGES: usize,
    const GROUPS: usize,
    const STAGED: usize,
> {
    /// The products.
    pub problem: &'a GemmParams,
    /// A and B.
    pub originals: Originals<'a>,
    /// Of these what the pass that cuts has written.
    pub patches: Patches<'a, K>,
    /// C.
    pub c: &'a mut Out<f32>,
    /// What is added to it.
    pub bias: &'a In<f32>,
    /// The ring of slices.
    pub pipeline: &'a Pipeline<STAGES, S>,
    /// What is known of sums.
    pub bounds: &'a mut ErrorBounds<GROUPS>,
    /// Sums on their way to C.
    pub staged: &'a mut Shared<f32, STAGED, PITCH>,
}

/// How far the sums of the next tile can be relied on, for each warpgroup that multiplies: found by warps that have nothing else to
/// do, while the tile before is multiplied. A ring of one stage for each.
pub struct ErrorBounds<const GROUPS: usize> {
    /// A stage for each.
    pub rings: Pipeline<GROUPS>,
    /// Two words for each.
    pub words: Shared<u32, GROUPS, 2>,
}

impl<const GROUPS: usize> ErrorBounds<GROUPS> {
    /// Those of the next tile, for a warpgroup of that number. All lanes of its warps come here.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn read(&self, group: usize, ring: &mut Consumer<1>) -> [u32; 2] {
        ring.wait_warp();
        let words = [0, 1].map(|word| self.words[(group, word)]);
        // Each thread by itself: where one lane speaks for its warp, racecheck takes the other lanes' reads as not ordered.
        ring.release();
        ring.advance();
        words
    }
}

/// A warpgroup's two turns in the ring, of what is begun next and of what has been read; and its turn in its bounds'.
pub struct Ring<'p, const STAGES: usize, S> {
    /// The next slices that products are begun of.
    pub next: Consumer<'p, STAGES, S>,
    /// The next that the tensor cores will have read.
    pub read: Consumer<'p, STAGES, S>,
    /// The next tile's bounds.
    pub bounds: Consumer<'p, 1>,
}

impl<const STAGES: usize, S: Scope> Ring<'_, STAGES, S> {
    /// Where the next slice of A lies, a warpgroup's 64 rows of so many, and that of B, in stages with place for `MOST` columns. All
    /// lanes of a warp come here, and wait for it.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn slice<E: Factor, A: Layout, B: Layout, const ROWS: usize, const MOST: usize>(
        &mut self,
        group: usize,
    ) -> (InShared<E, A>, InShared<E, B>) {
        let tiles = dynamic_shared![E];
        let (len_a, len) = const { stage_lens(ROWS, MOST) };
        let at = self.next.wait_warp() * len;
        self.next.advance();
        (tiles.operand::<A>(at + group * WGMMA_M * BLOCK_K), tiles.operand::<B>(at + len_a))
    }

    /// Nobody of the warpgroup reads the next slices any more. All of its warps come here, each with its number.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn release(&mut self, warp: usize) {
        // The tensor cores have read for all of the warpgroup.
        if warp == 0 {
            self.read.release_multiplied();
        }
        self.read.advance();
    }
}

/// Elements of a stage: of A, and of A and of B.
pub const fn stage_lens(rows: usize, cols: usize) -> (usize, usize) {
    (rows * BLOCK_K, (rows + cols) * BLOCK_K)
}

/// Prepares the ring of a block with so many warpgroups that multiply, and waits for the launch that cuts.
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
    // Up to here nothing of this launch depends on the ones before it.
    grid::let_next_begin();
    grid::wait_for_earlier();
}

/// Writes a warpgroup's bounds of all its tiles of `COLS` columns. All lanes of a warp come here.
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

/// Copies what tiles of `COLS` columns are computed of to the ring, whose stages have place for such of `MOST`. All lanes of a warp
/// come here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn copy<
    K: SplitScheme,
    A: Operand<Element = K::Element>,
    B: Operand<Element = K::Element>,
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
        assert!(COLS <= MOST, "a stage of the ring has place for it");
    }
    let mut tiles = dynamic_shared![K::Element];
    let (len_a, len) = const { stage_lens(A::TILE, MOST) };
    let bytes = const { stage_lens(A::TILE, COLS).1 * size_of::<K::Element>() };
    let rank = if BLOCKS == 1 { 0 } else { cluster::block_rank() };
    let mut scheduler = W::new(problem);
    let rounds = if K::IS_PACED && BLOCKS > 1 { scheduler.rounds(problem) } else { None };
    // One thread of the cluster's: its other block's copies wait for the same readers.
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
                    a.load::<1>(&mut tiles, at, plane, (row, p), producer.full());
                    b.load_part::<BLOCKS>(
                        &mut tiles,
                        at + len_a,
                        plane,
                        (col, p),
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
