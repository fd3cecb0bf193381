//! Our declarations beside `cust_raw`'s, by the compiler. Each comparison is of a type, so that
//! this compiles is most of the test.

use super::Functions;
use crate::types::*;
use cust_raw::CUresult;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::mem::offset_of;

/// This type of ours is passed as that one of `cust_raw`'s.
trait Like<Raw> {}

macro_rules! same {
    ($($type:ty)*) => { $(impl Like<$type> for $type {})* };
}
same! { c_char c_uchar c_int c_uint c_ulonglong usize f32 c_void }

macro_rules! like {
    ($($name:ident)*) => { $(impl Like<cust_raw::$name> for $name {})* };
}
like! {
    CUctx_st CUmod_st CUfunc_st CUstream_st CUevent_st CUarray_st CUuuid CUDA_MEMCPY2D CUDA_MEMCPY3D CUDA_MEMCPY3D_PEER CUmemorytype
    CUdevice_attribute CUfunction_attribute CUjit_option CUgraph_st CUgraphExec_st CUstreamCaptureMode
    CUpointer_attribute
}
// The driver writes it: as a number it may be one that is not known yet.
impl Like<cust_raw::CUstreamCaptureStatus> for c_int {}

impl<Raw, Ours: Like<Raw>> Like<*mut Raw> for *mut Ours {}
impl<Raw, Ours: Like<Raw>> Like<*const Raw> for *const Ours {}

/// A function of ours is called as one of `cust_raw`'s. In both an enum's number is an int in C.
macro_rules! functions_are_alike {
    ($([$($ours:ident $raw:ident)*])*) => {$(
        impl<$($raw, $ours: Like<$raw>),*> Like<unsafe extern "C" fn($($raw),*) -> CUresult>
            for unsafe extern "C" fn($($ours),*) -> c_int
        {
        }
    )*};
}
functions_are_alike! {
    [] [A A2] [A A2 B B2] [A A2 B B2 C C2] [A A2 B B2 C C2 D D2] [A A2 B B2 C C2 D D2 E E2]
    [A A2 B B2 C C2 D D2 E E2 F F2 G G2 H H2 I I2 J J2 K K2]
}

fn compare<Raw, Ours: Like<Raw>>(_: Raw, _: Ours) {}

macro_rules! compare {
    ($table:ident: $($name:ident($($argument:tt)*))*) => {
        // All are named here, but for what is newer than `cust_raw`, and for two whose code is an
        // enum there.
        let Functions {
            $($name,)*
            cuLaunchKernelEx: _, cuTensorMapEncodeTiled: _, cuGetErrorName: _, cuGetErrorString: _,
        } = $table;
        $(compare(cust_raw::$name as unsafe extern "C" fn($($argument)*) -> CUresult, *$name);)*
    };
}

#[test]
fn functions_have_the_types_of_cust_raw() {
    let table = Functions::get();
    compare! { table:
        cuInit(_) cuDriverGetVersion(_) cuDeviceGetCount(_) cuDeviceGet(_, _) cuDeviceGetAttribute(_, _, _)
        cuDeviceGetName(_, _, _) cuDeviceGetUuid(_, _) cuDeviceTotalMem_v2(_, _) cuDevicePrimaryCtxRetain(_, _)
        cuDevicePrimaryCtxRelease_v2(_) cuCtxGetCurrent(_) cuCtxSetCurrent(_) cuCtxPushCurrent_v2(_)
        cuCtxPopCurrent_v2(_) cuCtxSynchronize() cuMemGetInfo_v2(_, _) cuMemAlloc_v2(_, _)
        cuMemAllocPitch_v2(_, _, _, _, _) cuMemFree_v2(_) cuMemAllocHost_v2(_, _) cuMemFreeHost(_)
        cuMemcpyHtoD_v2(_, _, _) cuMemcpyDtoH_v2(_, _, _) cuMemcpyHtoDAsync_v2(_, _, _, _)
        cuMemcpyDtoHAsync_v2(_, _, _, _) cuMemcpyDtoDAsync_v2(_, _, _, _) cuMemcpy2D_v2(_) cuMemcpy2DAsync_v2(_, _) cuMemcpy3D_v2(_)
        cuDeviceCanAccessPeer(_, _, _) cuCtxEnablePeerAccess(_, _) cuMemcpy3DPeerAsync(_, _)
        cuMemsetD8_v2(_, _, _) cuModuleLoadDataEx(_, _, _, _, _) cuModuleUnload(_) cuModuleGetFunction(_, _, _)
        cuModuleGetGlobal_v2(_, _, _, _) cuFuncGetAttribute(_, _, _) cuFuncSetAttribute(_, _, _)
        cuLaunchKernel(_, _, _, _, _, _, _, _, _, _, _) cuStreamCreateWithPriority(_, _, _) cuStreamDestroy_v2(_)
        cuStreamSynchronize(_) cuStreamWaitEvent(_, _, _) cuEventCreate(_, _) cuEventDestroy_v2(_)
        cuEventRecord(_, _) cuEventSynchronize(_) cuEventElapsedTime(_, _, _) cuStreamGetCtx(_, _)
        cuStreamBeginCapture_v2(_, _) cuStreamEndCapture(_, _) cuStreamIsCapturing(_, _)
        cuGraphInstantiateWithFlags(_, _, _) cuGraphLaunch(_, _) cuGraphExecDestroy(_) cuGraphDestroy(_)
        cuPointerGetAttribute(_, _, _) cuStreamQuery(_) cuEventQuery(_)
    }
    assert_eq!(size_of::<CUresult>(), size_of::<c_int>());
}

