//! Numbers that are the same in all lanes of a warp, recomputed where they are needed so that they
//! take no registers meanwhile.

use super::device::*;
use crate::params::GemmParams;

/// The thread's warpgroup, and the number of its warp in it. Through a shuffle, so that the
/// compiler knows that they are the same for all lanes, and recomputes them each time. All lanes of
/// a warp call this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn warp_place() -> (usize, usize) {
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    (warp / 4, warp % 4)
}

/// The same parameters, for code after the main loop. Otherwise the compiler computes what follows
/// from them before the loop, and keeps it in registers. All lanes of a warp call this.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn reload(problem: &GemmParams) -> GemmParams {
    let word = |number: u32| warp::shuffle(warp::ALL, number, 0);
    let long =
        |number: u64| u64::from(word(number as u32)) | u64::from(word((number >> 32) as u32)) << 32;
    let double = |number: f64| f64::from_bits(long(number.to_bits()));
    GemmParams {
        m: word(problem.m),
        n: word(problem.n),
        k: word(problem.k),
        bias: word(problem.bias),
        activation: word(problem.activation),
        products: word(problem.products),
        wide_cols: word(problem.wide_cols),
        all_k: word(problem.all_k),
        alpha: double(problem.alpha),
        beta: double(problem.beta),
        a: problem.a.map(long),
        b: problem.b.map(long),
        c: problem.c.map(long),
        batch: problem.batch.map(long),
    }
}
