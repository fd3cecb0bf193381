//! Two warpgroups share the columns of B. And the rows of A?
//!
//! Solution: A stage has two boxes of A: group g has the g-th.

use super::device::{warpgroup::*, *};

/// Rows of a warpgroup, columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 2;
/// Elements of a box of 64 x 64, and of a stage: two of A and one of B.
const BOX: usize = TILE * TILE;
const STAGE: usize = 3 * BOX;
const BYTES: u32 = (STAGE * size_of::<Bf16>()) as u32;

/// C (m x n) = A (m x k) B (k x n), 128 x 64 elements a block: two warpgroups of consumers, and a
/// producer warp.
#[kernel(
    block = (256 + 32),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    arch = 90,
    len(c = m * n),
)]
pub fn rows_of_a_group(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    mut c: Out<Bf16>,
) {
    let ring = pipeline![STAGES];
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x();
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (group, warp) = (warp / 4, warp % 4);
    let first_row = thread::block_idx_y() * 2 * TILE as u32;
    let col = thread::block_idx_x() * TILE as u32;
    let phases = k.div_ceil(TILE as u32);
    if t == 0 {
        // A stage is empty when both warpgroups have released it.
        ring.init(2);
    }
    thread::sync_threads();

    if group == 2 {
        let (of_a, of_b) = (a.boxes::<TILE, TILE, 128>(), b.boxes::<TILE, TILE, 128>());
        let mut producer = ring.producer();
        for phase in 0..phases {
            let (at, p) = (producer.acquire_warp() * STAGE, phase * TILE as u32);
            if warp::elect() {
                producer.announce(BYTES);
                for part in 0..2 {
                    let (to, row) = (at + part * BOX, first_row + (part * TILE) as u32);
                    tiles.load_box(to, &of_a, (0, row, p), producer.full());
                }
                tiles.load_box(at + 2 * BOX, &of_b, (0, p, col), producer.full());
            }
            producer.advance();
        }
        return;
    }

    let mut consumer = ring.consumer();
    let mut sums = Accumulators::<TILE>::zeroed();
    for _ in 0..phases {
        let at = consumer.wait_warp() * STAGE;
        sums.multiply_add(
            tiles.operand::<KMajor<TILE>>(at + group as usize * BOX),
            tiles.operand::<MnMajor<TILE>>(at + 2 * BOX),
        );
        commit();
        wait::<0>();
        if warp == 0 {
            consumer.release_multiplied();
        }
        consumer.advance();
    }
    let row = first_row + group * TILE as u32;
    let (m, n) = (m as usize, n as usize);
    sums.wait::<0>().for_each_pair(|of_row, of_col, two| {
        let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    });
}
