//! The kernels, from the first lecture's on.

// A thread's arrays are indexed together, as on a slide.
#![allow(clippy::needless_range_loop)]

// Every kernel file imports `super::device::*`, so that this tree can be compiled a second time against
// another version of the vocabulary.
use super::device;

pub mod async_copy;
pub mod basic;
pub mod blur;
pub mod gemm;
// Hopper takes it from the PTX for every GPU.
#[cfg(not(target_feature = "sm_90a"))]
pub mod gemm_mma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod gemm_sliced;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod gemm_tma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod gemm_wgmma;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90a"))]
pub mod gemm_wgmma_tf32;
pub mod memories;
pub mod outer_product;
pub mod padded;
pub mod pitched;
pub mod prefetched;
pub mod register_blocked;
pub mod rust_cuda;
pub mod tile;
pub mod tiled;
pub mod tiled_conflicts;
pub mod tiled_submatrix;
pub mod tiled_transposed;
pub mod tiled_uncoalesced;
#[cfg(not(target_arch = "nvptx64"))]
pub mod toy;
pub mod unrolled;
pub mod vec_add;
pub mod vectorised;
pub mod warp_tiled;
