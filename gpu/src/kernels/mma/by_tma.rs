//! The main loop of f64 with operands that TMA copies: Hopper, 16-byte aligned rows.
//!
//! * **Four warps** of a block multiply. Each issues the copies of one of the four stages. No
//!   thread computes an address in global memory, and no barrier of the block is in the loop: a
//!   warp waits for the mbarrier of a stage.
//! * **The loop** over k has all four stages in its code. So where a stage is, and its mbarriers,
//!   are numbers in the instructions: computing them took as long as seven of 32 instructions that
//!   multiply. (But where the next stage's first fragments are: after the last stage there is no
//!   next one. Leaving the loop before them makes 128 x 64 spill.)
//! * **Two blocks** or more share an SM. So one multiplies while the other stores its tile.
//! * **A fragment** is loaded while the one before it is multiplied.
//! * **Sums** go from registers to C where C is `alpha A B`, 16-byte aligned, and its rows are a
//!   multiple of 32 bytes apart. Otherwise they are staged, as in the other kernels of the family.

pub use super::boxes::DEPTH;
use super::{
    boxes::{self, Elements, HALVES, Places},
    collective::epilogue::Epilogue,
    device::{mma::Accumulators, *},
    epilogue,
    stream::{tile_of_block, warp_of_block},
    tile::SIDE,
};
use crate::params::GemmParams;

/// Warps of a block.
pub const WARPS: usize = 4;

/// Stages of the pipeline: one for each warp, which fills it.
pub const STAGES: usize = WARPS;

/// Elements of a slab: `DEPTH` k-steps of A and of B.
pub const fn slab_len(rows: usize, cols: usize) -> usize {
    (rows + cols) * DEPTH
}

/// Where the tile of a block is, and what fills its stages.
struct Source<'a> {
    a: (&'a TensorMap<f64>, bool),
    b: (&'a TensorMap<f64>, bool),
    /// The product of the batch, and the first row and column.
    tile: (u32, u32, u32),
}

impl Source<'_> {
    /// Issues the copies of a stage: `SLABS` times `DEPTH` k-steps from `p` on.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const ROWS: usize, const COLS: usize, const SLABS: usize>(
        &self,
        tiles: &mut DynamicShared<f64>,
        at: usize,
        p: u32,
        done: Mbarrier,
    ) {
        let (product, row, col) = self.tile;
        for slab in 0..SLABS {
            let (at, p) = (at + slab * slab_len(ROWS, COLS), p + (slab * DEPTH) as u32);
            boxes::load::<ROWS>((tiles, at), self.a, (product, row, p), done);
            boxes::load::<COLS>((tiles, at + ROWS * DEPTH), self.b, (product, col, p), done);
        }
    }
}

/// What a warp multiplies with.
struct Operands {
    tiles: DynamicShared<f64>,
    rows: Places,
    cols: Places,
}

/// Fragments of B of a warp: 32 columns.
pub const N: usize = 2;

/// The fragments of a warp in registers.
struct Fragments<const M: usize> {
    a: [Elements; M],
    b: [Elements; N],
}

/// The first element of a slab in shared memory, and the half of its k-steps.
type Half = (usize, usize);

impl Operands {
    /// Loads the fragments of half a slab.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn fragments<const M: usize>(&self, half: Half) -> Fragments<M> {
        Fragments {
            a: core::array::from_fn(|i| self.rows.elements(&self.tiles, half, i)),
            b: core::array::from_fn(|j| self.cols.elements(&self.tiles, half, j)),
        }
    }

    /// Multiplies fragments, and loads those of the next half. `begun` is called after the first
    /// product, before the first load.
    ///
    /// The instruction takes long to read its registers, and a load into them waits for that. So a
    /// fragment of A is loaded before the last product of the one before it in the same place: into
    /// other registers.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn multiply<const M: usize>(
        &self,
        fragments: &mut Fragments<M>,
        sums: &mut Accumulators<M, N, f64>,
        next: Half,
        begun: impl FnOnce(),
    ) {
        let mut begun = Some(begun);
        let mut next_b = [[0.0; 4]; N];
        unrolled!(for i in [0 1 2 3] {
            if i < M {
                let a = boxes::fragment(fragments.a[i]);
                let [left, right] = fragments.b.map(boxes::fragment);
                sums.multiply_add_one((i, 0), &a, &left);
                if i == 0
                    && let Some(begun) = begun.take()
                {
                    begun();
                }
                let next_a = self.rows.elements(&self.tiles, next, i);
                sums.multiply_add_one((i, 1), &a, &right);
                fragments.a[i] = next_a;
                // Of B as many after each row.
                let each = const { 4 * N / M };
                for load in i * each..(i + 1) * each {
                    let (j, e) = (load / 4, load % 4);
                    next_b[j][e] = self.cols.element(&self.tiles, next, j, e);
                }
            }
        });
        fragments.b = next_b;
    }
}

