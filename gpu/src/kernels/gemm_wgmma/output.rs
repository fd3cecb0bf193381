//! A tile's sums on their way from a warpgroup's registers to C, 64 columns at a time, by way of shared memory.
//!
//! The tensor cores leave a thread two neighbouring elements of a row, and eight columns further the next two: four lanes
//! together have 32 bytes of a row. Put down in shared memory and taken up again, a lane has four neighbours, and sixteen
//! lanes a whole row of 64: what is written is as long as it can be, the same code serves C of any type and any epilogue,
//! and a loop can go over it, which over registers it cannot.
//!
//! A warp's sixteen rows are its own, so no other warp is waited for.

use super::super::{
    device::{warpgroup::Fragment, *},
    gemm::{FOUR, epilogue::Epilogue, stored::Stored},
};

/// Columns that are on their way at a time.
pub const COLS: usize = 64;
/// Rows of a warp.
pub const ROWS: usize = 16;

/// The place of the first of four columns. As they come from the registers, eight rows and every other column of eight are
/// stored at a time: these lie in 32 banks if four rows' groups of eight columns are exchanged, and the other four rows'
/// neighbours.
#[inline(always)]
fn place(row: usize, col: usize) -> usize {
    row * COLS + (col ^ (row % 4 * 8))
}

/// Are a row's neighbours exchanged?
#[inline(always)]
fn exchanged(row: usize) -> usize {
    row / 4 % 2
}

/// Writes the sums of 64 x `N` elements of C, the first of which is (row, col).
#[inline(always)]
#[track_caller]
pub fn store<C: Stored<Real = f32>, const N: usize, const STAGED: usize>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, COLS>,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let base = warp * ROWS * COLS;
    let first_row = first_row + warp % 4 * ROWS;
    let whole = epilogue.is_scaled_tile((first_row, first_col), (ROWS, N)) && epilogue.is_wide();
    for part in 0..N / COLS {
        let mut put = |row: u32, col: u32, [first, second]: [f32; 2]| {
            let row = row as usize % ROWS;
            let at = (base + place(row, col as usize)) ^ exchanged(row);
            staged[at] = first;
            staged[at ^ 1] = second;
        };
        // A register has no number that is computed.
        match part {
            0 => sums.for_each_pair_of::<0>(&mut put),
            1 => sums.for_each_pair_of::<1>(&mut put),
            2 => sums.for_each_pair_of::<2>(&mut put),
            _ => sums.for_each_pair_of::<3>(&mut put),
        }
        warp::sync_warp(warp::ALL);
        let (first_of_lane, col) = (lane / 16, lane % 16 * FOUR);
        let four = |row: usize| {
            let four: [f32; FOUR] = staged.load128(base + place(row, col));
            match exchanged(row) {
                0 => four,
                _ => [four[1], four[0], four[3], four[2]],
            }
        };
        let at = |row: usize| (first_row + row, first_col + part * COLS + col);
        if whole {
            for i in 0..ROWS / 2 {
                let row = 2 * i + first_of_lane;
                epilogue.store::<true>(at(row), four(row));
            }
        } else {
            for row in (first_of_lane..ROWS).step_by(2) {
                epilogue.finish::<false>(at(row), four(row));
            }
        }
        warp::sync_warp(warp::ALL);
    }
}
