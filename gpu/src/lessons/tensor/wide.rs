//! Two warpgroups of consumers: 128 x 256 elements of C a block, and registers where they are
//! needed.
//!
//! * **A block** computes a 128 x 256 tile of C, in stages of 64 k-steps. Both warpgroups multiply
//!   the same columns of B. So a stage is 48 KiB for twice the products: 85 FLOP a byte.
//! * **A warpgroup** of the consumers has 64 rows of the tile, as before. While one waits for a
//!   stage, or stores its sums, the other may multiply.
//! * **The third warpgroup** is the producer. One of its lanes issues the copies.
//! * **A thread** of the consumers holds 128 sums, and needs more registers for addresses and for
//!   stores. The launch gives each of the 384 threads a third of the SM's registers: 168. The
//!   producer gives all but 40 of them up, and the consumers take 232 (`setmaxnreg`).
//!
//! In L2 each SM asks for 48 KiB in the 1024 cycles that the tensor cores take for a stage.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C.
const ROWS: usize = 128;
const COLS: usize = 256;
/// K-steps of a stage.
const DEPTH: usize = 64;
const STAGES: usize = 4;
/// Elements of a box of 64 rows, and of a stage: A's box of 128 rows, and four of B.
const BOX: usize = 64 * DEPTH;
const STAGE: usize = (ROWS + COLS) * DEPTH;

/// C (m x n) = A (m x k) B (k x n), tiles of 128 x 256, two warpgroups of consumers.
#[kernel(
    block = (384),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    barriers = 1,
    min_blocks = 1,
    arch = 90,
    len(c = m * n),
)]
pub fn tensor_wide(
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
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (group, warp) = (warp / 4, warp % 4);
    let (row, col) = (thread::block_idx_y() * ROWS as u32, thread::block_idx_x() * COLS as u32);
    let phases = k.div_ceil(DEPTH as u32);

    if t == 0 {
        // A stage is empty when both warpgroups have released it.
        ring.init(2);
    }
    thread::sync_threads();

    if group == 2 {
        give_registers::<40>();
        if warp > 0 {
            return;
        }
        let (of_a, of_b) = (a.boxes::<ROWS, DEPTH, 128>(), b.boxes::<DEPTH, 64, 128>());
        let mut producer = ring.producer();
        for phase in 0..phases {
            let at = producer.acquire_warp() * STAGE;
            if warp::elect() {
                let p = phase * DEPTH as u32;
                producer.announce((STAGE * size_of::<Bf16>()) as u32);
                tiles.load_box(at, &of_a, (0, row, p), producer.full());
                for j in 0..4 {
                    let place = (0, p, col + j as u32 * 64);
                    tiles.load_box(at + (2 + j) * BOX, &of_b, place, producer.full());
                }
            }
            producer.advance();
        }
        return;
    }

    take_registers::<232>();
    let (mut next, mut read) = (ring.consumer(), ring.consumer());
    let mut sums = Accumulators::<COLS>::zeroed();
    for phase in 0..phases {
        let at = next.wait_warp() * STAGE;
        sums.multiply_add(
            tiles.operand::<KMajor<DEPTH>>(at + group as usize * BOX),
            tiles.operand::<MnMajor<DEPTH>>(at + 2 * BOX),
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

    let (m, n) = (m as usize, n as usize);
    let row = row + group * 64;
    let pairs = n % 2 == 0 && c.misalignment::<4>() == 0;
    sums.wait::<0>().for_each_pair(|of_row, of_col, two| {
        let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
        let (at, two) = (row * n + col, Bf16::from_two_f32(two));
        if pairs {
            c.store_if(at, two, row < m && col < n);
        } else {
            c.store_if(at, [two[0]], row < m && col < n);
            c.store_if(at + 1, [two[1]], row < m && col + 1 < n);
        }
    });
}
