//! A tile's sums on their way from a warpgroup's registers to C, 64 columns at a time, by way of shared memory.
//!
//! The tensor cores leave a thread two neighbouring elements of a row, and eight columns further the next two: four lanes
//! together have 32 bytes of a row. Put down in shared memory and taken up again, 32 lanes have a whole row of 64 columns:
//! what is written is as long as it can be, the same code serves C of any type and any epilogue, and a loop can go over it,
//! which over registers it cannot.
//!
//! Where rows of C begin at multiples of sixteen bytes and nothing is added to it, there is a shorter way ([`words`]).
//!
//! A lane writes two neighbours at once, of bf16 four bytes, of f32 eight: an access that must begin at a multiple of its
//! size. Rows of C may begin anywhere, so a lane takes up the two that lie at such a multiple *in C*, whichever they are of
//! the row:
//!
//! ```text
//!   columns of a row            0   1   2   3   4   5   ...  62  63
//!   it begins at a multiple     lane 0  lane 1  lane 2  ...  lane 31
//!   one element behind        1   lane 1  lane 2  lane 3  ...  lane 31  1
//! ```
//!
//! The ends that are left over (`1`), also those at C's last column, are stored one by one, those of all sixteen rows
//! together.
//!
//! A warp's sixteen rows are its own, so no other warp is waited for.

use super::{
    super::{
        device::{warpgroup::Fragment, *},
        gemm::{FOUR, epilogue::Epilogue, stored::Stored},
    },
    words::{self, InWords},
};

/// Columns that are on their way at a time.
pub const COLS: usize = 64;
/// Rows of a warp.
pub const ROWS: usize = 16;

/// Elements from one row to the next. Even columns lie before odd ones, so that lanes which take up every other column find
/// them side by side. As they come from the registers, eight rows and four even columns (or odd ones) are put down at a time:
/// with four elements between the rows these lie in 32 banks.
pub const PITCH: usize = COLS + 4;

/// Where an element lies, of a warp's.
#[inline(always)]
fn place(row: usize, col: usize) -> usize {
    row * PITCH + col % 2 * (COLS / 2) + col / 2
}

/// Writes the sums of 64 x `N` elements of C, the first of which is (row, col).
#[inline(always)]
#[track_caller]
pub fn store<C: InWords, const N: usize, const STAGED: usize>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    epilogue: &mut Epilogue<C>,
    first: (usize, usize),
) {
    if epilogue.is_scaled_in_rows() && epilogue.lies_by_16_bytes() {
        let (warp, _) = warp_and_lane();
        let first = (first.0 + warp % 4 * ROWS, first.1);
        words::store(sums, staged, warp * ROWS * PITCH, epilogue, first);
    } else {
        store_anywhere(sums, staged, epilogue, first);
    }
}

/// The block's warp, and its lane.
#[inline(always)]
fn warp_and_lane() -> (usize, usize) {
    let t = thread::thread_idx_x() as usize;
    // Through a shuffle, so that the compiler sees that it is the same for all lanes.
    (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32)
}

/// [`store`] that asks less where C's rows begin, and takes fewer registers.
#[inline(always)]
#[track_caller]
pub fn store_anywhere<C: Stored<Real = f32>, const N: usize, const STAGED: usize>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, PITCH>,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    let (warp, lane) = warp_and_lane();
    let base = warp * ROWS * PITCH;
    let first_row = first_row + warp % 4 * ROWS;
    let scaled = epilogue.is_scaled_in_rows();
    let (_, cols) = epilogue.left((first_row, first_col));
    // By how much rows begin behind pairs: the even ones and the odd ones, for from a row to the second after it there is an
    // even number of elements.
    let behind = [first_row, first_row + 1]
        .map(|row| epilogue.behind_pair(epilogue.place((row, first_col))));
    for part in 0..cols.div_ceil(COLS).min(N / COLS) {
        let mut put = |row: u32, col: u32, [first, second]: [f32; 2]| {
            // Put so, all but the lane's part is known to the compiler.
            let row = lane / 4 + row as usize % ROWS / 8 * 8;
            let col = lane % 4 * 2 + col as usize / 8 * 8;
            staged[base + place(row, col)] = first;
            staged[base + place(row, col + 1)] = second;
        };
        // A register has no number that is computed.
        match part {
            0 => sums.for_each_pair_of::<0>(&mut put),
            1 => sums.for_each_pair_of::<1>(&mut put),
            2 => sums.for_each_pair_of::<2>(&mut put),
            _ => sums.for_each_pair_of::<3>(&mut put),
        }
        warp::sync_warp(warp::ALL);
        let first = (first_row, first_col + part * COLS);
        match scaled {
            true => store_pairs(staged, base, epilogue, first, behind),
            false => finish(staged, base, epilogue, first),
        }
        warp::sync_warp(warp::ALL);
    }
}

