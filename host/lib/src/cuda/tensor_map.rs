//! Descriptions of matrices as TMA reads them.

use super::Context;
use super::failure::{INVALID_VALUE, outcome};
use crate::error::Result;
use cuda_dyn::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle, cuTensorMapEncodeTiled,
};
use simt::device::TensorDescription;

/// What a kernel is given of matrices of that description whose first element is at `address`; `None` where
/// the driver refuses the description. Zeros take the place of what a box has outside them.
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
    let each = [1; 3]; // no column, row or matrix is left out
    let mut map = CUtensorMap::default();
    context.make_current()?;
    // SAFETY: of three dimensions there are three extents of each kind and two strides, and one map is
    // written. What is at the address is not looked at.
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
            // Boxes follow one another along the rows: what is read beyond one is wanted soon.
            CUtensorMapL2promotion::Bytes256,
            CUtensorMapFloatOOBfill::Zeros,
        )
    };
    match outcome(result) {
        Ok(()) => Ok(Some(map.opaque)),
        Err(raw) if raw.code == INVALID_VALUE => Ok(None),
        Err(raw) => Err(context.error(raw)),
    }
}
