//! A producer warp beside the warps that multiply, and a ring of stages between them.
//!
//! * **A block** computes a 64 x 256 tile of C, in stages of 64 k-steps, as before. It has a
//!   warpgroup of *consumers*, and one more warp, the *producer*.
//! * **The producer warp** waits until a stage is empty, and one of its lanes issues the copies.
//! * **A consumer warp** waits until a stage is full, and issues its MMAs. It does not wait for
//!   them: it goes on to the next stage, and then releases the stage before.
//! * **A thread** of the consumers holds 128 sums.
//!
//! Before, each stage ended at a barrier of the block. The tensor cores had nothing to do from the
//! end of a stage's MMAs until all warps had passed the barrier and issued the next ones. Now no
//! warp waits for another one: each stage has two mbarriers, *full* and *empty*, and MMAs of two
//! stages are queued.
//!
//! ```text
//!   producer     wait empty[s]   announce, copy ----------> full[s]
//!   consumers    wait full[s]    MMAs of s;  MMAs of s - 1 have ended ----------> empty[s - 1]
//! ```
//!
//! [`Pipeline`] keeps stage and parity of both sides.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C.
const ROWS: usize = 64;
const COLS: usize = 256;
/// K-steps of a stage.
const DEPTH: usize = 64;
const STAGES: usize = 4;
/// Elements of a box, and of a stage: a box of A and four of B.
const BOX: usize = 64 * DEPTH;
const STAGE: usize = (ROWS + COLS) * DEPTH;

/// C (m x n) = A (m x k) B (k x n), tiles of 64 x 256, a producer warp and a warpgroup of
/// consumers.
#[kernel(
    block = (128 + 32),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    barriers = 1,
    min_blocks = 1,
    arch = 90,
    len(c = m * n),
)]
pub fn tensor_producer(
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
    let (row, col) = (thread::block_idx_y() * ROWS as u32, thread::block_idx_x() * COLS as u32);
    let phases = k.div_ceil(DEPTH as u32);

    if t == 0 {
        // A stage is empty when the warpgroup has released it.
        ring.init(1);
    }
    thread::sync_threads();

    if warp == 4 {
        let (of_a, of_b) = (a.boxes::<64, DEPTH, 128>(), b.boxes::<DEPTH, 64, 128>());
        let mut producer = ring.producer();
        for phase in 0..phases {
            let at = producer.acquire_warp() * STAGE;
            if warp::elect() {
                let p = phase * DEPTH as u32;
                producer.announce((STAGE * size_of::<Bf16>()) as u32);
                tiles.load_box(at, &of_a, (0, row, p), producer.full());
                for j in 0..4 {
                    let place = (0, p, col + j as u32 * 64);
                    tiles.load_box(at + (1 + j) * BOX, &of_b, place, producer.full());
                }
            }
            producer.advance();
        }
        return;
    }

    let (mut next, mut read) = (ring.consumer(), ring.consumer());
    let mut sums = Accumulators::<COLS>::zeroed();
    for phase in 0..phases {
        let at = next.wait_warp() * STAGE;
        sums.multiply_add(
            tiles.operand::<KMajor<DEPTH>>(at),
            tiles.operand::<MnMajor<DEPTH>>(at + BOX),
        );
        commit();
        next.advance();
        if phase > 0 {
            // All MMAs but those of this stage have ended, for the whole warpgroup.
            wait::<1>();
            if warp == 0 {
                read.release_multiplied();
            }
            read.advance();
        }
    }

    let (m, n) = (m as usize, n as usize);
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
