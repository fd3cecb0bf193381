//! Ways round the exercises of the tensor cores' rungs.

use super::{Defeat, FEWER_THAN_THREE, MANY, NO_COPY_LEFT, STAGES, TWO};

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
        exercise: "free_stage",
        name: "two_stages",
        changes: &[TWO],
        refused: FEWER_THAN_THREE,
    },
    Defeat {
        exercise: "free_stage",
        name: "waits_for_all",
        changes: &[("{ STAGES as u32 - 2 }", "0")],
        refused: NO_COPY_LEFT,
    },
    Defeat {
        exercise: "parity_of_a_round",
        name: "never_fills_again",
        changes: &[MANY_OF_TWO, ("wait_warp((phase / STAGES % 2) as u32)", "wait_warp(0)")],
        refused: STAGES,
    },
    Defeat {
        exercise: "parity_of_a_round",
        name: "an_mbarrier_for_each_phase",
        changes: &[
            EIGHT_MBARRIERS,
            ("shared = STAGES * size_of::<u64>()", "shared = 8 * size_of::<u64>()"),
            ("for stage in 0..STAGES {", "for stage in 0..8 {"),
            ("full.at(phase % STAGES));\n", "full.at(phase));\n"),
            (
                "full.at(phase % STAGES).wait_warp((phase / STAGES % 2) as u32)",
                "full.at(phase).wait_warp(0)",
            ),
        ],
        refused: MBARRIERS,
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
        exercise: "parity_by_hand",
        name: "one_stage",
        changes: &[ONE_OF_TWO],
        refused: "at least 2 stages in the shared memory of a block, measured 1",
    },
    Defeat {
        exercise: "parity_by_hand",
        name: "an_mbarrier_for_each_phase",
        changes: &[
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
        refused: MBARRIERS,
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
        exercise: "next_tile_of_a_block",
        name: "other_block",
        changes: OTHER_BLOCK,
        refused: ALL_BY_ONE,
    },
    Defeat {
        exercise: "tiles_of_the_producer",
        name: "one_block",
        changes: ONE_BLOCK,
        refused: ALL_BY_ONE,
    },
    Defeat {
        exercise: "tiles_of_the_producer",
        name: "other_block",
        changes: OTHER_BLOCK,
        refused: ALL_BY_ONE,
    },
    Defeat {
        exercise: "bytes_of_both",
        name: "no_multicast",
        changes: NO_MULTICAST,
        refused: ALL_OF_B,
    },
    Defeat {
        exercise: "bytes_of_both",
        name: "b_by_the_first_block",
        changes: &[(
            "                let half = at + BOX + rank as usize * BOX / 2;
                let place = (0, p + rank * side / 2, col);
                tiles.load_box_multicast(half, &of_b, place, producer.full(), 0b11);\n",
            "                for half in 0..if rank == 0 { 2 } else { 0 } {
                    let place = (0, p + half * side / 2, col);
                    let to = at + BOX + half as usize * BOX / 2;
                    tiles.load_box_multicast(to, &of_b, place, producer.full(), 0b11);
                }\n",
        )],
        refused: "at most 60 % of the bytes from global memory by one block, measured",
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
        exercise: "box_in_use",
        name: "waits_after_the_commit",
        changes: &[WAIT_AT_ONCE],
        refused: NOTHING_BEHIND,
    },
    Defeat {
        exercise: "box_in_use",
        name: "waits_after_the_commit_with_an_empty_group",
        changes: &[
            (
                "    // Stages are counted on from tile to tile.\n",
                "    if lane == 0 {\n        bulk::commit_group();\n    }\n",
            ),
            WAIT_AT_ONCE,
        ],
        refused: NOTHING_BEHIND,
    },
    Defeat {
        exercise: "box_in_use",
        name: "waits_before_the_products",
        changes: &[WAIT_BEFORE],
        refused: NOTHING_BEHIND,
    },
    Defeat {
        exercise: "box_at_the_end",
        name: "waits_after_the_commit",
        changes: &[
            WAIT_AT_ONCE,
            (
                "    // The last box has been read before the block ends.\n    bulk::wait_group_read::<0>();\n",
                "",
            ),
        ],
        refused: NOTHING_BEHIND,
    },
    Defeat {
        exercise: "rows_of_the_lanes",
        name: "no_tile",
        changes: &[(ROWS_BY_LDMATRIX, ROWS_BY_LANES), (COLS_BY_LDMATRIX, COLS_BY_LANES)],
        refused: NO_TILE,
    },
    Defeat {
        exercise: "transposed_load",
        name: "no_tile_of_b",
        changes: &[(COLS_BY_LDMATRIX, COLS_BY_LANES)],
        refused: NO_TILE,
    },
    Defeat {
        exercise: "products_under_way",
        name: "waits_for_all",
        changes: &[("{ STAGES as u32 - 2 }", "0")],
        refused: NO_COPY_LEFT,
    },
];
