//! The epilogue: a warp's sums are staged in shared memory, 16 rows at a time, and stored to C from
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

/// Elements that are staged at a time: 16 rows for each warp.
pub const fn staged_len(threads: usize, n: usize) -> usize {
    threads / 32 * SIDE * pitch(n)
}

/// Stores a warp's `16 M x 16 N` sums. The first is (row, col).
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn store<C: Stored<Real = f32>, const M: usize, const N: usize, const THREADS: usize>(
    sums: &Accumulators<M, N>,
    warp: usize,
    epilogue: &mut Epilogue<C>,
    (first_row, first_col): (usize, usize),
) {
    const { assert!(M <= 4, "registers cannot be indexed by a computed number") };
    // In place of the stages.
    let mut staged = dynamic_shared![f32];
    let pitch = pitch(N);
    let lane = thread::lane_id() as usize;
    let base = warp * SIDE * pitch;
    let whole = epilogue.is_scaled_tile((first_row, first_col), (SIDE * M, SIDE * N));
    let wide = epilogue.is_wide();
    for part in 0..M {
        let mut put = |row: u32, col: u32, pair: [f32; 2]| {
            staged.store64(base + row as usize * pitch + col as usize, pair);
        };
        match part {
            0 => sums.for_each_pair_of::<0>(&mut put),
            1 => sums.for_each_pair_of::<1>(&mut put),
            2 => sums.for_each_pair_of::<2>(&mut put),
            _ => sums.for_each_pair_of::<3>(&mut put),
        }
        warp::sync_warp(warp::ALL);
        // Unrolled, it would take more registers than four parts of sums leave.
        let to_next = if M < 4 { 32 } else { thread::block_dim_x() as usize / (THREADS / 32) };
        let mut number = lane;
        while number < SIDE * SIDE * N / FOUR {
            let across = SIDE * N / FOUR;
            let (row, col) = (number / across, number % across * FOUR);
            let four = staged.load128(base + row * pitch + col);
            let at = (first_row + part * SIDE + row, first_col + col);
            match (whole, wide) {
                (true, true) => epilogue.store::<true>(at, four),
                (true, false) => epilogue.store::<false>(at, four),
                _ => epilogue.finish::<false>(at, four),
            }
            number += to_next;
        }
        warp::sync_warp(warp::ALL);
    }
}
