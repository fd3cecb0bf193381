//! Hopper: rungs `tensor_tma` to `tensor_tma_store`.

use simt::check::Kind::*;

use crate::{
    counter::{Counter, Measure, at_least, at_most},
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
const WGMMA: Counter = at_most(Measure::Mma, 0.25);
const ONE_BARRIER: Counter = at_most(Measure::BlockBarriers, 1.0);
/// While a stage's MMAs are in flight, those of the next one are queued.
const PRODUCTS_LEFT: Counter = at_least(Measure::ProductsLeft, 60.0);
const TMA_AHEAD: Counter = at_least(Measure::TmaAhead, 60.0);
/// A tile's box is read while the next tile is multiplied.
const BEHIND: Counter = at_least(Measure::StoresBehind, 60.0);
/// Of two blocks each has half of the tiles, be it the first or the other.
const HALF: Counter = at_most(Measure::LargestShare, 60.0);
/// Each block of a cluster loads half of B, for both.
const HALF_OF_B: Counter = at_most(Measure::TmaLoads, 98304.0);
/// And each block of a cluster half of the copies.
const HALF_OF_LOADS: Counter = at_most(Measure::LargestLoad, 60.0);
/// Two stages and four mbarriers. With an mbarrier for each phase nobody needs a parity.
const FOUR_MBARRIERS: Counter = at_most(Measure::Shared, (2 * 2 * BOX + 4 * 8) as f64);
/// Bytes of a box of 64 x 64.
const BOX: u32 = 64 * 64 * 2;

/// Stages of a box of A and one of B. With more stages than phases nothing is filled again.
const fn stages(most: u32) -> Counter {
    at_most(Measure::Stages(2 * BOX), most as f64)
}

/// Two of them at least.
const TWO_STAGES: Counter = at_least(Measure::Stages(2 * BOX), 2.0);

pub(super) static EXERCISES: &[Exercise] = &[
    exercise!(bytes_of_a_stage {
        rung: "tensor_tma",
        idea: "an mbarrier's phase ends when the announced bytes have come",
        task: "A stage is two boxes of 8 KiB, and half of that is announced. When does the phase end?",
        hint: "Which copies complete at this mbarrier in a phase? How many bytes are they together?",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[at_most(Measure::TmaLoads, 98304.0)],
        fails: Fails::Findings(&[
            ReadAfterWrite,
            WriteAfterWrite,
            BarrierMisuse,
            NeverRead,
            NeverWritten
        ]),
    }),
    exercise!(place_of_a_box {
        rung: "tensor_tma",
        idea: "a box begins at a row and a column of its matrix",
        task: "The first box of B is right, and the others are not. A box is at (matrix, row, column). What are the \
               rows of B?",
        hint: "B is k x n. Which of its coordinates changes from phase to phase?",
        launch: TILED64,
        shapes: &[[64, 128, 384], [40, 72, 200]],
        counters: &[WGMMA],
        fails: Fails::Findings(&[NeverRead]),
    }),
    exercise!(init_before_use {
        rung: "tensor_tma",
        idea: "nobody waits at an mbarrier before it is initialised",
        task: "Thread 0 initialises the mbarriers, and the others go on to wait there. What tells them that it has?",
        hint: "What orders the writes of one thread before the reads of all others, in any kernel?",
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
        hint: "An mbarrier's own phases have parity 0, 1, 0, 1 .. With two stages, which of them is that of the loop's phases \
               0, 1, 2, 3?",
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
        hint: "Products that have begun may still read. Which word tells thread 0 that they have read, and how many groups \
               may be left?",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[WGMMA, at_most(Measure::Barriers(64), 1.25), TMA_AHEAD, stages(2)],
        fails: Fails::Findings(&[ReadAfterWrite]),
    }),
    exercise!(stages_released {
        rung: "tensor_producer",
        idea: "a ring: consumers release what they have read",
        task: "The producer fills three stages, and waits for ever. The consumers must release the stages. Keep two \
               stages' products in flight: release the stage before.",
        hint: "Which stage has been read when one group is left in flight? A second consumer may stand there, one stage \
               behind the first. Consumer has a method for stages that products have read: see which warps call it.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, WGMMA, PRODUCTS_LEFT, stages(3)],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(arrivals_of_a_stage {
        rung: "tensor_producer",
        idea: "an mbarrier counts as many arrivals as it was told to",
        task: "A stage counts as empty after four arrivals. How many come?",
        hint: "Who releases a stage, and how often? A product is of all four warps.",
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
        hint: "Which products may be in flight when the stage before is released? The parameter of the wait is the number of \
               groups that it leaves.",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, PRODUCTS_LEFT, stages(3)],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(barrier_of_a_part {
        rung: "tensor_producer",
        idea: "warps with different duties: no barrier of the block",
        task: "The consumers wait for the producer at a barrier of the block, to which it never comes.",
        hint: "What does a consumer know once the ring's wait is over? What would the barrier add to that?",
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
        hint: "The phase before phase 0 counts as ended: which parity has it? In which round does the producer wait for phase \
               0, which the consumers' first arrival ends?",
        launch: TILED64,
        shapes: SHAPES,
        counters: &[ONE_BARRIER, stages(2), TWO_STAGES, FOUR_MBARRIERS],
        fails: Fails::Findings(&[Deadlock, NeverRead, NeverWritten]),
    }),
    exercise!(rows_of_a_group {
        rung: "tensor_wide",
        idea: "two warpgroups share B, and have rows of A of their own",
        task: "Both warpgroups multiply the same rows of A. Where are those of the second?",
        hint: "A stage has two boxes of A, one behind the other. Where does the second begin?",
        launch: WIDE,
        shapes: &[[128, 64, 256], [100, 72, 200]],
        counters: &[WGMMA, ONE_BARRIER],
        fails: Fails::Result,
    }),
    exercise!(readers_of_a_stage {
        rung: "tensor_wide",
        idea: "a stage is empty when both warpgroups have read it",
        task: "A stage counts as empty as soon as one of the warpgroups has released it.",
        hint: "How many arrivals at a stage's mbarrier come from two warpgroups?",
        launch: WIDE,
        shapes: &[[128, 64, 384], [100, 72, 200]],
        counters: &[WGMMA, ONE_BARRIER, at_most(Measure::Stages(3 * BOX), 2.0)],
        fails: Fails::Findings(&[WriteAfterRead, WriteAfterWrite, Deadlock, NeverWritten]),
    }),
    exercise!(next_tile_of_a_block {
        rung: "tensor_persistent",
        idea: "persistent blocks: block i of N has tiles i, i + N, i + 2 N ..",
        task: "Two blocks compute all tiles, and several of them twice. Which tile comes after a block's tile?",
        hint: "Block i has tiles i, i + N, i + 2 N ..: what is N? Who goes along the tiles besides the consumers?",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[WGMMA, ONE_BARRIER, HALF],
        fails: Fails::Findings(&[WriteAfterWrite]),
    }),
    exercise!(last_stage_of_a_tile {
        rung: "tensor_persistent",
        idea: "the ring goes on from tile to tile",
        task: "In a tile's loop each phase releases the stage of the phase before. Who releases the last one?",
        hint: "Count the releases of a tile, and its phases. When has the last stage been read, and who may say so then?",
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
        hint: "Write down row and column of tile 1, as the producer has them and as the consumers have them.",
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
        hint: "A copy may go to several blocks of a cluster (cargo doc -p gpu-simt, DynamicShared). Which half is this \
               block's? And how many bytes arrive in a block then?",
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
        hint: "An mbarrier counts what arrives in its block, whoever sends it. Who sends the other half of B?",
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
        hint: "sync_threads is the barrier of one block. simt::device::cluster has that of all blocks.",
        launch: CLUSTERS,
        shapes: SHAPES_OF_CLUSTERS,
        counters: &[WGMMA, HALF_OF_B, HALF_OF_LOADS],
        fails: Fails::Findings(&[ReadAfterWrite, UnbegunBlock]),
    }),
    exercise!(cluster_ends {
        rung: "tensor_cluster",
        idea: "no block ends while another one uses its shared memory",
        task: "The consumers of the other block release their last stages in this block, which may have ended.",
        hint: "The other block's last releases come to mbarriers of this block. Who can wait for them? See the methods of \
               Producer.",
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
        hint: "TMA sees what a lane wrote only behind a fence of that lane. Which lanes have written, and what tells the lane \
               that begins the copy?",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[at_most(Measure::TmaStores, 49152.0)],
        fails: Fails::Findings(&[ProxyFence]),
    }),
    exercise!(box_in_use {
        rung: "tensor_tma_store",
        idea: "a box is written again when TMA has read it",
        task: "The copy of the last tile may still read the box when the next tile is written to it. Wait for it, and let \
               it read while the next tile is multiplied.",
        hint: "simt::device::bulk has a wait for reads. The thread that began the copy can wait, and no other: what tells the \
               other lanes? Which is the last line before which the wait must stand?",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[
            at_most(Measure::TmaStores, 49152.0),
            at_most(Measure::Shared, 40976.0),
            BEHIND,
        ],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(box_at_the_end {
        rung: "tensor_tma_store",
        idea: "a block's shared memory must live until TMA has read it",
        task: "The block ends right after the last copy has begun.",
        hint: "The wait in the loop is for the tile before. Who waits for the last tile's copy?",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[at_most(Measure::TmaStores, 49152.0), BEHIND],
        fails: Fails::Findings(&[EndedBlock]),
    }),
    exercise!(swizzle_of_a_box {
        rung: "tensor_tma_store",
        idea: "TMA's swizzle: lanes write where TMA reads",
        task: "The tensor map of C has the 128-byte swizzle, and the lanes write row by row.",
        hint: "The swizzle changes the order of a row's groups of eight elements. It is that of the exercise \
               swizzle_for_wgmma, whose task has the formula.",
        launch: PERSISTENT,
        shapes: SHAPES_OF_TILES,
        counters: &[at_most(Measure::Conflicts, 1.0), at_most(Measure::TmaStores, 49152.0)],
        fails: Fails::Result,
    }),
];
