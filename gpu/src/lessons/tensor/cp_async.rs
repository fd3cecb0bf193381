//! Stages that `cp.async` fills: the next tiles are on their way while one is multiplied.
//!
//! * **A block** of eight warps computes a 128 x 128 tile of C, as before. It has three *stages* in
//!   shared memory. Each holds the tiles of 64 k-steps: one is multiplied, two are being filled.
//! * **A warp** multiplies 64 x 32 elements, as before.
//! * **A thread** issues the copies of its groups of eight elements, and does not wait for them.
//!   The elements do not pass through its registers.
//!
//! ```text
//!   phase          0      1      2      3
//!   multiplied     0      1      2      3       a barrier before each: the stage is filled, and
//!   being filled   1 2    2 3    3 4    4 5     all have read the stage that is filled next
//! ```
//!
//! A copy of `cp.async` has sixteen bytes, or eight or four, and both addresses are multiples of
//! that. Outside the matrix it writes zeros. Rows that begin at other places are loaded element by
//! element, and stored to the same stage.

use super::device::{mma::Accumulators, *};

/// Rows and columns of a block's tile of C.
const TILE: usize = 128;
/// K-steps of a stage.
const DEPTH: usize = 64;
const STAGES: usize = 3;
/// Elements of a stage: A's tile, and B's.
const STAGE: usize = 2 * TILE * DEPTH;
/// Elements of sixteen bytes.
const GROUP: usize = 8;
const ZERO: Bf16 = Bf16::from_bits(0);

/// The place of a group of eight elements in a tile with rows of 64 elements.
#[inline(always)]
fn swizzled(row: usize, group: usize) -> usize {
    row * DEPTH + (group ^ (row % 8)) * GROUP
}

/// Begins to copy a thread's four groups of a matrix to a stage. `group` gives the place of each in
/// shared memory, and its row and column in the matrix. Elements outside the matrix are zeros. It
/// waits for groups that do not begin at multiples of sixteen bytes.
#[inline(always)]
#[track_caller]
fn fill(
    tiles: &mut DynamicShared<Bf16>,
    matrix: &In<Bf16>,
    (rows, cols): (usize, usize),
    group: impl Fn(usize) -> (usize, (usize, usize)),
) {
    if cols % GROUP == 0 && matrix.is_aligned128() {
        for i in 0..4 {
            let (to, (row, col)) = group(i);
            // A group is inside or outside as a whole.
            let inside = row < rows && col < cols;
            tiles.copy_async::<GROUP>(to, matrix, row * cols + col, inside);
        }
        return;
    }
    let mut number = 0;
    while number < 4 * GROUP {
        let ((to, (row, col)), i) = (group(number / GROUP), number % GROUP);
        let inside = row < rows && col + i < cols;
        tiles[to + i] = if inside { matrix[row * cols + col + i] } else { ZERO };
        // One, which the compiler does not know: unrolled, this would take registers.
        number += thread::block_dim_y() as usize;
    }
}

/// Begins to fill the stage of a phase, if there is one: this thread's copies.
#[inline(always)]
#[track_caller]
fn begin(
    tiles: &mut DynamicShared<Bf16>,
    phase: usize,
    (a, b): (&In<Bf16>, &In<Bf16>),
    (m, n, k): (usize, usize, usize),
    (first_row, first_col): (usize, usize),
) {
    let t = thread::thread_idx_x() as usize;
    let (at, p) = (phase % STAGES * STAGE, phase * DEPTH);
    if p >= k {
        return;
    }
    fill(tiles, a, (m, k), |i| {
        let (row, group) = (t / 8 + i * 32, t % 8);
        (at + swizzled(row, group), (first_row + row, p + group * GROUP))
    });
    fill(tiles, b, (k, n), |i| {
        let (row, group) = (t / 16 + i * 16, t % 16);
        let half = at + TILE * DEPTH + group / 8 * DEPTH * DEPTH;
        (half + swizzled(row, group % 8), (p + row, first_col + group * GROUP))
    });
}

/// C (m x n) = A (m x k) B (k x n), tiles of 128 x 128, three stages by `cp.async`.
#[kernel(
    block = (256),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    barriers = 1,
    min_blocks = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tensor_cp_async(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles = dynamic_shared![Bf16];
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (t / 32, t % 32);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let (warp_row, warp_col) = (warp / 4 * 64, warp % 4 * 32);

    // Not unrolled: the compiler does not know the number.
    for phase in 0..thread::opaque(STAGES - 1) {
        begin(&mut tiles, phase, (&a, &b), (m, n, k), (first_row, first_col));
        copies::commit_group();
    }
    let mut sums = Accumulators::<4, 2>::zeroed();
    for phase in 0..k.div_ceil(DEPTH) {
        // This thread's copies for this phase are done; after the barrier, everybody's.
        copies::wait_group::<{ STAGES as u32 - 2 }>();
        thread::sync_threads();
        // After the last phase the group is empty: it keeps the number of groups in flight right.
        begin(&mut tiles, phase + STAGES - 1, (&a, &b), (m, n, k), (first_row, first_col));
        copies::commit_group();
        let (tile_a, tile_b) = (phase % STAGES * STAGE, phase % STAGES * STAGE + TILE * DEPTH);
        for step in 0..DEPTH / 16 {
            let rows = [0, 1, 2, 3].map(|i| {
                let row = warp_row + i * 16 + lane % 16;
                tiles.load_fragment(tile_a + swizzled(row, step * 2 + lane / 16))
            });
            let cols = [0, 1].map(|j| {
                let p = step * 16 + lane / 16 * 8 + lane % 8;
                let group = warp_col / GROUP + j * 2 + lane / 8 % 2;
                let half = tile_b + group / 8 * DEPTH * DEPTH;
                tiles.load_fragment_either(half + swizzled(p, group % 8), true)
            });
            sums.multiply_add(&rows, &cols);
        }
    }

    // Two neighbours are one store, where all pairs begin at multiples of four bytes.
    let pairs = n % 2 == 0 && c.misalignment::<4>() == 0;
    let mut store = |part: usize, row: u32, col: u32, two: [f32; 2]| {
        let row = first_row + warp_row + part * 16 + row as usize;
        let col = first_col + warp_col + col as usize;
        let (at, two) = (row * n + col, Bf16::from_two_f32(two));
        if pairs {
            c.store_if(at, two, row < m && col < n);
        } else {
            c.store_if(at, [two[0]], row < m && col < n);
            c.store_if(at + 1, [two[1]], row < m && col + 1 < n);
        }
    };
    sums.for_each_pair_of::<0>(|row, col, two| store(0, row, col, two));
    sums.for_each_pair_of::<1>(|row, col, two| store(1, row, col, two));
    sums.for_each_pair_of::<2>(|row, col, two| store(2, row, col, two));
    sums.for_each_pair_of::<3>(|row, col, two| store(3, row, col, two));
}
