//! Numbers that are the same in all lanes of a warp, made anew.

use super::device::*;
use crate::params::GemmParams;

/// A thread's warpgroup, and its warp's number in it: through a shuffle, so that the compiler sees that they are the same for all
/// lanes, and makes them again where they are asked for again. All lanes of a warp come here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
pub fn warp_place() -> (usize, usize) {
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    (warp / 4, warp % 4)
}

/// The same problem, for what comes behind the main loop: what follows from its numbers would else be computed before it, and
/// take registers there. All lanes of a warp come here.
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
        wide: long(problem.wide),
        alpha: double(problem.alpha),
        beta: double(problem.beta),
        a: problem.a.map(long),
        b: problem.b.map(long),
        c: problem.c.map(long),
        batch: problem.batch.map(long),
    }
}
