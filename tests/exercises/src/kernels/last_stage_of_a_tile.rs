//! The ring goes on from tile to tile. Is every stage released?

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C, and k-steps of a stage.
const TILE: usize = 64;
const STAGES: usize = 3;
/// Elements of a box of 64 x 64, and of a stage: one of A and one of B.
const BOX: usize = TILE * TILE;
const STAGE: usize = 2 * BOX;
const BYTES: u32 = (STAGE * size_of::<Bf16>()) as u32;

/// C (m x n) = A (m x k) B (k x n), tiles of 64 x 64, one after the other by the blocks of a small
/// grid.
#[kernel(
    block = (128 + 32),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    arch = 90,
    len(c = m * n),
)]
pub fn last_stage_of_a_tile(
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
    let side = TILE as u32;
    let phases = k.div_ceil(side);
    let (down, across) = (m.div_ceil(side), n.div_ceil(side));
    let (mut tile, blocks) = (thread::block_idx_x(), thread::grid_dim_x());
    if t == 0 {
        ring.init(1);
    }
    thread::sync_threads();

    if warp == 4 {
        let (of_a, of_b) = (a.boxes::<TILE, TILE, 128>(), b.boxes::<TILE, TILE, 128>());
        let mut producer = ring.producer();
        while tile < down * across {
            let (row, col) = (tile / across * side, tile % across * side);
            for phase in 0..phases {
                let (at, p) = (producer.acquire_warp() * STAGE, phase * side);
                if warp::elect() {
                    producer.announce(BYTES);
                    tiles.load_box(at, &of_a, (0, row, p), producer.full());
                    tiles.load_box(at + BOX, &of_b, (0, p, col), producer.full());
                }
                producer.advance();
            }
            tile += blocks;
        }
        return;
    }

    let (mut next, mut read) = (ring.consumer(), ring.consumer());
    while tile < down * across {
        let (row, col) = (tile / across * side, tile % across * side);
        let mut sums = Accumulators::<TILE>::zeroed();
        for phase in 0..phases {
            let at = next.wait_warp() * STAGE;
            sums.multiply_add(
                tiles.operand::<KMajor<TILE>>(at),
                tiles.operand::<MnMajor<TILE>>(at + BOX),
            );
            commit();
            next.advance();
            if phase > 0 {
                wait::<1>();
                if warp == 0 {
                    read.release_multiplied();
                }
                read.advance();
            }
        }
        let sums = sums.wait::<0>();

        let (m, n) = (m as usize, n as usize);
        sums.for_each_pair(|of_row, of_col, two| {
            let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
            c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
        });
        tile += blocks;
    }
}
