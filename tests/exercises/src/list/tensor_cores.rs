//! Tensor cores: rungs `tensor_mma` to `tensor_wgmma`.

use super::Exercise;

pub(super) static EXERCISES: &[Exercise] = &[];