/// Computes a tile of `ROWS x COLS` elements of C. A warp computes `16 M x 32` of them. A stage has
/// `SLABS` times sixteen k-steps.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn multiply<const ROWS: usize, const COLS: usize, const M: usize, const SLABS: usize>(
    problem: &GemmParams,
    (a, b): (&TensorMap<f64>, &TensorMap<f64>),
    (c, bias): (&mut Out<f64>, &In<f64>),
    pipeline: &Pipeline<STAGES>,
    [a_k_major, b_k_major]: [bool; 2],
) {
    const {
        assert!(HALVES == 2 && STAGES == 4 && N == 2 && M <= 4 && (4 * N).is_multiple_of(M));
        assert!(ROWS / (SIDE * M) * (COLS / (SIDE * N)) == WARPS, "each warp has a part");
        let staged = epilogue::staged_len(WARPS * 32, N);
        assert!(staged <= STAGES * SLABS * slab_len(ROWS, COLS), "in place of the stages");
    }
    let tiles = dynamic_shared![f64];
    let t = thread::thread_idx_x();
    if t == 0 {
        pipeline.init(WARPS as u32);
    }
    if t == 32 {
        a.prefetch();
        b.prefetch();
    }
    thread::sync_threads();
    // Nothing before this point depends on earlier launches.
    grid::wait_for_earlier();

    let (first_row, first_col) = tile_of_block::<ROWS, COLS>(problem);
    let (warp, of_warp) = warp_of_block::<ROWS, M, N>();
    let source = Source {
        a: (a, a_k_major),
        b: (b, b_k_major),
        tile: (thread::block_idx_z(), first_row as u32, first_col as u32),
    };
    let stage_len = SLABS * slab_len(ROWS, COLS);
    let bytes = (stage_len * size_of::<f64>()) as u32;
    let mut operands = Operands {
        tiles,
        rows: Places::new(a_k_major, of_warp.0),
        cols: Places::new(b_k_major, ROWS + of_warp.1),
    };
    let steps = (SLABS * DEPTH) as u32;
    // Each warp fills one of the stages.
    let own = pipeline.part::<1>(warp);
    let mut producer = own.producer();
    let mut left = problem.k.div_ceil(steps);
    let mut p = warp as u32 * steps;
    // The last stage stays free. It is filled when the first one has been read, and so on.
    if (warp as u32) < left.min(STAGES as u32 - 1) {
        if warp::elect() {
            producer.announce(bytes);
            source.load::<ROWS, COLS, SLABS>(
                &mut operands.tiles,
                warp * stage_len,
                p,
                producer.full(),
            );
        }
        producer.advance();
        p += STAGES as u32 * steps;
    }

    let mut sums = Accumulators::<M, N, f64>::zeroed();
    // A pipeline for each stage: then its number is a constant.
    let stages: [_; STAGES] = core::array::from_fn(|stage| pipeline.part::<1>(stage));
    let mut consumers = stages.each_ref().map(|stage| stage.consumer());
    if left > 0 {
        consumers[0].wait_warp();
        let mut fragments = operands.fragments::<M>((0, 0));
        'all: loop {
            unrolled!(for stage in [0 1 2 3] {
                let (next, before) = ((stage + 1) % STAGES, (stage + STAGES - 1) % STAGES);
                for half in 1..SLABS * HALVES {
                    let slab = stage * stage_len + half / HALVES * slab_len(ROWS, COLS);
                    operands.multiply(&mut fragments, &mut sums, (slab, half % HALVES), || ());
                }
                left -= 1;
                // The last fragments of the stage are in registers.
                let begun = || {
                    consumers[stage].release_read_warp();
                    if left > 0 {
                        consumers[next].wait_warp();
                    }
                };
                // After the last stage nobody uses what is read here: this stage's, since the next
                // one may never have been written.
                let ahead = if left > 0 { next } else { stage };
                operands.multiply(&mut fragments, &mut sums, (ahead * stage_len, 0), begun);
                if left == 0 {
                    break 'all;
                }
                consumers[stage].advance();
                // Everybody has read the stage before this one.
                if warp == before && left >= STAGES as u32 - 1 {
                    producer.acquire_read_warp();
                    if warp::elect() {
                        producer.announce(bytes);
                        let at = before * stage_len;
                        source.load::<ROWS, COLS, SLABS>(
                            &mut operands.tiles,
                            at,
                            p,
                            producer.full(),
                        );
                    }
                    producer.advance();
                    p += STAGES as u32 * steps;
                }
            });
        }
    }

    // Not earlier: the next launch's blocks would take the places that this one leaves free on some
    // SMs, and then its other blocks crowd on the SMs that end first.
    grid::let_next_begin();
    // Everybody has read the last stages. Staged sums take their place. (Every specialisation comes
    // to this barrier.)
    thread::sync_threads();
    let mut epilogue = Epilogue::new(problem, c, bias);
    let first = (first_row + of_warp.0, first_col + of_warp.1);
    let places = boxes::SumsOfLane::new(a_k_major, b_k_major);
    if epilogue.is_wide() && epilogue.is_scaled_tile(first, (SIDE * M, SIDE * N)) {
        let alpha = epilogue.alpha();
        let mut store = |i: usize, j: usize, sums: &[f64; 8]| {
            for (row, col, four) in places.fours(sums) {
                let row = first.0 + i * SIDE + row as usize;
                for (col, two) in places.by_sectors(col, four) {
                    let at = epilogue.place((row, first.1 + j * SIDE + col as usize));
                    epilogue.c().store128(at, two.map(|sum| alpha * sum));
                }
            }
        };
        sums.for_each_sixteen_of::<0>(|j, sums| store(0, j, sums));
        sums.for_each_sixteen_of::<1>(|j, sums| store(1, j, sums));
        sums.for_each_sixteen_of::<2>(|j, sums| store(2, j, sums));
        sums.for_each_sixteen_of::<3>(|j, sums| store(3, j, sums));
        return;
    }
    epilogue::store(&sums, warp, &mut epilogue, first, |sums| places.pairs(sums), None);
}