/// Structs have the fields of `cust_raw`'s, at the same places, of the same sizes.
macro_rules! structs {
    ($($name:ident { $($field:ident)* })*) => {$(
        let _all = |$name { $($field: _),* }: $name| ();
        $({
            assert_eq!(offset_of!($name, $field), offset_of!(cust_raw::$name, $field), stringify!($field));
            fn size<S, F>(_: fn(&S) -> &F) -> usize { size_of::<F>() }
            let sizes = (size(|it: &$name| &it.$field), size(|it: &cust_raw::$name| &it.$field));
            assert_eq!(sizes.0, sizes.1, stringify!($field));
        })*
        assert_eq!(size_of::<$name>(), size_of::<cust_raw::$name>());
        assert_eq!(align_of::<$name>(), align_of::<cust_raw::$name>());
    )*};
}

#[test]
fn structs_are_those_of_cust_raw() {
    structs! {
        CUuuid { bytes }
        CUDA_MEMCPY2D {
            srcXInBytes srcY srcMemoryType srcHost srcDevice srcArray srcPitch dstXInBytes dstY dstMemoryType dstHost
            dstDevice dstArray dstPitch WidthInBytes Height
        }
        CUDA_MEMCPY3D {
            srcXInBytes srcY srcZ srcLOD srcMemoryType srcHost srcDevice srcArray reserved0 srcPitch srcHeight
            dstXInBytes dstY dstZ dstLOD dstMemoryType dstHost dstDevice dstArray reserved1 dstPitch dstHeight
            WidthInBytes Height Depth
        }
        CUDA_MEMCPY3D_PEER {
            srcXInBytes srcY srcZ srcLOD srcMemoryType srcHost srcDevice srcArray srcContext srcPitch srcHeight
            dstXInBytes dstY dstZ dstLOD dstMemoryType dstHost dstDevice dstArray dstContext dstPitch dstHeight
            WidthInBytes Height Depth
        }
    }
}

macro_rules! enums {
    ($($name:ident { $($value:ident)* })*) => {$(
        let number = |value: $name| match value { $($name::$value => cust_raw::$name::$value as u32,)* };
        $(assert_eq!($name::$value as u32, number($name::$value), stringify!($value));)*
        assert_eq!(size_of::<$name>(), size_of::<cust_raw::$name>());
    )*};
}

#[test]
fn numbers_are_those_of_cust_raw() {
    enums! {
        CUmemorytype { CU_MEMORYTYPE_HOST CU_MEMORYTYPE_DEVICE }
        CUdevice_attribute {
            CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X
            CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
            CU_DEVICE_ATTRIBUTE_CLOCK_RATE CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
            CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH
            CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
            CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        }
        CUfunction_attribute {
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES CU_FUNC_ATTRIBUTE_NUM_REGS
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        }
        CUpointer_attribute { CU_POINTER_ATTRIBUTE_CONTEXT CU_POINTER_ATTRIBUTE_MEMORY_TYPE CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL }
        CUstreamCaptureMode { CU_STREAM_CAPTURE_MODE_THREAD_LOCAL }
        CUjit_option {
            CU_JIT_INFO_LOG_BUFFER CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES CU_JIT_ERROR_LOG_BUFFER
            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES CU_JIT_OPTIMIZATION_LEVEL
        }
    }
    let none = cust_raw::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    assert_eq!(CU_STREAM_CAPTURE_STATUS_NONE, none as c_int);
    assert_eq!(CU_STREAM_NON_BLOCKING, cust_raw::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint);
}
