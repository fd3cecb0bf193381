//! The general product of f32 on Hopper's tensor cores: factors of tf32, sums of f32.
//!
//! A tf32 is an f32 of whose fraction 10 bits are left. The accelerator that copies boxes rounds to it, so C's error is that
//! of factors with 11 bits, about 3e-4; and the tensor cores do half as many operations a cycle as of bf16. What makes this
//! kernel another than bf16's ([`gemm_wgmma`](super::gemm_wgmma), where tiles, stages, the producer and the walk are
//! explained) is that of tf32 the tensor cores read *K-major* operands alone: in shared memory, steps of k lie side by side.
//! A of k side by side does, and B, whose columns lie side by side, does not.
//!
//! But one operand may come from registers, which any thread can load from anywhere. That is the instruction's A, so what
//! is multiplied is
//!
//! ```text
//!   C^T = B^T A^T     n of C are the instruction's 64 rows, in registers ([`columns`])
//!                     m of C are its columns, up to 256, K-major in shared memory as they lie
//!
//!   kernel                      warpgroups   a warpgroup's part (m x n)   stages of 32 steps   blocks of a cluster
//!   wgmma_tf32_256x256x32_c2_nn    2 + 1           256 x 64                       4                    2
//!   wgmma_tf32_256x256x32_c2_ua8_nn    2 + 1           256 x 64                       4                    2
//!   wgmma_tf32_192x256x32_c2_nn    2 + 1           192 x 64                       5                    2
//!   wgmma_tf32_256x128x32_nn    2 + 1           256 x 64                       4                    1
//!   wgmma_tf32_128x128x32_nn    2 + 1           128 x 64                       6                    1
//!   wgmma_tf32_128x64x32_nn     1 + 1           128 x 64                       8                    1
//!   wgmma_tf32_128x64x32_ua8_nn     1 + 1           128 x 64                       8                    1
//! ```
//!
//! Of few rows or few columns of C smaller tiles take less: another text ([`narrow`]).
//!
//! * **A warpgroup has columns of C for itself**, 64 of them: what goes through registers is loaded once. Two such groups
//!   read the same rows of A. For 64 x 256 a stage is 512 cycles of the tensor cores, and eight loads of 64 bits a thread.
//! * **A stage is four products**, of 8 steps of k each, from four sets of registers: while three are under way, the fourth's
//!   are loaded. A set is loaded again when the product that reads it has been waited for.
//! * **Two blocks of a cluster have tiles beside each other.** Each copies half of their rows of A, to both: 32 KiB a block and stage
//!   are read from the second-level cache, in place of 48, of which that cache gives no more than 64 in the time. Without it, blocks
//!   that drift apart are soon a third slower.
//! * **The sums are C's transpose**, and are turned over on their way to C ([`output`]).
//!
//! Operands that lie otherwise are turned over before, or exchanged with each other, by the host. Rows begin at multiples of
//! sixteen bytes, but those of A in `ua8` begin anywhere ([`rows`]); and k is not 0.
//!
//! The sums are rounded as of bf16, 8 products at a time.

mod b_fragment;
mod epilogue;
mod main_loop;
mod rows;
mod split_k;
mod table;
mod tile;

pub use self::{table::*, tile::BLOCK_K};
use super::{collective, device};
