//! What Hopper's `wgmma` computes, and the layouts of its operands in shared memory. No threads, no
//! time.
//!
//! One step multiplies A (64 x K) and B (K x N) and adds to D (64 x N), with K the elements of 32
//! bytes. A warpgroup's 128 threads hold D in registers, each a [`fragment`]. B is in shared
//! memory, and so is A unless it is in registers, too. A [`descriptor`] and a [`layout`] give the
//! [`swizzle`]d address of every element. An element is decoded by its [`format`](mod@format). A
//! [`step`] multiplies and accumulates.
//!
//! # Sources
//! * PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions": the
//!   descriptor's bits, the canonical layouts, the fragments. Its figures are also layouts in
//!   CUTLASS, `mma_traits_sm90_gmma.hpp`.
//! * CUDA Programming Guide, "The Swizzle Modes": where TMA puts a box.
//! * Xie, Wang, Yang, Yang: MMA-Sim (arXiv 2511.10909, `github.com/microsoft/MMA-Sim`): how the sum
//!   is rounded, which NVIDIA does not document.
//!
//! Products of K-major operands with the 128-byte and 64-byte swizzles, and with A in registers,
//! ran on an H200 with these descriptors, layouts and fragments. The rest is known only from the
//! sources.

pub(super) mod descriptor;
mod exact;
pub(crate) mod format;
pub(super) mod fragment;
pub(super) mod layout;
pub(super) mod operand;
pub(super) mod step;
pub(super) mod swizzle;
mod truncating;
pub(crate) mod warp;

#[cfg(test)]
mod definition;

#[cfg(test)]
mod tests;
