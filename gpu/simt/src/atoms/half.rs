//! `mma.m16n8k16` of bf16 and f16, with sums of f32: 8.0 and later.
//!
//! A lane has eight elements of a fragment, in four registers of two neighbours along k (PTX ISA,
//! "Matrix Fragments for mma.m16n8k16 with floating point type"):
//!
//! ```text
//!   register         0                1                2                3
//!   outer            lane / 4         lane / 4 + 8     lane / 4         lane / 4 + 8
//!   first k          lane % 4 * 2     lane % 4 * 2     lane % 4 * 2 + 8 lane % 4 * 2 + 8
//! ```

use super::{Atom, M16n8k16};
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use super::{M64k16, WgmmaAtom};
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::tensor_core::warp;
use crate::{Bf16, F16, Half};

macro_rules! halves {
    ($($half:ident: $name:literal;)*) => {$(
        impl Atom for M16n8k16<$half> {
            type Factor = $half;
            type Sum = f32;
            type Registers = [u32; 4];

            const STEP: usize = 16;

            #[cfg(target_arch = "nvptx64")]
            super::of_four_registers! { f32, $name }

            #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
            fn words(registers: &[u32; 4]) -> impl Iterator<Item = u32> {
                warp::decoded(M64k16::<$half>::format(), *registers)
            }

            #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
            fn model<const M: usize, const N: usize>(
                lane: usize,
                words: &[&[u32]; 32],
                sums: &mut [[[f32; 8]; N]; M],
            ) {
                warp::multiply_add::<M, N, 16>(M64k16::<$half>::format(), lane, words, sums);
            }
        }
    )*};
}

halves! {
    Bf16: "m16n8k16.row.col.f32.bf16.bf16.f32";
    F16: "m16n8k16.row.col.f32.f16.f16.f32";
    Half: "m16n8k16.row.col.f32/* simt.constant half */.bf16/* simt.constant half */.bf16.f32";
}
