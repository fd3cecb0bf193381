//! A tile's sums on their way from a warpgroup's registers to C, so many rows at a time, by way of shared memory.
//!
//! The tensor cores have computed C's transpose: a thread's registers hold, of two of C's columns, two neighbouring rows
//! of every eight. Put down in shared memory as rows of C they are all of the warpgroup's 64 columns, side by side; each of
//! its warps takes up a quarter of the rows.
//!
//! Where C's rows begin at multiples of sixteen bytes a lane writes four neighbours. Rows may begin anywhere, though, and
//! what reaches the second-level cache as a part of a sector, 32 bytes, costs more there than a whole one. So neighbouring
//! lanes write neighbouring elements, and of a row's 64 columns those in the middle are a line of C's memory, 128 bytes. The
//! lanes that are left over before the row's first element write its last ones:
//!
//! ```text
//!   columns of a row that begins 5 elements behind a line
//!     0 .. 26       27 .. 58      59 .. 63
//!     lane 5 .. 31                lane 0 .. 4      the first store
//!                   lane 0 .. 31                   the second
//! ```

use super::{
    b_fragment::BFragment,
    collective::{epilogue::Epilogue, vector::FOUR},
    device::{warpgroup::Fragment, *},
    tile::WGMMA_M,
};

/// BFragment of a fragment, which are these rows, that are named at a time.
const NAMED: usize = 64;
/// Rows that a warp reads before it writes one.
const TOGETHER: usize = 8;
/// Elements of a store of one element a lane.
const LANES: usize = 32;

/// Where in its row of shared memory an element stands. A half of a warp puts down pairs of elements: of four columns' pairs,
/// which are in two chunks of four elements, sixteen apart, four rows that are two apart. If all rows begin in the same bank,
/// these take 32 banks when of each of the rows chunks are exchanged in another way.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn swizzled(row: usize, col: usize) -> usize {
    col ^ (row / 2 % 4 * FOUR)
}

/// The place of an element.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn place(row: usize, col: usize) -> usize {
    row * WGMMA_M + swizzled(row, col)
}

/// Writes the sums of `N` x 64 elements of C, the first of which is (row, col), so many `ROWS` at a time.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<const N: usize, const ROWS: usize, const STAGED: usize>(
    sums: &Fragment<N>,
    staged: &mut Shared<f32, STAGED, WGMMA_M>,
    epilogue: &mut Epilogue<f32>,
    first @ (first_row, first_col): (usize, usize),
    together: NamedBarrier<128>,
) {
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (base, warp) = (warp / 4 * (ROWS * WGMMA_M), warp % 4);
    let col_of_lane = BFragment::column(warp, lane / 4);
    const { assert!(NAMED.is_multiple_of(ROWS) && (ROWS / 4).is_multiple_of(TOGETHER)) };
    let rows_of_warp = ROWS / 4;
    let own = base + warp * rows_of_warp * WGMMA_M;
    let fours = epilogue.is_scaled_tile(first, (N, WGMMA_M)) && epilogue.is_wide();
    let in_rows = epilogue.is_scaled_in_rows();
    let (rows, _) = epilogue.left(first);
    for part in 0..rows.div_ceil(ROWS).min(N / ROWS) {
        let mut put = |_: u32, row: u32, [first, second]: [[f32; 2]; 2]| {
            // Put so, all but the lane's part is known to the compiler.
            let eight = row as usize / 8 * 8;
            if eight / ROWS == part % (NAMED / ROWS) {
                let row = lane % 4 * 2 + eight % ROWS;
                staged.store64(base + place(row, col_of_lane), [first[0], second[0]]);
                staged.store64(base + place(row + 1, col_of_lane), [first[1], second[1]]);
            }
        };
        // A register has no number that is computed.
        match part / (NAMED / ROWS) {
            0 => sums.for_each_square_of::<0>(&mut put),
            1 => sums.for_each_square_of::<1>(&mut put),
            2 => sums.for_each_square_of::<2>(&mut put),
            _ => sums.for_each_square_of::<3>(&mut put),
        }
        together.sync();
        let first = (first_row + part * ROWS + warp * rows_of_warp, first_col);
        match () {
            () if fours => store_fours(staged, (own, rows_of_warp), epilogue, first),
            () if in_rows => store_rows(staged, (own, rows_of_warp), epilogue, first),
            () => finish(staged, (own, rows_of_warp), epilogue, first),
        }
        together.sync();
    }
}

/// Writes a warp's rows, all of which are inside, if C is `alpha A B` and its rows begin at multiples of sixteen bytes.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_fours<const STAGED: usize>(
    staged: &Shared<f32, STAGED, WGMMA_M>,
    (own, rows_of_warp): (usize, usize),
    epilogue: &mut Epilogue<f32>,
    (first_row, first_col): (usize, usize),
) {
    let (row_of_lane, col) = four_of_lane();
    for i in 0..rows_of_warp / 2 {
        let row = 2 * i + row_of_lane;
        let four = staged.load128(own + place(row, col));
        epilogue.store::<true>((first_row + row, first_col + col), four);
    }
}

/// Writes a warp's rows, if C is `alpha A B` and a row's elements lie side by side.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn store_rows<const STAGED: usize>(
    staged: &Shared<f32, STAGED, WGMMA_M>,
    (own, rows_of_warp): (usize, usize),
    epilogue: &mut Epilogue<f32>,
    first: (usize, usize),
) {
    let lane = thread::thread_idx_x() as usize % 32;
    let (rows, cols) = epilogue.left(first);
    let mut to = epilogue.place(first);
    // Eight rows are read before one is written, so that no read is waited for alone.
    for eight in (0..rows_of_warp).step_by(TOGETHER) {
        let (mut at, mut two) = ([0; TOGETHER], [[0.0; 2]; TOGETHER]);
        for i in 0..TOGETHER {
            let behind = epilogue.line_offset(to + i * epilogue.between_rows());
            at[i] = lane.wrapping_sub(behind) % WGMMA_M;
            let at_col = |col: usize| staged[own + place(eight + i, col)];
            two[i] = [at_col(at[i]), at_col(at[i] ^ LANES)];
        }
        for i in 0..TOGETHER {
            let (row, col) = (eight + i, [at[i], at[i] ^ LANES]);
            epilogue.store_one_if(to + col[0], two[i][0], row < rows && col[0] < cols);
            epilogue.store_one_if(to + col[1], two[i][1], row < rows && col[1] < cols);
            to += epilogue.between_rows();
        }
    }
}

/// Writes a warp's rows, whatever C is and however it lies.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn finish<const STAGED: usize>(
    staged: &Shared<f32, STAGED, WGMMA_M>,
    (own, rows_of_warp): (usize, usize),
    epilogue: &mut Epilogue<f32>,
    first @ (first_row, first_col): (usize, usize),
) {
    let (row_of_lane, col) = four_of_lane();
    // As many rows as there are: a number that the compiler does not know, and does not unroll the loop by.
    let rows = epilogue.left(first).0.min(rows_of_warp);
    for row in (row_of_lane..rows).step_by(2) {
        let four = staged.load128(own + place(row, col));
        epilogue.finish::<false>((first_row + row, first_col + col), four);
    }
}

/// The row, of two, and the first of four columns that a lane takes up.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn four_of_lane() -> (usize, usize) {
    let lane = thread::thread_idx_x() as usize % 32;
    (lane / (WGMMA_M / FOUR), lane % (WGMMA_M / FOUR) * FOUR)
}
