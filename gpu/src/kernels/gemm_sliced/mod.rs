//! The general product of f32 on Hopper's tensor cores, as accurate as f32: factors that are cut into slices of bf16.
//!
//! A number of 24 bits is the sum of three of 8 bits, each rounded to the nearest of what is left:
//!
//! ```text
//!   x = x0 + x1 + x2      |x1| <= 2^-8 |x|      |x2| <= 2^-17 |x|
//!
//!   x y = x0 y2 + x1 y1 + x2 y0     about 2^-16 of it: the first band
//!       + x0 y1 + x1 y0             about 2^-8: the second
//!       + x0 y0                     the third
//!       (+ x1 y2 + x2 y1 + x2 y2    at most 2^-24 |x y| together: left out)
//! ```
//!
//! Six products of bf16, each exact, in place of one of f32, and tensor cores do sixteen times as many. [`slices`] cuts; here
//! is what multiplies.
//!
//! # Why it is accurate
//! The tensor cores cut off what is beyond 25 bits below the greatest of what they add, and what is beyond an f32. That is no
//! rounding: all errors have one sign, and k of them are k times as much. Against this:
//!
//! * **Sums are short**: 64 steps of k, in accumulators that begin at zero. Then they are added to an f32 in another register,
//!   rounded to the nearest (*promotion*; DeepGEMM does so for fp8).
//! * **The small products come first**, so that of the 24 instructions of 64 steps all but the last four cut off where sums
//!   are small.
//!
//! What comes out is within `(k / 64 + 45) 2^-24` of the exact sum, relative to the sum of the terms' absolute values. (An
//! f32 that k fused multiply-adds go into has k in its place.) Of this 1.01 are the products that are left out; k / 64 the
//! promotion; the rest the cutting off: of four instructions 17 addends each by 2^-25 of the greatest, and the sum by 2^-23.
//! What the bands before cut off is 2^-7 of that.
//!
//! What slices cannot hold is told by the result, and computed again ([`exceptions`]).
//!
//! Half as many products are those of two slices of f16, which are scaled ([`f16x3`]).
//!
//! # How it goes
//! Tiles and the walk are those of [`gemm_wgmma`](super::gemm_wgmma), and there is one warp that copies ([`roles`]). Other is:
//!
//! ```text
//!   kernel                       blocks   warpgroups   a warpgroup's part   the ring: one slice of A and of B, 64 steps of k
//!   wgmma_bf16x6_256x192x64_c2     2        2 + 1       64 x 192 or 128       5 x 40 KiB
//!   wgmma_bf16x6_256x128x64_c2     2        2 + 1          64 x 128           6 x 32 KiB
//!   wgmma_bf16x6_64x128x64      1        1 + 1          64 x 128           8 x 24 KiB
//! ```
//!
//! * **A stage of the ring is one slice** of A and of B. In the order 2, 1, 0 they are needed no longer, each after its band:
//!   the next but one are copied while the others are still multiplied.
//! * **Two sets of 64 x 128 sums** are 128 registers a thread, and of 64 x 192 columns 192 of 232. A tile need not be larger: what is
//!   read is multiplied twice, since a band uses each slice with each. Why wide tiles are worth the trouble, and how they come out
//!   even: [`f16x3`], [`widths`].
//! * **Two warpgroups multiply in turn** ([`Turns`]): while one waits and promotes, the tensor cores work for the other. Where the
//!   ring has less than two times three stages, the first band is a turn of its own, and waited for: so both have read the slices 2
//!   after half of the time, and what takes their place has the other half to come.
//! * **Two blocks of a cluster** have tiles one below the other, and each copies half of their columns of B to both: of 128 columns a
//!   block draws 24 bytes a cycle from the second-level cache, alone 32.
//! * **Clusters keep step** ([`grid::Pace`]): else they drift apart in a long k, and each reads from memory what its neighbours have
//!   read before. (Those of [`f16x3`] do not: there it made no difference.)

pub mod board;
mod entries;
pub mod exceptions;
pub mod f16x3;
pub mod halves;
pub mod output;
pub mod range;
pub mod roles;
pub mod slices;
pub mod widths;

pub use entries::*;

use self::{
    exceptions::{Filled, Relied},
    range::Range,
    roles::{Given, Kind, Patches, Ring},
    widths::Tiles,
};
use super::{
    device::{warpgroup::*, *},
    gemm_wgmma::{DEPTH, operand::GROUP, turns::Turns},
};
use crate::problem::Problem;

