//! The epilogue: a warp's sums are staged in shared memory, 32 rows at a time, and stored to C from
//! there.
//!
//! The tensor cores leave a lane two neighbours of a row, and eight columns further the next two.
//! From shared memory a lane reads four neighbours, and some lanes together a whole row of the
//! warp.
//!
//! Staged rows have eight words of padding. So the pairs that half a warp stages, of four rows and
//! eight columns, are in 32 banks. A warp's rows are its own, so it waits for no other warp.

use super::{
    collective::{epilogue::Epilogue, stored::Stored, vector::FOUR},
    device::{mma::Accumulators, *},
    tile::SIDE,
};

/// Elements of a staged row of `16 N` elements.
const fn pitch(n: usize) -> usize {
    SIDE * n + 8
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
pub fn store<C: Stored<Real = f32>, const M: usize, const N: usize>(
    sums: &Accumulators<M, N>,
    warp: usize,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    const { assert!(M == 2 || M == 4, "registers cannot be indexed by a computed number") };
    // In place of the stages.
    let mut staged = dynamic_shared![f32];
    let pitch = pitch(N);
    let lane = thread::lane_id() as usize;
    let base = warp * STAGED * pitch;
    for part in 0..M / 2 {
        let mut put = |row: u32, col: u32, pair: [f32; 2]| {
            staged.store64(base + row as usize * pitch + col as usize, pair);
        };
        let mut put_below = |row: u32, col: u32, pair: [f32; 2]| put(row + SIDE as u32, col, pair);
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
fn finish<C: Stored<Real = f32>, const N: usize>(
    staged: &DynamicShared<f32>,
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
            let sums: [[f32; FOUR]; TOGETHER] =
                core::array::from_fn(|i| staged.load128(base + (from + i * step) * pitch + col));
            epilogue.finish_fours(&columns, ((first_row + from) as u32, step as u32), sums);
            row += TOGETHER * step;
        }
        return;
    }
    let across = const { SIDE * N / 32 };
    let cols: [usize; FOUR] = core::array::from_fn(|i| lane + i % across * 32);
    while row < rows {
        let columns = epilogue.columns(cols.map(|col| (first_col + col) as u32));
        let sums: [f32; FOUR] =
            core::array::from_fn(|i| staged[base + (row + i / across) * pitch + cols[i]]);
        match N {
            2 => epilogue.finish_elements::<1>(&columns, (first_row + row) as u32, sums),
            _ => epilogue.finish_elements::<2>(&columns, (first_row + row) as u32, sums),
        }
        row += FOUR / across;
    }
}
