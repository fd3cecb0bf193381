//! The functions that the library calls, as functions of this crate. They are no symbols of the
//! program.

#![allow(
    non_snake_case,
    reason = "these are the driver's names, by which its documentation has them"
)]

use crate::failure::Failure;
use crate::launch_config::CUlaunchConfig;
use crate::library::table;
use crate::tensor_map::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use crate::types::*;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

#[cfg(test)]
mod tests;

/// Defines the table of functions, and for each a function of this crate that calls it.
macro_rules! functions {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?);
    )*) => {
        table! {
            /// The driver's functions, after NVIDIA's documentation and `cust_raw`, with which the
            /// tests compare them.
            struct Functions {
                $(fn $name($($argument: $type),*);)*
            }
        }

        $(
            $(#[$attribute])*
            ///
            /// # Safety
            /// 1. The arguments are as NVIDIA's documentation of the function wants them.
            pub unsafe fn $name($($argument: $type),*) -> Result<(), Failure> {
                // SAFETY: the function has these arguments. What it asks of them the caller
                // promises.
                match unsafe { (Functions::get().$name)($($argument),*) } {
                    0 => Ok(()),
                    code => Err(Failure { function: stringify!($name), code }),
                }
            }
        )*
    };
}

/// The CUDA version (major, minor) that a function here came with, where that is later than 11.1. A
/// driver of an older one lacks it.
pub fn since(function: &str) -> Option<(u32, u32)> {
    match function {
        "cuGraphInstantiateWithFlags" => Some((11, 4)),
        "cuLaunchKernelEx" => Some((11, 8)),
        "cuTensorMapEncodeTiled" => Some((12, 0)),
        _ => None,
    }
}

