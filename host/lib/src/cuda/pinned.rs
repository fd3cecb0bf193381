//! Page-locked host memory, and asynchronous copies.

use super::binding::{
    CUDA_MEMCPY2D, CUmemorytype as Kind, cuMemAllocHost_v2, cuMemFreeHost, cuMemcpy2DAsync_v2,
    cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, cuStreamWaitEvent,
};
use super::failure::{OUT_OF_MEMORY, Outcome, check};
use super::{Context, Event, Stream};
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

/// A pitch that every driver accepts for a 2D copy (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` is at least
/// this).
const MAX_PITCH: usize = i32::MAX as usize;

/// Page-locked host memory, freed on drop. The owner ensures that no copy runs then.
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    /// Null for no bytes.
    start: *mut u8,
    context: Arc<Context>,
}

// SAFETY: plain memory that this value alone owns; the driver frees it from any thread.
unsafe impl Send for PinnedMemory {}
// SAFETY: a shared reference gives the address, and nothing else.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// `bytes` zeros.
    pub(crate) fn zeroed(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let mut memory = PinnedMemory { start: null_mut(), context: context.clone() };
        if bytes > 0 {
            let _current = context.enter()?;
            let mut start = null_mut();
            // SAFETY: the driver writes one address.
            let result = unsafe { cuMemAllocHost_v2(&mut start, bytes) }.outcome();
            result.map_err(|raw| match raw.code {
                OUT_OF_MEMORY => Error::OutOfMemory {
                    device: "this machine, page-locked".to_owned(),
                    needed: bytes as u64,
                    free: crate::memory::available().0,
                },
                _ => context.error(raw),
            })?;
            memory.start = start.cast();
            // SAFETY: `bytes` bytes were allocated.
            unsafe { memory.start.write_bytes(0, bytes) };
        }
        Ok(memory)
    }

    /// The first byte's address. Null for no bytes.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if !self.start.is_null() && self.context.hung().is_none() {
            let _current = self.context.enter();
            // SAFETY: this driver has allocated it, and nobody uses it any more.
            let _ = unsafe { cuMemFreeHost(self.start.cast()) };
        }
    }
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    ToDevice,
    ToHost,
}

/// Rows of bytes: the address of the first, and the bytes from one to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pitched {
    pub(crate) start: u64,
    pub(crate) pitch: usize,
}

impl Pitched {
    fn row(self, row: usize) -> u64 {
        self.start + (row * self.pitch) as u64
    }
}

/// Bytes of a piece of a row that is longer.
const PIECE: usize = 1 << 30;

/// The copies that together copy `rows` rows of `bytes` bytes, each within the driver's limits: one
/// of all rows, or pieces of each row.
pub(super) fn within_limits(
    from: Pitched,
    to: Pitched,
    [bytes, rows]: [usize; 2],
) -> impl Iterator<Item = (Pitched, Pitched, [usize; 2])> {
    let is_dense = from.pitch == bytes && to.pitch == bytes && bytes * rows <= MAX_PITCH;
    let [bytes, rows] = if is_dense { [bytes * rows, 1] } else { [bytes, rows] };
    let each = bytes > MAX_PITCH || from.pitch.max(to.pitch) > MAX_PITCH;
    let (copies, rows, step) = if each { (rows, 1, PIECE) } else { (1, rows, bytes.max(1)) };
    (0..copies).flat_map(move |row| {
        (0..bytes).step_by(step).map(move |first| {
            let len = step.min(bytes - first);
            let side = |of: Pitched| Pitched {
                start: of.start + (row * of.pitch + first) as u64,
                pitch: if rows == 1 { len } else { of.pitch },
            };
            (side(from), side(to), [len, rows])
        })
    })
}

/// The description of a copy of `rows` rows of `bytes` bytes between two memories.
fn copy_2d(
    (from_kind, from): (Kind, Pitched),
    (to_kind, to): (Kind, Pitched),
    [bytes, rows]: [usize; 2],
) -> CUDA_MEMCPY2D {
    let addresses = |kind: Kind, rows: Pitched| match kind {
        Kind::CU_MEMORYTYPE_HOST => (rows.start as *mut c_void, 0),
        _ => (null_mut(), rows.start),
    };
    let ((from_host, from_device), (to_host, to_device)) =
        (addresses(from_kind, from), addresses(to_kind, to));
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: from_kind,
        srcHost: from_host,
        srcDevice: from_device,
        srcArray: null_mut(),
        srcPitch: from.pitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: to_kind,
        dstHost: to_host,
        dstDevice: to_device,
        dstArray: null_mut(),
        dstPitch: to.pitch,
        WidthInBytes: bytes,
        Height: rows,
    }
}

