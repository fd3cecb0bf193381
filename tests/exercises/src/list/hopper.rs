//! Hopper: rungs `tensor_tma` to `tensor_tma_store`.

use simt::check::Kind::*;

use crate::{
    counter::{Counter, Limit::*, Measure},
    exercise::{Exercise, Fails, exercise},
    problem::{BOXES, Grid, Launch, Problem, swizzled},
};

const TILED64: Launch = Launch::product(64, 64);
/// Two warpgroups, one below the other.
const WIDE: Launch = Launch::product(128, 64);
/// Two blocks for all tiles.
const PERSISTENT: Launch =
    Launch { problem: Problem::Product, grid: Grid::Blocks(2), boxes: BOXES };
/// Clusters of two blocks, one below the other. A box of B has half of the k-steps.
const CLUSTERS: Launch = Launch {
    problem: Problem::Product,
    grid: Grid::Clusters(128, 64, 2),
    boxes: [swizzled(64, 64), swizzled(32, 64), swizzled(16, 64)],
};
const SHAPES: &[[usize; 3]] = &[[64, 64, 384], [40, 72, 200], [64, 64, 64]];
const SHAPES_OF_TILES: &[[usize; 3]] = &[[192, 128, 128], [40, 200, 200], [320, 128, 64]];
const SHAPES_OF_CLUSTERS: &[[usize; 3]] = &[[128, 64, 256], [150, 72, 200], [64, 64, 64]];
/// An instruction of `wgmma` multiplies 64 x 64 x 16, and counts for four warps.
const WGMMA: Counter = Counter { measure: Measure::Mma, limit: AtMost(0.25) };
const ONE_BARRIER: Counter = Counter { measure: Measure::BlockBarriers, limit: AtMost(1.0) };
/// While a stage's MMAs are in flight, those of the next one are queued.
const PRODUCTS_LEFT: Counter = Counter { measure: Measure::ProductsLeft, limit: AtLeast(60.0) };
const TMA_AHEAD: Counter = Counter { measure: Measure::TmaAhead, limit: AtLeast(60.0) };
/// A tile's box is read while the next tile is multiplied.
const BEHIND: Counter = Counter { measure: Measure::StoresBehind, limit: AtLeast(60.0) };
/// Of two blocks each has half of the tiles, be it the first or the other.
const HALF: Counter = Counter { measure: Measure::LargestShare, limit: AtMost(60.0) };
/// Each block of a cluster loads half of B, for both.
const HALF_OF_B: Counter = Counter { measure: Measure::TmaLoads, limit: AtMost(98304.0) };
/// And each block of a cluster half of the copies.
const HALF_OF_LOADS: Counter = Counter { measure: Measure::LargestLoad, limit: AtMost(60.0) };
/// Two stages and four mbarriers. With an mbarrier for each phase nobody needs a parity.
const FOUR_MBARRIERS: Counter =
    Counter { measure: Measure::Shared, limit: AtMost((2 * 2 * BOX + 4 * 8) as f64) };
/// Bytes of a box of 64 x 64.
const BOX: u32 = 64 * 64 * 2;

/// Stages of a box of A and one of B. With more stages than phases nothing is filled again.
const fn stages(most: u32) -> Counter {
    Counter { measure: Measure::Stages(2 * BOX), limit: AtMost(most as f64) }
}

/// Two of them at least.
const TWO_STAGES: Counter = Counter { measure: Measure::Stages(2 * BOX), limit: AtLeast(2.0) };

