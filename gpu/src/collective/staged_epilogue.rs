//! The epilogue of `wgmma`: accumulators are staged in shared memory, and stored to C from there.
//!
//! * **A warpgroup** stores 64 rows of C.
//! * **A warp** stores 16 of them. It waits for no other warp.
//! * **A thread** holds two neighbours of a row, the next two eight columns further, and so on.
//!   Four lanes hold 32 contiguous bytes of a row. From shared memory a lane reads four neighbours,
//!   so stores are as wide as possible. And a loop can index shared memory, but not registers.
//!
//! If C is `alpha A B` with contiguous rows, [`packed_store`] stores it. Otherwise the [`Epilogue`]
//! does, mostly 64 columns at a time.

use super::{
    accumulators::{ROWS, each_pair_of},
    device::{warpgroup::Fragment, *},
    epilogue::Epilogue,
    packed_element::PackedStore,
    packed_store,
    stored::Stored,
    vector::FOUR,
};

/// Columns that are staged at a time, unless shared memory is scarce.
pub const COLS: usize = 64;

/// Elements from one staged row to the next. Rows are four banks apart.
pub const PITCH: usize = COLS + 4;

/// Stores a warpgroup's 64 x `N` accumulators. The first is (row, col).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<C: PackedStore, const N: usize, const STAGED: usize>(
    sums: &mut Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
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
            // In this form the compiler knows all but the lane's part.
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

/// Stores a warp's 16 x `COLS` staged elements to any C. `lane` is the lane's number.
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
