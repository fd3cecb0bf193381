//! Clusters: two blocks load B for each other, by multicast.
//!
//! * **A cluster** of two blocks computes a 256 x 256 tile of C. Its blocks run at the same time,
//!   on two SMs, and can reach each other's shared memory. Block 0 has the upper 128 rows.
//! * **A block** computes 128 x 256 elements, as before. It loads its own rows of A, and half of
//!   the columns of B: 128, for both blocks. So an SM asks L2 for 32 KiB a stage instead of 48: 128
//!   FLOP a byte.
//! * **A warpgroup** and **a thread** do what they did before.
//!
//! The copy of a box goes to the same place in both blocks, and counts its bytes at the mbarrier of
//! each. So a block may fill a stage when *both* have read theirs. A consumer releases a stage in
//! both blocks, and the producer waits for four warpgroups. [`ClusterPipeline`] does that.
//!
//! ```text
//!   block 0     A's rows 0 to 127      B's columns 0 to 127      ---> to blocks 0 and 1
//!   block 1     A's rows 128 to 255    B's columns 128 to 255    ---> to blocks 0 and 1
//! ```
//!
//! No block may end while the other one still arrives at its mbarriers: the producer drains the
//! ring first.

use super::device::{warpgroup::*, *};

/// Blocks of a cluster. Their tiles are one below the other.
const BLOCKS: usize = 2;
/// Rows and columns of a block's tile of C.
const ROWS: usize = 128;
const COLS: usize = 256;
/// K-steps of a stage.
const DEPTH: usize = 64;
const STAGES: usize = 4;
/// Elements of a box of 64 rows, and of a stage: A's box of 128 rows, and four of B.
const BOX: usize = 64 * DEPTH;
const STAGE: usize = (ROWS + COLS) * DEPTH;
/// Rows of a cluster's tiles in a raster group.
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

/// C (m x n) = A (m x k) B (k x n), tiles of 256 x 256 of two blocks, B by multicast.
#[kernel(
    block = (384),
    cluster = (BLOCKS),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    shared = STAGES * 2 * size_of::<u64>(),
    min_blocks = 1,
    arch = 90,
    dependent,
    len(c = m * n),
)]
pub fn tensor_cluster(
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
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, t / 32, 0);
    let (group, warp) = (warp / 4, warp % 4);
    let rank = cluster::block_rank();
    let phases = k.div_ceil(DEPTH as u32);
    let (down, across) = (m.div_ceil((BLOCKS * ROWS) as u32), n.div_ceil(COLS as u32));
    let (mut tile, clusters) = cluster::numbers();

    a.prefetch();
    b.prefetch();
    if t == 0 {
        // Two warpgroups of each block release a stage.
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
                    // Half of B comes from the other block.
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

        let (m, n) = (m as usize, n as usize);
        let row = row + rank * ROWS as u32 + group * 64;
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
        tile += clusters;
    }
}
