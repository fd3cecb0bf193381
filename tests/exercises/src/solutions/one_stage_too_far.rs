//! Which stage is free in this phase?
//!
//! Solution: Phase p + 3 has the stage of phase p, which all threads are going to read. Run two
//! phases ahead.

use super::device::*;

const TILE: usize = 16;
const STAGES: usize = 3;
type Tiles = Shared<f32, { STAGES * TILE }, TILE>;

/// C (m x n) = A (m x k) B (k x n) with three stages of 16 x 16 tiles that `cp.async` fills.
#[kernel(
    block = (TILE, TILE),
    shared = STAGES * 2 * TILE * TILE * size_of::<f32>(),
    len(a = m * k, b = k * n, c = m * n),
)]
pub fn one_stage_too_far(m: u32, n: u32, k: u32, a: In<f32>, b: In<f32>, mut c: Out<f32>) {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut tile_a = shared![f32; STAGES * TILE, TILE];
    let mut tile_b = shared![f32; STAGES * TILE, TILE];
    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let row = thread::block_idx_y() as usize * TILE + ty;
    let col = thread::block_idx_x() as usize * TILE + tx;
    let phases = k.div_ceil(TILE);
    // Begins this thread's copies of a phase.
    let begin = |tile_a: &mut Tiles, tile_b: &mut Tiles, phase: usize| {
        let (a_col, b_row) = (phase * TILE + tx, phase * TILE + ty);
        let to = (phase % STAGES * TILE + ty) * TILE + tx;
        tile_a.copy_async::<1>(to, &a, row * k + a_col, row < m && a_col < k);
        tile_b.copy_async::<1>(to, &b, b_row * n + col, b_row < k && col < n);
    };

    for phase in 0..STAGES - 1 {
        begin(&mut tile_a, &mut tile_b, phase);
        copies::commit_group();
    }
    let mut sum = 0.0;
    for phase in 0..phases {
        // All groups but the last one have arrived: this phase's is among them.
        copies::wait_group::<1>();
        thread::sync_threads();
        if phase + STAGES - 1 < phases {
            begin(&mut tile_a, &mut tile_b, phase + STAGES - 1);
        }
        // After the last phase the group is empty. It keeps the number of groups in flight right.
        copies::commit_group();
        let this = phase % STAGES * TILE;
        for i in 0..TILE {
            sum = fma(tile_a[(this + ty, i)], tile_b[(this + i, tx)], sum);
        }
    }
    if row < m && col < n {
        c[row * n + col] = sum;
    }
}
