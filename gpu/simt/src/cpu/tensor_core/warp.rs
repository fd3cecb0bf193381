//! What `mma.sync` computes: a warp multiplies 16 x 16 elements of A by 16 x 8 of B, all in
//! registers.
//!
//! Both operands are given as *fragments* of 16 x 16 elements, an operand's outer side (rows of A,
//! columns of B) by k, in four registers of two elements each; of tf32 of 16 x 8, of one element
//! each. (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", and "for
//! mma.m16n8k8".) The second operand of an instruction is half of a fragment: the registers of
//! eight columns.
//!
//! The sum is [`truncating`], as `wgmma` forms it: so Hopper's `mma.sync` does too, by MMA-Sim.
//! Ampere's and Ada's add 8 products at a time, of tf32 4, of 24 bits after the point, so that the
//! last bits are others there.

// Operands, sums and columns are indexed together.
#![allow(clippy::needless_range_loop)]

use super::{
    format::Format,
    operand::{Block, LANES},
    truncating,
};
use crate::atoms::accumulator;

/// The sums of 16 x 16 elements that a lane has: of each eight columns two neighbours, and those
/// eight rows below.
pub type Sums = [f32; 8];

/// Outer element and k-step of element `i` of what lane `lane` has of a fragment, in registers of
/// so many elements.
const fn operand(in_register: usize, lane: usize, i: usize) -> (usize, usize) {
    let register = i / in_register;
    let first = (lane % 4 + register / 2 * 4) * in_register;
    (lane / 4 + register % 2 * 8, first + i % in_register)
}

/// Words of a fragment as `f32`, in the order of the registers: what the lanes exchange.
pub fn decoded(format: Format, words: [u32; 4]) -> impl Iterator<Item = u32> {
    let (in_word, bits) = (4 / format.bytes() as usize, 8 * format.bytes() as usize);
    let parts = move |word: u32| (0..in_word).map(move |i| word >> (i * bits));
    // A 16-bit number is in the lower half.
    words.into_iter().flat_map(parts).map(move |bits| format.decode(bits).to_bits())
}

/// Adds the products of fragments of A and of B to a lane's sums: the `i`th of A by the `j`th of B
/// to `sums[i][j]`. `words` gives what a lane has, [`decoded`]: its elements of all fragments of A,
/// and then of B. `STEPS` k-steps of the format are 32 bytes.
pub fn multiply_add<const M: usize, const N: usize, const STEPS: usize>(
    format: Format,
    lane: usize,
    words: &[&[u32]; 32],
    sums: &mut [[Sums; N]; M],
) {
    let elements = &words.map(bytemuck::cast_slice::<u32, f32>);
    // Both versions give the same bits.
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: this processor has the features.
        return unsafe { tuned::<M, N, STEPS>(format, lane, elements, sums) };
    }
    add::<M, N, STEPS>(format, lane, elements, sums);
}

/// # Safety
/// 1. The processor has these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn tuned<const M: usize, const N: usize, const STEPS: usize>(
    format: Format,
    lane: usize,
    elements: &[&[f32]; 32],
    sums: &mut [[Sums; N]; M],
) {
    add::<M, N, STEPS>(format, lane, elements, sums);
}

#[inline(always)]
fn add<const M: usize, const N: usize, const STEPS: usize>(
    format: Format,
    lane: usize,
    elements: &[&[f32]; 32],
    sums: &mut [[Sums; N]; M],
) {
    // All k-steps of an outer element of a fragment: four lanes have them.
    let along_k = |fragment: usize, outer: usize| {
        let (mut steps, each) = ([0.0; STEPS], STEPS / 2);
        let place = |lane: usize, i: usize| operand(each / 4, lane, i);
        for of_outer in 0..4 {
            let from = outer % 8 * 4 + of_outer;
            for i in (0..each).filter(|&i| place(from, i).0 == outer) {
                steps[place(from, i).1] = elements[from][fragment * each + i];
            }
        }
        steps
    };
    // A lane has four columns of each fragment of B, and eight are computed with at once.
    for pair in 0..N.div_ceil(2) {
        let mut b: Block<STEPS> = [[0.0; LANES]; STEPS];
        for column in 0..LANES {
            let j = 2 * pair + column / 4;
            if j < N {
                let (_, outer) = accumulator(lane, column % 4 / 2 * 4 + column % 2);
                for (k, value) in along_k(M + j, outer).into_iter().enumerate() {
                    b[k][column] = value;
                }
            }
        }
        for i in 0..M {
            let (row, _) = accumulator(lane, 0);
            let rows = [along_k(i, row), along_k(i, row + 8)];
            let mut d = [[0.0; LANES]; 2];
            // Column and row of the two, of an element of the sums.
            let place = |j: usize, e: usize| (j % 2 * 4 + e / 4 * 2 + e % 2, e / 2 % 2);
            for j in (2 * pair..N).take(2) {
                for e in 0..8 {
                    let (column, row) = place(j, e);
                    d[row][column] = sums[i][j][e];
                }
            }
            let d = truncating::add(format, [&rows[0], &rows[1]], &b, d);
            for j in (2 * pair..N).take(2) {
                for e in 0..8 {
                    let (column, row) = place(j, e);
                    sums[i][j][e] = d[row][column];
                }
            }
        }
    }
}
