//! Ways round the exercises of the rungs from `basic` to `ladder`.

use super::{Defeat, FEWER_THAN_THREE, MANY, NO_COPY_LEFT, STAGES, TWO};

const COPIES: &str =
    "        tile_a.copy_async::<1>(to, &a, row * k + a_col, row < m && a_col < k);
        tile_b.copy_async::<1>(to, &b, b_row * n + col, b_row < k && col < n);\n";
const PLAIN: &str =
    "        tile_a[(to / TILE, to % TILE)] = if row < m && a_col < k { a[row * k + a_col] } else { 0.0 };
        tile_b[(to / TILE, to % TILE)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };\n";
const PLAIN_B: &str =
    "        tile_a.copy_async::<1>(to, &a, row * k + a_col, row < m && a_col < k);
        tile_b[(to / TILE, to % TILE)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };\n";
const HALF_COPIED: &str = "at least 100 % of the bytes from global memory by `cp.async`, measured";
/// Of the blocks along z one has all of k.
const ONE_PART: &[(&str, &str)] = &[
    ("let length = k.div_ceil(parts);", "let length = k * parts / parts;"),
    ("if row < m && col < n {", "if row < m && col < n && part == 0 {"),
    ("c.atomic_add(row * n + col, sum);", "c[row * n + col] = sum;"),
];
/// The first part has all of k, and the others add zero.
const FIRST_PART: &[(&str, &str)] =
    &[("let length = k.div_ceil(parts);", "let length = k.max(parts);")];
const ALL_LOADED: &str = "% of the bytes from global memory by one block, measured 100";
const NO_ADDITION: &str = "at least 4 atomic additions an element of the result, measured 0";
const NOT_AHEAD: &str = "% of the phases whose loads begin before the products, measured";

/// In the solution of `barrier_in_a_branch`.
const CHECKED_PRODUCTS: &str = "        if row < m && col < n {
            for i in 0..TILE {
                sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
            }
        }\n";

