//! Tensor maps: descriptions of matrices for TMA.

use super::Context;
use super::failure::{INVALID_VALUE, Outcome};
use crate::error::Result;
use cuda_dyn::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle, cuTensorMapEncodeTiled,
};
use simt::device::TensorDescription;

/// The encoding of a tensor map for matrices whose first element is at `address`. `None` if the
/// driver refuses the description. Elements of a box outside of the matrices are zero.
///
/// # Errors
/// [`Error::NoDriver`](crate::error::Error::NoDriver) for a driver older than TMA.
pub(crate) fn encode(
    context: &Context,
    address: u64,
    element: CUtensorMapDataType,
    description: &TensorDescription,
) -> Result<Option<[u64; 16]>> {
    let swizzle = match description.swizzle {
        0 => CUtensorMapSwizzle::None,
        32 => CUtensorMapSwizzle::Bytes32,
        64 => CUtensorMapSwizzle::Bytes64,
        128 => CUtensorMapSwizzle::Bytes128,
        _ => return Ok(None),
    };
    let each = [1; 3]; // every column, row and matrix
    let mut map = CUtensorMap::default();
    let _current = context.enter()?;
    // SAFETY: for three dimensions the arrays have three extents and two strides. The driver writes
    // one map. It does not access the address.
    let result = unsafe {
        cuTensorMapEncodeTiled(
            &mut map,
            element,
            3,
            address as *mut _,
            description.extents.as_ptr(),
            description.strides.as_ptr(),
            description.box_extents.as_ptr(),
            each.as_ptr(),
            CUtensorMapInterleave::None,
            swizzle,
            // The next box continues the rows, so the bytes beyond this box are used soon.
            CUtensorMapL2promotion::Bytes256,
            CUtensorMapFloatOOBfill::Zeros,
        )
    };
    match result.outcome() {
        Ok(()) => Ok(Some(map.opaque)),
        Err(raw) if raw.code == INVALID_VALUE => Ok(None),
        Err(raw) => Err(context.error(raw)),
    }
}
