//! What the families of fast kernels share, one idea a file.
//!
//! ```text
//!   tile_scheduler       which tiles a persistent CTA computes, and in which order
//!   tma, unaligned_a     operands that TMA loads; unaligned rows of A
//!   ldg                  operands that threads load
//!   cp_async             waiting for asynchronous copies
//!   fragment             what a thread of f32 on CUDA cores holds, and its multiply-adds
//!   ordered_barrier      ping-pong of two warpgroups
//!   epilogue             alpha, beta, bias and activation
//!   activation           GELU, its approximation by tanh, and SiLU
//!   staged_epilogue      accumulators of `wgmma`, staged in shared memory
//!   staged_rows          all of the epilogue, for rows that a warp reads from shared memory
//!   packed_store         the fast way out: packed elements, 16-byte stores; misaligned rows of C
//!   background           work for idle warps: packing the tail of B
//!   copy_rows            copies of unaligned rows to aligned ones
//!   scales               scales of numbers of 8 bits
//!   real, stored         the types that products are computed in, and stored in
//! ```
//!
//! Not every family has every part. The tile scheduler serves the persistent CTAs of `wgmma`,
//! `wgmma_tf32` and `emulated`. A CTA of `gemm`, `mma` or `tma` computes one tile: the tile of its
//! block index.

// Arrays of a thread are indexed together, as on a slide.
#![allow(clippy::needless_range_loop)]

use super::device;

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod accumulators;
pub mod activation;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod background;
pub mod copy_rows;
pub mod cp_async;
pub mod epilogue;
pub mod fragment;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod ldg;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod misaligned_store;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod ordered_barrier;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod packed_element;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod packed_store;
pub mod real;
pub mod scales;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod staged_epilogue;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod staged_rows;
pub mod stored;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod tile_scheduler;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod tma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod unaligned_a;
pub mod unaligned_vector;
pub mod vector;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod wgmma_shape;
