//! `mma` of f64: `m8n8k4` from 8.0 on; `m16n8k4`, `m16n8k8` and `m16n8k16` from 9.0 on.
//!
//! A lane has of a fragment, of as many k-steps as the instruction has (PTX ISA, "Matrix Fragments
//! for mma.m8n8k4 with .f64 floating point type", and "for mma.m16n8k4, mma.m16n8k8, and
//! mma.m16n8k16 with .f64 floating point type"):
//!
//! ```text
//!   element          0                1                2                3                ..
//!   outer, k         lane / 4,        lane / 4 + 8,    lane / 4,        lane / 4 + 8,
//!                    lane % 4         lane % 4         lane % 4 + 4     lane % 4 + 4
//! ```
//!
//! **How it adds.** Each sum is a chain of fused multiply-adds, along k from the first step on, and
//! each is rounded to the nearest. So all four instructions give the same bits, and so do loops of
//! `fma` on CUDA cores. That is what Xie, Wang, Yang, Yang found in A100s and H100s (MMA-Sim, arXiv
//! 2511.10909, `github.com/microsoft/MMA-Sim`: a loop over k of `fma`), and nothing that NVIDIA
//! promises. Not measured here: `tests/simt` compares the bits where there is a GPU.

#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use super::lanes;
use super::{Atom, M8n8k4, M16n8k4, M16n8k8, M16n8k16};

macro_rules! of_f64 {
    ($($atom:ident, $steps:literal, [f64; $len:literal], $instructions:literal, $multiply_add:item)*) => {$(
        impl Atom for $atom<f64> {
            type Factor = f64;
            type Sum = f64;
            type Registers = [f64; $len];

            const STEP: usize = $steps;
            const INSTRUCTIONS: usize = $instructions;

            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            $multiply_add

            #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
            fn words(registers: &[f64; $len]) -> impl Iterator<Item = u32> {
                registers.iter().map(|element| element.to_bits()).flat_map(|bits| [bits as u32, (bits >> 32) as u32])
            }

            #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
            fn model<const M: usize, const N: usize>(
                lane: usize,
                words: &[&[u32]; 32],
                sums: &mut [[[f64; 8]; N]; M],
            ) {
                chain::<M, N, $steps>(lane, words, sums);
            }
        }
    )*};
}

of_f64! {
    M8n8k4, 4, [f64; 2], 4,
    fn multiply_add(sums: &mut [f64; 8], a: [f64; 2], b: [f64; 2]) {
        for right in 0..2 {
            for below in 0..2 {
                // Two sums, of eight rows.
                let first = 4 * right + 2 * below;
                // SAFETY: as in `of_four_registers`.
                unsafe {
                    core::arch::asm!(
                        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{d0}, {d1}}}, {{{}}}, {{{}}}, {{{d0}, {d1}}};",
                        in(reg64) a[below], in(reg64) b[right],
                        d0 = inout(reg64) sums[first], d1 = inout(reg64) sums[first + 1],
                        options(nomem, nostack, preserves_flags),
                    );
                }
            }
        }
    }

    M16n8k4, 4, [f64; 2], 2,
    fn multiply_add(sums: &mut [f64; 8], [a, b]: [f64; 2], [left, right]: [f64; 2]) {
        // SAFETY: as in `of_four_registers`.
        unsafe {
            super::instruction!("m16n8k4.row.col.f64.f64.f64.f64", reg64, sums[0..], [a, b], [left]);
            super::instruction!("m16n8k4.row.col.f64.f64.f64.f64", reg64, sums[4..], [a, b], [right]);
        }
    }

    M16n8k8, 8, [f64; 4], 2,
    fn multiply_add(sums: &mut [f64; 8], a: [f64; 4], b: [f64; 4]) {
        // SAFETY: as in `of_four_registers`.
        unsafe {
            super::instruction!(
                "m16n8k8.row.col.f64.f64.f64.f64", reg64, sums[0..],
                [a[0], a[1], a[2], a[3]], [b[0], b[2]]
            );
            super::instruction!(
                "m16n8k8.row.col.f64.f64.f64.f64", reg64, sums[4..],
                [a[0], a[1], a[2], a[3]], [b[1], b[3]]
            );
        }
    }

    M16n8k16, 16, [f64; 8], 2,
    fn multiply_add(sums: &mut [f64; 8], a: [f64; 8], b: [f64; 8]) {
        // SAFETY: as in `of_four_registers`.
        unsafe {
            super::instruction!(
                "m16n8k16.row.col.f64.f64.f64.f64", reg64, sums[0..],
                [a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]], [b[0], b[2], b[4], b[6]]
            );
            super::instruction!(
                "m16n8k16.row.col.f64.f64.f64.f64", reg64, sums[4..],
                [a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]], [b[1], b[3], b[5], b[7]]
            );
        }
    }
}

/// Adds the products of fragments of `STEPS` steps, as the head of this file says.
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
fn chain<const M: usize, const N: usize, const STEPS: usize>(
    lane: usize,
    words: &[&[u32]; 32],
    sums: &mut [[[f64; 8]; N]; M],
) {
    // Both versions give the same bits. Without the instruction a multiply-add is a function call.
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: this processor has the features.
        return unsafe { tuned::<M, N, STEPS>(lane, words, sums) };
    }
    add::<M, N, STEPS>(lane, words, sums);
}

/// # Safety
/// 1. The processor has these features.
#[cfg(all(feature = "cpu", target_arch = "x86_64"))]
#[target_feature(enable = "avx2,fma")]
unsafe fn tuned<const M: usize, const N: usize, const STEPS: usize>(
    lane: usize,
    words: &[&[u32]; 32],
    sums: &mut [[[f64; 8]; N]; M],
) {
    add::<M, N, STEPS>(lane, words, sums);
}

#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
#[inline(always)]
fn add<const M: usize, const N: usize, const STEPS: usize>(
    lane: usize,
    words: &[&[u32]; 32],
    sums: &mut [[[f64; 8]; N]; M],
) {
    // Of each k-step: the lane that has it, and two words of it.
    let along_k = |fragment: usize, outer: usize| -> [f64; STEPS] {
        std::array::from_fn(|k| {
            let (of_lane, i) = (outer % 8 * 4 + k % 4, outer / 8 + k / 4 * 2);
            let at = 2 * (fragment * STEPS / 2 + i);
            let [low, high] = [words[of_lane][at], words[of_lane][at + 1]].map(u64::from);
            f64::from_bits(low | high << 32)
        })
    };
    // The lane's columns of a fragment of B, side by side: the processor multiplies four at once.
    let columns: [[[f64; 4]; STEPS]; N] = std::array::from_fn(|j| {
        let columns = lanes::COLUMNS.map(|e| along_k(M + j, lanes::accumulator(lane, e).1));
        std::array::from_fn(|k| columns.map(|column| column[k]))
    });
    for (i, sums) in sums.iter_mut().enumerate() {
        for below in 0..2 {
            let row = along_k(i, lanes::accumulator(lane, 2 * below).0);
            for j in 0..N {
                let places = lanes::COLUMNS.map(|e| e + 2 * below);
                let mut four = places.map(|e| sums[j][e]);
                for k in 0..STEPS {
                    for c in 0..4 {
                        four[c] = row[k].mul_add(columns[j][k][c], four[c]);
                    }
                }
                for c in 0..4 {
                    sums[j][places[c]] = four[c];
                }
            }
        }
    }
}
