//! Tiles in shared memory, from which `ldmatrix` loads fragments, and a swizzle against bank
//! conflicts.
//!
//! * **A block** of eight warps computes a 128 x 128 tile of C, in phases of 64 k-steps. It loads
//!   128 x 64 elements of A and 64 x 128 of B into shared memory: 64 FLOP for each byte.
//! * **A warp** computes 64 x 32 elements of C: 4 x 2 fragments. For 16 k-steps it loads four
//!   fragments of A and two of B.
//! * **A thread** loads groups of eight elements, sixteen bytes each: four of A and four of B.
//!
//! A fragment is four matrices of 8 x 8 elements. `ldmatrix` reads a row of each matrix, sixteen
//! bytes, at the address that one lane gives. Rows of A's matrices are along k, as they are in
//! memory. Those of B's are along the columns of C, so B is loaded transposed.
//!
//! # The swizzle
//! A row of the tile in shared memory is 128 bytes: eight groups, all 32 banks. The eight rows of a
//! matrix have their group in the same place of the row: in the same four banks. `ldmatrix` would
//! take eight wavefronts for a matrix. So group g of row r is stored in place `g ^ r % 8`: eight
//! rows are in eight places, and a matrix takes one wavefront.
//!
//! ```text
//!   row 0     0 1 2 3 4 5 6 7       the places of a row, and the group in each
//!   row 1     1 0 3 2 5 4 7 6
//!   row 2     2 3 0 1 6 7 4 5
//!   ..
//! ```
//!
//! B's tile has 128 columns: two halves of 64, one after the other.

use super::device::{mma::Accumulators, *};

/// Rows and columns of a block's tile of C.
const TILE: usize = 128;
/// K-steps of a phase.
const DEPTH: usize = 64;
/// Elements of sixteen bytes.
const GROUP: usize = 8;
const ZERO: Bf16 = Bf16::from_bits(0);

/// The place of a group of eight elements in a tile with rows of 64 elements.
#[inline(always)]
fn swizzled(row: usize, group: usize) -> usize {
    row * DEPTH + (group ^ (row % 8)) * GROUP
}

/// Copies a thread's four groups of a matrix to a tile. `group` gives the place of each in the
/// tile, and its row and column in the matrix. Elements outside the matrix are zeros.
#[inline(always)]
#[track_caller]
fn fill(
    tile: &mut Shared<Bf16, { TILE * DEPTH }>,
    matrix: &In<Bf16>,
    (rows, cols): (usize, usize),
    group: impl Fn(usize) -> (usize, (usize, usize)),
) {
    if cols % GROUP == 0 && matrix.is_aligned128() {
        // A group begins at a multiple of sixteen bytes, and is inside or outside as a whole. All
        // loads are issued before one is waited for.
        let loaded = [0, 1, 2, 3].map(|i| {
            let (_, (row, col)) = group(i);
            matrix.load128_if::<GROUP>(row * cols + col, row < rows && col < cols)
        });
        for i in 0..4 {
            tile.store128(group(i).0, loaded[i]);
        }
        return;
    }
    let mut number = 0;
    while number < 4 * GROUP {
        let ((to, (row, col)), i) = (group(number / GROUP), number % GROUP);
        let inside = row < rows && col + i < cols;
        tile[to + i] = if inside { matrix[row * cols + col + i] } else { ZERO };
        // One, which the compiler does not know: unrolled, this would take registers.
        number += thread::block_dim_y() as usize;
    }
}

/// C (m x n) = A (m x k) B (k x n), tiles of 128 x 128, fragments by `ldmatrix`.
#[kernel(
    block = (256),
    shared = 2 * TILE * DEPTH * size_of::<Bf16>(),
    barriers = 2,
    min_blocks = 2,
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn tensor_ldmatrix(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![Bf16; TILE * DEPTH];
    let mut tile_b = shared![Bf16; TILE * DEPTH];
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (t / 32, t % 32);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let (warp_row, warp_col) = (warp / 4 * 64, warp % 4 * 32);

    let mut sums = Accumulators::<4, 2>::zeroed();
    for phase in 0..k.div_ceil(DEPTH) {
        let p = phase * DEPTH;
        fill(&mut tile_a, &a, (m, k), |i| {
            let (row, group) = (t / 8 + i * 32, t % 8);
            (swizzled(row, group), (first_row + row, p + group * GROUP))
        });
        fill(&mut tile_b, &b, (k, n), |i| {
            let (row, group) = (t / 16 + i * 16, t % 16);
            let half = group / 8 * DEPTH * DEPTH;
            (half + swizzled(row, group % 8), (p + row, first_col + group * GROUP))
        });
        thread::sync_threads();
        for step in 0..DEPTH / 16 {
            // Lanes 8 i to 8 i + 7 give the rows of matrix i. The matrices 0 and 1 have the first
            // eight k-steps, the others the last eight.
            let rows = [0, 1, 2, 3].map(|i| {
                let row = warp_row + i * 16 + lane % 16;
                tile_a.load_fragment(swizzled(row, step * 2 + lane / 16))
            });
            let cols = [0, 1].map(|j| {
                let p = step * 16 + lane / 16 * 8 + lane % 8;
                let group = warp_col / GROUP + j * 2 + lane / 8 % 2;
                let half = group / 8 * DEPTH * DEPTH;
                tile_b.load_fragment_either(half + swizzled(p, group % 8), true)
            });
            sums.multiply_add(&rows, &cols);
        }
        thread::sync_threads();
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
