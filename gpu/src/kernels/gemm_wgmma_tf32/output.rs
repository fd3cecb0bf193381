//! A tile's sums on their way from a warpgroup's registers to C, 64 rows at a time, by way of shared memory.
//!
//! The tensor cores have computed C's transpose: a thread's registers hold, of two of C's columns, two neighbouring rows
//! of every eight. Put down in shared memory as rows of C and taken up again, a lane has four neighbours of a row, and a
//! loop can go over them. A warp's 16 columns are twice eight, 32 bytes each: whole sectors of C's memory.
//!
//! A warp's columns are its own, so no other warp is waited for.

use super::{
    super::{
        device::{warpgroup::Fragment, *},
        gemm::{FOUR, epilogue::Epilogue},
    },
    GROUP,
    columns::Columns,
};

/// Rows of C that are on their way at a time.
pub const ROWS: usize = 64;
/// Columns of a warp.
pub const COLS: usize = 16;

/// The place of an element. A half of a warp stores pairs of elements: of four columns' pairs, four rows that are two apart. All
/// even rows begin in the same bank, so of every other such row chunks of four elements are exchanged, and every other two
/// of them are exchanged with their odd neighbours: then these are 32 banks.
#[inline(always)]
fn place(row: usize, col: usize) -> usize {
    let (eight, row) = (row / 8, row % 8);
    (eight * 8 + (row ^ (row / 4))) * COLS + (col ^ (row / 2 % 2 * FOUR))
}

/// Writes the sums of `N` x 64 elements of C, the first of which is (row, col). C has `m` rows.
#[inline(always)]
#[track_caller]
pub fn store<const N: usize, const STAGED: usize>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, COLS>,
    epilogue: &mut Epilogue<f32>,
    (first_row, first_col): (usize, usize),
    m: usize,
) {
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let base = warp * ROWS * COLS;
    let whole = epilogue.is_scaled_tile((first_row, first_col), (N, GROUP)) && epilogue.is_wide();
    let (row_of_lane, order) = (lane / 4, lane % 4 * FOUR);
    let col = first_col + Columns::column(warp % 4, order);
    for part in 0..N / ROWS {
        // The fragment's rows are C's columns.
        let mut put = |col: u32, row: u32, [first, second]: [[f32; 2]; 2]| {
            let (row, col) = (row as usize, Columns::order(col as usize % COLS));
            staged.store64(base + place(row, col), [first[0], second[0]]);
            staged.store64(base + place(row + 1, col), [first[1], second[1]]);
        };
        // A register has no number that is computed.
        match part {
            0 => sums.for_each_square_of::<0>(&mut put),
            1 => sums.for_each_square_of::<1>(&mut put),
            2 => sums.for_each_square_of::<2>(&mut put),
            _ => sums.for_each_square_of::<3>(&mut put),
        }
        warp::sync_warp(warp::ALL);
        let four = |row: usize| staged.load128::<FOUR>(base + place(row, order));
        let at = |row: usize| (first_row + part * ROWS + row, col);
        if whole {
            for i in 0..ROWS / 8 {
                let row = 8 * i + row_of_lane;
                epilogue.store::<true>(at(row), four(row));
            }
        } else {
            // As many rows as there are: a number that the compiler does not know, and does not unroll the loop by.
            let rows = m.saturating_sub(first_row + part * ROWS).min(ROWS);
            for row in (row_of_lane..rows).step_by(8) {
                epilogue.finish::<false>(at(row), four(row));
            }
        }
        warp::sync_warp(warp::ALL);
    }
}
