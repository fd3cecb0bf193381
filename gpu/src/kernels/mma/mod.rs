//! bf16, f16, i8, f32 rounded to tf32, and f64, on the tensor cores of any GPU from Ampere
//! (compute capability 8.0) on. Sums are f32, of f64 f64, of i8 i32. Operands may be unaligned,
//! but not those of i8.
//!
//! An `mma.sync` instruction multiplies 16 x 16 elements of A by 16 x 8 of B, in tf32 16 x 8 by 8 x
//! 8, of i8 16 x 32 by 32 x 8. Operands and sums are in the registers of one warp. Hence:
//!
//! * **A block** of four warps or eight computes a tile of C, stage by stage of `BLOCK_K` steps.
//!   It has two to four `STAGES` in shared memory: one in use, the others in flight by asynchronous
//!   copies ([`operand`]), as in the lesson `async_copy`. As soon as the last fragments of a stage
//!   are in registers, the stage is filled again.
//! * **A warp** computes 16 x 16 parts of C, in rows and columns. A *fragment* of A in registers
//!   serves all parts of its rows, one of B all of its columns. For 64 x 64 elements a warp reads 8
//!   fragments from shared memory for 32 instructions.
//! * **A thread** holds pairs of neighbouring sums, eight columns apart. At the end the sums are
//!   staged in shared memory, so that neighbours are stored together ([`epilogue`]).
//!
//! The constants `a_mn_major` and `b_mn_major` say whether an operand is K-major or MN-major. They
//! decide which instruction reads a fragment (`ldmatrix` or `ldmatrix.trans`), and along which side
//! copies go. An operand with other strides is copied element by element, so either value gives the
//! right product.
//!
//! ```text
//!   kernel                 part of a warp    stages of k-steps       rows         blocks an SM
//!   mma_.._64x64x64           32 x 32             4 of 64            unaligned    2 (A100, Hopper)
//!   mma_.._128x128x32         64 x 64             3 of 32            aligned      2
//!   mma_.._128x256x32         64 x 64             4 of 32            aligned      1, of eight warps
//!   mma_tf32_64x64x32         32 x 32             4 of 32            unaligned    2 (A100, Hopper)
//!   mma_tf32_128x128x32       64 x 64             2 of 32            unaligned    2 (A100, Hopper)
//!   mma_i8_.._64x64x64_nt     32 x 32             4 of 64            aligned      3
//!   mma_i8_.._128x128x64_nt   64 x 64             3 of 64            aligned      2
//!   mma_f64_64x64x32          32 x 32             2 of 32            unaligned    2 (A100, Hopper)
//!   mma_f64_128x128x32        64 x 32             3 of 32            unaligned    1, of eight warps (Hopper alone)
//!   mma_f64_128x64x16         64 x 32             4 of 16, by TMA    aligned      2 (Hopper alone)
//!   mma_f64_64x64x16          32 x 32             4 of 16, by TMA    aligned      3 (Hopper alone)
//!   mma_f64_64x32x32          16 x 32             4 of 32, by TMA    aligned      2 (Hopper alone)
//!   mma_f64_32x64x32          16 x 32             4 of 32, by TMA    aligned      2 (Hopper alone)
//! ```
//!
//! *Aligned* kernels are for 16-byte aligned rows. Other rows are right too, but slow; of i8 they
//! are packed before.
//!
//! Shared memory is that of the smallest GPUs (compute capability 8.6, 8.9 and 12.0: 99 KiB a
//! block). A 128 x 128 stage of 32 steps of f32 is 32 KiB, so there are two of them: while one is
//! multiplied, for 1024 cycles of an A100's tensor cores, the other arrives.
//!
//! The constant `half` says whether operands are bf16 or f16. C has the same type, or f32 (`_f32`).
//! On Hopper [`wgmma`](super::wgmma) is faster: its operands need not pass through registers. But
//! in tf32 it reads each operand along one side alone. So these kernels are only in the PTX for
//! every GPU. Hopper takes them from there.
//!
//! **f64, and the larger tiles of the other types,** have a main loop of their own ([`stream`]).
//! Two warps share a tensor core. So a fragment is loaded while the one before it is multiplied,
//! and a stage is filled by a few copies after each row of fragments: no warp is long without an
//! instruction for its tensor core. An instruction of f64 multiplies 4 k-steps on any GPU, and 8
//! on Hopper, with the same bits. For aligned rows on Hopper TMA fills the stages ([`by_tma`]):
//! then warps only load and multiply.
//!
//! **i8** is K-major: `ldmatrix` can transpose pairs of bytes, and not bytes. Sums are exact. A C
//! of f32, bf16 or f16 may have scales of rows and columns ([`scales`](super::collective::scales)).
//!
//! **tf32**: A, B and C are f32. Each factor is rounded to the nearest tf32, 11 significant bits,
//! when it is in registers; the tensor cores would truncate it. In shared memory it is f32, so the
//! asynchronous copies need not convert. Two warps or four read each fragment and round it, in two
//! instructions an element: 64, besides 32 MMAs, for a warp of 64 x 64 elements. Other differences
//! are in [`element`].

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod boxes;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod by_tma;
pub mod element;
pub mod epilogue;
pub mod main_loop;
pub mod operand;
pub mod parts;
pub mod stream;
pub mod table;
pub mod tile;

pub use self::table::*;
use super::{collective, device};
