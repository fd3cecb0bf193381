//! f32 rounded to tf32 on Hopper's tensor cores. Sums are f32.
//!
//! A tf32 is an f32 with 10 bits of fraction. TMA rounds to it while it copies. So the error of C
//! is that of factors with 11 significant bits, about 3e-4. The tensor cores do half as many
//! operations a cycle as with bf16.
//!
//! Tiles, stages, the producer and the tile scheduler are as in [`wgmma`](super::wgmma). What
//! differs: with tf32 the tensor cores read only *K-major* operands from shared memory. A row-major
//! A is K-major. A row-major B is not.
//!
//! But one operand may come from registers, which threads can load from anywhere. That is the
//! instruction's A. So the kernels compute
//!
//! ```text
//!   C^T = B^T A^T     the instruction's 64 rows are columns of C, in registers ([`b_fragment`])
//!                     its columns, up to 256, are rows of C, K-major in shared memory
//! ```
//!
//! * **A block** computes tiles of C, one after the other.
//! * **A warpgroup** computes 64 columns of the tile, so that B is loaded to registers once. Two
//!   warpgroups read the same rows of A. For 256 x 64 a stage takes the tensor cores 512 cycles,
//!   and a thread eight 64-bit loads. One more warpgroup is the producer.
//! * **A thread** loads its elements of B for 8 k-steps, into one of four sets of registers. A
//!   stage is four MMAs: while three are in flight, the registers of the fourth are loaded. A set
//!   is loaded again when the MMA that reads it has ended.
//! * **A cluster** of two blocks has tiles side by side. Each block copies half the rows of A to
//!   both: it reads 32 KiB a stage from L2, in place of 48, and L2 delivers no more than 64 in this
//!   time. Without clusters, blocks that drift apart become a third slower.
//!
//! The sums are C's transpose, and are transposed in shared memory ([`epilogue`]).
//!
//! ```text
//!   kernel                            warpgroups    part of a warpgroup    stages (32 k-steps)       blocks of a cluster
//!                                                        (m x n)
//!   wgmma_tf32_256x256x32_c2_nn          2 + 1          256 x 64                   4                        2
//!   wgmma_tf32_256x256x32_c2_ua8_nn      2 + 1          256 x 64                   4                        2
//!   wgmma_tf32_192x256x32_c2_nn          2 + 1          192 x 64                   5                        2
//!   wgmma_tf32_256x128x32_nn             2 + 1          256 x 64                   4                        1
//!   wgmma_tf32_128x128x32_nn             2 + 1          128 x 64                   6                        1
//!   wgmma_tf32_128x64x32_nn              1 + 1          128 x 64                   8                        1
//!   wgmma_tf32_128x64x32_ua8_nn          1 + 1          128 x 64                   8                        1
//! ```
//!
//! For few rows or columns there are smaller tiles ([`split_k`]).
//!
//! All kernels are `nn`. The host transposes other operands, or swaps A and B. Row starts are
//! 16-byte aligned, except for A in the `ua8` kernels
//! ([`unaligned_a`](super::collective::unaligned_a)). k is positive.
//!
//! Rounding is that of bf16, with 8 products at a time.

pub mod b_fragment;
pub mod epilogue;
pub mod main_loop;
pub mod split_k;
pub mod table;
pub mod tile;

pub use self::{table::*, tile::BLOCK_K};
use super::{collective, device};
