//! Registers, wide accesses and copies ahead: rungs `outer_product` to `async_copy`, and split-K.

use simt::check::Kind::*;

use crate::{
    counter::{Counter, Measure, at_least, at_most},
    exercise::{Exercise, Fails, exercise},
    problem::{BOXES, Grid, Launch, Problem},
};

const TILED16: Launch = Launch::product(16, 16);
/// A block for each row.
const ROWS: Launch = Launch { problem: Problem::RowSums, grid: Grid::Tiles(1, 1), boxes: BOXES };
/// Four blocks along z for each tile of 16 x 16.
const SPLIT: Launch =
    Launch { problem: Problem::ProductInto, grid: Grid::Split(16, 16, 4), boxes: BOXES };
/// Each of the four blocks adds to each element.
const EACH_PART: Counter = at_least(Measure::Atomics, 4.0);
/// None of them does the work of the others: it would add zeros.
const QUARTER: Counter = at_most(Measure::LargestLoad, 35.0);
/// Nothing is loaded that is not needed, to pretend a share of the work.
const NEEDED: Counter = at_least(Measure::Intensity, 0.24);
const AHEAD: Counter = at_least(Measure::Ahead, 60.0);
/// Nothing is copied by plain loads and stores instead: neither tile.
const GROUPS: Counter = at_least(Measure::CopyGroups(16), 1.0);
const COPIED: Counter = at_least(Measure::Copied, 100.0);
const COPIES_LEFT: Counter = at_least(Measure::CopiesLeft, 60.0);
/// A stage is a tile of A and a tile of B. With more stages than phases nothing is filled again.
const THREE_STAGES: Counter = at_most(Measure::Stages(2 * 16 * 16 * 4), 3.0);
const NOT_FEWER: Counter = at_least(Measure::Stages(2 * 16 * 16 * 4), 3.0);

