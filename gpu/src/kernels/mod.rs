//! The kernels, from the first lecture's on.

// Every kernel file imports `super::device::*`, so that this tree can be compiled a second time against
// another version of the vocabulary.
use super::device;

pub mod basic;
pub mod rust_cuda;
pub mod tiled;
