//! `ldmatrix`: rows of B's tile are along n, and a fragment wants neighbours along k.

use super::device::{mma::Accumulators, *};

/// Rows and columns of a block's tile of C, and k-steps of a phase.
const TILE: usize = 64;
/// Elements of sixteen bytes.
const GROUP: usize = 8;

/// The place of a group of eight elements in a tile with rows of 64.
fn place(row: usize, group: usize) -> usize {
    row * TILE + (group ^ (row % 8)) * GROUP
}

/// C (m x n) = A (m x k) B (k x n), 64 x 64 elements a block, 32 x 32 a warp. n and k are multiples
/// of eight.
#[kernel(
    block = (128),
    shared = 2 * TILE * TILE * size_of::<Bf16>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn transposed_load(m: u32, n: u32, k: u32, a: In<Bf16>, b: In<Bf16>, mut c: Out<Bf16>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![Bf16; TILE * TILE];
    let mut tile_b = shared![Bf16; TILE * TILE];
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (t / 32, t % 32);
    let first_row = thread::block_idx_y() as usize * TILE;
    let first_col = thread::block_idx_x() as usize * TILE;
    let (warp_row, warp_col) = (warp / 2 * 32, warp % 2 * 32);

    let mut sums = Accumulators::<2, 2>::zeroed();
    for p in (0..k).step_by(TILE) {
        for i in 0..4 {
            let (row, group) = (t / 8 + i * 16, t % 8);
            let at = (first_row + row, p + group * GROUP);
            let inside = at.0 < m && at.1 < k;
            tile_a.store128(place(row, group), a.load128_if::<GROUP>(at.0 * k + at.1, inside));
            let at = (p + row, first_col + group * GROUP);
            let inside = at.0 < k && at.1 < n;
            tile_b.store128(place(row, group), b.load128_if::<GROUP>(at.0 * n + at.1, inside));
        }
        thread::sync_threads();
        for step in 0..TILE / 16 {
            // Lanes 8 i to 8 i + 7 give the rows of the i-th matrix of 8 x 8 elements. The matrices
            // 0 and 1 have the first eight k-steps, the others the last eight.
            let rows = [0, 1].map(|i| {
                let row = warp_row + i * 16 + lane % 16;
                tile_a.load_fragment(place(row, step * 2 + lane / 16))
            });
            let cols = [0, 1].map(|j| {
                let row = step * 16 + lane / 16 * 8 + lane % 8;
                let group = warp_col / GROUP + j * 2 + lane / 8 % 2;
                tile_b.load_fragment(place(row, group))
            });
            sums.multiply_add(&rows, &cols);
        }
        thread::sync_threads();
    }

    let mut store = |part: usize, row: u32, col: u32, two: [f32; 2]| {
        let row = first_row + warp_row + part * 16 + row as usize;
        let col = first_col + warp_col + col as usize;
        c.store_if(row * n + col, Bf16::from_two_f32(two), row < m && col < n);
    };
    sums.for_each_pair_of::<0>(|row, col, two| store(0, row, col, two));
    sums.for_each_pair_of::<1>(|row, col, two| store(1, row, col, two));
}
