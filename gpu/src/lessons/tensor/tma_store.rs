//! C leaves by way of shared memory and TMA, while the next tile is multiplied.
//!
//! * **A cluster**, **a block** and the producer do what they did before.
//! * **A warp** of the consumers has 16 rows of C. It writes 64 columns of them to a box in shared
//!   memory, and a lane issues its copy to C. Of two boxes, one is written, the other copied.
//! * **A thread** writes pairs, and goes on to the next tile while the last boxes are copied.
//!
//! Before, a store of a warp wrote half a sector in each of eight rows. TMA writes whole rows of a
//! box, and clips what is outside C: the boundary check of C, whose rows are 16-byte aligned. With
//! the 128-byte swizzle, eight rows of a box by four lanes are in 32 banks.

use super::device::{warpgroup::*, *};

/// Blocks of a cluster, rows and columns of a block's tile of C, and k-steps of a stage.
const BLOCKS: usize = 2;
const ROWS: usize = 128;
const COLS: usize = 256;
const DEPTH: usize = 64;
const STAGES: usize = 4;
/// Elements of a box of 64 rows, of a stage, and of a warp's box of C; rows of a raster group.
const BOX: usize = 64 * DEPTH;
const STAGE: usize = (ROWS + COLS) * DEPTH;
const STORED: usize = 16 * 64;
const RASTER_GROUP: u32 = 8;

/// The first row and column of a cluster's tile. C has `down x across` of them.
#[inline(always)]
fn place(tile: u32, down: u32, across: u32) -> (u32, u32) {
    let of_group = RASTER_GROUP * across;
    let first = tile / of_group * RASTER_GROUP;
    let rows = RASTER_GROUP.min(down - first);
    let tile = tile % of_group;
    ((first + tile % rows) * (BLOCKS * ROWS) as u32, tile / rows * COLS as u32)
}

/// Stores a warp's `PART`th 64 columns. Its rows of C begin at (row, col). It has two boxes.
#[inline(always)]
#[track_caller]
fn store<const PART: usize>(
    sums: &Fragment<COLS>,
    tiles: &mut DynamicShared<Bf16>,
    c: &TensorMapMut<Bf16>,
    (row, col): (u32, u32),
) {
    let (warp, lane) = (thread::warp_id() as usize, thread::lane_id());
    let at = STAGES * STAGE + (warp * 2 + PART % 2) * STORED;
    if lane == 0 {
        bulk::wait_group_read::<1>();
    }
    warp::sync_warp(warp::ALL);
    sums.for_each_pair_of::<64>(PART, |row, col, two| {
        let row = row % 16;
        let place = row * 64 + ((col / 8) ^ (row % 8)) * 8 + col % 8;
        tiles.store32(at + place as usize, Bf16::from_two_f32(two));
    });
    fence_proxy_async();
    warp::sync_warp(warp::ALL);
    if lane == 0 {
        tiles.store_box(at, &c.boxes::<16, 64, 128>(), (0, row, col + PART as u32 * 64));
        bulk::commit_group();
    }
}

/// C (m x n) = A (m x k) B (k x n), tiles of 256 x 256 of two blocks, C stored by TMA.
#[kernel(
    block = (384), cluster = (BLOCKS),
    dynamic_shared = (STAGES * STAGE + 8 * 2 * STORED) * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    min_blocks = 1, arch = 90, dependent,
)]
pub fn tensor_tma_store(
    m: u32,
    n: u32,
    k: u32,
    a: TensorMap<Bf16>,
    b: TensorMap<Bf16>,
    c: TensorMapMut<Bf16>,
) {
    let (ring, mut tiles) = (cluster_pipeline![STAGES], dynamic_shared![Bf16]);
    let t = thread::thread_idx_x();
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (group, warp) = (warp / 4, warp % 4);
    let (rank, phases) = (cluster::block_rank(), k.div_ceil(DEPTH as u32));
    let (down, across) = (m.div_ceil((BLOCKS * ROWS) as u32), n.div_ceil(COLS as u32));
    let (mut tile, clusters) = cluster::numbers();

    a.prefetch();
    b.prefetch();
    if t == 0 {
        ring.init(2);
    }
    cluster::sync();
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
                    let (row, p) = (row + rank * ROWS as u32, phase * DEPTH as u32);
                    producer.announce((STAGE * size_of::<Bf16>()) as u32);
                    tiles.load_box(at, &of_a, (0, row, p), producer.full());
                    for part in rank * 2..rank * 2 + 2 {
                        let (to, col) = (at + (2 + part as usize) * BOX, col + part * 64);
                        tiles.load_box_multicast(to, &of_b, (0, p, col), producer.full(), 0b11);
                    }
                }
                producer.advance();
            }
            tile += clusters;
        }
        producer.drain_warp();
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
        let sums = sums.wait::<0>();
        if warp == 0 {
            read.release_multiplied();
        }
        read.advance();

        let to = (row + rank * ROWS as u32 + group * 64 + warp * 16, col);
        store::<0>(sums, &mut tiles, &c, to);
        store::<1>(sums, &mut tiles, &c, to);
        store::<2>(sums, &mut tiles, &c, to);
        store::<3>(sums, &mut tiles, &c, to);
        tile += clusters;
    }
    // The last boxes have been read. (Threads that have issued no copies do not wait.)
    bulk::wait_group_read::<0>();
}
