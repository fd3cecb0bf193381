//! Ways round the exercises of the tensor cores' rungs.

use super::{A_FOURTH, Defeat, FEWER_THAN_THREE, FOUR, MANY, NO_COPY_LEFT, STAGES, TWO, defeat};

const MANY_OF_TWO: (&str, &str) = ("const STAGES: usize = 2;", "const STAGES: usize = 8;");
const ONE_OF_TWO: (&str, &str) = ("const STAGES: usize = 2;", "const STAGES: usize = 1;");
const EIGHT_MBARRIERS: (&str, &str) =
    ("let full = mbarriers![STAGES];", "let full = mbarriers![8];");
const MBARRIERS: &str = "at most 32800 bytes of shared memory a block, measured";
/// Fragments of A and of B as their lanes load them, without a tile.
const ROWS_BY_LDMATRIX: &str = "                let row = warp_row + i * 16 + lane % 16;
                tile_a.load_fragment(place(row, step * 2 + lane / 16))\n";
const ROWS_BY_LANES: &str = "                let row = first_row + warp_row + i * 16 + lane / 4;
                let p = p + step * 16 + lane % 4 * 2;
                let of = |row: usize, p: usize| match row < m && p < k {
                    true => a[row * k + p],
                    false => const { Bf16::from_bits(0) },
                };
                let pairs = [(0, 0), (8, 0), (0, 8), (8, 8)];
                mma::Fragment::from_pairs(pairs.map(|(down, further)| {
                    [of(row + down, p + further), of(row + down, p + further + 1)]
                }))\n";
const COLS_BY_LDMATRIX: &str = "                let row = step * 16 + lane / 16 * 8 + lane % 8;
                let group = warp_col / GROUP + j * 2 + lane / 8 % 2;
                tile_b.load_fragment_either(place(row, group), true)\n";
const COLS_BY_LANES: &str = "                let col = first_col + warp_col + j * 16 + lane / 4;
                let p = p + step * 16 + lane % 4 * 2;
                let of = |p: usize, col: usize| match p < k && col < n {
                    true => b[p * n + col],
                    false => const { Bf16::from_bits(0) },
                };
                let pairs = [(0, 0), (8, 0), (0, 8), (8, 8)];
                mma::Fragment::from_pairs(pairs.map(|(right, further)| {
                    [of(p + further, col + right), of(p + further + 1, col + right)]
                }))\n";
const NO_TILE: &str = "at least 24 FLOP a byte loaded from global memory, measured";
const WAIT_FOR_ALL: (&str, &str) = ("            wait::<1>();\n", "            wait::<0>();\n");
const NOT_AHEAD: &str = "products that begin while TMA fills another stage, measured 0";
const PRODUCTS: &str = "waits for products that leave one in flight, measured 0";
const ONE_BLOCK: &[(&str, &str)] = &[(
    "(thread::block_idx_x(), thread::grid_dim_x())",
    "(if thread::block_idx_x() == 0 { 0 } else { u32::MAX }, 1)",
)];
const OTHER_BLOCK: &[(&str, &str)] = &[(
    "(thread::block_idx_x(), thread::grid_dim_x())",
    "(if thread::block_idx_x() == 1 { 0 } else { u32::MAX }, 1)",
)];
const ALL_BY_ONE: &str = "% of the products by one block, measured 100";
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
/// The copy of a box is waited for where it begins.
const WAIT_AT_ONCE: (&str, &str) = (
    "            bulk::commit_group();\n",
    "            bulk::commit_group();\n            bulk::wait_group_read::<0>();\n",
);
/// Or at the beginning of the next tile.
const WAIT_BEFORE: (&str, &str) = (
    "        let mut sums = Accumulators::<TILE>::zeroed();\n",
    "        if lane == 0 {\n            bulk::wait_group_read::<0>();\n        }\n        let mut sums = Accumulators::<TILE>::zeroed();\n",
);
const NOTHING_BEHIND: &str = "products that begin while TMA reads a box of C, measured 0";
const ALL_OF_B: &str = "at most 98304 bytes loaded by TMA, measured";