impl Stream {
    /// Queues a copy of `rows` rows of `bytes` bytes.
    ///
    /// # Safety
    /// 1. Each row is valid, on the host and on this device, until the copy has ended. The host's
    ///    rows are page-locked. Until then nobody else writes memory that the copy reads, or
    ///    accesses memory that it writes.
    /// 2. Each pitch is at least a row.
    pub(crate) unsafe fn copy(
        &self,
        way: Way,
        host: Pitched,
        device: Pitched,
        [bytes, rows]: [usize; 2],
    ) -> Result<()> {
        if bytes == 0 || rows == 0 {
            return Ok(());
        }
        let _current = self.context().enter()?;
        if rows == 1 || host.pitch == bytes && device.pitch == bytes {
            // SAFETY: the caller's. Rows without gaps are one row.
            return unsafe { self.copy_bytes(way, host.start, device.start, bytes * rows) };
        }
        if host.pitch.max(device.pitch) > MAX_PITCH {
            return (0..rows).try_for_each(|row| {
                // SAFETY: the caller's.
                unsafe { self.copy_bytes(way, host.row(row), device.row(row), bytes) }
            });
        }
        let host_side = (Kind::CU_MEMORYTYPE_HOST, host);
        let device_side = (Kind::CU_MEMORYTYPE_DEVICE, device);
        let copy = match way {
            Way::ToDevice => copy_2d(host_side, device_side, [bytes, rows]),
            Way::ToHost => copy_2d(device_side, host_side, [bytes, rows]),
        };
        // SAFETY: the driver reads the description during the call. The memory is the caller's
        // promise.
        self.context().check(unsafe { cuMemcpy2DAsync_v2(&copy, *self.raw()) })
    }

    /// Queues a copy of rows on the device. The size is the bytes of a row, and the rows.
    ///
    /// # Safety
    /// 1. Each row is valid on this device, on both sides, until the copy has ended. The two sides
    ///    do not overlap. Until then nobody else writes memory that the copy reads, or accesses
    ///    memory that it writes.
    /// 2. Each pitch is at least a row.
    pub(crate) unsafe fn copy_on_device(
        &self,
        from: Pitched,
        to: Pitched,
        size: [usize; 2],
    ) -> Result<()> {
        let _current = self.context().enter()?;
        for (from, to, size) in within_limits(from, to, size) {
            let [from, to] = [from, to].map(|rows| (Kind::CU_MEMORYTYPE_DEVICE, rows));
            let copy = copy_2d(from, to, size);
            // SAFETY: as in `copy`.
            self.context().check(unsafe { cuMemcpy2DAsync_v2(&copy, *self.raw()) })?;
        }
        Ok(())
    }

    /// Queues a copy of contiguous bytes.
    ///
    /// # Safety
    /// As [`Stream::copy`].
    unsafe fn copy_bytes(&self, way: Way, host: u64, device: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's.
        let result = unsafe {
            match way {
                Way::ToDevice => cuMemcpyHtoDAsync_v2(device, host as *const _, bytes, *self.raw()),
                Way::ToHost => cuMemcpyDtoHAsync_v2(host as *mut _, device, bytes, *self.raw()),
            }
        };
        self.context().check(result)
    }

    /// Lets what is queued from now on wait for an event.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        let _current = self.context().enter()?;
        if event.is_in_capture() {
            self.share();
        }
        // SAFETY: both handles live as long as the borrows. The driver keeps what it needs of an
        // event that is destroyed before it is reached.
        check(unsafe { cuStreamWaitEvent(*self.raw(), event.raw(), 0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a copy, each in bytes from the start.
    fn pieces(from: usize, to: usize, size: [usize; 2]) -> Vec<[usize; 6]> {
        let [from, to] = [from, to].map(|pitch| Pitched { start: 0, pitch });
        let numbers = |(from, to, [bytes, rows]): (Pitched, Pitched, [usize; 2])| {
            [from.start as usize, from.pitch, to.start as usize, to.pitch, bytes, rows]
        };
        within_limits(from, to, size).map(numbers).collect()
    }

    #[test]
    fn no_copy_has_a_pitch_that_a_driver_refuses() {
        const LONG: usize = 2_400_000_000;
        assert_eq!(pieces(8, 8, [8, 3]), [[0, 24, 0, 24, 24, 1]]);
        assert_eq!(pieces(16, 8, [8, 3]), [[0, 16, 0, 8, 8, 3]]);
        // One row of a long matrix, and rows that are long themselves.
        assert_eq!(pieces(LONG, 8, [8, 2]), [[0, 8, 0, 8, 8, 1], [LONG, 8, 8, 8, 8, 1]]);
        let long = pieces(LONG, LONG, [LONG, 2]);
        assert_eq!(long.len(), 6);
        assert_eq!(long.iter().map(|piece| piece[4]).sum::<usize>(), 2 * LONG);
        assert!(long.iter().all(|[_, from, _, to, bytes, _]| {
            [from, to].map(|it| *it <= MAX_PITCH && it >= bytes) == [true; 2]
        }));
        assert_eq!(long[3][..4], [LONG, PIECE, LONG, PIECE]);
        assert!(pieces(8, 8, [0, 3]).is_empty());
    }
}
