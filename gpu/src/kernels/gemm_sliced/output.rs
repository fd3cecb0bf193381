//! A tile's sums on their way to C: as those of [`gemm_wgmma`](super::super::gemm_wgmma), but 32 columns at a time in place of 64, so
//! that the ring has the rest of shared memory; and what cannot be relied on is computed again on the way.

use super::{
    super::{
        device::{warpgroup::Fragment, *},
        gemm::epilogue::Epilogue,
        gemm_wgmma::{
            output::{ROWS, each_pair_of, finish},
            words,
        },
    },
    anew,
    exceptions::{Again, Filled},
    roles::{Given, Kind},
};
use crate::problem::Problem;

/// Columns that are on their way at a time: of a row a line of C's memory.
pub const COLS: usize = 32;

/// Elements from one row to the next: what lies below each other is four banks apart.
pub const PITCH: usize = COLS + 4;

/// The lane's number, through a shuffle: what follows from it would else be computed before the main loop, and take registers there.
/// All lanes of a warp come here.
#[inline(always)]
fn lane() -> usize {
    let lane = thread::thread_idx_x() % 32;
    warp::shuffle(warp::ALL, lane, lane) as usize
}

/// Writes the sums of a warpgroup, 64 x `N` elements of C, the first of which is (product, row, col). Are those of this warp
/// `certain`? Others are computed again, but what zeros alone have made.
#[inline(always)]
#[track_caller]
pub fn store<
    K: Kind,
    S: Scope,
    const STAGES: usize,
    const GROUPS: usize,
    const STAGED: usize,
    const N: usize,
>(
    given: &mut Given<K, S, STAGES, GROUPS, STAGED>,
    problem: &Problem,
    (product, row, col): (u32, u32, u32),
    sums: &Fragment<N>,
    (certain, filled): (bool, Filled),
) {
    const { assert!(PITCH == COLS + 4) };
    let (product, col) = (product as usize, col as usize);
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    let base = warp * ROWS * PITCH;
    let row = row as usize + warp % 4 * ROWS;
    let mut epilogue = Epilogue::of_product(problem, product, given.c, given.bias);
    if certain && epilogue.is_scaled_in_rows() {
        let place = (base, lane());
        words::store::<_, COLS, _, _, _>(sums, given.staged, place, &mut epilogue, (row, col));
        return;
    }
    let parts = epilogue.left((row, col)).1.div_ceil(COLS).min(N / COLS);
    for part in 0..parts {
        // What follows from these would else be computed before the loop, and kept.
        let (problem, lane) = (&anew(problem), lane());
        each_pair_of::<COLS, N>(sums, part, |row, col, two| {
            // Put so, all but the lane's part is known to the compiler.
            let row = lane / 4 + row as usize % ROWS / 8 * 8;
            let col = lane % 4 * 2 + col as usize / 8 * 8;
            given.staged.store64(base + row * PITCH + col, two);
        });
        warp::sync_warp(warp::ALL);
        let first = (row, col + part * COLS);
        if !certain {
            let again = Again { problem, originals: given.originals, product, first, base, lane };
            again.replace_doubted(given.staged, filled.of_part(part, lane));
        }
        let mut epilogue = Epilogue::of_product(problem, product, given.c, given.bias);
        finish::<_, COLS, _, _>(given.staged, (base, lane), &mut epilogue, first);
        warp::sync_warp(warp::ALL);
    }
}
