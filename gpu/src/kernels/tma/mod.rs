//! The general product of f32 on Hopper: tiles by the tensor memory accelerator, k split over warps and a cluster.
//!
//! What [the other family](super::gemm) leaves on the table is the issue slots: on Hopper every instruction that is no
//! multiply-add takes the place of one. So here
//!
//! * **the accelerator** copies the tiles, a box an instruction, which one lane gives: no addresses, no predicates, no
//!   zeros for the edges; and a warp waits for a stage's mbarrier, not for a barrier of the block. The warps take turns at
//!   filling the stages;
//! * **a thread** computes 8 x 16 elements of C: 24 reads of 128 bits for 512 multiply-adds,
//!   in an order that suits the register banks and that neither compiler changes: what is read is there a step of k later,
//!   or four ([`fragment`]);
//! * **a block** computes a tile. Where C is small or narrow, so is the tile: then warps that compute the same elements
//!   share the steps of k;
//! * **a cluster** shares a tile where there are fewer tiles than multiprocessors: its blocks split k between them. Parts
//!   of a sum are added in a fixed order at the end ([`parts`]);
//! * **a launch** begins while the one before it ends: a block says that the next may begin
//!   ([`let_next_begin`](grid::let_next_begin)) as soon as its mbarriers are there, and waits
//!   ([`wait_for_earlier`](grid::wait_for_earlier)) before its first access to global memory.
//!
//! ```text
//!   kernel                  warps  a warp's part  steps of k          stages  blocks a        a cluster
//!                                                 a stage and a warp          multiprocessor  splits k
//!   tma_f32_128x128x32_nn, _tn      4       64 x 64         32    32           3          2            no
//!   tma_f32_64x64x64_nn, _tn       4       64 x 64         64    16           3          2            by 1 to 8
//!   tma_f32_16x256x32_nn        4       16 x 256        32     8           3          2            by 1 to 8
//!   tma_f32_256x16x32_nn        4      256 x 16         32     8           3          2            by 1 to 8
//! ```
//!
//! For one wave of blocks there is another arrangement, with producers: [`rings`].
//!
//! Elements of B lie side by side along n, those of A along k (`nn`, as in BLAS) or along m (`tn`). What lies otherwise the
//! host puts before a kernel as B^T A^T, or copied and turned over ([`pad`](super::gemm::pad)). Rows begin at multiples of
//! sixteen bytes, or the accelerator does not take them; but there is a way ([`Shifted`](fragment::Shifted)), of which one
//! kernel makes use.
//!
//! Measured, version by version: docs/measurements.md, "By tensor copies".

mod fragment;
mod main_loop;
mod operand;
mod producers;
mod split_k;
mod table;
mod tile;

pub use self::{producers::*, table::*, tile::SLAB};
use super::{collective, device};
