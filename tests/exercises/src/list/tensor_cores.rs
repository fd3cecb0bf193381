//! Tensor cores: rungs `tensor_mma` to `tensor_wgmma`.

use simt::check::Kind::*;

use crate::{
    counter::{Counter, Measure, at_least, at_most},
    exercise::{Exercise, Fails, exercise},
    problem::Launch,
};

const TILED32: Launch = Launch::product(32, 32);
const TILED64: Launch = Launch::product(64, 64);
/// An instruction of `mma` multiplies 16 x 8 x 16 elements.
const MMA: Counter = at_most(Measure::Mma, 2.0);
/// One of `wgmma` multiplies 64 x 64 x 16, and counts for four warps.
const WGMMA: Counter = at_most(Measure::Mma, 0.25);
const NO_CONFLICT: Counter = at_most(Measure::Conflicts, 1.0);
const AHEAD: Counter = at_least(Measure::Ahead, 60.0);
/// A stage is a tile of A and a tile of B. With more stages than phases nothing is filled again.
const THREE_STAGES: Counter = at_most(Measure::Stages(2 * 64 * 64 * 2), 3.0);
const NOT_FEWER: Counter = at_least(Measure::Stages(2 * 64 * 64 * 2), 3.0);
const COPIES_LEFT: Counter = at_least(Measure::CopiesLeft, 60.0);
/// Each element of a tile is loaded once for the block: fragments come from the tile.
const BY_A_TILE: Counter = at_least(Measure::Intensity, 24.0);

pub(super) static EXERCISES: &[Exercise] = &[
    exercise!(pairs_of_a_fragment {
        rung: "tensor_mma",
        idea: "a lane has four pairs of a fragment, in the order of the registers",
        task: "A fragment of 16 x 16 elements is four matrices of 8 x 8, a pair of each in every lane. Two pairs of A \
               are in the wrong order. The file has the table.",
        hint: "The table has a row and a k-step for each pair. Compare A's four pairs with it, one after the other.",
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
        hint: "What is in memory past the end of a row of A? And past the last row? Compare the check of A with that of B.",
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
        hint: "Accumulators has two parameters: fragments of A, and of B (simt::device::mma). How many loads do two of each \
               take, for four products? The methods for pairs have a parameter that says which rows.",
        launch: TILED32,
        shapes: &[[64, 64, 32], [20, 24, 17]],
        counters: &[at_least(Measure::Intensity, 16.0), MMA],
        fails: Fails::Counter(0),
    }),
    exercise!(swizzle_for_ldmatrix {
        rung: "tensor_ldmatrix",
        idea: "bank conflicts of `ldmatrix`: a swizzle of 16-byte groups",
        task: "Rows of the tile are 128 bytes, all 32 banks. So eight rows of a matrix are in the same four banks. \
               Change `place` alone.",
        hint: "A row of a matrix is 16 bytes, which are four of the 32 banks. Where must eight rows have the same group, so \
               that they are in all 32? Only the order of the groups within a row may change.",
        launch: TILED64,
        shapes: &[[64, 64, 64], [40, 72, 88]],
        counters: &[NO_CONFLICT, at_most(Measure::Shared, 16384.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(rows_of_the_lanes {
        rung: "tensor_ldmatrix",
        idea: "`ldmatrix`: lanes 8 i to 8 i + 7 give the rows of matrix i",
        task: "C is wrong: the second and the third matrix of A's fragments are exchanged. Which lanes give the rows \
               of which matrix?",
        hint: "simt::device::mma has the order of the four matrices of a fragment. Which rows and which k-steps has the \
               second one, whose rows lanes 8 to 15 give?",
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
        hint: "The hardware can transpose each matrix of 8 x 8 as it loads it. Which method of a shared array says so?",
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
        hint: "Two neighbours of 16 bits are 32 bits, and begin at a multiple of four bytes if their index is even. See the \
               methods of Out.",
        launch: TILED64,
        shapes: &[[64, 64, 64], [40, 72, 88]],
        counters: &[at_least(Measure::StoreWidth, 4.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(free_stage {
        rung: "tensor_cp_async",
        idea: "three stages, one barrier a phase: before which copies?",
        task: "The copies of a phase go to the stage that was multiplied last. Have all warps multiplied it? Keep three \
               stages.",
        hint: "Which stage do the copies fill, and in which phase was it multiplied? Which line tells that all warps have \
               come past that phase?",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[
            AHEAD,
            at_most(Measure::Barriers(64), 1.0),
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
        hint: "An SM of Hopper has 228 KiB of shared memory, and each block takes 1 KiB besides its own. What is left for \
               each of four blocks?",
        launch: TILED64,
        shapes: &[[64, 64, 768], [40, 72, 88]],
        counters: &[at_least(Measure::Blocks, 4.0), at_least(Measure::Ahead, 40.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(proxy_fence {
        rung: "tensor_wgmma",
        idea: "`wgmma` reads through the async proxy",
        task: "A barrier orders threads. The tensor cores read shared memory by another way, and may not see what \
               threads have written. What must stand between?",
        hint: "The async proxy sees what a thread wrote only behind a fence of that thread. When have a thread's copies been \
               written, and what tells the other threads of the fence?",
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
        hint: "A wait counts groups. Which word of simt::device::warpgroup makes one?",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(major_of_b {
        rung: "tensor_wgmma",
        idea: "K-major and MN-major operands",
        task: "A's tile has rows along k, B's has rows along n. Tell the instruction.",
        hint: "KMajor says that neighbours in memory are neighbours along k. The other layout is beside it in \
               simt::device::warpgroup.",
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
        hint: "Write down the places of group 0 in rows 0 to 8, by the formula of the task and by `place`. Where do they \
               differ?",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA, NO_CONFLICT],
        fails: Fails::Result,
    }),
    exercise!(products_under_way {
        rung: "tensor_wgmma",
        idea: "a stage is free when its products have ended",
        task: "In phase p the copies for phase p + 2 begin. They go to the stage of phase p - 1, whose products may not have ended. Wait for them.",
        hint: "A thread waits for products, and tells the others by the barrier. On which side of it must the wait stand, and \
               how many groups may it leave?",
        launch: TILED64,
        shapes: &[[64, 64, 320], [40, 72, 88]],
        counters: &[WGMMA, AHEAD, COPIES_LEFT],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
];