pub(super) static EXERCISES: &[Exercise] = &[
    exercise!(bytes_of_a_stage {
        rung: "tensor_tma",
        idea: "an mbarrier's phase ends when the announced bytes have come",
        task: "A stage is two boxes of 8 KiB, and half of that is announced. When does the phase end?",
        hint: "Announce the bytes of both boxes: BYTES.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[Counter { measure: Measure::TmaLoads, limit: AtMost(98304.0) }],
        fails: Fails::Findings(&[ReadAfterWrite, WriteAfterWrite, Panic, NeverRead, NeverWritten]),
    }),
    exercise!(place_of_a_box {
        rung: "tensor_tma",
        idea: "a box begins at a row and a column of its matrix",
        task: "The first box of B is right, and the others are not. A box is at (matrix, row, column). What are the \
               rows of B?",
        hint: "B is k x n: its rows are k-steps.",
        launch: TILED64,
        shapes: &[[64, 128, 384], [40, 72, 200]],
        counters: &[WGMMA],
        fails: Fails::Findings(&[NeverRead]),
    }),
    exercise!(init_before_use {
        rung: "tensor_tma",
        idea: "nobody waits at an mbarrier before it is initialised",
        task: "Thread 0 initialises the mbarriers, and the others go on to wait there. What tells them that it has?",
        hint: "A barrier of the block after fence_init.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[WGMMA],
        fails: Fails::Findings(&[ReadAfterWrite]),
    }),
    exercise!(parity_of_a_round {
        rung: "tensor_tma",
        idea: "the parity of an mbarrier's phase turns every round",
        task: "All threads wait for parity 0, the first round's. What does that tell them in the second round, and in \
               the third?",
        hint: "With two stages phase p is in round p / 2, and the parity is that of the round.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[WGMMA, stages(2), FOUR_MBARRIERS],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(stage_filled_again {
        rung: "tensor_tma",
        idea: "a stage is filled again when its products have ended",
        task: "Thread 0 begins the copies of phase p + 2 as soon as the products of phase p have begun. They go to the \
               same stage. What must it wait for? Keep two stages: one is filled while the other is read.",
        hint: "wait::<0>(): the products have ended, and so the stage has been read.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[
            WGMMA,
            Counter { measure: Measure::Barriers(64), limit: AtMost(1.25) },
            TMA_AHEAD,
            stages(2)
        ],
        fails: Fails::Findings(&[ReadAfterWrite]),
    }),
    exercise!(stages_released {
        rung: "tensor_producer",
        idea: "a ring: consumers release what they have read",
        task: "The producer fills three stages, and waits for ever. The consumers must release the stages. Keep two \
               stages' products in flight: release the stage before.",
        hint: "A second consumer, `read`, is one stage behind. After wait::<1>() only this stage's products are in \
               flight: warp 0 calls read.release_multiplied(), and all call read.advance().",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, WGMMA, PRODUCTS_LEFT, stages(3)],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(arrivals_of_a_stage {
        rung: "tensor_producer",
        idea: "an mbarrier counts as many arrivals as it was told to",
        task: "A stage counts as empty after four arrivals. How many come?",
        hint: "Only warp 0 releases, once for the warpgroup: `wgmma` is of all four warps.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, stages(3)],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(released_too_early {
        rung: "tensor_producer",
        idea: "a stage is released when its products have ended",
        task: "Products are queued, and the stage before is released at once. The producer fills it while it is read. \
               Release it when its products have ended, and leave those of this stage in flight.",
        hint: "wait::<1>() leaves the last group in flight: those of the stage before have ended.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, PRODUCTS_LEFT, stages(3)],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(barrier_of_a_part {
        rung: "tensor_producer",
        idea: "warps with different duties: no barrier of the block",
        task: "The consumers wait for the producer at a barrier of the block, to which it never comes.",
        hint: "The ring orders everything. Take the barrier out.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(parity_by_hand {
        rung: "tensor_producer",
        idea: "full and empty mbarriers by hand: the producer's first round",
        task: "In the first round the producer waits until a stage is empty, and nobody has read one. For which parity \
               must it wait? Keep two stages.",
        hint: "The phase before phase 0 counts as ended, and it has parity 1. The consumers' first arrival ends phase \
               0, for which the producer waits in its second round.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, stages(2), TWO_STAGES, FOUR_MBARRIERS],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(rows_of_a_group {
        rung: "tensor_wide",
        idea: "two warpgroups share B, and have rows of A of their own",
        task: "Both warpgroups multiply the same rows of A. Where are those of the second?",
        hint: "A stage has two boxes of A: group g has the g-th.",
        launch: WIDE,
        shapes: &[[128, 64, 256], [100, 72, 200]],
        counters: &[WGMMA, ONE_BARRIER],
        fails: Fails::Result,
    }),
    exercise!(readers_of_a_stage {
        rung: "tensor_wide",
        idea: "a stage is empty when both warpgroups have read it",
        task: "A stage counts as empty as soon as one of the warpgroups has released it.",
        hint: "ring.init(2): each warpgroup releases once.",
        launch: WIDE,
        shapes: &[[128, 64, 384], [100, 72, 200]],
        counters: &[
            WGMMA,
            ONE_BARRIER,
            Counter { measure: Measure::Stages(3 * BOX), limit: AtMost(2.0) }
        ],
        fails: Fails::Findings(&[WriteAfterRead, WriteAfterWrite, Deadlock, NeverWritten]),
    }),
    exercise!(next_tile_of_a_block {
        rung: "tensor_persistent",
        idea: "persistent blocks: block i of N has tiles i, i + N, i + 2 N ..",
        task: "Two blocks compute all tiles, and several of them twice. Which tile comes after a block's tile?",
        hint: "Go on by the number of blocks, thread::grid_dim_x(): both producer and consumers.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[WGMMA, ONE_BARRIER, HALF],
        fails: Fails::Findings(&[WriteAfterWrite]),
    }),
    exercise!(last_stage_of_a_tile {
        rung: "tensor_persistent",
        idea: "the ring goes on from tile to tile",
        task: "In a tile's loop each phase releases the stage of the phase before. Who releases the last one?",
        hint: "After sums.wait::<0>() warp 0 releases once more, and all advance.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[WGMMA, ONE_BARRIER, stages(3)],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(tiles_of_the_producer {
        rung: "tensor_persistent",
        idea: "producer and consumers must agree on the order of tiles",
        task: "The producer numbers tiles down the columns, the consumers along the rows. C is right for one tile \
               alone.",
        hint: "Use the same formula on both sides. In a longer kernel it is a function.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[WGMMA, ONE_BARRIER, HALF],
        fails: Fails::Result,
    }),
    exercise!(halves_for_both {
        rung: "tensor_cluster",
        idea: "multicast: each block of a cluster loads half of B for both",
        task: "Both blocks of a cluster load all of B's stage, in two boxes each. Let each load one half, and copy it \
               to both blocks.",
        hint: "load_box_multicast(to, &of_b, place, producer.full(), 0b11) with the half of this block's rank. The \
               bytes that arrive in a block stay the same.",
        launch: CLUSTERS,
        shapes: SHAPES_OF_CLUSTERS,
        counters: &[HALF_OF_B, WGMMA, HALF_OF_LOADS],
        fails: Fails::Counter(0),
    }),
    exercise!(bytes_of_both {
        rung: "tensor_cluster",
        idea: "multicast: a block announces what arrives, not what it copies",
        task: "A block copies a box of A and half of B, and announces that. How many bytes arrive in its shared \
               memory?",
        hint: "The other half of B comes from the other block: BYTES in all.",
        launch: CLUSTERS,
        shapes: SHAPES_OF_CLUSTERS,
        counters: &[WGMMA, HALF_OF_B, HALF_OF_LOADS],
        fails: Fails::Findings(&[
            ReadAfterWrite,
            WriteAfterWrite,
            Transaction,
            NeverRead,
            NeverWritten
        ]),
    }),
    exercise!(cluster_begins {
        rung: "tensor_cluster",
        idea: "no block uses another one's shared memory before that has begun",
        task: "A barrier of the block orders the threads of this block alone. The other block may not have initialised \
               its mbarriers, or not have begun.",
        hint: "cluster::sync()",
        launch: CLUSTERS,
        shapes: SHAPES_OF_CLUSTERS,
        counters: &[WGMMA, HALF_OF_B, HALF_OF_LOADS],
        fails: Fails::Findings(&[ReadAfterWrite, UnbegunBlock]),
    }),
    exercise!(cluster_ends {
        rung: "tensor_cluster",
        idea: "no block ends while another one uses its shared memory",
        task: "The consumers of the other block release their last stages in this block, which may have ended.",
        hint: "The producer waits until all stages are empty: producer.drain_warp().",
        launch: CLUSTERS,
        shapes: SHAPES_OF_CLUSTERS,
        counters: &[WGMMA, HALF_OF_B, HALF_OF_LOADS],
        fails: Fails::Findings(&[EndedBlock]),
    }),
    exercise!(fence_before_a_store {
        rung: "tensor_tma_store",
        idea: "TMA reads through the async proxy",
        task: "The lanes of a warp write a box of C, wait for each other, and one of them issues the copy. TMA may not \
               see what they have written.",
        hint: "Each lane calls fence_proxy_async() after its writes, before sync_warp.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[Counter { measure: Measure::TmaStores, limit: AtMost(49152.0) }],
        fails: Fails::Findings(&[ProxyFence]),
    }),
    exercise!(box_in_use {
        rung: "tensor_tma_store",
        idea: "a box is written again when TMA has read it",
        task: "The copy of the last tile may still read the box when the next tile is written to it. Wait for it, and let \
               it read while the next tile is multiplied.",
        hint: "The lane that issued the copy calls bulk::wait_group_read::<0>(), and sync_warp tells the others.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[
            Counter { measure: Measure::TmaStores, limit: AtMost(49152.0) },
            Counter { measure: Measure::Shared, limit: AtMost(40976.0) },
            BEHIND,
        ],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(box_at_the_end {
        rung: "tensor_tma_store",
        idea: "a block's shared memory must live until TMA has read it",
        task: "The block ends right after the last copy has begun.",
        hint: "bulk::wait_group_read::<0>() before the end.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[Counter { measure: Measure::TmaStores, limit: AtMost(49152.0) }, BEHIND],
        fails: Fails::Findings(&[EndedBlock]),
    }),
    exercise!(swizzle_of_a_box {
        rung: "tensor_tma_store",
        idea: "TMA's swizzle: lanes write where TMA reads",
        task: "The tensor map of C has the 128-byte swizzle, and the lanes write row by row.",
        hint: "Group col / 8 of row r is in place (col / 8) ^ (r % 8).",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[
            Counter { measure: Measure::Conflicts, limit: AtMost(1.0) },
            Counter { measure: Measure::TmaStores, limit: AtMost(49152.0) },
        ],
        fails: Fails::Result,
    }),
];
