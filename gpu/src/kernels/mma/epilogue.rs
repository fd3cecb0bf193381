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
    collective::{epilogue::Epilogue, real::Real, stored::Stored, vector::FOUR},
    device::{
        mma::{Accumulators, Sum},
        *,
    },
    tile::SIDE,
};

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

/// Stores a warp's `16 M x 16 N` sums. The first is (row, col).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<C: Stored<Real: Sum>, const M: usize, const N: usize>(
    sums: &Accumulators<M, N, C::Real>,
    warp: usize,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    const { assert!(M == 2 || M == 4, "registers cannot be indexed by a computed number") };
    // In place of the stages.
    let mut staged = dynamic_shared![C::Real];
    let pitch = pitch(N);
    let lane = thread::lane_id() as usize;
    let base = warp * STAGED * pitch;
    for part in 0..M / 2 {
        let mut put = |row: u32, col: u32, pair: [C::Real; 2]| {
            let at = base + row as usize * pitch + place::<C::Real>(N, col as usize);
            Real::store_pair(&mut staged, at, pair);
        };
        let mut put_below =
            |row: u32, col: u32, pair: [C::Real; 2]| put(row + SIDE as u32, col, pair);
        if part == 0 {
            sums.for_each_pair_of::<1>(&mut put_below);
            sums.for_each_pair_of::<0>(&mut put);
        } else {
            sums.for_each_pair_of::<3>(&mut put_below);
            sums.for_each_pair_of::<2>(&mut put);
        }
        warp::sync_warp(warp::ALL);
        finish::<C, N>(&staged, (base, lane), epilogue, (first_row + part * STAGED, first_col));
        warp::sync_warp(warp::ALL);
    }
}

/// Stores a warp's staged elements to any C. If C [`is_in_fours`](Epilogue::is_in_fours), a lane
/// has four neighbours of a row. Otherwise neighbouring lanes have neighbouring elements.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn finish<C: Stored, const N: usize>(
    staged: &DynamicShared<C::Real>,
    (base, lane): (usize, usize),
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    const { assert!(N == 2 || N == 4, "one element of a row a lane, or two") };
    let pitch = pitch(N);
    // The rows that C has. The compiler does not know their number, and so does not unroll the
    // loops, which would take more registers than four parts of sums leave.
    let rows = epilogue.left((first_row, first_col)).0.min(STAGED);
    let mut row = 0;
    if epilogue.is_in_fours() {
        let across = const { SIDE * N / FOUR };
        let step = 32 / across;
        let (of_lane, col) = (lane / across, lane % across * FOUR);
        let columns = epilogue.columns(core::array::from_fn(|i| (first_col + col + i) as u32));
        while row < rows {
            let from = row + of_lane;
            let sums: [[C::Real; FOUR]; TOGETHER] = core::array::from_fn(|i| {
                let at = base + (from + i * step) * pitch + place::<C::Real>(N, col);
                Real::load_four(staged, [at, at + const { to_second::<C::Real>(N) }])
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
        match N {
            2 => epilogue.finish_elements::<1>(&columns, (first_row + row) as u32, sums),
            _ => epilogue.finish_elements::<2>(&columns, (first_row + row) as u32, sums),
        }
        row += FOUR / across;
    }
}
