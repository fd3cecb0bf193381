//! A tile's sums on their way from a warpgroup's registers to C, by way of shared memory.
//!
//! The tensor cores leave a thread two neighbouring elements of a row, and eight columns further the next two: four lanes
//! together have 32 bytes of a row. Put down in shared memory and taken up again, what is written is as long as it can be, and
//! a loop can go over it, which over registers it cannot.
//!
//! A C that is `alpha A B`, row-major, is written by sixteen bytes ([`words`]). Any other goes by some columns at a time, mostly 64,
//! through the epilogue.
//!
//! A warp's sixteen rows are its own, so no other warp is waited for.

use super::{
    accumulators::{ROWS, each_pair_of},
    device::{warpgroup::Fragment, *},
    epilogue::Epilogue,
    packed_element::PackedStore,
    packed_store,
    stored::Stored,
    vector::FOUR,
};

/// Columns that are on their way at a time, where shared memory is not short.
pub const COLS: usize = 64;

/// Elements from one row to the next: what lies below each other is four banks apart.
pub const PITCH: usize = COLS + 4;

/// Writes the sums of a warpgroup, 64 x `N` elements of C, the first of which is (row, col).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<C: PackedStore, const N: usize, const STAGED: usize>(
    sums: &mut Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    let lane = thread::lane_id() as usize;
    let base = warp * ROWS * PITCH;
    let first_row = first_row + warp % 4 * ROWS;
    if epilogue.is_scaled_in_rows() {
        packed_store::store::<_, COLS, _, _, _>(
            sums,
            staged,
            (base, lane),
            epilogue,
            (first_row, first_col),
        );
        return;
    }
    let (_, cols) = epilogue.left((first_row, first_col));
    for part in 0..cols.div_ceil(COLS).min(N / COLS) {
        let mut put = |row: u32, col: u32, two: [f32; 2]| {
            // Put so, all but the lane's part is known to the compiler.
            let row = lane / 4 + row as usize % ROWS / 8 * 8;
            let col = lane % 4 * 2 + col as usize / 8 * 8;
            staged.store64(base + row * PITCH + col, two);
        };
        each_pair_of::<COLS, N>(sums, part, &mut put);
        warp::sync_warp(warp::ALL);
        finish::<_, COLS, _, _>(
            staged,
            (base, lane),
            epilogue,
            (first_row, first_col + part * COLS),
        );
        warp::sync_warp(warp::ALL);
    }
}

/// Writes a warp's 16 x `COLS` elements that have been put down, whatever C is and however it lies. It is the warp's lane of that
/// number that comes here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn finish<C: Stored<Real = f32>, const COLS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &Shared<f32, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    let lanes = const { COLS / FOUR };
    let (row_of_lane, col) = (lane / lanes, lane % lanes * FOUR);
    for row in (row_of_lane..ROWS).step_by(32 / lanes) {
        let four = staged.load128(base + row * PITCH + col);
        epilogue.finish::<false>((first_row + row, first_col + col), four);
    }
}
