//! bf16 and f16 on Hopper's tensor cores. Sums are f32.
//!
//! A `wgmma` instruction multiplies 64 rows of A by up to 256 columns of B, both in shared memory.
//! The sums are in the registers of four warps, a *warpgroup*. It does 16 k-steps of 64 x 256 in
//! 128 cycles. In this time the SM must load what the next one multiplies. Hence:
//!
//! * **A block** computes a 128 x 256 tile of C. It reads 48 KiB from L2 for 64 k-steps, which
//!   take the tensor cores 1024 cycles. It is persistent: the [tile
//!   scheduler](super::collective::tile_scheduler) gives it one tile after the other, and the
//!   pipeline stays full while a tile is stored ([`persistent`]).
//! * **Two warpgroups** multiply: each computes 64 rows of the tile, and both share the columns of
//!   B. A warpgroup issues the MMAs of the next stage before it waits for those of the one before.
//!   Then it releases that stage.
//! * **A third warpgroup** produces: one lane issues the TMA copies, as far ahead as there are
//!   stages. The warpgroup gives registers to the others, which hold 128 sums a thread. Its idle
//!   warps may pack the tail of B ([`background`](super::collective::background)).
//! * **A thread** holds pairs of neighbouring sums, eight columns apart, and stores them by way of
//!   shared memory ([`staged_epilogue`](super::collective::staged_epilogue)).
//! * **A cluster** of two blocks may have tiles one below the other. Each block copies half the
//!   columns of B to both (*multicast*). Then a block reads 32 KiB a stage from L2, in place of 48.
//!   With 192 columns each copies half the k-steps; such tiles are for sizes where tiles of 256
//!   leave the last wave mostly idle.
//!
//! ```text
//!   kernel                        warpgroups    part of a warpgroup    stages (64 k-steps)       blocks of a cluster
//!   wgmma_half_128x256x64           2 + 1            64 x 256                   4                        1
//!   wgmma_half_256x256x64_c2        2 + 1            64 x 256                   4                        2
//!   wgmma_half_256x192x64_c2        2 + 1            64 x 192                   4                        2
//! ```
//!
//! The warpgroups take the last four stages of a tile in turn: while one stores its accumulators,
//! the other multiplies ([ping-pong](super::collective::ordered_barrier)). Of the last stage, only
//! the MMAs up to k are issued.
//!
//! Two other main loops are for small products: [`split_k`] has small tiles, and a cluster may
//! split k; in [`ldg`] threads load unaligned operands. The kernels are in [`table`]. Each takes a
//! C of the type of A and B, or of f32.
//!
//! Three constants are set when a kernel is loaded ([`simt::Constants`]): whether A and B are bf16
//! or f16 (`half`), and whether A, and B, are K-major or MN-major (`a_mn_major`, `b_mn_major`). In
//! names, BLAS's letters say it: `nn`, `nt`, `tn`, `tt`. The tensor cores read both layouts. Only
//! the copies differ ([`tma`](super::collective::tma)).
//!
//! Row starts are 16-byte aligned, except in the `ldg` kernels and for a K-major A in the `ua`
//! kernels ([`unaligned_a`](super::collective::unaligned_a)). k is positive: an empty matrix has no
//! tensor map.
//!
//! The tensor cores add 16 products and the sum before exactly, to 25 bits below the greatest. They
//! truncate the rest, and also the f32 that results (measured elsewhere: MMA-Sim).

pub mod ldg;
pub mod main_loop;
pub mod persistent;
pub mod scales;
pub mod split_k;
pub mod table;

pub use self::table::*;
use super::{collective, device};
