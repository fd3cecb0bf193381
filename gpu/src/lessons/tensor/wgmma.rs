//! Hopper's tensor cores: `wgmma`. It reads both operands from shared memory, for four warps
//! together.
//!
//! * **A block** is one *warpgroup* of four warps. It computes a 64 x 256 tile of C, in stages of
//!   64 k-steps: 51 FLOP a byte.
//! * **A warp** has 16 rows of the tile. But all four issue each `wgmma` together: 64 rows of A by
//!   256 columns of B and 16 k-steps, 128 cycles of the SM's tensor cores. Four of them are a
//!   stage.
//! * **A thread** holds 128 sums. It copies groups of eight elements, as before: 4 of A and 16 of B
//!   a stage. No fragment passes through its registers.
//!
//! The tensor cores find an operand by a *descriptor*: its address, its layout and its swizzle. The
//! 128-byte swizzle is the one that our tiles have had since `ldmatrix`: group g of row r is in
//! place `g ^ r % 8`. A is 64 rows of 64 k-steps (K-major). B is four boxes of 64 k-steps by 64
//! columns (MN-major).
//!
//! # The async proxy
//! Tensor cores read shared memory another way than threads do: through the *async proxy*. A
//! barrier alone does not order what threads wrote before it. So each thread executes a proxy fence
//! after its copies have arrived, and then the barrier.

use super::device::{warpgroup::*, *};

/// Rows and columns of a block's tile of C: those of an instruction.
const ROWS: usize = 64;
const COLS: usize = 256;
/// K-steps of a stage.
const DEPTH: usize = 64;
const STAGES: usize = 4;
/// Elements of a box of 64 rows, and of a stage: a box of A and four of B.
const BOX: usize = 64 * DEPTH;
const STAGE: usize = (ROWS + COLS) * DEPTH;
/// Elements of sixteen bytes.
const GROUP: usize = 8;
const ZERO: Bf16 = Bf16::from_bits(0);

/// The place of a group of eight elements in a box.
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
    // Of the rows of a box each four are 16 apart.
    let (row, group) = (t / 8, t % 8);
    fill(tiles, a, (m, k), |i| {
        let row = row + i * 16;
        (at + swizzled(row, group), (first_row + row, p + group * GROUP))
    });
    // Not unrolled: the compiler does not know the number.
    for number in 0..thread::opaque(4) {
        let (at, first_col) = (at + (1 + number) * BOX, first_col + number * 64);
        fill(tiles, b, (k, n), |i| {
            let row = row + i * 16;
            (at + swizzled(row, group), (p + row, first_col + group * GROUP))
        });
    }
}

/// C (m x n) = A (m x k) B (k x n), tiles of 64 x 256, `wgmma` by one warpgroup.
#[kernel(
    block = (128),
    dynamic_shared = STAGES * STAGE * size_of::<Bf16>(),
    barriers = 1,
    min_blocks = 1,
    arch = 90,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tensor_wgmma(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tiles = dynamic_shared![Bf16];
    let first_row = thread::block_idx_y() as usize * ROWS;
    let first_col = thread::block_idx_x() as usize * COLS;

    for phase in 0..thread::opaque(STAGES - 1) {
        begin(&mut tiles, phase, (&a, &b), (m, n, k), (first_row, first_col));
        copies::commit_group();
    }
    let mut sums = Accumulators::<COLS>::zeroed();
    for phase in 0..k.div_ceil(DEPTH) {
        // This thread's copies for this phase are done, and visible to the tensor cores; after the
        // barrier, everybody's. And all have waited for the MMAs of the phase before.
        copies::wait_group::<{ STAGES as u32 - 2 }>();
        fence_proxy_async();
        thread::sync_threads();
        // After the last phase the group is empty: it keeps the number of groups in flight right.
        begin(&mut tiles, phase + STAGES - 1, (&a, &b), (m, n, k), (first_row, first_col));
        copies::commit_group();
        let at = phase % STAGES * STAGE;
        sums.multiply_add(
            tiles.operand::<KMajor<DEPTH>>(at),
            tiles.operand::<MnMajor<DEPTH>>(at + BOX),
        );
        commit();
        wait::<0>();
    }

    let pairs = n % 2 == 0 && c.misalignment::<4>() == 0;
    sums.wait::<0>().for_each_pair(|row, col, two| {
        let (row, col) = (first_row + row as usize, first_col + col as usize);
        let (at, two) = (row * n + col, Bf16::from_two_f32(two));
        if pairs {
            c.store_if(at, two, row < m && col < n);
        } else {
            c.store_if(at, [two[0]], row < m && col < n);
            c.store_if(at + 1, [two[1]], row < m && col + 1 < n);
        }
    });
}
