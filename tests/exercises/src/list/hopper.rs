//! Hopper: rungs `tensor_tma` to `tensor_tma_store`.

use super::Exercise;

pub(super) static EXERCISES: &[Exercise] = &[];
