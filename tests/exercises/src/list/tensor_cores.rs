//! Tensor cores: rungs `tensor_mma` to `tensor_wgmma`.

use simt::check::Kind::*;

use crate::{
    counter::{Counter, Limit::*, Measure},
    exercise::{Exercise, Fails, exercise},
    problem::Launch,
};

const TILED32: Launch = Launch::product(32, 32);
const TILED64: Launch = Launch::product(64, 64);
/// An instruction of `mma` multiplies 16 x 8 x 16 elements.
const MMA: Counter = Counter { measure: Measure::Mma, limit: AtMost(2.0) };
/// One of `wgmma` multiplies 64 x 64 x 16, and counts for four warps.
const WGMMA: Counter = Counter { measure: Measure::Mma, limit: AtMost(0.25) };
const NO_CONFLICT: Counter = Counter { measure: Measure::Conflicts, limit: AtMost(1.0) };
const AHEAD: Counter = Counter { measure: Measure::Ahead, limit: AtLeast(60.0) };
/// A stage is a tile of A and a tile of B. With more stages than phases nothing is filled again.
const THREE_STAGES: Counter =
    Counter { measure: Measure::Stages(2 * 64 * 64 * 2), limit: AtMost(3.0) };
const NOT_FEWER: Counter =
    Counter { measure: Measure::Stages(2 * 64 * 64 * 2), limit: AtLeast(3.0) };
const COPIES_LEFT: Counter = Counter { measure: Measure::CopiesLeft, limit: AtLeast(60.0) };
/// Each element of a tile is loaded once for the block: fragments come from the tile.
const BY_A_TILE: Counter = Counter { measure: Measure::Intensity, limit: AtLeast(24.0) };

