//! A warp has 2 x 2 fragments of C. How often does it load those of A and of B?
//!
//! Solution: Accumulators::<2, 2> takes two fragments of A and two of B. for_each_pair_of::<0> has
//! the first 16 rows, for_each_pair_of::<1> the others; columns are counted through.

use super::device::{
    mma::{Accumulators, Fragment},
    *,
};

/// Rows and columns of a block's tile of C: of one warp.
const TILE: usize = 32;
/// Rows, columns and k-steps of a fragment.
const SIDE: usize = 16;

/// C (m x n) = A (m x k) B (k x n), a warp for each 32 x 32 elements.
#[kernel(block = (32), shared = 0, len(a = m * k, b = k * n, c = m * n))]
pub fn reuse_of_fragments(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let lane = thread::lane_id() as usize;
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let zero = const { Bf16::from_bits(0) };
    let of_a = |row, p| if row < m && p < k { a[row * k + p] } else { zero };
    let of_b = |p, col| if p < k && col < n { b[p * n + col] } else { zero };
    let pairs = [(0, 0), (8, 0), (0, 8), (8, 8)];
    let (outer, of_pair) = (lane / 4, lane % 4 * 2);
    // The fragment of A from row `row` on, and that of B from column `col` on.
    let fragment_a = |row: usize, p: usize| {
        Fragment::from_pairs(pairs.map(|(down, further)| {
            let (row, p) = (row + outer + down, p + of_pair + further);
            [of_a(row, p), of_a(row, p + 1)]
        }))
    };
    let fragment_b = |p: usize, col: usize| {
        Fragment::from_pairs(pairs.map(|(right, further)| {
            let (p, col) = (p + of_pair + further, col + outer + right);
            [of_b(p, col), of_b(p + 1, col)]
        }))
    };
    let mut store = |row: usize, col: usize, two: [f32; 2]| {
        for (i, sum) in two.into_iter().enumerate() {
            if row < m && col + i < n {
                c[row * n + col + i] = Bf16::from_f32(sum);
            }
        }
    };

    let mut sums = Accumulators::<2, 2>::zeroed();
    for p in (0..k).step_by(SIDE) {
        let rows = [0, 1].map(|i| fragment_a(first_row + i * SIDE, p));
        let cols = [0, 1].map(|j| fragment_b(p, first_col + j * SIDE));
        sums.multiply_add(&rows, &cols);
    }
    // Rows are counted from the part's first row, columns from the first of all.
    sums.for_each_pair_of::<0>(|row, col, two| {
        store(first_row + row as usize, first_col + col as usize, two);
    });
    sums.for_each_pair_of::<1>(|row, col, two| {
        store(first_row + SIDE + row as usize, first_col + col as usize, two);
    });
}
