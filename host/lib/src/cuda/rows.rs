//! Copies of boxes of bytes with pitched rows, between a device and the host or on the device.

use super::Context;
use super::binding::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUmemorytype, cuMemcpy2D_v2, cuMemcpy3D_v2};
use crate::error::Result;
use crate::rows::{Place, Rows};
use std::ptr::null_mut;

fn memory_type(place: Place) -> CUmemorytype {
    match place {
        Place::Host => CUmemorytype::CU_MEMORYTYPE_HOST,
        Place::Device => CUmemorytype::CU_MEMORYTYPE_DEVICE,
    }
}

/// Copies a box of `[bytes, rows, slices]`. Waits for all work on the device, and for the copy. A
/// box with one slice is a 2D copy.
///
/// # Safety
/// 1. Each row is valid on both sides: on the host for this process, on the device inside an
///    allocation.
/// 2. The two sides do not overlap, and each pitch is at least a row.
pub(crate) unsafe fn copy_rows(
    context: &Context,
    (from_place, from): (Place, Rows),
    (to_place, to): (Place, Rows),
    [bytes, rows, slices]: [usize; 3],
) -> Result<()> {
    let _current = context.enter()?;
    context.synchronize()?;
    let host = |place: Place, rows: Rows| match place {
        Place::Host => rows.start as *mut _,
        Place::Device => null_mut(),
    };
    let device = |place: Place, rows: Rows| match place {
        Place::Host => 0,
        Place::Device => rows.start,
    };
    let result = match slices {
        1 => {
            let copy = CUDA_MEMCPY2D {
                srcXInBytes: 0,
                srcY: 0,
                srcMemoryType: memory_type(from_place),
                srcHost: host(from_place, from),
                srcDevice: device(from_place, from),
                srcArray: null_mut(),
                srcPitch: from.pitch,
                dstXInBytes: 0,
                dstY: 0,
                dstMemoryType: memory_type(to_place),
                dstHost: host(to_place, to),
                dstDevice: device(to_place, to),
                dstArray: null_mut(),
                dstPitch: to.pitch,
                WidthInBytes: bytes,
                Height: rows,
            };
            // SAFETY: the driver reads the description during the call. The memory is the caller's
            // promise.
            unsafe { cuMemcpy2D_v2(&copy) }
        }
        _ => {
            let copy = CUDA_MEMCPY3D {
                srcXInBytes: 0,
                srcY: 0,
                srcZ: 0,
                srcLOD: 0,
                srcMemoryType: memory_type(from_place),
                srcHost: host(from_place, from),
                srcDevice: device(from_place, from),
                srcArray: null_mut(),
                reserved0: null_mut(),
                srcPitch: from.pitch,
                srcHeight: from.slice_rows,
                dstXInBytes: 0,
                dstY: 0,
                dstZ: 0,
                dstLOD: 0,
                dstMemoryType: memory_type(to_place),
                dstHost: host(to_place, to),
                dstDevice: device(to_place, to),
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
    context.check(result)?;
    // A copy to the device, or on it, may return before it is complete, and streams do not wait for
    // it.
    context.synchronize()
}
