//! Votes and reductions of a block and of a warp.

use super::device::*;

/// The block's votes: how many elements are even; then the next round, whose votes are others.
#[kernel(block = (64), barriers = 3, len(x = n, y = n))]
pub fn votes_of_the_block(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    let number = x[i % n as usize] as u32;
    let mut sum = 0;
    sum += thread::sync_threads_count(number.is_multiple_of(2));
    sum += 100 * u32::from(thread::sync_threads_and(number < 19));
    sum += 1000 * u32::from(thread::sync_threads_or(number == 19));
    if i < n as usize {
        y[i] = sum as f32;
    }
}

/// A warp's reductions, and the lanes that have the same value.
#[kernel(block = (64), len(x = n, y = n))]
pub fn reductions_of_the_warp(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    let number = x[i % n as usize] as u32;
    let same = warp::match_any(warp::ALL, number % 4).count_ones();
    let sum = warp::reduce_add(warp::ALL, number) + 2 * warp::reduce_min(warp::ALL, number + 3);
    let bits = warp::reduce_or(warp::ALL, number) ^ warp::reduce_and(warp::ALL, number | 32);
    let odd = warp::reduce_xor(warp::ALL, number) + warp::reduce_max(warp::ALL, number);
    if i < n as usize {
        y[i] = (same + sum + bits + odd) as f32;
    }
}

/// A sum by one addition of the lanes that are here together, whichever these are.
#[kernel(block = (64), len(x = n, y = n))]
pub fn added_by_those_who_are_here(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if i < n as usize && x[i] > 3.0 {
        let here = warp::active_mask();
        if here.trailing_zeros() == thread::thread_idx_x() % 32 {
            y.atomic_add(0, here.count_ones() as f32);
        }
    }
}

/// The threads of one warp vote, and the others come to the barrier without a vote.
#[kernel(block = (64), barriers = 2, len(x = n, y = n))]
pub fn one_warp_votes(n: u32, x: In<f32>, mut y: Out<f32>) {
    let t = thread::thread_idx_x();
    let i = (thread::block_idx_x() * 64 + t) as usize;
    let mut count = 0;
    if t < 32 {
        count = thread::sync_threads_count(x[i] > 3.0);
    } else {
        thread::sync_threads();
    }
    y[i] = x[i] + count as f32;
}
