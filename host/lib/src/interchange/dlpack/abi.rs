//! The C structures of DLPack, after `dlpack.h` (<https://github.com/dmlc/dlpack>, versions 0.8
//! and 1.0).

use std::ffi::c_void;

/// `DLDevice`: a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDevice {
    /// The kind of device: [`CPU`](Self::CPU) and so on.
    pub device_type: i32,
    /// The index among devices of that kind.
    pub device_id: i32,
}

impl DLDevice {
    /// `kDLCPU`: host memory.
    pub const CPU: i32 = 1;
    /// `kDLCUDA`: memory of an NVIDIA GPU.
    pub const CUDA: i32 = 2;
    /// `kDLCUDAHost`: page-locked host memory.
    pub const CUDA_HOST: i32 = 3;
    /// `kDLCUDAManaged`: memory of host and GPU.
    pub const CUDA_MANAGED: i32 = 13;
}

/// `DLDataType`: a type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    /// The kind of number: 0 signed, 1 unsigned, 2 float, 4 bfloat.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// Numbers of an element.
    pub lanes: u16,
}

/// `DLTensor`: a tensor, without its owner.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of elements.
    pub dtype: DLDataType,
    /// The size of each dimension.
    pub shape: *mut i64,
    /// Elements from one index of each dimension to the next. Null: row-major, without gaps.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: a tensor with its owner, before version 1.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The owner's own.
    pub manager_ctx: *mut c_void,
    /// Frees all of it. Whoever takes the tensor calls it once.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLPackVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// With another one the structures are other ones.
    pub major: u32,
    /// With another one there are more constants.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`: a tensor with its owner, from version 1 on.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// The version of this structure.
    pub version: DLPackVersion,
    /// The owner's own.
    pub manager_ctx: *mut c_void,
    /// Frees all of it. Whoever takes the tensor calls it once.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`](Self::READ_ONLY), [`IS_COPIED`](Self::IS_COPIED) and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

impl DLManagedTensorVersioned {
    /// `DLPACK_FLAG_BITMASK_READ_ONLY`: the elements may not be written.
    pub const READ_ONLY: u64 = 1;
    /// `DLPACK_FLAG_BITMASK_IS_COPIED`: the owner has made a copy for the tensor. What is written
    /// to it, the owner never sees, and what the owner writes later is not in it.
    pub const IS_COPIED: u64 = 2;
}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        // SAFETY: plain data. To follow its pointers is unsafe, on any thread.
        unsafe impl Send for $ty {}
        // SAFETY: as above.
        unsafe impl Sync for $ty {}
    )*};
}

plain! { DLTensor DLManagedTensor DLManagedTensorVersioned }

// The layouts on 64-bit systems.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<DLTensor>() == 48 && size_of::<DLManagedTensor>() == 64);
    assert!(offset_of!(DLTensor, device) == 8 && offset_of!(DLTensor, ndim) == 16);
    assert!(offset_of!(DLTensor, dtype) == 20 && offset_of!(DLTensor, shape) == 24);
    assert!(offset_of!(DLTensor, strides) == 32 && offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(offset_of!(DLManagedTensorVersioned, flags) == 24);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};
