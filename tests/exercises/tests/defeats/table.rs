//! Ways round the exercises: changes of a solution that leave the kernel clean and right, and the exercise's idea out.

/// A way round an exercise.
#[allow(dead_code, reason = "the build script reads the changes, and the test what refuses them")]
pub struct Defeat {
    /// The exercise.
    pub exercise: &'static str,
    /// What it does instead, as a name.
    pub name: &'static str,
    /// What stands in the solution, and what is written in its place.
    pub changes: &'static [(&'static str, &'static str)],
    /// The counter that refuses it, as the student reads it.
    pub refused: &'static str,
}

/// A stage for each phase, so that none is filled again.
const MANY: (&str, &str) = ("const STAGES: usize = 3;", "const STAGES: usize = 8;");
const MANY_OF_TWO: (&str, &str) = ("const STAGES: usize = 2;", "const STAGES: usize = 8;");
const STAGES: &str = "stages in the shared memory of a block, measured 8";
const COPIES: &str =
    "        tile_a.copy_async::<1>(to, &a, row * k + a_col, row < m && a_col < k);
        tile_b.copy_async::<1>(to, &b, b_row * n + col, b_row < k && col < n);\n";
const PLAIN: &str =
    "        tile_a[(to / TILE, to % TILE)] = if row < m && a_col < k { a[row * k + a_col] } else { 0.0 };
        tile_b[(to / TILE, to % TILE)] = if b_row < k && col < n { b[b_row * n + col] } else { 0.0 };\n";
const PRODUCTS: &str = "waits for products that leave one in flight, measured 0";
/// Of the blocks along z one has all of k.
const ONE_PART: &[(&str, &str)] = &[
    ("let length = k.div_ceil(parts);", "let length = k * parts / parts;"),
    ("if row < m && col < n {", "if row < m && col < n && part == 0 {"),
    ("c.atomic_add(row * n + col, sum);", "c[row * n + col] = sum;"),
];
const NO_ADDITION: &str = "at least 4 atomic additions an element of the result, measured 0";
const ONE_BLOCK: &[(&str, &str)] = &[(
    "(thread::block_idx_x(), thread::grid_dim_x())",
    "(if thread::block_idx_x() == 0 { 0 } else { u32::MAX }, 1)",
)];
const ALL_BY_ONE: &str = "% of the products by the first block, measured 100";
const NOT_AHEAD: &str = "% of the phases whose loads begin before the products, measured";

/// Each block loads both halves of B for itself.
const NO_MULTICAST: &[(&str, &str)] = &[
    (
        "                let half = at + BOX + rank as usize * BOX / 2;
                let place = (0, p + rank * side / 2, col);
                tiles.load_box_multicast(half, &of_b, place, producer.full(), 0b11);\n",
        "                for half in 0..2 {
                    let place = (0, p + half * side / 2, col);
                    tiles.load_box(at + BOX + half as usize * BOX / 2, &of_b, place, producer.full());
                }\n",
    ),
];
const ALL_OF_B: &str = "at most 98304 bytes loaded by TMA, measured";

