//! The epilogue: accumulators are transposed in shared memory, and stored to C from there, some
//! rows at a time.
//!
//! The accumulators are C's transpose. A thread holds, for two columns of C, two neighbouring rows
//! of every eight. In shared memory they are staged as rows of C: the 64 columns of the warpgroup
//! are contiguous. Each warp then reads a quarter of the rows, or of the columns ([`finish`]).
//!
//! If the rows of C are 16-byte aligned, a lane stores four neighbours. Otherwise parts of sectors
//! (32 bytes) would reach L2, and those cost more than whole ones. So neighbouring lanes store
//! neighbouring elements, and the middle of a row's 64 columns is one 128-byte line of C. The lanes
//! left over before the row's first element store its last ones:
//!
//! ```text
//!   columns of a row that starts 5 elements after a line
//!     0 .. 26       27 .. 58      59 .. 63
//!     lane 5 .. 31                lane 0 .. 4      first store
//!                   lane 0 .. 31                   second store
//! ```

use super::{
    b_fragment::BFragment,
    collective::{epilogue::Epilogue, vector::FOUR},
    device::{warpgroup::Fragment, *},
    tile::WGMMA_M,
};

/// Columns of a fragment, which are rows of C, that are named at a time.
const NAMED: usize = 64;
/// Rows that a warp reads before it stores one.
const TOGETHER: usize = 8;
/// Elements of a store of one element a lane.
const LANES: usize = 32;

/// The swizzled column of an element in a staged row. Half a warp stages pairs of elements: of four
/// columns in two chunks of four elements, sixteen apart, and of four rows, two apart. All rows
/// start in the same bank, so the chunks of each row are permuted differently. Then the pairs are
/// in 32 banks.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn swizzled(row: usize, col: usize) -> usize {
    col ^ (row / 2 % 4 * FOUR)
}

/// The index of a staged element.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn place(row: usize, col: usize) -> usize {
    row * WGMMA_M + swizzled(row, col)
}

/// Stores the sums of `N` x 64 elements of C, `ROWS` rows at a time. The first is (row, col).
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
            // In this form the compiler knows all but the lane's part.
            let eight = row as usize / 8 * 8;
            if eight / ROWS == part % (NAMED / ROWS) {
                let row = lane % 4 * 2 + eight % ROWS;
                staged.store64(base + place(row, col_of_lane), [first[0], second[0]]);
                staged.store64(base + place(row + 1, col_of_lane), [first[1], second[1]]);
            }
        };
        // Registers cannot be indexed by a computed number.
        match part / (NAMED / ROWS) {
            0 => sums.for_each_square_of::<0>(&mut put),
            1 => sums.for_each_square_of::<1>(&mut put),
            2 => sums.for_each_square_of::<2>(&mut put),
            _ => sums.for_each_square_of::<3>(&mut put),
        }
        together.sync();
        let of_part = (first_row + part * ROWS, first_col);
        let first = (of_part.0 + warp * rows_of_warp, first_col);
        match () {
            () if fours => store_fours(staged, (own, rows_of_warp), epilogue, first),
            () if in_rows => store_rows(staged, (own, rows_of_warp), epilogue, first),
            () => finish::<ROWS, _>(staged, (base, warp), epilogue, of_part),
        }
        together.sync();
    }
}

/// Stores a warp's rows if C is `alpha A B`, has all of them, and its rows are 16-byte aligned.
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

/// Stores a warp's rows if C is `alpha A B` and the elements of a row are contiguous.
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
    // A lane reads eight rows before it stores one, so that reads overlap.
    for eight in (0..rows_of_warp).step_by(TOGETHER) {
        let (mut at, mut two) = ([0; TOGETHER], [[0.0; 2]; TOGETHER]);
        for i in 0..TOGETHER {
            let offset = epilogue.line_offset(to + i * epilogue.between_rows());
            at[i] = lane.wrapping_sub(offset) % WGMMA_M;
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

/// Stores a warp's part of the staged rows to any C: a quarter of the rows, two at a time. If the
/// elements of a column are contiguous, it is a quarter of the columns instead, four at a time.
/// Then the lanes of a warp store 32 neighbours of a column.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn finish<const ROWS: usize, const STAGED: usize>(
    staged: &Shared<f32, STAGED, WGMMA_M>,
    (base, warp): (usize, usize),
    epilogue: &mut Epilogue<f32>,
    first @ (first_row, first_col): (usize, usize),
) {
    const { assert!(ROWS.is_multiple_of(LANES)) };
    let lane = thread::thread_idx_x() as usize % LANES;
    let (row_of_lane, col_of_lane) = four_of_lane();
    let (rows_of_warp, cols_of_warp) = (ROWS / 4, WGMMA_M / 4);
    let fours_of_warp = cols_of_warp / FOUR;
    let down = epilogue.is_in_columns();
    // The rows that C has. The compiler does not know their number, and so does not unroll the
    // loop.
    let rows = epilogue.left(first).0.min(ROWS);
    let steps = match down {
        true => rows.div_ceil(LANES) * fours_of_warp,
        false => rows.saturating_sub(warp * rows_of_warp).min(rows_of_warp).div_ceil(2),
    };
    for step in 0..steps {
        let (row, col) = match down {
            true => (
                step / fours_of_warp * LANES + lane,
                warp * cols_of_warp + step % fours_of_warp * FOUR,
            ),
            false => (warp * rows_of_warp + step * 2 + row_of_lane, col_of_lane),
        };
        let four = staged.load128(base + place(row, col));
        epilogue.finish((first_row + row, first_col + col), four);
    }
}

/// The row, of two, and the first of the four columns that a lane reads.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn four_of_lane() -> (usize, usize) {
    let lane = thread::thread_idx_x() as usize % 32;
    (lane / (WGMMA_M / FOUR), lane % (WGMMA_M / FOUR) * FOUR)
}