functions! {
    /// Starts the driver.
    fn cuInit(flags: c_uint);
    /// The newest CUDA version that the driver supports: 1000 times the major number and ten times
    /// the minor one.
    fn cuDriverGetVersion(version: *mut c_int);
    /// The name of a result code.
    fn cuGetErrorName(code: c_int, name: *mut *const c_char);
    /// The description of a result code.
    fn cuGetErrorString(code: c_int, text: *mut *const c_char);

    /// How many devices there are.
    fn cuDeviceGetCount(count: *mut c_int);
    /// The device with an index.
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    /// A property of a device.
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    /// A device's name, with NUL, in at most `length` bytes.
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    /// A device's UUID.
    fn cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice);
    /// The bytes of a device's memory.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    /// A device's primary context, which exists until it is released as often as it was retained.
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    /// Releases a device's primary context.
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);

    /// The thread's current context, or null.
    fn cuCtxGetCurrent(context: *mut CUcontext);
    /// Makes a context the thread's current one, in the place of the one before.
    fn cuCtxSetCurrent(context: CUcontext);
    /// Makes a context the thread's current one, and keeps the one before beneath it.
    fn cuCtxPushCurrent_v2(context: CUcontext);
    /// Makes the context beneath the thread's current one current again.
    fn cuCtxPopCurrent_v2(context: *mut CUcontext);
    /// Waits for all work in the current context.
    fn cuCtxSynchronize();
    /// Whether a device can access the memory of another: 1 if it can.
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    /// Lets the current context access the memory of another device's context.
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);

    /// Bytes of the current context's device that are free, and all.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    /// Allocates device memory.
    fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    /// Allocates device memory for rows, whose pitch the driver chooses.
    fn cuMemAllocPitch_v2(
        address: *mut CUdeviceptr, pitch: *mut usize, row_bytes: usize, rows: usize,
        element_bytes: c_uint
    );
    /// Frees device memory.
    fn cuMemFree_v2(address: CUdeviceptr);
    /// Allocates page-locked host memory.
    fn cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize);
    /// Frees page-locked host memory.
    fn cuMemFreeHost(address: *mut c_void);
    /// Copies to the device.
    fn cuMemcpyHtoD_v2(target: CUdeviceptr, source: *const c_void, bytes: usize);
    /// Copies to the host.
    fn cuMemcpyDtoH_v2(target: *mut c_void, source: CUdeviceptr, bytes: usize);
    /// Copies to the device, on a stream.
    fn cuMemcpyHtoDAsync_v2(
        target: CUdeviceptr, source: *const c_void, bytes: usize, stream: CUstream
    );
    /// Copies to the host, on a stream.
    fn cuMemcpyDtoHAsync_v2(
        target: *mut c_void, source: CUdeviceptr, bytes: usize, stream: CUstream
    );
    /// Copies within a device, on a stream.
    fn cuMemcpyDtoDAsync_v2(
        target: CUdeviceptr, source: CUdeviceptr, bytes: usize, stream: CUstream
    );
    /// Copies rows.
    fn cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D);
    /// Copies rows, on a stream.
    fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
    /// Copies slices of rows.
    fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D);
    /// Copies slices of rows between two devices, on a stream.
    fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream);
    /// A property of an address, written to `data`.
    fn cuPointerGetAttribute(
        data: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr
    );
    /// Sets bytes of device memory.
    fn cuMemsetD8_v2(target: CUdeviceptr, value: c_uchar, count: usize);

    /// Compiles and loads a module, PTX or machine code.
    fn cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, option_count: c_uint,
        options: *mut CUjit_option, values: *mut *mut c_void
    );
    /// Unloads a module.
    fn cuModuleUnload(module: CUmodule);
    /// The kernel of a module with a name.
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    /// Address and bytes of a module's variable with a name.
    fn cuModuleGetGlobal_v2(
        address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char
    );
    /// A property of a kernel.
    fn cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
    /// Sets a property of a kernel.
    fn cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    /// Launches a kernel. `params` has a pointer to the value of each of its parameters.
    fn cuLaunchKernel(
        function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, dynamic_shared: c_uint, stream: CUstream,
        params: *mut *mut c_void, extra: *mut *mut c_void
    );
    /// Launches a kernel as `cuLaunchKernel` does, with attributes besides.
    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig, function: CUfunction, params: *mut *mut c_void,
        extra: *mut *mut c_void
    );

    /// A new stream.
    fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    /// Destroys a stream, once its work has ended.
    fn cuStreamDestroy_v2(stream: CUstream);
    /// Waits for a stream's work.
    fn cuStreamSynchronize(stream: CUstream);
    /// Whether a stream's work has ended: `CUDA_ERROR_NOT_READY` if it has not.
    fn cuStreamQuery(stream: CUstream);
    /// Lets a stream wait for an event.
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    /// The context of a stream.
    fn cuStreamGetCtx(stream: CUstream, context: *mut CUcontext);
    /// Begins the capture of a stream: from now on its work is noted, and not done.
    fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    /// Ends the capture of a stream. The graph has the work. It is null if the capture was spoilt.
    fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    /// Whether a stream is captured: a number of `CUstreamCaptureStatus`.
    fn cuStreamIsCapturing(stream: CUstream, status: *mut c_int);
    /// Makes a graph that can be launched.
    fn cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    /// Launches a graph on a stream.
    fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
    /// Destroys a graph that can be launched, once its launches have ended.
    fn cuGraphExecDestroy(executable: CUgraphExec);
    /// Destroys a graph. What was made of it stays.
    fn cuGraphDestroy(graph: CUgraph);
    /// A new event.
    fn cuEventCreate(event: *mut CUevent, flags: c_uint);
    /// Destroys an event.
    fn cuEventDestroy_v2(event: CUevent);
    /// Records an event in a stream.
    fn cuEventRecord(event: CUevent, stream: CUstream);
    /// Waits for an event.
    fn cuEventSynchronize(event: CUevent);
    /// Whether an event is reached: `CUDA_ERROR_NOT_READY` if it is not.
    fn cuEventQuery(event: CUevent);
    /// The time between two events.
    fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

    /// Encodes the description of a tensor of `rank` dimensions, innermost first, and of the boxes
    /// in which TMA copies it. It is refused with `CUDA_ERROR_INVALID_VALUE` where TMA cannot.
    /// `extents`, `box_extents` and `element_strides` have `rank` numbers, `strides`, in bytes, one
    /// less.
    fn cuTensorMapEncodeTiled(
        map: *mut CUtensorMap, data_type: CUtensorMapDataType, rank: u32, address: *mut c_void,
        extents: *const u64, strides: *const u64, box_extents: *const u32,
        element_strides: *const u32, interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle, l2_promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill
    );
}