/// Slices of a number: of bf16 three.
pub const SLICES: usize = 3;

/// A and B themselves, for what is computed again; and where that is counted.
#[derive(Clone, Copy)]
pub struct Originals<'a> {
    a: &'a In<f32>,
    b: &'a In<f32>,
    board: &'a Out<u32>,
}

/// A thread's warpgroup, and its warp's number in it: through a shuffle, so that the compiler sees that they are the same for all
/// lanes, and makes them again where they are asked for again. All lanes of a warp come here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn place() -> (usize, usize) {
    let warp = warp::shuffle(warp::ALL, thread::thread_idx_x() / 32, 0) as usize;
    (warp / 4, warp % 4)
}

/// The same problem, for what comes behind the main loop: what follows from its numbers would else be computed before it, and
/// take registers there. All lanes of a warp come here.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
fn anew(problem: &Problem) -> Problem {
    let word = |number: u32| warp::shuffle(warp::ALL, number, 0);
    let long =
        |number: u64| u64::from(word(number as u32)) | u64::from(word((number >> 32) as u32)) << 32;
    let double = |number: f64| f64::from_bits(long(number.to_bits()));
    Problem {
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

/// Slices of bf16, which hold an f32.
pub enum Bf16x6 {}

impl Kind for Bf16x6 {
    type Element = Bf16;

    const SLICES: usize = SLICES;
    const KEEPS_STEP: bool = true;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn note<A: Layout, B: Layout, const COLS: usize>(
        problem: &Problem,
        ranges: Patches<Self>,
        place: (u32, u32, u32),
    ) -> [u32; 2] {
        [Range::certain::<A, B, GROUP, COLS>(problem, ranges, place).to_bits(), 0]
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn compute<
        A: Layout,
        B: Layout,
        S: Scope,
        W: Tiles,
        const STAGES: usize,
        const GROUPS: usize,
        const TILE_ROWS: usize,
        const COLS: usize,
        const MOST: usize,
    >(
        given: &mut Given<Self, S, STAGES, GROUPS, TILE_ROWS>,
        turns: &Turns,
        ring: &mut Ring<STAGES, S>,
    ) {
        // Is the first band a turn of its own?
        let in_two = const { STAGES < 2 * SLICES };
        let mut walk = W::new(&anew(given.problem));
        loop {
            let (problem, (group, warp)) = (&anew(given.problem), place());
            if walk.are_done(problem) {
                break;
            }
            // (Of this tile: were they the kernel's, they would take registers while the tile is written.)
            let mut sums = Accumulators::<COLS>::zeroed();
            let mut master = Fragment::<COLS>::zeroed();
            for _ in 0..problem.k.div_ceil(DEPTH as u32) {
                let mut slice = || ring.slice::<Bf16, A, B, TILE_ROWS, MOST>(group);
                let ((a2, b2), (a1, b1), (a0, b0)) = (slice(), slice(), slice());

                // After its band nobody reads a slice any more.
                turns.begin(group);
                sums.multiply(a0, b2);
                sums.multiply_add(a1, b1);
                sums.multiply_add(a2, b0);
                commit();
                if in_two {
                    turns.end(group);
                    wait::<0>();
                    ring.release(warp);
                    turns.begin(group);
                }
                sums.multiply_add(a0, b1);
                sums.multiply_add(a1, b0);
                commit();
                sums.multiply_add(a0, b0);
                commit();
                turns.end(group);

                if !in_two {
                    wait::<2>();
                    ring.release(warp);
                }
                wait::<1>();
                ring.release(warp);
                let sums = sums.wait::<0>();
                ring.release(warp);
                master.add(sums);
            }
            let (problem, (group, _)) = (&anew(given.problem), place());
            let (product, row, col) = walk.place(problem);
            walk.advance(problem);
            let place = (product, row + (group * GROUP) as u32, col);
            let [least, _] = given.notes.read(group, &mut ring.notes).map(f32::from_bits);
            let mut relied = Relied::ALL;
            master.for_each(|_, _, sum| relied.include(sum, sum.abs()));
            let are_certain = relied.on(least);
            if are_certain && output::is_plain(given, product) {
                output::store_plain(given, place, &master);
                continue;
            }
            if !are_certain {
                master.map(|sum| exceptions::doubted(sum, sum.abs() >= least));
            }
            output::store(given, place, &mut master, (are_certain, Filled::ALL));
        }
    }
}
