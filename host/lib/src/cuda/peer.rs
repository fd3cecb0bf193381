//! Several devices of a process: access of one to the memory of another, and copies between them.

use super::failure::{Outcome, check};
use super::{Context, Pitched, Stream, pinned::within_limits};
use crate::error::{Error, Result};
use cuda_dyn::{CUDA_MEMCPY3D_PEER, CUmemorytype};
use std::ptr::null_mut;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`: by another library, or by us before.
const ALREADY_ENABLED: i32 = 704;

impl Context {
    /// Lets work of this device access the memory of `peer`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the hardware or the system does not allow it; those of the driver.
    pub(crate) fn enable_peer(&self, peer: &Context) -> Result<()> {
        let mut can = 0;
        let [device, its] = [self, peer].map(|context| context.index() as i32);
        // SAFETY: one number is written. A device's handle is its index.
        check(unsafe { cuda_dyn::cuDeviceCanAccessPeer(&mut can, device, its) })?;
        if can == 0 {
            let limit = format!("must be able to access the memory of {}", peer.label());
            return Err(Error::argument("devices", self.label(), limit));
        }
        let _current = self.enter()?;
        // SAFETY: the context lives as long as `peer`. The driver refuses a second call.
        let outcome = unsafe { cuda_dyn::cuCtxEnablePeerAccess(peer.raw().cast(), 0) }.outcome();
        match outcome {
            Err(raw) if raw.code != ALREADY_ENABLED => Err(raw.error()),
            _ => Ok(()),
        }
    }
}

impl Stream {
    /// Queues a copy of rows from a device to this stream's. The size is the bytes of a row, and
    /// the rows.
    ///
    /// # Safety
    /// 1. Each row is valid, on the device of `peer` and on this one, until the copy has ended. The
    ///    two sides do not overlap. Until then nobody else writes memory that the copy reads, or
    ///    accesses memory that it writes.
    /// 2. Each pitch is at least a row.
    pub(crate) unsafe fn copy_from_peer(
        &self,
        peer: &Context,
        from: Pitched,
        to: Pitched,
        size: [usize; 2],
    ) -> Result<()> {
        let _current = self.context().enter()?;
        for (from, to, [bytes, rows]) in within_limits(from, to, size) {
            let copy = CUDA_MEMCPY3D_PEER {
                srcXInBytes: 0,
                srcY: 0,
                srcZ: 0,
                srcLOD: 0,
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcHost: null_mut(),
                srcDevice: from.start,
                srcArray: null_mut(),
                srcContext: peer.raw().cast(),
                srcPitch: from.pitch,
                srcHeight: rows,
                dstXInBytes: 0,
                dstY: 0,
                dstZ: 0,
                dstLOD: 0,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstHost: null_mut(),
                dstDevice: to.start,
                dstArray: null_mut(),
                dstContext: self.context().raw().cast(),
                dstPitch: to.pitch,
                dstHeight: rows,
                WidthInBytes: bytes,
                Height: rows,
                Depth: 1,
            };
            let raw = self.raw();
            // SAFETY: the driver reads the description during the call. The memory is the caller's
            // promise.
            self.context().check(unsafe { cuda_dyn::cuMemcpy3DPeerAsync(&copy, raw.cast()) })?;
        }
        Ok(())
    }
}
