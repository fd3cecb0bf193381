//! Lanes write a box of C. In which banks?

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 2;
/// Elements of a box of 64 x 64, and of a stage: one of A and one of B.
const BOX: usize = TILE * TILE;
const STAGE: usize = 2 * BOX;
/// Elements of a box of C: 16 rows of a warp.
const STORED: usize = 16 * TILE;
const BYTES: u32 = (STAGE * size_of::<Bf16>()) as u32;

/// C (m x n) = A (m x k) B (k x n), tiles of 64 x 64, stored by TMA. A small grid has several tiles
/// a block.
#[kernel(
    block = (128),
    dynamic_shared = (STAGES * STAGE + 4 * STORED) * size_of::<Bf16>(),
    shared = STAGES * size_of::<u64>(),
    arch = 90,
)]
pub fn swizzle_of_a_box(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    c: TensorMapMut<Bf16>,
) {
    let full = mbarriers![STAGES];
    let mut tiles = dynamic_shared![Bf16];
    let (t, lane) = (thread::thread_idx_x(), thread::lane_id());
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (of_a, of_b) = (a.boxes::<TILE, TILE, 128>(), b.boxes::<TILE, TILE, 128>());
    let of_c = c.boxes::<16, TILE, 128>();
    let (side, phases) = (TILE as u32, k.div_ceil(TILE as u32));
    let (down, across) = (m.div_ceil(side), n.div_ceil(side));
    if t == 0 {
        for stage in 0..STAGES {
            full.at(stage).init(1);
        }
        mbarrier::fence_init();
    }
    thread::sync_threads();

    // Stages are counted on from tile to tile.
    let (mut filled, mut tile) = (0, thread::block_idx_x());
    // This warp's box of C.
    let box_of_c = STAGES * STAGE + warp as usize * STORED;
    while tile < down * across {
        let (row, col) = (tile / across * side, tile % across * side);
        let mut sums = Accumulators::<TILE>::zeroed();
        for phase in 0..phases {
            let (stage, round) = (filled % STAGES, (filled / STAGES) as u32);
            let (at, full, p) = (stage * STAGE, full.at(stage), phase * side);
            if t == 0 {
                full.arrive_expect(BYTES);
                tiles.load_box(at, &of_a, (0, row, p), full);
                tiles.load_box(at + BOX, &of_b, (0, p, col), full);
            }
            full.wait_warp(round % 2);
            sums.multiply_add(
                tiles.operand::<KMajor<TILE>>(at),
                tiles.operand::<MnMajor<TILE>>(at + BOX),
            );
            commit();
            wait::<0>();
            thread::sync_threads();
            filled += 1;
        }
        // The copy of the last tile has read the box.
        if lane == 0 {
            bulk::wait_group_read::<0>();
        }
        warp::sync_warp(warp::ALL);
        sums.wait::<0>().for_each_pair(|row, col, two| {
            // The 128-byte swizzle of the box.
            let row = row % 16;
            let place = row * side + col;
            tiles.store32(box_of_c + place as usize, Bf16::from_two_f32(two));
        });
        fence_proxy_async();
        warp::sync_warp(warp::ALL);
        if lane == 0 {
            tiles.store_box(box_of_c, &of_c, (0, row + warp * 16, col));
            bulk::commit_group();
        }
        tile += thread::grid_dim_x();
    }
    // The last box has been read before the block ends.
    bulk::wait_group_read::<0>();
}
