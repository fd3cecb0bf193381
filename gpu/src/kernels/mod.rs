//! The fast kernels, a folder a family.
//!
//! ```text
//!   gemm         CUDA cores of any GPU, any strides
//!   tma          f32 on Hopper's CUDA cores, operands loaded by TMA
//!   mma          bf16, f16, i8, tf32 and f64 on tensor cores from Ampere on (`mma.sync`)
//!   wgmma        bf16 and f16 on Hopper's tensor cores
//!   wgmma_tf32   f32 rounded to tf32, on Hopper's tensor cores
//!   emulated     f32 split into slices of bf16 or f16, on Hopper's tensor cores
//!   pack         copies of operands with aligned rows
//!   transpose    transposed copies of operands, of bytes in transpose_bytes
//!   reduce       sums of partial products: split-K over the grid
//!   quantise     matrices rounded to 8 bits, with their scales
//! ```
//!
//! A family has a page (`mod.rs`), one or several main loops, and a table of its kernels
//! (`table.rs`). Families import from [`collective`], and not from each other.

// Arrays of a thread are indexed together, as on a slide.
#![allow(clippy::needless_range_loop)]

use super::{collective, device};

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod emulated;
pub mod gemm;
pub mod mma;
pub mod pack;
pub mod quantise;
pub mod reduce;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod tma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod transpose;
pub mod transpose_bytes;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod wgmma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod wgmma_tf32;
