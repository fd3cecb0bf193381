//! The epilogue of `wgmma`: accumulators are staged in shared memory, and stored to C from there.
//!
//! * **A warpgroup** stores 64 rows of C.
//! * **A warp** stores 16 of them. It waits for no other warp.
//! * **A thread** holds two neighbours of a row, the next two eight columns further, and so on.
//!   Four lanes hold 32 contiguous bytes of a row. From shared memory a lane reads four neighbours,
//!   so stores are as wide as possible. And a loop can index shared memory, but not registers.
//!
//! If [all is done in registers](Epilogue::is_finished_in_registers), [`packed_store`] stores C.
//! Otherwise the [`Epilogue`] is applied to what is staged, mostly 64 columns at a time.

use super::{
    accumulators::{ROWS, each_pair_of},
    device::{warpgroup::Fragment, *},
    epilogue::Epilogue,
    packed_element::PackedStore,
    packed_store::{self, Early},
    stored::Stored,
    vector::FOUR,
};

/// Columns that are staged at a time, unless shared memory is scarce.
pub const COLS: usize = 64;

/// Elements from one staged row to the next. Rows are four banks apart.
pub const PITCH: usize = COLS + 4;

/// Loads what [`store`] needs, while the accumulators are still computed. The first is (row, col).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn load_early<C: PackedStore, const N: usize, const ALL: bool>(
    epilogue: &Epilogue<C>,
    (first_row, first_col): (usize, usize),
) -> Early<C> {
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    let first = (first_row + warp % 4 * ROWS, first_col);
    Early::load::<COLS, N, ALL>(epilogue, thread::lane_id() as usize, first)
}

/// Stores a warpgroup's 64 x `N` accumulators. The first is (row, col). If registers suffice
/// (`ALL`), old elements of C and the bias of rows are added where the accumulators are.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<C: PackedStore, const N: usize, const STAGED: usize, const ALL: bool>(
    sums: &mut Fragment<N, C::Real>,
    staged: &mut Shared<C::Real, STAGED, PITCH>,
    (epilogue, early): (&mut Epilogue<C>, Early<C>),
    (first_row, first_col): (usize, usize),
) {
    // Through a shuffle, so that the compiler knows that it is the same for all lanes.
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    let lane = thread::lane_id() as usize;
    let base = warp * ROWS * PITCH;
    let first_row = first_row + warp % 4 * ROWS;
    if epilogue.is_finished_in_registers::<ALL>() {
        packed_store::store::<_, COLS, _, _, _, ALL>(
            sums,
            staged,
            (base, lane),
            (epilogue, early),
            (first_row, first_col),
        );
        return;
    }
    let (_, cols) = epilogue.left((first_row, first_col));
    for part in 0..cols.div_ceil(COLS).min(N / COLS) {
        let mut put = |row: u32, col: u32, two: [C::Real; 2]| {
            // In this form the compiler knows all but the lane's part.
            let row = lane / 4 + row as usize % ROWS / 8 * 8;
            let col = lane % 4 * 2 + col as usize / 8 * 8;
            staged.store64(base + row * PITCH + col, two);
        };
        each_pair_of::<_, COLS, N>(sums, part, &mut put);
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

/// Rows that a lane finishes together.
const TOGETHER: usize = 2;

/// Stores a warp's 16 x `COLS` staged elements to any C. `lane` is the lane's number.
///
/// If C [`is_in_fours`](Epilogue::is_in_fours), a lane has four neighbours of a row. Otherwise
/// neighbouring lanes have neighbouring elements.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn finish<C: Stored, const COLS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    if !epilogue.is_in_fours() {
        finish_elements::<_, COLS, _, _>(staged, (base, lane), epilogue, first);
        return;
    }
    let rows = epilogue.left(first).0.min(ROWS) as u32;
    let (lane, first_row, first_col) = (lane as u32, first.0 as u32, first.1 as u32);
    let lanes = const { (COLS / FOUR) as u32 };
    let step = 32 / lanes;
    let (row_of_lane, col) = (lane / lanes, lane % lanes * FOUR as u32);
    let columns = epilogue.columns(core::array::from_fn(|i| first_col + col + i as u32));
    let mut row = 0;
    while row < rows {
        let of_lane = row + row_of_lane;
        let sums: [[C::Real; FOUR]; TOGETHER] = core::array::from_fn(|i| {
            let row = (of_lane + i as u32 * step) as usize;
            staged.load128(base + row * PITCH + col as usize)
        });
        epilogue.finish_fours(&columns, (first_row + of_lane, step), sums);
        row += TOGETHER as u32 * step;
    }
}

/// Stores a warp's 16 x `COLS` staged elements to any C: neighbouring lanes store neighbouring
/// elements of a row. `lane` is the lane's number.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn finish_elements<C: Stored, const COLS: usize, const STAGED: usize, const PITCH: usize>(
    staged: &Shared<C::Real, STAGED, PITCH>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    const { assert!(COLS == 32 || COLS == 64, "one element of a row a lane, or two") };
    // The rows that C has. The compiler does not know their number, and so does not unroll the
    // loop.
    let rows = epilogue.left((first_row, first_col)).0.min(ROWS) as u32;
    let (lane, first_row, first_col) = (lane as u32, first_row as u32, first_col as u32);
    let cols = if COLS == 32 { [lane; FOUR] } else { [lane, lane + 32, lane, lane + 32] };
    let across = const { COLS / 32 };
    let mut row = 0;
    while row < rows {
        let columns = epilogue.columns(cols.map(|col| first_col + col));
        let sums = core::array::from_fn(|i| {
            staged[base + (row as usize + i / across) * PITCH + cols[i] as usize]
        });
        match COLS {
            32 => epilogue.finish_elements::<1>(&columns, first_row + row, sums),
            _ => epilogue.finish_elements::<2>(&columns, first_row + row, sums),
        }
        row += (FOUR / across) as u32;
    }
}
