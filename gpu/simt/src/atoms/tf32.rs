//! `mma.m16n8k8` of tf32, with sums of f32: 8.0 and later.
//!
//! A lane has four elements of a fragment, in a register each (PTX ISA, "Matrix Fragments for
//! mma.m16n8k8"):
//!
//! ```text
//!   register         0                1                2                3
//!   outer, k         lane / 4,        lane / 4 + 8,    lane / 4,        lane / 4 + 8,
//!                    lane % 4         lane % 4         lane % 4 + 4     lane % 4 + 4
//! ```

use super::{Atom, M16n8k8};
use crate::Tf32;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::tensor_core::{format::Format, warp};

impl Atom for M16n8k8<Tf32> {
    type Factor = Tf32;
    type Sum = f32;
    type Registers = [u32; 4];

    const STEP: usize = 8;

    #[cfg(target_arch = "nvptx64")]
    super::of_four_registers! { f32, "m16n8k8.row.col.f32.tf32.tf32.f32" }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn words(registers: &[u32; 4]) -> impl Iterator<Item = u32> {
        warp::decoded(Format::Tf32, *registers)
    }

    #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
    fn model<const M: usize, const N: usize>(
        lane: usize,
        words: &[&[u32]; 32],
        sums: &mut [[[f32; 8]; N]; M],
    ) {
        warp::multiply_add::<M, N, 8>(Format::Tf32, lane, words, sums);
    }
}
