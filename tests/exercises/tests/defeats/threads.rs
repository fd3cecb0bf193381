//! Ways round the exercises of the rungs from `basic` to `ladder`.

use super::{A_FOURTH, Defeat, FEWER_THAN_THREE, FOUR, MANY, NO_COPY_LEFT, STAGES, TWO, defeat};

const WAIT_FOR_ALL: (&str, &str) = ("wait_group::<1>", "wait_group::<0>");

const COPIES: &str =
    "        tile_a.copy_async::<1>(to, &a, row * k + a_col, row < m && a_col < k);
        tile_b.copy_async::<1>(to, &b, b_row * n + col, b_row < k && col < n);\n";
const PLAIN: &str =
    "        tile_a[(to / TILE, to % TILE)] = if row < m && a_col < k { a[row * k + a_col] } else { 0.0 };
        tile_b[(to / TILE, to % TILE)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };\n";
const PLAIN_B: &str =
    "        tile_a.copy_async::<1>(to, &a, row * k + a_col, row < m && a_col < k);
        tile_b[(to / TILE, to % TILE)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };\n";
const NO_GROUP: &str = "at least 1 group of `cp.async` a phase, measured 0";
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
    defeat(
        "barrier_in_a_branch",
        "no_check",
        &[(
            CHECKED_PRODUCTS,
            "        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }\n",
        )],
        "at most 1 multiply-add for each that the product needs, measured 2.13",
    ),
    defeat(
        "barrier_in_a_branch",
        "no_fma",
        &[(
            CHECKED_PRODUCTS,
            "        for i in 0..TILE {
            sum = sum + tile_a[(ty, i)] * tile_b[(i, tx)];
        }\n",
        )],
        "at least 1 multiply-add for each that the product needs, measured 0",
    ),
    defeat(
        "halo",
        "loads_neighbours",
        &[(
            "tile[t] + tile[t + 1] + tile[t + 2]",
            "(if i > 0 { x[i - 1] } else { 0.0 }) + tile[t + 1] + if i + 1 < n { x[i + 1] } else { 0.0 }",
        )],
        "at least 0.45 FLOP a byte loaded from global memory, measured",
    ),
    defeat("groups_at_the_end", "waits_for_all", &[WAIT_FOR_ALL], NO_COPY_LEFT),
    defeat(
        "groups_at_the_end",
        "never_fills_again",
        &[
            MANY,
            (
                "        }
        // After the last phase the group is empty. It keeps the number of groups in flight right.
        copies::commit_group();\n",
                "            copies::commit_group();
        }\n",
            ),
        ],
        STAGES,
    ),
    defeat("groups_at_the_end", "copies_by_threads", &[(COPIES, PLAIN)], NO_GROUP),
    defeat("wait_for_copies", "copies_by_threads", &[(COPIES, PLAIN)], NO_GROUP),
    defeat("wait_for_copies", "b_by_threads", &[(COPIES, PLAIN_B)], HALF_COPIED),
    defeat("zeros_of_a_copy", "copies_by_threads", &[(COPIES, PLAIN)], NO_GROUP),
    defeat("one_stage_too_far", "a_fourth_stage", &[FOUR], A_FOURTH),
    defeat("one_stage_too_far", "two_stages", &[TWO, WAIT_FOR_ALL], FEWER_THAN_THREE),
    defeat("one_stage_too_far", "waits_for_all", &[WAIT_FOR_ALL], NO_COPY_LEFT),
    defeat("one_stage_too_far", "b_by_threads", &[(COPIES, PLAIN_B)], HALF_COPIED),
    defeat("parts_of_a_sum", "one_part", ONE_PART, NO_ADDITION),
    defeat("parts_of_a_sum", "first_part", FIRST_PART, ALL_LOADED),
    defeat("the_last_part", "one_part", ONE_PART, NO_ADDITION),
    defeat("the_last_part", "first_part", FIRST_PART, ALL_LOADED),
    defeat("one_addition_a_part", "one_part", ONE_PART, NO_ADDITION),
    defeat("one_addition_a_part", "first_part", FIRST_PART, ALL_LOADED),
    defeat(
        "tree_of_sums",
        "one_thread_adds",
        &[
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
        "requests to shared memory an element of the result, measured",
    ),
    defeat(
        "sums_of_a_warp",
        "one_lane_adds",
        &[
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
        "requests to shared memory an element of the result, measured",
    ),
    defeat(
        "prefetch_past_the_end",
        "no_prefetch",
        &[
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
        NOT_AHEAD,
    ),
    defeat(
        "the_other_buffer",
        "no_prefetch",
        &[
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
        NOT_AHEAD,
    ),
];