/// Writes a warp's elements, if C is `alpha A B` and a row's elements lie side by side.
#[inline(always)]
#[track_caller]
fn store_pairs<C: Stored<Real = f32>, const STAGED: usize>(
    staged: &Shared<f32, STAGED, PITCH>,
    base: usize,
    epilogue: &mut Epilogue<C>,
    first @ (first_row, first_col): (usize, usize),
    behind: [usize; 2],
) {
    let lane = thread::thread_idx_x() as usize % 32;
    let left = epilogue.left(first);
    let (rows, cols) = (left.0.min(ROWS), left.1.min(COLS));
    // Behind a pair by one, the first of two is the odd column before the lane's even one. (Of a lane that has no such
    // column, any.)
    let (even, odd) = (base + lane, behind.map(|behind| base + COLS / 2 + lane - behind));
    let place = epilogue.place(first) + 2 * lane;
    let mut to = [0, 1].map(|i| (place + i * epilogue.between_rows()).wrapping_sub(behind[i]));
    // Of a lane whose pairs are outside, no rows.
    let rows_of_lane = behind.map(|behind| {
        let is_inside = 2 * lane >= behind && 2 * lane + 1 < cols + behind;
        if is_inside { rows as u32 } else { 0 }
    });
    // Eight rows are read before one is written, so that no read is waited for alone.
    for eight in (0..ROWS).step_by(8) {
        let mut pairs = [[0.0; 2]; 8];
        for i in 0..8 {
            let at = (eight + i) * PITCH;
            let two = [staged[even + at], staged[odd[i % 2] + at]];
            pairs[i] = if behind[i % 2] == 0 { two } else { [two[1], two[0]] };
        }
        for i in 0..8 {
            let valid = ((eight + i) as u32) < rows_of_lane[i % 2];
            epilogue.store_two(to[i % 2], pairs[i], valid);
            to[i % 2] += 2 * epilogue.between_rows();
        }
    }
    if cols == 0 {
        return;
    }
    // A lane for each row's first element and one for its last, where it is the second of a pair, or the first.
    let (row, last) = (lane / 2, lane % 2 == 1);
    let col = if last { cols - 1 } else { 0 };
    let to = epilogue.place((first_row + row, first_col + col));
    if row < rows && epilogue.behind_pair(to) == usize::from(!last) {
        epilogue.store_one(to, staged[base + self::place(row, col)]);
    }
}

/// Writes a warp's elements, whatever C is and however it lies.
#[inline(always)]
#[track_caller]
fn finish<C: Stored<Real = f32>, const STAGED: usize>(
    staged: &Shared<f32, STAGED, PITCH>,
    base: usize,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    let lane = thread::thread_idx_x() as usize % 32;
    let (first_of_lane, col) = (lane / 16, lane % 16 * FOUR);
    for row in (first_of_lane..ROWS).step_by(2) {
        let four = [0, 1, 2, 3].map(|i| staged[base + place(row, col + i)]);
        epilogue.finish::<false>((first_row + row, first_col + col), four);
    }
}