/// All of them.
pub const DEFEATS: &[Defeat] = &[
    Defeat {
        exercise: "barrier_in_a_branch",
        name: "no_check",
        changes: &[(
            "        if row < m && col < n {
            for i in 0..TILE {
                sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
            }
        }\n",
            "        for i in 0..TILE {
            sum = fma(tile_a[(ty, i)], tile_b[(i, tx)], sum);
        }\n",
        )],
        refused: "at most 1 multiply-adds for each that the product needs, measured 2.13",
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
        refused: "at least 1 groups of `cp.async` a phase, measured 0",
    },
    Defeat {
        exercise: "wait_for_copies",
        name: "copies_by_threads",
        changes: &[(COPIES, PLAIN)],
        refused: "at least 1 groups of `cp.async` a phase, measured 0",
    },
    Defeat {
        exercise: "zeros_of_a_copy",
        name: "copies_by_threads",
        changes: &[(COPIES, PLAIN)],
        refused: "at least 1 groups of `cp.async` a phase, measured 0",
    },
    Defeat {
        exercise: "one_stage_too_far",
        name: "a_fourth_stage",
        changes: &[("const STAGES: usize = 3;", "const STAGES: usize = 4;")],
        refused: "at most 3 stages in the shared memory of a block, measured 4",
    },
    Defeat {
        exercise: "free_stage",
        name: "a_fourth_stage",
        changes: &[
            ("const STAGES: usize = 3;", "const STAGES: usize = 4;"),
            ("for phase in 0..STAGES - 1 {", "for phase in 0..2 {"),
            ("{ STAGES as u32 - 2 }", "1"),
            (
                "        thread::sync_threads();
        begin(&mut tiles, phase + STAGES - 1);\n",
                "        begin(&mut tiles, phase + 2);
        thread::sync_threads();\n",
            ),
        ],
        refused: "at most 3 stages in the shared memory of a block, measured 4",
    },
    Defeat {
        exercise: "parity_of_a_round",
        name: "never_fills_again",
        changes: &[MANY_OF_TWO, ("wait_warp((phase / STAGES % 2) as u32)", "wait_warp(0)")],
        refused: STAGES,
    },
    Defeat {
        exercise: "stage_filled_again",
        name: "one_stage",
        changes: &[("const STAGES: usize = 2;", "const STAGES: usize = 1;")],
        refused: "products that begin while TMA fills another stage, measured 0",
    },
    Defeat {
        exercise: "stage_filled_again",
        name: "fills_at_once_and_waits",
        changes: &[
            ("const STAGES: usize = 2;", "const STAGES: usize = 1;"),
            (
                "        if t == 0 && phase + STAGES < phases {
            begin(&mut tiles, phase + STAGES);
        }\n",
                "",
            ),
            (
                "        let at = phase % STAGES * STAGE;
        full",
                "        if t == 0 && phase > 0 {
            begin(&mut tiles, phase);
        }
        let at = phase % STAGES * STAGE;
        full",
            ),
        ],
        refused: "products that begin while TMA fills another stage, measured 0",
    },
    Defeat {
        exercise: "stage_filled_again",
        name: "never_fills_again",
        changes: &[MANY_OF_TWO, ("        wait::<0>();\n", "")],
        refused: STAGES,
    },
    Defeat {
        exercise: "stages_released",
        name: "waits_for_all",
        changes: &[("            wait::<1>();\n", "            wait::<0>();\n")],
        refused: PRODUCTS,
    },
    Defeat {
        exercise: "stages_released",
        name: "never_fills_again",
        changes: &[MANY, ("                read.release_multiplied();\n", "")],
        refused: STAGES,
    },
    Defeat {
        exercise: "arrivals_of_a_stage",
        name: "never_fills_again",
        changes: &[MANY, ("        ring.init(1);", "        ring.init(4);")],
        refused: STAGES,
    },
    Defeat {
        exercise: "released_too_early",
        name: "waits_for_all",
        changes: &[("            wait::<1>();\n", "            wait::<0>();\n")],
        refused: PRODUCTS,
    },
    Defeat {
        exercise: "released_too_early",
        name: "never_fills_again",
        changes: &[MANY, ("            wait::<1>();\n", "")],
        refused: STAGES,
    },
    Defeat {
        exercise: "parity_by_hand",
        name: "never_fills_again",
        changes: &[
            MANY_OF_TWO,
            (
                "            empty.at(stage).wait_warp((round + 1) % 2);\n",
                "            let _ = round;\n",
            ),
        ],
        refused: STAGES,
    },
    Defeat {
        exercise: "readers_of_a_stage",
        name: "never_fills_again",
        changes: &[MANY_OF_TWO, ("        ring.init(2);", "        ring.init(1);")],
        refused: STAGES,
    },
    Defeat {
        exercise: "last_stage_of_a_tile",
        name: "never_fills_again",
        changes: &[
            MANY,
            (
                "        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();\n",
                "",
            ),
        ],
        refused: STAGES,
    },
    Defeat {
        exercise: "next_tile_of_a_block",
        name: "one_block",
        changes: ONE_BLOCK,
        refused: ALL_BY_ONE,
    },
    Defeat {
        exercise: "tiles_of_the_producer",
        name: "one_block",
        changes: ONE_BLOCK,
        refused: ALL_BY_ONE,
    },
    Defeat {
        exercise: "bytes_of_both",
        name: "no_multicast",
        changes: NO_MULTICAST,
        refused: ALL_OF_B,
    },
    Defeat {
        exercise: "cluster_begins",
        name: "no_multicast",
        changes: NO_MULTICAST,
        refused: ALL_OF_B,
    },
    Defeat {
        exercise: "cluster_ends",
        name: "no_multicast",
        changes: NO_MULTICAST,
        refused: ALL_OF_B,
    },
    Defeat {
        exercise: "box_in_use",
        name: "a_box_for_each_tile",
        changes: &[
            ("(STAGES * STAGE + 4 * STORED)", "(STAGES * STAGE + 20 * STORED)"),
            (
                "    let box_of_c = STAGES * STAGE + warp as usize * STORED;\n",
                "    let mut box_of_c = STAGES * STAGE + warp as usize * STORED;\n",
            ),
            (
                "            bulk::wait_group_read::<0>();\n",
                "            bulk::wait_group_read::<8>();\n",
            ),
            (
                "        tile += thread::grid_dim_x();\n",
                "        tile += thread::grid_dim_x();\nbox_of_c += 4 * STORED;\n",
            ),
        ],
        refused: "at most 40976 bytes of shared memory a block, measured 73744",
    },
    Defeat {
        exercise: "parts_of_a_sum",
        name: "one_part",
        changes: ONE_PART,
        refused: NO_ADDITION,
    },
    Defeat { exercise: "the_last_part", name: "one_part", changes: ONE_PART, refused: NO_ADDITION },
    Defeat {
        exercise: "one_addition_a_part",
        name: "one_part",
        changes: ONE_PART,
        refused: NO_ADDITION,
    },
    Defeat {
        exercise: "tree_of_sums",
        name: "one_thread_adds",
        changes: &[
            ("while half > 0 {", "while half == BLOCK / 2 {"),
            (
                "        if t < half {
            let other = sums[t + half];
            sums[t] = sums[t] + other;
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
