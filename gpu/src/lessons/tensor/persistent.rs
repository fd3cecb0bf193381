//! Persistent CTAs: a block computes one tile after the other, in an order that L2 likes.
//!
//! * **A block** computes 128 x 256 tiles of C, as before. The grid has one block an SM, and block
//!   i of N computes tiles i, i + N, i + 2 N, and so on.
//! * **The producer** goes on to the next tile while the sums of this one are stored. So the ring
//!   is full when the consumers come back.
//! * **A warpgroup** of the consumers and **a thread** do what they did before, in a loop.
//!
//! Launches meet in the same way: the blocks of the next one begin as soon as those of this one
//! end, fetch the tensor maps and initialise the ring, and then wait until this launch has ended.
//!
//! # Rasterisation
//! The tiles that are computed at the same time should share rows of A and columns of B, which are
//! then read from L2. Row by row, 128 tiles of a C of 16384 columns would be two rows of 64 tiles:
//! 256 rows of A, and all of B. So tiles are numbered in *raster groups* of 16 rows of tiles: down
//! a column of the group, then down the next. 128 tiles are then 16 x 8: 2048 rows of A, and 2048
//! columns of B.
//!
//! ```text
//!   group 0   0  4  8 12 ..      (here a group is four tiles high)
//!             1  5  9 13
//!             2  6 10 14
//!             3  7 11 15
//!   group 1   ..
//! ```

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
/// Rows of tiles in a raster group.
const RASTER_GROUP: u32 = 16;

/// The first row and column of a tile. C has `down x across` tiles.
#[inline(always)]
fn place(tile: u32, down: u32, across: u32) -> (u32, u32) {
    let of_group = RASTER_GROUP * across;
    let first = tile / of_group * RASTER_GROUP;
    let rows = RASTER_GROUP.min(down - first);
    let tile = tile % of_group;
    ((first + tile % rows) * ROWS as u32, tile / rows * COLS as u32)
}

/// C (m x n) = A (m x k) B (k x n), tiles of 128 x 256, one block an SM.
#[kernel(
    block = (384),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    barriers = 1,
    min_blocks = 1,
    arch = 90,
    dependent,
    len(c = m * n),
)]
pub fn tensor_persistent(
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
    let phases = k.div_ceil(DEPTH as u32);
    let (down, across) = (m.div_ceil(ROWS as u32), n.div_ceil(COLS as u32));
    let (mut tile, blocks) = (thread::block_idx_x(), thread::grid_dim_x());

    a.prefetch();
    b.prefetch();
    if t == 0 {
        ring.init(2);
    }
    thread::sync_threads();
    // The next launch may begin its own way up to here. From here on, all earlier ones have ended.
    grid::let_next_begin();
    grid::wait_for_earlier();

    if group == 2 {
        give_registers::<40>();
        if warp > 0 {
            return;
        }
        let (of_a, of_b) = (a.boxes::<ROWS, DEPTH, 128>(), b.boxes::<DEPTH, 64, 128>());
        let mut producer = ring.producer();
        while tile < down * across {
            let (row, col) = place(tile, down, across);
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
            tile += blocks;
        }
        return;
    }

    take_registers::<232>();
    let (mut next, mut read) = (ring.consumer(), ring.consumer());
    while tile < down * across {
        let (row, col) = place(tile, down, across);
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
        // The producer waits for the last stage, too.
        let sums = sums.wait::<0>();
        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();

        let (m, n, row) = (m as usize, n as usize, row + group * 64);
        let pairs = n % 2 == 0 && c.misalignment::<4>() == 0;
        sums.for_each_pair(|of_row, of_col, two| {
            let (row, col) = ((row + of_row) as usize, (col + of_col) as usize);
            let (at, two) = (row * n + col, Bf16::from_two_f32(two));
            if pairs {
                c.store_if(at, two, row < m && col < n);
            } else {
                c.store_if(at, [two[0]], row < m && col < n);
                c.store_if(at + 1, [two[1]], row < m && col + 1 < n);
            }
        });
        tile += blocks;
    }
}