pub(super) static EXERCISES: &[Exercise] = &[
    exercise!(column_in_registers {
        rung: "outer_product",
        idea: "the order of two loops: what is read once is used 16 times",
        task: "A thread has a column of 16 elements of C in registers, and reads two words for each multiply-add. \
               Change the order of its two loops, so that it reads little more than one.",
        hint: "Which operand is the same for all 16 rows? Which loop must be the outer one, so that it is read once?",
        launch: Launch::product(16, 64),
        shapes: &[[32, 64, 32], [20, 70, 33]],
        counters: &[at_most(Measure::SharedReads, 1.1)],
        fails: Fails::Counter(0),
    }),
    exercise!(prefetch_past_the_end {
        rung: "prefetched",
        idea: "the last phase has no next tile (document 003)",
        task: "The last round of the loop prefetches as well. Which tile? And why is C right all the same?",
        hint: "In which phase is there no next tile? How does the number of the phase tell?",
        launch: TILED16,
        shapes: &[[32, 48, 64]],
        counters: &[at_most(Measure::Barriers(16), 1.25), AHEAD],
        fails: Fails::Findings(&[OutOfBounds]),
    }),
    exercise!(load_before_use {
        rung: "prefetched",
        idea: "a load that begins before the products overlaps them",
        task: "The next tiles are loaded after this phase's products, so nothing overlaps. Begin the loads before the \
               products, into registers, and store them after.",
        hint: "`load` reads global memory into registers: no thread waits for another. From which line on can it be called?",
        launch: TILED16,
        shapes: &[[32, 32, 128], [20, 40, 33]],
        counters: &[at_least(Measure::Ahead, 80.0), at_most(Measure::Barriers(16), 1.25)],
        fails: Fails::Counter(0),
    }),
    exercise!(the_other_buffer {
        rung: "prefetched",
        idea: "double buffering: which buffer is free?",
        task: "One barrier a phase is enough with two buffers, if no thread reads the buffer that is filled. Here one \
               of the stores goes to the wrong one.",
        hint: "Which of `this` and `next` does nobody read in this phase?",
        launch: TILED16,
        shapes: &[[20, 40, 50]],
        counters: &[at_most(Measure::Barriers(16), 1.25), AHEAD],
        fails: Fails::Findings(&[ReadAfterWrite, WriteAfterRead, Uninitialised]),
    }),
    exercise!(four_by_four {
        rung: "register_blocked",
        idea: "register blocking: 8 words read for 16 multiply-adds",
        task: "A thread computes 4 x 4 elements, one column after the other, and reads each element of A's tile four \
               times. Half a word a multiply-add is enough.",
        hint: "How many different elements of A, and of B, do the 16 products of a k-step have? Registers can hold them.",
        launch: Launch::product(64, 64),
        shapes: &[[64, 64, 32], [70, 33, 20]],
        counters: &[at_most(Measure::SharedReads, 0.5), at_least(Measure::Intensity, 16.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(places_of_a_thread {
        rung: "register_blocked",
        idea: "which elements of the tile are a thread's",
        task: "Each thread has 4 x 4 adjacent elements. So neighbouring threads read words that are four apart, and \
               store sectors that they fill to a quarter. Choose other rows and columns.",
        hint: "Which words do threads 0 and 1 read at once, and which columns do they store? Let neighbours have neighbours. \
               How far is it then from one column of a thread to its next?",
        launch: Launch::product(64, 64),
        shapes: &[[64, 64, 32], [70, 33, 20]],
        counters: &[at_most(Measure::ReadConflicts, 1.0), at_most(Measure::Sectors, 4.1)],
        fails: Fails::Counter(0),
    }),
    exercise!(four_at_a_time {
        rung: "vectorised",
        idea: "128-bit accesses: four neighbours by one instruction",
        task: "A thread adds four neighbours by twelve accesses of four bytes. Three accesses of 16 bytes are enough.",
        hint: "In and Out have methods for 128 bits (cargo doc -p gpu-simt --open). The index of the first element must be a \
               multiple of four.",
        launch: Launch { problem: Problem::Sum, grid: Grid::Tiles(1, 512), boxes: BOXES },
        shapes: &[[1, 1024, 1], [1, 1000, 1], [1, 4, 1]],
        counters: &[at_least(Measure::Width, 16.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(unaligned_rows {
        rung: "vectorised",
        idea: "128-bit accesses need addresses that are multiples of 16 bytes",
        task: "It is right if n is a multiple of four. Otherwise rows begin at other addresses. Keep the wide loads \
               where they are possible, and load element by element elsewhere.",
        hint: "When do all rows begin at multiples of 16 bytes? It depends on n, and on where x begins, which a method of In \
               tells. The last group of a row may have fewer than four elements.",
        launch: ROWS,
        shapes: &[[3, 128, 1], [3, 201, 1], [5, 3, 1]],
        counters: &[at_least(Measure::LoadWidth, 16.0)],
        fails: Fails::Findings(&[Misaligned, OutOfBounds, NeverRead]),
    }),
    exercise!(tree_of_sums {
        rung: "warp_tiled",
        idea: "which threads of a warp are idle, and which banks they access",
        task: "A block adds up a row by a tree. From round to round the active threads read words that are further \
               apart. Let neighbours add neighbours.",
        hint: "A round adds one half of the elements to the other. Which halves, so that threads 0, 1, 2 .. read neighbours?",
        launch: ROWS,
        shapes: &[[2, 1000, 1], [1, 7, 1]],
        counters: &[at_most(Measure::Conflicts, 1.0), at_most(Measure::SharedRequests, 64.0)],
        fails: Fails::Counter(0),
    }),
    exercise!(sums_of_a_warp {
        rung: "warp_tiled",
        idea: "lanes of a warp do not wait for each other by themselves",
        task: "The last 32 sums are added by one warp, without a barrier. Since Volta lanes may go separately. Make it \
               right without a barrier of the block in these rounds.",
        hint: "simt::device::warp has two ways: lanes exchange registers, or lanes wait for each other. In the second way, \
               what may happen between the reads and the writes of a round?",
        launch: ROWS,
        shapes: &[[2, 1000, 1], [1, 7, 1]],
        counters: &[at_most(Measure::BlockBarriers, 4.0), at_most(Measure::SharedRequests, 50.0)],
        fails: Fails::Findings(&[WriteAfterRead]),
    }),
    exercise!(wait_for_copies {
        rung: "async_copy",
        idea: "`cp.async`: who waits for the copies?",
        task: "A barrier orders threads, and not the copies that they have begun. Wait for these first.",
        hint: "A thread can wait for its own copies alone (simt::device::copies). What tells it of the others' copies? In \
               which order must the two stand?",
        launch: TILED16,
        shapes: &[[20, 40, 33]],
        counters: &[at_most(Measure::Barriers(16), 2.0), GROUPS, COPIED],
        fails: Fails::Findings(&[ReadAfterWrite, WriteAfterWrite]),
    }),
    exercise!(zeros_of_a_copy {
        rung: "async_copy",
        idea: "`cp.async`: zeros outside the matrix",
        task: "Elements outside are not copied, and the tile holds what it held before. Let the copy write zeros.",
        hint: "What does copy_async do with its last argument? Its documentation says what is written if there is no element.",
        launch: TILED16,
        shapes: &[[20, 40, 33], [16, 16, 16]],
        counters: &[GROUPS, COPIED],
        fails: Fails::Findings(&[Uninitialised]),
    }),
    exercise!(groups_at_the_end {
        rung: "async_copy",
        idea: "`cp.async`: an empty group keeps the count right",
        task: "wait_group::<1> leaves the last group in flight. At the end no new groups come, and the last one is the \
               one that is needed. Keep three stages, and leave a group in flight while there is a next phase.",
        hint: "The wait counts groups, with or without copies. How many groups has a thread committed by the last phase, and \
               how many would leave just one in flight?",
        launch: TILED16,
        shapes: &[[20, 40, 80], [16, 16, 16]],
        counters: &[
            at_most(Measure::Barriers(16), 1.0),
            COPIES_LEFT,
            GROUPS,
            COPIED,
            THREE_STAGES,
            NOT_FEWER
        ],
        fails: Fails::Findings(&[ReadAfterWrite]),
    }),
    exercise!(one_stage_too_far {
        rung: "async_copy",
        idea: "three stages: one is read, two are filled",
        task: "The copies run three phases ahead, with three stages. Whose stage do they fill? Keep three stages, \
               and leave a group in flight while there is a next phase.",
        hint: "Which stage has phase p + 3, and who reads that stage in phase p? How far ahead is a stage free?",
        launch: TILED16,
        shapes: &[[20, 40, 80], [16, 16, 16]],
        counters: &[
            COPIES_LEFT,
            at_most(Measure::Barriers(16), 1.0),
            GROUPS,
            COPIED,
            THREE_STAGES,
            NOT_FEWER
        ],
        fails: Fails::Findings(&[ReadAfterWrite, WriteAfterRead]),
    }),
    exercise!(parts_of_a_sum {
        rung: "ladder",
        idea: "split-K: several blocks add to one element",
        task: "Each of four blocks has a part of k. They read an element of C, add, and write it: at the same time. C \
               holds zeros before the launch. Let all four add their parts.",
        hint: "To read, add and write must be one operation. Out has a method for it.",
        launch: SPLIT,
        shapes: &[[20, 24, 50], [16, 16, 3]],
        counters: &[at_most(Measure::Atomics, 4.0), EACH_PART, QUARTER, NEEDED],
        fails: Fails::Findings(&[ReadAfterWrite, WriteAfterWrite]),
    }),
    exercise!(the_last_part {
        rung: "ladder",
        idea: "split-K: k is no multiple of the parts",
        task: "Four blocks have k / 4 steps each. Which elements of A does nobody read? Let all four add a part.",
        hint: "Which k-steps are left if the length of a part is rounded down? If it is rounded up, where does the last part \
               end?",
        launch: SPLIT,
        shapes: &[[20, 24, 50], [16, 16, 3]],
        counters: &[at_most(Measure::Atomics, 4.0), EACH_PART, QUARTER, NEEDED],
        fails: Fails::Findings(&[NeverRead]),
    }),
    exercise!(one_addition_a_part {
        rung: "ladder",
        idea: "split-K: one atomic addition for each part",
        task: "Every product is added to C by an atomic addition. Four for each element of C are enough.",
        hint: "All k-steps of a part are one thread's. Where can it add them up, before it adds to C?",
        launch: SPLIT,
        shapes: &[[20, 24, 50], [16, 16, 3]],
        counters: &[at_most(Measure::Atomics, 4.0), EACH_PART, QUARTER, NEEDED],
        fails: Fails::Counter(0),
    }),
];
