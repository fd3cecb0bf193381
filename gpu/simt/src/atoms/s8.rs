//! `mma.m16n8k32` of signed 8-bit integers, with sums of i32: 8.0 and later.
//!
//! A lane has sixteen elements of a fragment, in four registers of four neighbours along k (PTX
//! ISA, "Matrix Fragments for mma.m16n8k32"):
//!
//! ```text
//!   register         0                1                2                 3
//!   outer            lane / 4         lane / 4 + 8     lane / 4          lane / 4 + 8
//!   first k          lane % 4 * 4     lane % 4 * 4     lane % 4 * 4 + 16 lane % 4 * 4 + 16
//! ```
//!
//! Products are exact. A sum that leaves the range of i32 wraps around (without `.satfinite`).

#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use super::lanes;
use super::{Atom, M16n8k32};

impl Atom for M16n8k32<i8> {
    type Factor = i8;
    type Sum = i32;
    type Registers = [u32; 4];

    const STEP: usize = 32;

    #[cfg(target_arch = "nvptx64")]
    super::of_four_registers! { i32, "m16n8k32.row.col.s32.s8.s8.s32" }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn words(registers: &[u32; 4]) -> impl Iterator<Item = u32> {
        registers.iter().copied()
    }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn model<const M: usize, const N: usize>(
        lane: usize,
        words: &[&[u32]; 32],
        sums: &mut [[[i32; 8]; N]; M],
    ) {
        // The words of an outer element: four lanes have two each.
        let along_k = |fragment: usize, outer: usize| -> [u32; 8] {
            std::array::from_fn(|word| {
                words[outer % 8 * 4 + word % 4][fragment * 4 + word / 4 * 2 + outer / 8]
            })
        };
        let columns: [[[u32; 8]; 4]; N] = std::array::from_fn(|j| {
            lanes::COLUMNS.map(|e| along_k(M + j, lanes::accumulator(lane, e).1))
        });
        for (i, sums) in sums.iter_mut().enumerate() {
            let rows = [0, 2].map(|e| along_k(i, lanes::accumulator(lane, e).0));
            for (sums, columns) in sums.iter_mut().zip(&columns) {
                for (e, column) in lanes::COLUMNS.into_iter().zip(columns) {
                    for (below, row) in rows.iter().enumerate() {
                        let products = row.iter().zip(column).map(|(&a, &b)| dot(a, b));
                        let sum = &mut sums[e + 2 * below];
                        *sum = products.fold(*sum, i32::wrapping_add);
                    }
                }
            }
        }
    }
}

/// Four products of signed bytes: no more than 2^16 in all.
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
fn dot(a: u32, b: u32) -> i32 {
    let products = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    products.map(|(a, b)| i32::from(a as i8) * i32::from(b as i8)).sum()
}
