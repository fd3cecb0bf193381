//! The types of the driver's functions, by the driver's names. The tests compare them with
//! `cust_raw`'s.

#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "these are the driver's names, by which its documentation has them"
)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

/// A device, as the driver counts them.
pub type CUdevice = c_int;
/// An address in device memory.
pub type CUdeviceptr = c_ulonglong;

/// Defines handles: pointers to what the driver alone knows.
macro_rules! handles {
    ($($(#[$attribute:meta])* $handle:ident = *mut $opaque:ident;)*) => {$(
        #[doc = concat!("What a [`", stringify!($handle), "`] points to.")]
        #[derive(Debug)]
        #[repr(C)]
        pub struct $opaque {
            _opaque: [u8; 0],
        }

        $(#[$attribute])*
        pub type $handle = *mut $opaque;
    )*};
}

handles! {
    /// A context.
    CUcontext = *mut CUctx_st;
    /// A loaded module.
    CUmodule = *mut CUmod_st;
    /// A kernel of a module.
    CUfunction = *mut CUfunc_st;
    /// A stream.
    CUstream = *mut CUstream_st;
    /// An event.
    CUevent = *mut CUevent_st;
    /// An array of a texture's layout. There are none here.
    CUarray = *mut CUarray_st;
    /// A graph: work of a stream that was captured.
    CUgraph = *mut CUgraph_st;
    /// A graph that can be launched.
    CUgraphExec = *mut CUgraphExec_st;
}

/// `CUuuid`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUuuid {
    /// Its bytes.
    pub bytes: [c_char; 16],
}

/// `CUmemorytype`, as far as it is used: a kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUmemorytype {
    /// The host's.
    CU_MEMORYTYPE_HOST = 1,
    /// A device's.
    CU_MEMORYTYPE_DEVICE = 2,
}

/// `CUdevice_attribute`, as far as it is used: a property of a device. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "NVIDIA's documentation has them")]
pub enum CUdevice_attribute {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    /// The most shared memory of a block that does not ask for more.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    /// The highest SM clock in kHz.
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    /// The highest memory clock in kHz.
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    /// The width of the memory bus in bits.
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    /// 32-bit registers of an SM.
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
}

/// `CUfunction_attribute`, as far as it is used: a property of a kernel. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUfunction_attribute {
    /// The most threads of a block.
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    /// Static shared memory of a block.
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    /// 32-bit registers of a thread.
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    /// The most dynamic shared memory of a block.
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    /// The percentage of an SM's memory that is to be shared memory.
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
}

/// `CUjit_option`, as far as it is used: an option of the driver's compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "NVIDIA's documentation has them")]
pub enum CUjit_option {
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    /// The level of optimisation, from 0 to 4.
    CU_JIT_OPTIMIZATION_LEVEL = 7,
}

/// `CUstreamCaptureMode`, as far as it is used: which calls are refused while a stream is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUstreamCaptureMode {
    /// Those of the thread that began the capture, if they could spoil it: allocations, for
    /// example.
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
}

/// `CU_STREAM_CAPTURE_STATUS_NONE`: the status of a stream that is not captured.
pub const CU_STREAM_CAPTURE_STATUS_NONE: c_int = 0;

/// `CUpointer_attribute`, as far as it is used: a property of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUpointer_attribute {
    /// The context in which it was allocated, a [`CUcontext`]. Null for memory that is of none.
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    /// The kind of memory, a [`CUmemorytype`].
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    /// The index of the device whose memory it is.
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
}

/// The flag of a stream that does not wait for the default stream.
pub const CU_STREAM_NON_BLOCKING: c_uint = 1;

/// `CUDA_MEMCPY2D`: a copy of rows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "NVIDIA's documentation has them")]
pub struct CUDA_MEMCPY2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

/// `CUDA_MEMCPY3D`: a copy of slices of rows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "NVIDIA's documentation has them")]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

/// `CUDA_MEMCPY3D_PEER`: a copy of slices of rows between two contexts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "NVIDIA's documentation has them")]
pub struct CUDA_MEMCPY3D_PEER {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}
