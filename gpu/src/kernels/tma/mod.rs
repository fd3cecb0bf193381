//! f32 on Hopper's CUDA cores. TMA loads the operands; k may be split over warps and over a
//! cluster.
//!
//! The kernels of [`gemm`](super::gemm) are limited by issue slots: on Hopper every instruction
//! that is no multiply-add takes the place of one. So here
//!
//! * **TMA** copies the tiles. One lane issues a box with one instruction: no addresses, no
//!   predicates, no zero fill at the edges. A warp waits for the mbarrier of a stage, and not for a
//!   barrier of the block.
//! * **A block** computes a tile of C. If C is small or narrow, so is the tile. Then warps that
//!   compute the same elements split k.
//! * **A warp** computes its part of the tile. The warps take turns at issuing the copies of a
//!   stage.
//! * **A thread** computes 8 x 16 elements of C: 24 loads of 128 bits for 512 multiply-adds, in an
//!   order that suits the register banks and that neither compiler changes. Each load is issued one
//!   k-step ahead, or four ([`fragment`](super::collective::fragment)).
//! * **A cluster** shares a tile if there are fewer tiles than SMs: its blocks split k. The parts
//!   of a sum are added in a fixed order ([`split_k`]).
//! * **A launch** starts while the one before it ends. A block lets the next launch start
//!   (`grid::let_next_begin`) as soon as its mbarriers are initialised, and waits
//!   (`grid::wait_for_earlier`) before its first access to global memory.
//!
//! ```text
//!   kernel                       warps    part of a warp    k-steps                stages    blocks    a cluster
//!                                                           a stage and a warp               an SM     splits k
//!   tma_f32_128x128x32_nn, _tn     4         64 x 64         32    32                3         2        no
//!   tma_f32_64x64x64_nn, _tn       4         64 x 64         64    16                3         2        by 1 to 8
//!   tma_f32_16x256x32_nn           4         16 x 256        32     8                3         2        by 1 to 8
//!   tma_f32_256x16x32_nn           4        256 x 16         32     8                3         2        by 1 to 8
//! ```
//!
//! For a single wave of blocks there is another main loop, with producer warps: [`producers`].
//!
//! B is N-major. A is K-major (`nn`, as in BLAS) or M-major (`tn`). For other layouts the host
//! computes B^T A^T, or transposes a copy ([`pack`](super::pack)). Row starts are 16-byte aligned,
//! as TMA requires; one kernel takes unaligned rows of A ([`UnalignedA`](operand::UnalignedA)).
//!
//! Measured, version by version: docs/log/tma.md.

pub mod main_loop;
pub mod operand;
pub mod producers;
pub mod split_k;
pub mod table;

pub use self::table::*;
use super::{collective, device};
