//! What Hopper's `wgmma` computes, and where in shared memory it finds its operands. No threads, no time.
//!
//! One step multiplies A (64 x K) and B (K x N) and adds to D (64 x N), with K the elements of 32 bytes. A
//! warpgroup's 128 threads hold D in registers, each a [`fragment`]; B, and A unless it is in registers too, lie
//! in shared memory, where a [`descriptor`] and a [`layout`] tell the [`swizzle`]d place of every element. Each is
//! read in its [`format`](mod@format); a [`step`] multiplies, and adds as the mode says.
//!
//! # Sources
//! * PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions": the descriptor's bits, the
//!   canonical layouts, the fragments. Its figures are also layouts in CUTLASS, `mma_traits_sm90_gmma.hpp`.
//! * CUDA Programming Guide, "The Swizzle Modes": where the tensor memory accelerator (TMA) puts a box.
//! * Xie, Wang, Yang, Yang: MMA-Sim (arXiv 2511.10909, `github.com/microsoft/MMA-Sim`): how the sum is rounded,
//!   which NVIDIA does not document.
//!
//! On an H200 ran, with these descriptors, places and fragments: products of K-major operands with the swizzles of
//! 128 and of 64 bytes, and with A in registers. The rest is known from the sources alone.

pub(super) mod descriptor;
mod exact;
pub(super) mod format;
pub(super) mod fragment;
pub(super) mod layout;
pub(super) mod operand;
pub(super) mod step;
pub(super) mod swizzle;
mod truncating;
pub(super) mod warp;

#[cfg(test)]
mod definition;

#[cfg(test)]
mod tests;
