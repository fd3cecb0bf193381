//! The structures of DLPack 1.x, and of its exchange in C.

use std::ffi::{CStr, c_int, c_void};

/// The version that is asked for and given.
pub(crate) const VERSION: Version = Version { major: 1, minor: 0 };

/// A flag of [`ManagedVersioned`]: the memory must not be written.
pub(crate) const READ_ONLY: u64 = 1;

/// Names of capsules, before and after a consumer has taken them.
pub(crate) const LEGACY: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
pub(crate) const VERSIONED: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

/// Kinds of devices.
pub(crate) const CPU: i32 = 1;
pub(crate) const CUDA: i32 = 2;
pub(crate) const CUDA_HOST: i32 = 3;

/// Kinds of elements.
pub(crate) const FLOAT: u8 = 2;
pub(crate) const BFLOAT: u8 = 4;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceOf {
    pub(crate) kind: i32,
    pub(crate) index: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeOf {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: DeviceOf,
    pub(crate) ndim: i32,
    pub(crate) dtype: TypeOf,
    pub(crate) shape: *mut i64,
    /// In elements. Null: C-contiguous.
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

impl Tensor {
    /// A tensor without elements, to be filled in.
    pub(crate) const EMPTY: Tensor = Tensor {
        data: std::ptr::null_mut(),
        device: DeviceOf { kind: CPU, index: 0 },
        ndim: 0,
        dtype: TypeOf { code: FLOAT, bits: 32, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Managed {
    pub(crate) tensor: Tensor,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct ManagedVersioned {
    pub(crate) version: Version,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    pub(crate) flags: u64,
    pub(crate) tensor: Tensor,
}

/// The front of a table of functions, of any version.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) previous: Option<&'static Header>,
}

/// The table of functions of a type's attribute `__dlpack_c_exchange_api__` (DLPack 1.3). Of the functions that are not called here it has
/// the addresses.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) header: Header,
    allocate: usize,
    managed_of: usize,
    to_object: usize,
    /// Describes an object's array. The sizes and strides are the object's.
    pub(crate) tensor_of: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    /// The current stream: kind and index of the device, the handle.
    pub(crate) current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}
