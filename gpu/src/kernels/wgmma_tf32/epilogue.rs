//! The epilogue: accumulators are transposed in shared memory, and stored to C from there, some
//! rows at a time.
//!
//! The accumulators are C's transpose. A thread holds, for two columns of C, two neighbouring rows
//! of every eight. In shared memory they are staged as rows of C: the 64 columns of the warpgroup
//! are contiguous. Each warp then reads a quarter of the rows, or of the columns ([`finish`]).
//!
//! Alpha, a bias along rows of C and ReLU are applied where the accumulators are: a thread has two
//! columns, and so two elements of the bias. Old elements of C and other activations follow when
//! a lane has four neighbours ([`finish_fours`]).
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
    collective::{accumulators, epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR},
    device::{warpgroup::Fragment, *},
    tile::WGMMA_M,
};
use crate::params::{COL_BIAS, IDENTITY, NO_BIAS, RELU};

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

/// Stores the sums of `N` x 64 elements of C, `ROWS` rows at a time. The first is (row, col). If
/// registers suffice (`all`), old elements of C and all activations have their own loop.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<const N: usize, const ROWS: usize, const STAGED: usize>(
    sums: &mut Fragment<N>,
    staged: &mut Shared<f32, STAGED, WGMMA_M>,
    epilogue: &mut Epilogue<f32>,
    first @ (first_row, first_col): (usize, usize),
    (together, all): (NamedBarrier<128>, bool),
) {
    let t = thread::thread_idx_x() as usize;
    let (warp, lane) = (warp::shuffle(warp::ALL, (t / 32) as u32, 0) as usize, t % 32);
    let (base, warp) = (warp / 4 * (ROWS * WGMMA_M), warp % 4);
    let col_of_lane = BFragment::column(warp, lane / 4);
    const { assert!(NAMED.is_multiple_of(ROWS) && (ROWS / 4).is_multiple_of(TOGETHER)) };
    let rows_of_warp = ROWS / 4;
    let own = base + warp * rows_of_warp * WGMMA_M;
    let (rows, cols) = epilogue.left(first);
    let fours = epilogue.is_wide() && rows >= N && cols >= WGMMA_M;
    let (bias, activation) = (epilogue.bias(), epilogue.activation());
    let is_simple = epilogue.beta() == 0.0 && matches!(activation, IDENTITY | RELU);
    // The old elements of C are added before the bias is.
    let in_registers = bias == NO_BIAS || bias == COL_BIAS && epilogue.beta() == 0.0;
    let in_rows = in_registers && is_simple && epilogue.has_rows();
    if all && fours && in_registers || in_rows {
        complete(sums, epilogue, (first_col + col_of_lane) as u32, is_simple);
    }
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
            0 => sums.for_each_square_of(0, &mut put),
            1 => sums.for_each_square_of(1, &mut put),
            2 => sums.for_each_square_of(2, &mut put),
            _ => sums.for_each_square_of(3, &mut put),
        }
        together.sync();
        let of_part = (first_row + part * ROWS, first_col);
        let first = (of_part.0 + warp * rows_of_warp, first_col);
        match () {
            () if fours && in_rows => store_fours(staged, (own, rows_of_warp), epilogue, first),
            () if all && fours && in_registers => {
                finish_fours(staged, (own, rows_of_warp), epilogue, first);
            }
            () if in_rows => store_rows(staged, (own, rows_of_warp), epilogue, first),
            () => finish::<ROWS, _>(staged, (base, warp), epilogue, of_part),
        }
        together.sync();
    }
}

/// Multiplies the accumulators by alpha, and adds the bias of the columns of C, if there is one. A
/// thread has two of them, from `col` on. If nothing else `is_simple`, ReLU is applied, too.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn complete<const N: usize>(
    sums: &mut Fragment<N>,
    epilogue: &Epilogue<f32>,
    col: u32,
    is_simple: bool,
) {
    let alpha = epilogue.alpha();
    if alpha != 1.0 {
        sums.map(|sum| alpha * sum);
    }
    if epilogue.bias() == COL_BIAS {
        let bias = [epilogue.bias_of_col(col), epilogue.bias_of_col(col + 1)];
        sums.map_pairs(|row, _, two| {
            two.map(|sum| sum + bias[row as usize % accumulators::ROWS / 8])
        });
    }
    if is_simple && epilogue.activation() == RELU {
        sums.map(f32::relu);
    }
}

/// Stores a warp's completed rows if C has all of them, and its rows are 16-byte aligned.
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
        epilogue.store_four(((first_row + row) as u32, (first_col + col) as u32), four);
    }
}

/// [`store_fours`], with old elements of C or any activation. Old elements are loaded one step
/// ahead.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn finish_fours<const STAGED: usize>(
    staged: &Shared<f32, STAGED, WGMMA_M>,
    (own, rows_of_warp): (usize, usize),
    epilogue: &mut Epilogue<f32>,
    (first_row, first_col): (usize, usize),
) {
    let (row_of_lane, col) = four_of_lane();
    let (beta, activation) = (epilogue.beta(), epilogue.activation());
    let at = |row: usize| ((first_row + row) as u32, (first_col + col) as u32);
    let old_of = |epilogue: &Epilogue<f32>, row: usize| {
        if beta != 0.0 { epilogue.load_four(at(row)) } else { [0.0; FOUR] }
    };
    // The compiler does not know their number, and so does not unroll the loop.
    let rows = thread::opaque(rows_of_warp);
    let (mut row, mut old) = (row_of_lane, old_of(epilogue, row_of_lane));
    while row < rows {
        // The last step loads its own row again.
        let next = old_of(epilogue, if row + 2 < rows { row + 2 } else { row });
        let mut four: [f32; FOUR] = staged.load128(own + place(row, col));
        if beta != 0.0 {
            for i in 0..FOUR {
                four[i] = fma(beta, old[i], four[i]);
            }
        }
        four = match activation {
            IDENTITY => four,
            RELU => four.map(f32::relu),
            smooth => f32::activated(smooth, four),
        };
        epilogue.store_four(at(row), four);
        (row, old) = (row + 2, next);
    }
}

/// Stores a warp's completed rows if the elements of a row are contiguous.
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
            let valid = [row < rows && col[0] < cols, row < rows && col[1] < cols];
            epilogue.c().store_if(to + col[0], [two[i][0]], valid[0]);
            epilogue.c().store_if(to + col[1], [two[i][1]], valid[1]);
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
