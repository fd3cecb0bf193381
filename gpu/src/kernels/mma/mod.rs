//! The general product of 16-bit numbers, and of f32 that is rounded to tf32, on the tensor cores that every GPU has from Ampere
//! (compute capability 8.0) on: sums of f32, operands that begin anywhere.
//!
//! An instruction (`mma.sync`) multiplies 16 x 16 elements of A by 16 x 8 of B, of tf32 16 x 8 by 8 x 8, and all it takes and gives
//! is in the registers of one warp. Hence:
//!
//! * **a warp** computes some 16 x 16 parts of C side by side and one below the other: a *fragment* of A, once it is in
//!   registers, serves all parts of its rows, one of B all of its columns. With 64 x 64 elements a warp reads 8 fragments
//!   from shared memory for 32 instructions;
//! * **a block** of four warps computes a tile, stage by stage of `BLOCK_K` steps of k. `STAGES` stages are in shared
//!   memory, two to four: one in use, the others on their way by asynchronous copies ([`operand`]), as in
//!   [`async_copy`](super::async_copy). As soon as a stage's last fragments are in registers its place is filled again,
//!   before these are multiplied;
//! * **an operand** is K-major or MN-major, as the kernel's constants `a_mn_major` and `b_mn_major` say, and its rows may begin
//!   anywhere. The constants decide which instruction reads a fragment (`ldmatrix` or `ldmatrix.trans`) and which side copies go
//!   along. An operand of any other strides is copied element by element, so that either value gives the right product;
//! * **at the end** the sums go by way of shared memory, so that neighbours are written together ([`output`]).
//!
//! ```text
//!   kernel                      a warp's part   stages of steps of k   rows begin    blocks a multiprocessor
//!   mma_.._64x64x64             32 x 32           4 of 64            anywhere        2 (A100, Hopper)
//!   mma_.._128x128x32           64 x 64           4 of 32            at pieces       2 (A100, Hopper)
//!   mma_tf32_64x64x32           32 x 32           4 of 32            anywhere        2 (A100, Hopper)
//!   mma_tf32_128x128x32         64 x 64           2 of 32            at pieces       2 (A100, Hopper)
//! ```
//!
//! *At pieces*, at multiples of sixteen bytes: others are right too, and slow. Shared memory is that of the smallest devices
//! (compute capability 8.6, 8.9 and 12.0: 99 KiB a block). Of 128 x 128 elements a stage of 32 steps of f32 is 32 KiB, so there are
//! two: while one is multiplied, for 1024 cycles of an A100's tensor cores, the other comes.
//!
//! Operands are of bf16, or of f16 (`_f16`), as the kernel's constant `half` says, and C of the same, or of f32 (`_f32`). On
//! Hopper `wgmma` ([`gemm_wgmma`](super::gemm_wgmma)) is faster, whose operands need not come through registers: these kernels
//! are in the PTX for every GPU alone, from which Hopper takes them too.
//!
//! **tf32** (`_tf32`): A, B and C are of f32, and each factor is rounded to the nearest tf32, 11 bits of significand, when a warp has
//! it in registers: the tensor cores would cut it off. In shared memory it is f32, so that copies change nothing and the asynchronous
//! ones will do. Each fragment is rounded by the two warps that read it, in two instructions an element, 64 beside 32 products
//! where a warp has 64 x 64 elements. What else is different is in [`number`].

mod element;
mod epilogue;
mod main_loop;
mod operand;
mod table;
mod tile;

pub use self::table::*;
use super::{collective, device};
