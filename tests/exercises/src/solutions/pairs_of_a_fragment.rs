//! Fragments of `mma.sync` from global memory: which elements are a lane's?
//!
//! ```text
//!   pair of lane l     0           1             2               3
//!   row of A           l / 4       l / 4 + 8     l / 4           l / 4 + 8        (column of B)
//!   first k-step       l % 4 * 2   l % 4 * 2     l % 4 * 2 + 8   l % 4 * 2 + 8
//! ```
//!
//! Solution: Pair 1 is eight rows further down, pair 2 eight k-steps further. So it is for A and
//! for B.

use super::device::{
    mma::{Accumulators, Fragment},
    *,
};

/// Rows and columns of a block's tile of C.
const TILE: usize = 32;
/// Rows, columns and k-steps of what a warp multiplies at once.
const SIDE: usize = 16;

/// C (m x n) = A (m x k) B (k x n), a warp for each 16 x 16 elements.
#[kernel(block = (128), shared = 0, len(a = m * k, b = k * n, c = m * n))]
pub fn pairs_of_a_fragment(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let (warp, lane) = (thread::warp_id() as usize, thread::lane_id() as usize);
    let first_row = thread::block_idx_y() as usize * TILE + warp / 2 * SIDE;
    let first_col = thread::block_idx_x() as usize * TILE + warp % 2 * SIDE;
    let zero = const { Bf16::from_bits(0) };
    let of_a = |row, p| if row < m && p < k { a[row * k + p] } else { zero };
    let of_b = |p, col| if p < k && col < n { b[p * n + col] } else { zero };

    let mut sums = Accumulators::<1, 1>::zeroed();
    for step in 0..k.div_ceil(SIDE) {
        // The pairs: how many rows further down, and how many k-steps further.
        let pairs = [(0, 0), (8, 0), (0, 8), (8, 8)];
        let (outer, p) = (lane / 4, step * SIDE + lane % 4 * 2);
        let rows = pairs.map(|(down, further)| {
            let (row, p) = (first_row + outer + down, p + further);
            [of_a(row, p), of_a(row, p + 1)]
        });
        let cols = pairs.map(|(right, further)| {
            let (p, col) = (p + further, first_col + outer + right);
            [of_b(p, col), of_b(p + 1, col)]
        });
        sums.multiply_add(&[Fragment::from_pairs(rows)], &[Fragment::from_pairs(cols)]);
    }

    sums.for_each_pair_of::<0>(|row, col, two| {
        let (row, col) = (first_row + row as usize, first_col + col as usize);
        for (i, sum) in two.into_iter().enumerate() {
            if row < m && col + i < n {
                c[row * n + col + i] = Bf16::from_f32(sum);
            }
        }
    });
}
