//! The limit of declared constant memory.

use crate::ptx::{Array, Module};

/// The most bytes of constant memory of a program (NVIDIA, *CUDA C++ Programming Guide*, "Technical
/// Specifications per Compute Capability").
const CONSTANT_BYTES: u64 = 64 << 10;

/// With too much of it the driver's compiler fails, and does not name the arrays.
pub(super) fn constant_memory(module: &Module) -> Option<String> {
    let bytes = |array: &Array| array.bytes.unwrap_or_default();
    let total: u64 =
        module.constant.iter().map(|array| bytes(array).next_multiple_of(array.align)).sum();
    let largest = module.constant.iter().max_by_key(|array| bytes(array))?;
    (total > CONSTANT_BYTES).then(|| {
        format!(
            "{total} bytes of constant memory, of which `{}` has {}: a program has {CONSTANT_BYTES}",
            largest.name,
            bytes(largest)
        )
    })
}
