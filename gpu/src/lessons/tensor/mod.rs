//! The tensor core ladder: `C = A B` of row-major bf16, with sums of f32, one idea a file.
//!
//! ```text
//!   mma           `mma.sync`, operands from global memory             any GPU from Ampere on
//!   ldmatrix      tiles in shared memory, a swizzle, `ldmatrix`
//!   cp_async      stages filled by `cp.async`
//!   wgmma         `wgmma` of one warpgroup                            Hopper, from here on
//!   tma           TMA and mbarriers
//!   producer      a producer warp, and a ring of stages
//!   wide          two consumer warpgroups share the columns of B
//!   persistent    persistent CTAs, and an order of tiles for L2
//!   cluster       two CTAs of a cluster load B for each other
//!   tma_store     C by way of shared memory and TMA, beside the next tile
//! ```
//!
//! Each file is complete: it uses the words of `simt` alone. From `tma` on, rows of A and B are
//! 16-byte aligned. Other operands are packed by a launch before.

use super::device;

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod cluster;
pub mod cp_async;
pub mod ldmatrix;
pub mod mma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod persistent;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod producer;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod tma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod tma_store;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod wgmma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod wide;
