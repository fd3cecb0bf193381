//! The driver by the functions of `cuda-dyn`.

use crate::cuda::failure::{Outcome, Raw};
pub(in crate::cuda) use cuda_dyn::{
    CU_STREAM_NON_BLOCKING, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUcontext, CUdevice, CUdevice_attribute,
    CUevent, CUfunction, CUfunction_attribute, CUjit_option, CUmemorytype, CUmodule, CUstream,
    CUuuid, cuCtxGetCurrent, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2, cuCtxSetCurrent, cuDeviceGet,
    cuDeviceGetAttribute, cuDeviceGetName, cuDeviceGetUuid, cuDeviceTotalMem_v2, cuEventCreate,
    cuEventDestroy_v2, cuEventElapsedTime, cuEventRecord, cuEventSynchronize, cuFuncGetAttribute,
    cuFuncSetAttribute, cuLaunchKernel, cuMemAllocHost_v2, cuMemAllocPitch_v2, cuMemFreeHost,
    cuMemcpy2D_v2, cuMemcpy2DAsync_v2, cuMemcpy3D_v2, cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2,
    cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, cuModuleGetFunction, cuModuleGetGlobal_v2,
    cuModuleLoadDataEx, cuModuleUnload, cuStreamCreateWithPriority, cuStreamDestroy_v2,
    cuStreamSynchronize, cuStreamWaitEvent,
};
use std::ops::Range;
use std::ptr::null_mut;

/// Starts the driver. After the first call this costs nothing.
pub(in crate::cuda) fn init() -> Result<(), Raw> {
    // SAFETY: there are no flags.
    unsafe { cuda_dyn::cuInit(0) }.outcome()
}

/// The driver's number of devices, as an `int`.
pub(in crate::cuda) fn device_count() -> Result<i32, Raw> {
    let mut count = 0;
    // SAFETY: one number is written.
    unsafe { cuda_dyn::cuDeviceGetCount(&mut count) }.outcome()?;
    Ok(count)
}

/// The newest CUDA version that the driver supports (major, minor).
pub(in crate::cuda) fn version() -> Result<(u32, u32), Raw> {
    let mut version = 0;
    // SAFETY: one number is written.
    unsafe { cuda_dyn::cuDriverGetVersion(&mut version) }.outcome()?;
    let version = version.unsigned_abs();
    Ok((version / 1000, version % 1000 / 10))
}

/// Waits for all work in the current context.
pub(in crate::cuda) fn synchronize() -> Result<(), Raw> {
    // SAFETY: it takes nothing.
    unsafe { cuda_dyn::cuCtxSynchronize() }.outcome()
}

/// Bytes of memory of the current context's device: (free, total).
pub(in crate::cuda) fn mem_get_info() -> Result<(usize, usize), Raw> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: two numbers are written.
    unsafe { cuda_dyn::cuMemGetInfo_v2(&mut free, &mut total) }.outcome()?;
    Ok((free, total))
}

/// A device's primary context, retained while this value lives.
#[derive(Debug)]
pub(in crate::cuda) struct PrimaryContext {
    raw: CUcontext,
    device: CUdevice,
}

// SAFETY: a context's handle belongs to the process, and the driver locks what threads share.
unsafe impl Send for PrimaryContext {}
// SAFETY: as above.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    /// Of the device with this handle, whose index is `_ordinal`.
    pub(in crate::cuda) fn retain(_ordinal: u32, device: CUdevice) -> Result<Self, Raw> {
        let mut raw = null_mut();
        // SAFETY: one handle is written.
        unsafe { cuda_dyn::cuDevicePrimaryCtxRetain(&mut raw, device) }.outcome()?;
        Ok(PrimaryContext { raw, device })
    }

    /// The driver's handle, valid while this value lives.
    pub(in crate::cuda) fn raw(&self) -> CUcontext {
        self.raw
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing uses the handle after this.
        let _ = unsafe { cuda_dyn::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Bytes in device memory, freed on drop, in the current context.
#[derive(Debug)]
pub(in crate::cuda) struct DeviceBytes {
    address: u64,
    len: usize,
}

impl DeviceBytes {
    /// Bytes that are not initialised. For none the driver is not called, and the address is null.
    pub(in crate::cuda) fn uninitialized(len: usize) -> Result<Self, Raw> {
        let mut address = 0;
        if len > 0 {
            // SAFETY: one address is written.
            unsafe { cuda_dyn::cuMemAlloc_v2(&mut address, len) }.outcome()?;
        }
        Ok(DeviceBytes { address, len })
    }

    /// Bytes that were allocated otherwise.
    ///
    /// # Safety
    /// 1. `len` bytes at `address` are valid as long as this value is used. Before it is dropped
    ///    they are this value's to free.
    pub(in crate::cuda) unsafe fn from_raw_parts(address: u64, len: usize) -> Self {
        DeviceBytes { address, len }
    }

    /// The device address.
    pub(in crate::cuda) fn address(&self) -> u64 {
        self.address
    }

    /// The number of bytes.
    pub(in crate::cuda) fn len(&self) -> usize {
        self.len
    }

    /// The address of these bytes.
    fn start(&self, range: &Range<usize>) -> u64 {
        assert!(range.start <= range.end && range.end <= self.len, "the caller has compared them");
        self.address + range.start as u64
    }

    /// Copies `source` to these bytes, which are as many.
    pub(in crate::cuda) fn copy_from(
        &mut self,
        range: Range<usize>,
        source: &[u8],
    ) -> Result<(), Raw> {
        assert_eq!(range.len(), source.len());
        let start = self.start(&range);
        // SAFETY: as many bytes are there on both sides.
        unsafe { cuMemcpyHtoD_v2(start, source.as_ptr().cast(), source.len()) }.outcome()
    }

    /// Copies these bytes to `target`, which are as many.
    pub(in crate::cuda) fn copy_to(
        &self,
        range: Range<usize>,
        target: &mut [u8],
    ) -> Result<(), Raw> {
        assert_eq!(range.len(), target.len());
        let start = self.start(&range);
        // SAFETY: as above.
        unsafe { cuMemcpyDtoH_v2(target.as_mut_ptr().cast(), start, target.len()) }.outcome()
    }

    /// Sets these bytes.
    pub(in crate::cuda) fn set(&mut self, range: Range<usize>, value: u8) -> Result<(), Raw> {
        let start = self.start(&range);
        // SAFETY: the bytes are there.
        unsafe { cuda_dyn::cuMemsetD8_v2(start, value, range.len()) }.outcome()
    }
}

impl Drop for DeviceBytes {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the bytes are this value's, and nobody uses them after this.
            let _ = unsafe { cuda_dyn::cuMemFree_v2(self.address) };
        }
    }
}
