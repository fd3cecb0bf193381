//! A block ends, and the other one still arrives at its mbarriers.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 2;
/// Elements of a box of 64 x 64, and of a stage: one of A and one of B.
const BOX: usize = TILE * TILE;
const STAGE: usize = 2 * BOX;
const BYTES: u32 = (STAGE * size_of::<Bf16>()) as u32;

/// C (m x n) = A (m x k) B (k x n), 128 x 64 elements a cluster of two blocks. Each loads half of B
/// for both.
#[kernel(
    block = (128 + 32),
    cluster = (2),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    arch = 90,
    len(c = m * n),
)]
pub fn cluster_ends(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    mut c: Out<Bf16>,
) {
    let ring = cluster_pipeline![STAGES];
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x();
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (rank, side) = (cluster::block_rank(), TILE as u32);
    let (number, _) = cluster::numbers();
    let across = n.div_ceil(side);
    let (row, col) = ((number / across * 2 + rank) * side, number % across * side);
    let phases = k.div_ceil(side);
    if t == 0 {
        // A warpgroup of each block releases a stage.
        ring.init(1);
    }
    cluster::sync();

    if warp == 4 {
        // A box of B has 32 k-steps: half of a stage.
        let (of_a, of_b) = (a.boxes::<TILE, TILE, 128>(), b.boxes::<{ TILE / 2 }, TILE, 128>());
        let mut producer = ring.producer();
        for phase in 0..phases {
            let (at, p) = (producer.acquire_warp() * STAGE, phase * side);
            if warp::elect() {
                // Half of B comes from the other block.
                producer.announce(BYTES);
                tiles.load_box(at, &of_a, (0, row, p), producer.full());
                let half = at + BOX + rank as usize * BOX / 2;
                let place = (0, p + rank * side / 2, col);
                tiles.load_box_multicast(half, &of_b, place, producer.full(), 0b11);
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
            tiles.operand::<KMajor<TILE>>(at),
            tiles.operand::<MnMajor<TILE>>(at + BOX),
        );
        commit();
        wait::<0>();
        if warp == 0 {
            consumer.release_multiplied();
        }
        consumer.advance();
    }

    let (m, n) = (m as usize, n as usize);
    sums.wait::<0>().for_each_pair(|of_row, of_col, two| {
        let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    });
}