pub(super) static EXERCISES: &[Exercise] = &[
    exercise!(pairs_of_a_fragment {
        rung: "tensor_mma",
        idea: "a lane has four pairs of a fragment, in the order of the registers",
        task: "A fragment of 16 x 16 elements is four matrices of 8 x 8, a pair of each in every lane. Two pairs of A \
               are in the wrong order. The file has the table.",
        hint: "Pair 1 is eight rows further down, pair 2 eight k-steps further. So it is for A and for B.",
        launch: TILED32,
        shapes: &[[32, 32, 32], [20, 24, 17]],
        counters: &[MMA],
        fails: Fails::Result,
    }),
    exercise!(zeros_of_both {
        rung: "tensor_mma",
        idea: "zero times anything is zero: is half a boundary check enough?",
        task: "B has zeros past the end of k, so the products are right whatever A has there. But it is read. Where \
               is it outside, and what if it is NaN?",
        hint: "Past the end of a row of A is the next row, and past the last row is nothing. Check p < k, too.",
        launch: TILED32,
        shapes: &[[32, 32, 32], [20, 24, 17]],
        counters: &[MMA],
        fails: Fails::Findings(&[OutOfBounds]),
    }),
    exercise!(reuse_of_fragments {
        rung: "tensor_mma",
        idea: "a fragment of A serves a row of products, one of B a column",
        task: "A warp computes four parts of 16 x 16 one after the other, and loads each fragment twice: 8 FLOP a \
               byte. Compute all four at once.",
        hint: "Accumulators::<2, 2> takes two fragments of A and two of B. for_each_pair_of::<0> has the first 16 rows, \
               for_each_pair_of::<1> the others; columns are counted through.",
        launch: TILED32,
        shapes: &[[64, 64, 32], [20, 24, 17]],
        counters: &[Counter { measure: Measure::Intensity, limit: AtLeast(16.0) }, MMA],
        fails: Fails::Counter(0),
    }),
    exercise!(swizzle_for_ldmatrix {
        rung: "tensor_ldmatrix",
        idea: "bank conflicts of `ldmatrix`: a swizzle of 16-byte groups",
        task: "Rows of the tile are 128 bytes, all 32 banks. So eight rows of a matrix are in the same four banks. \
               Change `place` alone.",
        hint: "Put group g of row r in place g ^ r % 8 of the row: eight rows are then in eight places.",
        launch: TILED64,
        shapes: &[[64, 64, 64], [40, 72, 88]],
        counters: &[NO_CONFLICT, Counter { measure: Measure::Shared, limit: AtMost(16384.0) }],
        fails: Fails::Counter(0),
    }),
    exercise!(rows_of_the_lanes {
        rung: "tensor_ldmatrix",
        idea: "`ldmatrix`: lanes 8 i to 8 i + 7 give the rows of matrix i",
        task: "C is wrong: the second and the third matrix of A's fragments are exchanged. Which lanes give the rows \
               of which matrix?",
        hint: "Matrix 1 is eight rows further down, matrix 2 eight k-steps further. So lanes 8 to 15 have the next \
               rows, and lanes 16 to 31 the next group.",
        launch: TILED64,
        shapes: &[[64, 64, 64], [40, 72, 88]],
        counters: &[NO_CONFLICT, BY_A_TILE],
        fails: Fails::Result,
    }),
    exercise!(transposed_load {
        rung: "tensor_ldmatrix",
        idea: "`ldmatrix.trans`: rows of the tile along n, pairs along k",
        task: "The rows of B's tile are along n, and a lane needs neighbours along k. Let the load transpose the \
               matrices.",
        hint: "load_fragment_either(index, true) transposes each matrix of 8 x 8.",
        launch: TILED64,
        shapes: &[[64, 64, 64], [40, 72, 88]],
        counters: &[NO_CONFLICT, BY_A_TILE],
        fails: Fails::Result,
    }),
    exercise!(pairs_of_c {
        rung: "tensor_ldmatrix",
        idea: "two neighbours of 16 bits are one store",
        task: "A lane stores two neighbours of C by two stores of two bytes. n is even: one store of four bytes is \
               enough.",
        hint: "c.store_if(index, two, inside) stores two elements at once.",
        launch: TILED64,
        shapes: &[[64, 64, 64], [40, 72, 88]],
        counters: &[Counter { measure: Measure::StoreWidth, limit: AtLeast(4.0) }],
        fails: Fails::Counter(0),
    }),
    exercise!(free_stage {
        rung: "tensor_cp_async",
        idea: "three stages, one barrier a phase: before which copies?",
        task: "The copies of a phase go to the stage that was multiplied last. Have all warps multiplied it? Keep three \
               stages.",
        hint: "The barrier tells that all warps have come to this phase. Begin the copies after it.",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[
            AHEAD,
            Counter { measure: Measure::Barriers(64), limit: AtMost(1.0) },
            THREE_STAGES,
            NOT_FEWER,
            COPIES_LEFT
        ],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(stages_and_blocks {
        rung: "tensor_cp_async",
        idea: "stages take the shared memory of other blocks",
        task: "Eight stages of 16 KiB leave room for one block on an SM. Give four blocks room, and load ahead all the \
               same.",
        hint: "228 KiB / 4, less 1 KiB that each block takes besides: how many stages fit?",
        launch: TILED64,
        shapes: &[[64, 64, 768], [40, 72, 88]],
        counters: &[
            Counter { measure: Measure::Blocks, limit: AtLeast(4.0) },
            Counter { measure: Measure::Ahead, limit: AtLeast(40.0) },
        ],
        fails: Fails::Counter(0),
    }),
    exercise!(proxy_fence {
        rung: "tensor_wgmma",
        idea: "`wgmma` reads through the async proxy",
        task: "A barrier orders threads. The tensor cores read shared memory by another way, and may not see what \
               threads have written. What must stand between?",
        hint: "fence_proxy_async() after the writes (here: after wait_group), before the barrier.",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA, AHEAD],
        fails: Fails::Findings(&[ProxyFence]),
    }),
    exercise!(commit_the_products {
        rung: "tensor_wgmma",
        idea: "`wgmma` is asynchronous: begin, commit, wait",
        task: "wait::<0> waits for all groups of products. There are none: the copies overwrite what is still read, \
               and the sums are read too early.",
        hint: "commit() makes a group of the products that have begun.",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(major_of_b {
        rung: "tensor_wgmma",
        idea: "K-major and MN-major operands",
        task: "A's tile has rows along k, B's has rows along n. Tell the instruction.",
        hint: "KMajor: neighbours are along k. MnMajor: neighbours are along m or n.",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA],
        fails: Fails::Result,
    }),
    exercise!(swizzle_for_wgmma {
        rung: "tensor_wgmma",
        idea: "the swizzle is a convention between who writes and who reads",
        task: "`wgmma` expects the 128-byte swizzle: group g of row r in place g ^ r % 8. The tiles are written in \
               another order.",
        hint: "Rows r and r + 8 have the same order. Change `place`.",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA, NO_CONFLICT],
        fails: Fails::Result,
    }),
    exercise!(products_under_way {
        rung: "tensor_wgmma",
        idea: "a stage is free when its products have ended",
        task: "In phase p the copies for phase p + 2 begin. They go to the stage of phase p - 1, whose products may not have ended. Wait for them.",
        hint: "wait::<0>() before the barrier: after it, all warps know that the stage has been read.",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA, AHEAD, COPIES_LEFT],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
];
