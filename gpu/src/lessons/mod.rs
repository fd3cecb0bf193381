//! The course's kernels, from the first lecture's on: one idea a file.

// Arrays of a thread are indexed together, as on a slide.
#![allow(clippy::needless_range_loop)]

// Every file imports `super::device::*`, so that this tree can be compiled a second time against
// the checker's vocabulary.
use super::device;

pub mod async_copy;
pub mod basic;
pub mod blur;
pub mod memories;
pub mod outer_product;
pub mod padded;
pub mod pitched;
pub mod prefetched;
pub mod register_blocked;
pub mod rust_cuda;
pub mod tensor;
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