/// All of them.
pub const DEFEATS: &[Defeat] = &[
    defeat(
        "free_stage",
        "a_fourth_stage",
        &[
            FOUR,
            ("for phase in 0..STAGES - 1 {", "for phase in 0..2 {"),
            ("{ STAGES as u32 - 2 }", "1"),
            (
                "        thread::sync_threads();
        begin(&mut tiles, phase + STAGES - 1);\n",
                "        begin(&mut tiles, phase + 2);
        thread::sync_threads();\n",
            ),
        ],
        A_FOURTH,
    ),
    defeat("free_stage", "two_stages", &[TWO], FEWER_THAN_THREE),
    defeat("free_stage", "waits_for_all", &[("{ STAGES as u32 - 2 }", "0")], NO_COPY_LEFT),
    defeat(
        "parity_of_a_round",
        "never_fills_again",
        &[MANY_OF_TWO, ("wait_warp((phase / STAGES % 2) as u32)", "wait_warp(0)")],
        STAGES,
    ),
    defeat(
        "parity_of_a_round",
        "an_mbarrier_for_each_phase",
        &[
            EIGHT_MBARRIERS,
            ("shared = STAGES * size_of::<u64>()", "shared = 8 * size_of::<u64>()"),
            ("for stage in 0..STAGES {", "for stage in 0..8 {"),
            ("full.at(phase % STAGES));\n", "full.at(phase));\n"),
            (
                "full.at(phase % STAGES).wait_warp((phase / STAGES % 2) as u32)",
                "full.at(phase).wait_warp(0)",
            ),
        ],
        MBARRIERS,
    ),
    defeat("stage_filled_again", "one_stage", &[ONE_OF_TWO], NOT_AHEAD),
    defeat(
        "stage_filled_again",
        "fills_at_once_and_waits",
        &[
            ONE_OF_TWO,
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
        NOT_AHEAD,
    ),
    defeat(
        "stage_filled_again",
        "never_fills_again",
        &[MANY_OF_TWO, ("        wait::<0>();\n", "")],
        STAGES,
    ),
    defeat("stages_released", "waits_for_all", &[WAIT_FOR_ALL], PRODUCTS),
    defeat(
        "stages_released",
        "never_fills_again",
        &[MANY, ("                read.release_multiplied();\n", "")],
        STAGES,
    ),
    defeat(
        "arrivals_of_a_stage",
        "never_fills_again",
        &[MANY, ("        ring.init(1);", "        ring.init(4);")],
        STAGES,
    ),
    defeat("released_too_early", "waits_for_all", &[WAIT_FOR_ALL], PRODUCTS),
    defeat(
        "released_too_early",
        "never_fills_again",
        &[MANY, ("            wait::<1>();\n", "")],
        STAGES,
    ),
    defeat(
        "parity_by_hand",
        "never_fills_again",
        &[
            MANY_OF_TWO,
            (
                "            empty.at(stage).wait_warp((round + 1) % 2);\n",
                "            let _ = round;\n",
            ),
        ],
        STAGES,
    ),
    defeat(
        "parity_by_hand",
        "one_stage",
        &[ONE_OF_TWO],
        "at least 2 stages in the shared memory of a block, measured 1",
    ),
    defeat(
        "parity_by_hand",
        "an_mbarrier_for_each_phase",
        &[
            EIGHT_MBARRIERS,
            ("let empty = mbarriers![STAGES];", "let empty = mbarriers![8];"),
            ("STAGES * 2 * size_of::<u64>()", "16 * size_of::<u64>()"),
            ("for stage in 0..STAGES {", "for stage in 0..8 {"),
            (
                "            let (stage, round) = (phase % STAGES, (phase / STAGES) as u32);
            let (at, p)",
                "            let stage = phase % STAGES;
            let (at, p)",
            ),
            (
                "            empty.at(stage).wait_warp((round + 1) % 2);\n",
                "            if phase >= STAGES {
                empty.at(phase - STAGES).wait_warp(0);
            }\n",
            ),
            (
                "                full.at(stage).arrive_expect(BYTES);
                tiles.load_box(at, &of_a, (0, row, p), full.at(stage));
                tiles.load_box(at + BOX, &of_b, (0, p, col), full.at(stage));\n",
                "                full.at(phase).arrive_expect(BYTES);
                tiles.load_box(at, &of_a, (0, row, p), full.at(phase));
                tiles.load_box(at + BOX, &of_b, (0, p, col), full.at(phase));\n",
            ),
            (
                "        let (stage, round) = (phase % STAGES, (phase / STAGES) as u32);
        let at = stage",
                "        let stage = phase % STAGES;
        let at = stage",
            ),
            ("full.at(stage).wait_warp(round % 2);", "full.at(phase).wait_warp(0);"),
            ("empty.at(stage).arrive();", "empty.at(phase).arrive();"),
        ],
        MBARRIERS,
    ),
    defeat(
        "readers_of_a_stage",
        "never_fills_again",
        &[MANY_OF_TWO, ("        ring.init(2);", "        ring.init(1);")],
        STAGES,
    ),
    defeat(
        "last_stage_of_a_tile",
        "never_fills_again",
        &[
            MANY,
            (
                "        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();\n",
                "",
            ),
        ],
        STAGES,
    ),
    defeat("next_tile_of_a_block", "one_block", ONE_BLOCK, ALL_BY_ONE),
    defeat("next_tile_of_a_block", "other_block", OTHER_BLOCK, ALL_BY_ONE),
    defeat("tiles_of_the_producer", "one_block", ONE_BLOCK, ALL_BY_ONE),
    defeat("tiles_of_the_producer", "other_block", OTHER_BLOCK, ALL_BY_ONE),
    defeat("bytes_of_both", "no_multicast", NO_MULTICAST, ALL_OF_B),
    defeat(
        "bytes_of_both",
        "b_by_the_first_block",
        &[(
            "                let half = at + BOX + rank as usize * BOX / 2;
                let place = (0, p + rank * side / 2, col);
                tiles.load_box_multicast(half, &of_b, place, producer.full(), 0b11);\n",
            "                for half in 0..if rank == 0 { 2 } else { 0 } {
                    let place = (0, p + half * side / 2, col);
                    let to = at + BOX + half as usize * BOX / 2;
                    tiles.load_box_multicast(to, &of_b, place, producer.full(), 0b11);
                }\n",
        )],
        "at most 60 % of the bytes from global memory by one block, measured",
    ),
    defeat("cluster_begins", "no_multicast", NO_MULTICAST, ALL_OF_B),
    defeat("cluster_ends", "no_multicast", NO_MULTICAST, ALL_OF_B),
    defeat(
        "box_in_use",
        "a_box_for_each_tile",
        &[
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
        "at most 40976 bytes of shared memory a block, measured 73744",
    ),
    defeat("box_in_use", "waits_after_the_commit", &[WAIT_AT_ONCE], NOTHING_BEHIND),
    defeat(
        "box_in_use",
        "waits_after_the_commit_with_an_empty_group",
        &[
            (
                "    // Stages are counted on from tile to tile.\n",
                "    if lane == 0 {\n        bulk::commit_group();\n    }\n",
            ),
            WAIT_AT_ONCE,
        ],
        NOTHING_BEHIND,
    ),
    defeat("box_in_use", "waits_before_the_products", &[WAIT_BEFORE], NOTHING_BEHIND),
    defeat(
        "box_at_the_end",
        "waits_after_the_commit",
        &[
            WAIT_AT_ONCE,
            (
                "    // The last box has been read before the block ends.\n    bulk::wait_group_read::<0>();\n",
                "",
            ),
        ],
        NOTHING_BEHIND,
    ),
    defeat(
        "rows_of_the_lanes",
        "no_tile",
        &[(ROWS_BY_LDMATRIX, ROWS_BY_LANES), (COLS_BY_LDMATRIX, COLS_BY_LANES)],
        NO_TILE,
    ),
    defeat("transposed_load", "no_tile_of_b", &[(COLS_BY_LDMATRIX, COLS_BY_LANES)], NO_TILE),
    defeat("products_under_way", "waits_for_all", &[("{ STAGES as u32 - 2 }", "0")], NO_COPY_LEFT),
];