/// All of them.
pub const DEFEATS: &[Defeat] = &[
    Defeat {
        exercise: "barrier_in_a_branch",
        name: "no_check",
        changes: &[(
            CHECKED_PRODUCTS,
            "        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }\n",
        )],
        refused: "at most 1 multiply-add for each that the product needs, measured 2.13",
    },
    Defeat {
        exercise: "barrier_in_a_branch",
        name: "no_fma",
        changes: &[(
            CHECKED_PRODUCTS,
            "        for i in 0..TILE {
            sum = sum + tile_a[(ty, i)] * tile_b[(i, tx)];
        }\n",
        )],
        refused: "at least 1 multiply-add for each that the product needs, measured 0",
    },
    Defeat {
        exercise: "halo",
        name: "loads_neighbours",
        changes: &[(
            "tile[t] + tile[t + 1] + tile[t + 2]",
            "(if i > 0 { x[i - 1] } else { 0.0 }) + tile[t + 1] + if i + 1 < n { x[i + 1] } else { 0.0 }",
        )],
        refused: "at least 0.45 FLOP a byte loaded from global memory, measured",
    },
    Defeat {
        exercise: "groups_at_the_end",
        name: "waits_for_all",
        changes: &[("wait_group::<1>", "wait_group::<0>")],
        refused: "waits for copies that leave a group in flight, measured 0",
    },
    Defeat {
        exercise: "groups_at_the_end",
        name: "never_fills_again",
        changes: &[
            MANY,
            (
                "        }
        // After the last phase the group is empty. It keeps the number of groups in flight right.
        copies::commit_group();\n",
                "            copies::commit_group();
        }\n",
            ),
        ],
        refused: STAGES,
    },
    Defeat {
        exercise: "groups_at_the_end",
        name: "copies_by_threads",
        changes: &[(COPIES, PLAIN)],
        refused: "at least 1 group of `cp.async` a phase, measured 0",
    },
    Defeat {
        exercise: "wait_for_copies",
        name: "copies_by_threads",
        changes: &[(COPIES, PLAIN)],
        refused: "at least 1 group of `cp.async` a phase, measured 0",
    },
    Defeat {
        exercise: "wait_for_copies",
        name: "b_by_threads",
        changes: &[(COPIES, PLAIN_B)],
        refused: HALF_COPIED,
    },
    Defeat {
        exercise: "zeros_of_a_copy",
        name: "copies_by_threads",
        changes: &[(COPIES, PLAIN)],
        refused: "at least 1 group of `cp.async` a phase, measured 0",
    },
    Defeat {
        exercise: "one_stage_too_far",
        name: "a_fourth_stage",
        changes: &[("const STAGES: usize = 3;", "const STAGES: usize = 4;")],
        refused: "at most 3 stages in the shared memory of a block, measured 4",
    },
    Defeat {
        exercise: "one_stage_too_far",
        name: "two_stages",
        changes: &[TWO, ("wait_group::<1>", "wait_group::<0>")],
        refused: FEWER_THAN_THREE,
    },
    Defeat {
        exercise: "one_stage_too_far",
        name: "waits_for_all",
        changes: &[("wait_group::<1>", "wait_group::<0>")],
        refused: NO_COPY_LEFT,
    },
    Defeat {
        exercise: "one_stage_too_far",
        name: "b_by_threads",
        changes: &[(COPIES, PLAIN_B)],
        refused: HALF_COPIED,
    },
    Defeat {
        exercise: "parts_of_a_sum",
        name: "one_part",
        changes: ONE_PART,
        refused: NO_ADDITION,
    },
    Defeat {
        exercise: "parts_of_a_sum",
        name: "first_part",
        changes: FIRST_PART,
        refused: ALL_LOADED,
    },
    Defeat { exercise: "the_last_part", name: "one_part", changes: ONE_PART, refused: NO_ADDITION },
    Defeat {
        exercise: "the_last_part",
        name: "first_part",
        changes: FIRST_PART,
        refused: ALL_LOADED,
    },
    Defeat {
        exercise: "one_addition_a_part",
        name: "one_part",
        changes: ONE_PART,
        refused: NO_ADDITION,
    },
    Defeat {
        exercise: "one_addition_a_part",
        name: "first_part",
        changes: FIRST_PART,
        refused: ALL_LOADED,
    },
    Defeat {
        exercise: "tree_of_sums",
        name: "one_thread_adds",
        changes: &[
            ("while half > 0 {", "while half == BLOCK / 2 {"),
            (
                "        if t < half {
            let other = sums[t + half];
            sums[t] += other;
        }\n",
                "        if t == 0 {
            let mut sum = 0.0;
            for i in 0..BLOCK {
                sum += sums[i];
            }
            sums[0] = sum;
        }\n",
            ),
        ],
        refused: "requests to shared memory an element of the result, measured",
    },
    Defeat {
        exercise: "sums_of_a_warp",
        name: "one_lane_adds",
        changes: &[
            (
                "    if t < 32 {
        let mut sum = sums[t];\n",
                "    if t == 0 {
        let mut sum = 0.0;\n",
            ),
            (
                "        for distance in [16, 8, 4, 2, 1] {
            sum += warp::shuffle_xor(warp::ALL, sum, distance);\n",
                "        for i in 0..32 {
            sum += sums[i];\n",
            ),
        ],
        refused: "requests to shared memory an element of the result, measured",
    },
    Defeat {
        exercise: "prefetch_past_the_end",
        name: "no_prefetch",
        changes: &[
            (
                "        if phase + 1 < phases {
            tile_a[(next + ty, tx)] = a[row * k + (phase + 1) * TILE + tx];
            tile_b[(next + ty, tx)] = b[((phase + 1) * TILE + ty) * n + col];
        }\n",
                "",
            ),
            (
                "            sum = fma(tile_a[(this + ty, i)], tile_b[(this + i, tx)], sum);
        }\n",
                "            sum = fma(tile_a[(this + ty, i)], tile_b[(this + i, tx)], sum);
        }
        if phase + 1 < phases {
            tile_a[(next + ty, tx)] = a[row * k + (phase + 1) * TILE + tx];
            tile_b[(next + ty, tx)] = b[((phase + 1) * TILE + ty) * n + col];
        }\n",
            ),
        ],
        refused: NOT_AHEAD,
    },
    Defeat {
        exercise: "the_other_buffer",
        name: "no_prefetch",
        changes: &[
            (
                "        // In flight while this phase is multiplied.
        let (of_a, of_b) = load(phase + 1);\n",
                "",
            ),
            (
                "        tile_a[(next + ty, tx)] = of_a;\n",
                "        let (of_a, of_b) = load(phase + 1);
        tile_a[(next + ty, tx)] = of_a;\n",
            ),
        ],
        refused: NOT_AHEAD,
    },
];
