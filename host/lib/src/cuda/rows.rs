//! Copies of boxes of bytes whose rows lie apart, between a device and the host or on the device.

use super::Context;
use super::failure::check_on;
use crate::error::Result;
use crate::pitched::Rows;
use cust::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUmemorytype, CUmemorytype_enum, cuMemcpy2D_v2, cuMemcpy3D_v2,
};
use std::ptr::null_mut;

/// Which memory rows lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Device,
}

impl Side {
    fn memory_type(self) -> CUmemorytype {
        match self {
            Side::Host => CUmemorytype_enum::CU_MEMORYTYPE_HOST,
            Side::Device => CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
        }
    }
}

/// Copies a box of `[bytes, rows, slices]` after all work on the device, and returns when it is done. A box of one
/// slice is a 2D copy.
///
/// # Safety
/// 1. Each row of both is valid: on the host for reading or writing in this process, on the device within an
///    allocation of it.
/// 2. They do not overlap, and each pitch is at least a row.
pub(crate) unsafe fn copy_rows(
    context: &Context,
    (from_side, from): (Side, Rows),
    (to_side, to): (Side, Rows),
    [bytes, rows, slices]: [usize; 3],
) -> Result<()> {
    context.synchronize()?;
    let host = |side: Side, rows: Rows| match side {
        Side::Host => rows.start as *mut _,
        Side::Device => null_mut(),
    };
    let device = |side: Side, rows: Rows| match side {
        Side::Host => 0,
        Side::Device => rows.start,
    };
    let result = match slices {
        1 => {
            let copy = CUDA_MEMCPY2D {
                srcXInBytes: 0,
                srcY: 0,
                srcMemoryType: from_side.memory_type(),
                srcHost: host(from_side, from),
                srcDevice: device(from_side, from),
                srcArray: null_mut(),
                srcPitch: from.pitch,
                dstXInBytes: 0,
                dstY: 0,
                dstMemoryType: to_side.memory_type(),
                dstHost: host(to_side, to),
                dstDevice: device(to_side, to),
                dstArray: null_mut(),
                dstPitch: to.pitch,
                WidthInBytes: bytes,
                Height: rows,
            };
            // SAFETY: the description is read during the call; the memory is the caller's to answer for.
            unsafe { cuMemcpy2D_v2(&copy) }
        }
        _ => {
            let copy = CUDA_MEMCPY3D {
                srcXInBytes: 0,
                srcY: 0,
                srcZ: 0,
                srcLOD: 0,
                srcMemoryType: from_side.memory_type(),
                srcHost: host(from_side, from),
                srcDevice: device(from_side, from),
                srcArray: null_mut(),
                reserved0: null_mut(),
                srcPitch: from.pitch,
                srcHeight: from.slice_rows,
                dstXInBytes: 0,
                dstY: 0,
                dstZ: 0,
                dstLOD: 0,
                dstMemoryType: to_side.memory_type(),
                dstHost: host(to_side, to),
                dstDevice: device(to_side, to),
                dstArray: null_mut(),
                reserved1: null_mut(),
                dstPitch: to.pitch,
                dstHeight: to.slice_rows,
                WidthInBytes: bytes,
                Height: rows,
                Depth: slices,
            };
            // SAFETY: as above.
            unsafe { cuMemcpy3D_v2(&copy) }
        }
    };
    check_on(context, result)?;
    // A copy to the device, or on it, may return before it is done, and streams do not wait for it.
    context.synchronize()
}
