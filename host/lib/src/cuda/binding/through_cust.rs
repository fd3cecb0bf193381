//! The driver through `cust`: its safe types if they fit, otherwise `cust::sys` (streams that do
//! not wait for the default stream, the compiler's log, more than 48 KiB of dynamic shared memory).
//! The crate `cuda-dyn` defines what `cust` links.

use crate::cuda::failure::{Outcome, Raw};
use cust::context::CurrentContext;
use cust::device::Device;
use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer};
use cust::stream::StreamFlags;
pub(in crate::cuda) use cust::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUcontext, CUdevice, CUdevice_attribute, CUevent, CUfunction,
    CUfunction_attribute, CUjit_option, CUmemorytype, CUmodule, CUstream, CUuuid, cuCtxGetCurrent,
    cuCtxPopCurrent_v2, cuCtxPushCurrent_v2, cuCtxSetCurrent, cuDeviceGet, cuDeviceGetAttribute,
    cuDeviceGetName, cuDeviceGetUuid, cuDeviceTotalMem_v2, cuEventCreate, cuEventDestroy_v2,
    cuEventElapsedTime, cuEventRecord, cuEventSynchronize, cuFuncGetAttribute, cuFuncSetAttribute,
    cuLaunchKernel, cuMemAllocHost_v2, cuMemAllocPitch_v2, cuMemFreeHost, cuMemcpy2D_v2,
    cuMemcpy2DAsync_v2, cuMemcpy3D_v2, cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoD_v2,
    cuMemcpyHtoDAsync_v2, cuModuleGetFunction, cuModuleGetGlobal_v2, cuModuleLoadDataEx,
    cuModuleUnload, cuStreamCreateWithPriority, cuStreamDestroy_v2, cuStreamSynchronize,
    cuStreamWaitEvent,
};
use std::ops::Range;

pub(in crate::cuda) const CU_STREAM_NON_BLOCKING: u32 = StreamFlags::NON_BLOCKING.bits();

/// Starts the driver. After the first call this costs nothing.
pub(in crate::cuda) fn init() -> Result<(), Raw> {
    cust::init(cust::CudaFlags::empty()).outcome()
}

/// The driver's number of devices, as an `int`.
pub(in crate::cuda) fn device_count() -> Result<i32, Raw> {
    Ok(Device::num_devices().outcome()? as i32)
}

/// The newest CUDA version that the driver supports (major, minor).
pub(in crate::cuda) fn version() -> Result<(u32, u32), Raw> {
    let version = cust::CudaApiVersion::get().outcome()?;
    Ok((version.major().unsigned_abs(), version.minor().unsigned_abs()))
}

/// Waits for all work in the current context.
pub(in crate::cuda) fn synchronize() -> Result<(), Raw> {
    CurrentContext::synchronize().outcome()
}

/// Bytes of memory of the current context's device: (free, total).
pub(in crate::cuda) fn mem_get_info() -> Result<(usize, usize), Raw> {
    cust::memory::mem_get_info().outcome()
}

/// A device's primary context, retained while this value lives.
#[derive(Debug)]
pub(in crate::cuda) struct PrimaryContext(cust::context::Context);

impl PrimaryContext {
    /// Of the device with this index, whose handle is `_device`.
    pub(in crate::cuda) fn retain(ordinal: u32, _device: CUdevice) -> Result<Self, Raw> {
        let device = Device::get_device(ordinal).outcome()?;
        let mut before = std::ptr::null_mut();
        // SAFETY: one handle is written.
        unsafe { cuCtxGetCurrent(&mut before) }.outcome()?;
        let context = cust::context::Context::new(device).outcome()?;
        // `cust` has made it the current one.
        // SAFETY: the context was current a moment ago, or is null.
        unsafe { cuCtxSetCurrent(before) }.outcome()?;
        Ok(PrimaryContext(context))
    }

    /// The driver's handle, valid while this value lives.
    pub(in crate::cuda) fn raw(&self) -> CUcontext {
        self.0.as_raw()
    }
}

/// Bytes in device memory, freed on drop, in the current context.
#[derive(Debug)]
pub(in crate::cuda) struct DeviceBytes(DeviceBuffer<u8>);

impl DeviceBytes {
    /// Bytes that are not initialised. For none the driver is not called, and the address is null.
    pub(in crate::cuda) fn uninitialized(bytes: usize) -> Result<Self, Raw> {
        // SAFETY: the contents are only read as bytes, and all bytes are valid.
        unsafe { DeviceBuffer::uninitialized(bytes) }.outcome().map(DeviceBytes)
    }

    /// Bytes that were allocated otherwise.
    ///
    /// # Safety
    /// 1. `bytes` bytes at `address` are valid as long as this value is used. Before it is dropped
    ///    they are this value's to free.
    pub(in crate::cuda) unsafe fn from_raw_parts(address: u64, bytes: usize) -> Self {
        // SAFETY: the caller's promise.
        DeviceBytes(unsafe {
            DeviceBuffer::from_raw_parts(DevicePointer::from_raw(address), bytes)
        })
    }

    /// The device address.
    pub(in crate::cuda) fn address(&self) -> u64 {
        self.0.as_device_ptr().as_raw()
    }

    /// The number of bytes.
    pub(in crate::cuda) fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies `source` to these bytes, which are as many.
    pub(in crate::cuda) fn copy_from(
        &mut self,
        range: Range<usize>,
        source: &[u8],
    ) -> Result<(), Raw> {
        self.0.index(range).copy_from(source).outcome()
    }

    /// Copies these bytes to `target`, which are as many.
    pub(in crate::cuda) fn copy_to(
        &self,
        range: Range<usize>,
        target: &mut [u8],
    ) -> Result<(), Raw> {
        self.0.index(range).copy_to(target).outcome()
    }

    /// Sets these bytes.
    pub(in crate::cuda) fn set(&mut self, range: Range<usize>, value: u8) -> Result<(), Raw> {
        self.0.index(range).set_8(value).outcome()
    }
}
