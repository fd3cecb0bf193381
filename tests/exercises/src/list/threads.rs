//! Threads and tiles: rungs `basic` to `edges`.

use simt::check::Kind::*;

use crate::{
    counter::{Measure, at_least, at_most},
    exercise::{Exercise, Fails, exercise},
    problem::{BOXES, Grid, Launch, Problem},
};

/// A thread for each element, or a tile of 16 x 16 a block.
const TILED16: Launch = Launch::product(16, 16);
const TILED32: Launch = Launch::product(32, 32);
/// Vectors, 256 elements a block.
const SUM: Launch = Launch { problem: Problem::Sum, grid: Grid::Tiles(1, 256), boxes: BOXES };

pub(super) static EXERCISES: &[Exercise] = &[
    exercise!(guard_the_tail {
        rung: "basic",
        idea: "a launch has more threads than elements",
        task: "Blocks have 256 threads, and n is no multiple of 256. What do the last threads access? Let them do \
               nothing.",
        hint: "The finding names the index and the number of elements. Which threads have such an index? They have no work.",
        launch: SUM,
        shapes: &[[1, 1000, 1], [1, 256, 1], [1, 1, 1]],
        counters: &[],
        fails: Fails::Findings(&[OutOfBounds]),
    }),
    exercise!(index_in_the_grid {
        rung: "basic",
        idea: "a thread's index in its block, and in the grid",
        task: "Two blocks write the same elements, and the other elements belong to nobody. Give each thread an \
               element of its own.",
        hint: "thread_idx_x counts from 0 in each block. How many elements belong to the blocks before this one? The words \
               for it are in simt::device::thread.",
        launch: SUM,
        shapes: &[[1, 1000, 1], [1, 256, 1], [1, 1, 1]],
        counters: &[],
        fails: Fails::Findings(&[WriteAfterWrite, NeverRead, NeverWritten]),
    }),
    exercise!(both_bounds {
        rung: "basic",
        idea: "an index below m n is not yet an element of the right row",
        task: "A check that the index is inside C lets some threads through that have no element. Whose element do \
               they write?",
        hint: "Element (0, n) would have the index of element (1, 0). What must hold of the row, and what of the column?",
        launch: TILED16,
        shapes: &[[20, 24, 9], [16, 16, 16], [5, 40, 3]],
        counters: &[],
        fails: Fails::Findings(&[WriteAfterWrite, OutOfBounds]),
    }),
    exercise!(rows_along_x {
        rung: "basic",
        idea: "coalescing: neighbours of a warp, neighbours in memory",
        task: "It is right, and slow: a store touches 16 sectors. Get every access to global memory down to 4.",
        hint: "Threads of a warp differ in x first, and elements of a row are adjacent in memory.",
        launch: TILED16,
        shapes: &[[64, 64, 64], [20, 40, 33]],
        counters: &[at_most(Measure::Sectors, 4.1)],
        fails: Fails::Counter(0),
    }),
    exercise!(first_tile {
        rung: "tiled_uncoalesced",
        idea: "what a block loads once, all its threads use",
        task: "Unfinished: each multiply-add loads two elements from global memory, a quarter FLOP a byte. Let the \
               block go along k in phases of 16, and load one tile of A and one of B in each.",
        hint: "Page 05 has the phases: load, barrier, multiply, barrier. A tile has as many elements as the block has \
               threads. Which two does a thread load, and what does it store where they are outside? The attribute declares \
               the bytes of both tiles.",
        launch: TILED16,
        shapes: &[[64, 64, 64], [20, 40, 33]],
        counters: &[at_least(Measure::Intensity, 4.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(tiles_not_complete {
        rung: "tiled_uncoalesced",
        idea: "a barrier between writing a tile and reading it",
        task: "A thread multiplies elements that others have stored, or have not stored yet. Which barrier is \
               missing?",
        hint: "Who has stored the elements that a thread multiplies? What tells it that they have?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[at_most(Measure::Barriers(16), 2.0)],
        fails: Fails::Findings(&[ReadAfterWrite, WriteAfterRead, Uninitialised]),
    }),
    exercise!(one_barrier {
        rung: "tiled_uncoalesced",
        idea: "a barrier between reading a tile and writing the next one",
        task: "One barrier a phase is missing. Where, and which two accesses does it keep apart?",
        hint: "A thread that is done early goes on to the next phase. What does it overwrite there?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[at_most(Measure::Barriers(16), 2.0)],
        fails: Fails::Findings(&[WriteAfterRead, ReadAfterWrite]),
    }),
    exercise!(barrier_too_many {
        rung: "tiled_uncoalesced",
        idea: "two barriers a phase are enough",
        task: "It is right, and waits three times a phase. Which two accesses does each barrier keep apart? One of \
               them keeps nothing apart.",
        hint: "A barrier stands between stores to a tile and reads of the same tile. For which of the three does another \
               barrier stand there as well, each time?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[at_most(Measure::Barriers(16), 2.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(toy_table {
        rung: "tiled_uncoalesced",
        idea: "a place of the tile that two threads write (document 004)",
        task: "The table lets thread (0, 1) store N(0, 1) to Nds(1, 0) in phase 0. Who else stores there?",
        hint: "To which place does thread (1, 0) store? And who stores to Nds(0, 1)? Fill in the table for all four threads.",
        launch: Launch::product(2, 2),
        shapes: &[[4, 4, 4], [3, 3, 3]],
        counters: &[],
        fails: Fails::Findings(&[WriteAfterWrite, Uninitialised]),
    }),
    exercise!(block_of_b {
        rung: "tiled_uncoalesced",
        idea: "which columns of B a block needs (document 003)",
        task: "Row i of A is right. Which columns of B does this block of C need?",
        hint: "The rows of C come from one index of the block, its columns from the other. From which come the columns of B?",
        launch: TILED16,
        shapes: &[[20, 70, 33]],
        counters: &[],
        fails: Fails::Findings(&[NeverRead]),
    }),
    exercise!(bank_conflict {
        rung: "tiled_conflicts",
        idea: "bank conflicts: padding",
        task: "It is right, and slow: a warp reads and writes a column of B's tile, all in one bank. Without changing \
               which element is read when, get every access to shared memory down to one wavefront.",
        hint: "A word's bank is its number mod 32. In which banks is a column, if rows are 32 words apart? At which distance \
               are all its banks different? The attribute declares the bytes.",
        launch: TILED32,
        shapes: &[[64, 64, 64]],
        counters: &[at_most(Measure::Conflicts, 1.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(swizzled_tile {
        rung: "tiled_conflicts",
        idea: "bank conflicts: a swizzle, which takes no memory",
        task: "Padding costs memory. Get every access to shared memory down to one wavefront with two tiles of 4096 \
               bytes: change `place` alone.",
        hint: "Let each row have its elements in another order. The 32 places of a column must differ mod 32, and so must \
               those of a row. Which operation on two numbers below 32 gives that?",
        launch: TILED32,
        shapes: &[[64, 64, 64], [40, 33, 50]],
        counters: &[at_most(Measure::Conflicts, 1.0), at_most(Measure::Shared, 8192.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(transpose_by_a_tile {
        rung: "tiled_conflicts",
        idea: "a transposition reads rows and writes rows",
        task: "A store touches 32 sectors. Let the block transpose its tile in shared memory, so that loads and stores \
               touch 4, without a bank conflict.",
        hint: "Neighbouring threads must have neighbouring elements, when they load and when they store. So a thread stores \
               another element than it has loaded: it reads a column of the tile. In which banks is that?",
        launch: Launch { problem: Problem::Transpose, grid: Grid::Tiles(32, 32), boxes: BOXES },
        shapes: &[[64, 96, 1], [40, 33, 1], [1, 70, 1]],
        counters: &[at_most(Measure::Sectors, 4.1), at_most(Measure::Conflicts, 1.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(column_of_b {
        rung: "tiled16",
        idea: "how far apart elements of a column are (document 000)",
        task: "B is indexed with \"the number of elements in a column of B\". How far apart are two elements of a \
               column?",
        hint: "How many elements are between (0, j) and (1, j) of a row-major matrix?",
        launch: TILED16,
        shapes: &[[20, 24, 33]],
        counters: &[],
        fails: Fails::Findings(&[OutOfBounds, NeverRead]),
    }),
    exercise!(one_step_too_many {
        rung: "tiled16",
        idea: "a loop with one step too many (document 003)",
        task: "Which columns does a tile have? (And threadDim is blockDim.)",
        hint: "TILE columns are counted from 0. Which number has the last one?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[],
        fails: Fails::Findings(&[OutOfBounds]),
    }),
    exercise!(barrier_in_a_branch {
        rung: "edges",
        idea: "a barrier that only some threads reach (document 004)",
        task: "A check of C's edge was put around the inner product, and the second barrier slipped inside. Who waits \
               for whom? Keep the check.",
        hint: "All threads of the block must come to each barrier. Which statements is the check for?",
        launch: TILED16,
        shapes: &[[20, 24, 16]],
        // `a * b + c` is no multiply-add for the checker, and would not be counted.
        counters: &[at_most(Measure::MultiplyAdds, 1.0), at_least(Measure::MultiplyAdds, 1.0)],
        fails: Fails::Findings(&[BarrierSkipped]),
    }),
    exercise!(early_return {
        rung: "edges",
        idea: "a thread without an element of C still loads for the others",
        task: "Threads outside C return at once. The others wait for them, and for what they should have loaded.",
        hint: "A thread outside C has nothing to store. Which part of its work do the others need?",
        launch: TILED16,
        shapes: &[[20, 24, 33], [1, 1, 40]],
        counters: &[],
        fails: Fails::Findings(&[BarrierSkipped, Uninitialised]),
    }),
    exercise!(wrong_phase_variable {
        rung: "edges",
        idea: "a bound of another index than is used (documents 002 and 004)",
        task: "The slides compare t * TILE_WIDTH + tx where they load p * TILE_WIDTH + tx. Without a t that does not \
               compile; with another t in scope it does.",
        hint: "Which index does the load use, and which the check?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[],
        fails: Fails::Findings(&[NeverRead]),
    }),
    exercise!(whole_phases_only {
        rung: "edges",
        idea: "the last phase, which is not full (documents 000, 001, 002 and 004)",
        task: "The division drops what is left of k. How many phases are there?",
        hint: "k / TILE rounds down. How many phases does k = TILE + 1 need?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[],
        fails: Fails::Findings(&[NeverRead]),
    }),
    exercise!(halo {
        rung: "edges",
        idea: "a tile, and the elements beside it",
        task: "Each element needs its two neighbours. The first and the last thread of a block read places of the tile \
               that nobody has written. Load them.",
        hint: "A block of N threads needs N + 2 elements. Who loads the two at the ends, and what are they outside x?",
        launch: Launch { problem: Problem::Neighbours, grid: Grid::Tiles(1, 128), boxes: BOXES },
        shapes: &[[1, 300, 1], [1, 128, 1], [1, 129, 1], [1, 1, 1]],
        // Without a tile nothing goes through shared memory.
        counters: &[at_least(Measure::SharedRequests, 0.1), at_least(Measure::Intensity, 0.45)],
        fails: Fails::Findings(&[Uninitialised]),
    }),
];
