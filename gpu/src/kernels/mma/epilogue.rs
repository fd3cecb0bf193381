//! The epilogue: a warp's sums are staged in shared memory, 32 rows at a time, and stored to C from
//! there.
//!
//! The tensor cores leave a lane two neighbours of a row, and eight columns further the next two.
//! From shared memory a lane reads four neighbours, and some lanes together a whole row of the
//! warp.
//!
//! Staged rows have eight elements of padding. So the pairs that half a warp stages, of four rows
//! and eight columns, are in 32 banks. Of f64 a quarter of a warp stages two rows at once. A warp's
//! rows are its own, so it waits for no other warp.

use super::{
    collective::{
        epilogue::Epilogue,
        real::{OfSum, Real},
        scales::Scaled,
        stored::Stored,
        vector::FOUR,
    },
    device::{
        mma::{Accumulators, Sum},
        *,
    },
    tile::SIDE,
};
use crate::params::GemmParams;

/// Elements of a staged row of `16 N` elements.
const fn pitch(n: usize) -> usize {
    SIDE * n + 8
}

/// From the first to the second two of four neighbours in a staged row. Of f64 a lane reads each
/// two of its four by an access of sixteen bytes. So the first two of all lanes are side by side,
/// and behind them the second two. With four elements in between, a quarter of a warp stages its
/// pairs of two rows in 32 banks, too.
const fn to_second<R>(n: usize) -> usize {
    if size_of::<R>() == 8 { SIDE * n / 2 + 4 } else { 2 }
}

/// The place of an element in a staged row.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn place<R>(n: usize, col: usize) -> usize {
    if size_of::<R>() == 8 {
        col / FOUR * 2 + col / 2 % 2 * to_second::<R>(n) + col % 2
    } else {
        col
    }
}

/// Rows of a warp that are staged at a time: two parts, which are in the code one after the other.
const STAGED: usize = 2 * SIDE;

/// Elements that are staged at a time, of all warps.
pub const fn staged_len(threads: usize, n: usize) -> usize {
    threads / 32 * STAGED * pitch(n)
}

/// Fours of elements that a lane stores at once.
const TOGETHER: usize = 4;

/// Two neighbours in a row of sixteen by sixteen sums: row, column, sums.
pub type Pair<R> = (u32, u32, [R; 2]);

/// A lane's pairs of sixteen by sixteen sums, where the instruction has them.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn pairs<R: Copy>(sums: &[R; 8]) -> [Pair<R>; 4] {
    let (row, col) = (thread::lane_id() / 4, thread::lane_id() % 4 * 2);
    [
        (row, col, [sums[0], sums[1]]),
        (row + 8, col, [sums[2], sums[3]]),
        (row, col + 8, [sums[4], sums[5]]),
        (row + 8, col + 8, [sums[6], sums[7]]),
    ]
}

/// Stores a warp's `16 M x 16 N` sums, multiplied by their `scales`. The first is (row, col).
/// `pairs` says where they are.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<S: Sum, C: Stored<Real: OfSum<S>>, const M: usize, const N: usize>(
    sums: &Accumulators<M, N, S>,
    warp: usize,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
    pairs: impl Fn(&[S; 8]) -> [Pair<S>; 4],
    scales: Option<(&GemmParams, &Scaled)>,
) {
    const { assert!(M == 1 || M == 2 || M == 4, "registers cannot be indexed by a computed number") };
    // In place of the stages.
    let mut staged = dynamic_shared![C::Real];
    let pitch = pitch(N);
    let lane = thread::lane_id() as usize;
    let base = warp * STAGED * pitch;
    for part in 0..M.div_ceil(2) {
        let mut put = |first_row: usize, j: usize, sums: &[S; 8]| {
            for (row, col, pair) in pairs(sums) {
                let (row, col) = (first_row + row as usize, j * SIDE + col as usize);
                let at = base + row * pitch + place::<C::Real>(N, col);
                Real::store_pair(&mut staged, at, C::Real::of_sums(pair));
            }
        };
        if part == 0 {
            sums.for_each_sixteen_of::<1>(|j, sums| put(SIDE, j, sums));
            sums.for_each_sixteen_of::<0>(|j, sums| put(0, j, sums));
        } else {
            sums.for_each_sixteen_of::<3>(|j, sums| put(SIDE, j, sums));
            sums.for_each_sixteen_of::<2>(|j, sums| put(0, j, sums));
        }
        warp::sync_warp(warp::ALL);
        let first = (first_row + part * STAGED, first_col);
        finish::<C, M, N>(&staged, (base, lane), epilogue, first, scales);
        warp::sync_warp(warp::ALL);
    }
}

/// Stores a warp's staged elements to any C. If C [`is_in_fours`](Epilogue::is_in_fours), a lane
/// has four neighbours of a row. Otherwise neighbouring lanes have neighbouring elements.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn finish<C: Stored, const M: usize, const N: usize>(
    staged: &DynamicShared<C::Real>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
    scales: Option<(&GemmParams, &Scaled)>,
) {
    const { assert!(N == 2 || N == 4, "one element of a row a lane, or two") };
    let pitch = pitch(N);
    // The rows that C has. The compiler does not know their number, and so does not unroll the
    // loops, which would take more registers than four parts of sums leave.
    let staged_rows = const { if M == 1 { SIDE } else { STAGED } };
    let rows = epilogue.left((first_row, first_col)).0.min(staged_rows);
    let of_four = |cols: [usize; FOUR]| match scales {
        Some((problem, scales)) => scales.of_four(problem, cols.map(|col| first_col + col)),
        None => [C::Real::ONE; FOUR],
    };
    let scaled = |rows: [usize; FOUR], of_cols: [C::Real; FOUR], sums: [C::Real; FOUR]| match scales
    {
        Some((problem, scales)) => {
            scales.finish_four(problem, rows.map(|row| first_row + row), of_cols, sums)
        }
        None => sums,
    };
    let mut row = 0;
    if epilogue.is_in_fours() {
        let across = const { SIDE * N / FOUR };
        let step = 32 / across;
        let (of_lane, col) = (lane / across, lane % across * FOUR);
        let columns = epilogue.columns(core::array::from_fn(|i| (first_col + col + i) as u32));
        let of_cols = of_four(core::array::from_fn(|i| col + i));
        while row < rows {
            let from = row + of_lane;
            let sums: [[C::Real; FOUR]; TOGETHER] = core::array::from_fn(|i| {
                let at = base + (from + i * step) * pitch + place::<C::Real>(N, col);
                let sums = Real::load_four(staged, [at, at + const { to_second::<C::Real>(N) }]);
                scaled([from + i * step; FOUR], of_cols, sums)
            });
            epilogue.finish_fours(&columns, ((first_row + from) as u32, step as u32), sums);
            row += TOGETHER * step;
        }
        return;
    }
    let across = const { SIDE * N / 32 };
    let cols: [usize; FOUR] = core::array::from_fn(|i| lane + i % across * 32);
    while row < rows {
        let columns = epilogue.columns(cols.map(|col| (first_col + col) as u32));
        let sums: [C::Real; FOUR] = core::array::from_fn(|i| {
            staged[base + (row + i / across) * pitch + place::<C::Real>(N, cols[i])]
        });
        let rows = core::array::from_fn(|i| row + i / across);
        let sums = scaled(rows, of_four(cols), sums);
        match N {
            2 => epilogue.finish_elements::<1>(&columns, (first_row + row) as u32, sums),
            _ => epilogue.finish_elements::<2>(&columns, (first_row + row) as u32, sums),
        }
        row += FOUR / across;
    }
}
