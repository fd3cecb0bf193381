//! What the library's structures of DLPack lack for Python: the names of capsules, and the exchange
//! in C.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use gpu_gemm::interchange::dlpack::{DLDataType, DLDevice, DLPackVersion, DLTensor};

/// The version that is asked for and given.
pub(crate) const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };

/// Names of capsules, before and after a consumer has taken them.
pub(crate) const LEGACY: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
pub(crate) const VERSIONED: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

/// Kinds of elements.
pub(crate) const FLOAT: u8 = 2;
/// Powers of two, which are no scales here.
pub(crate) const E8M0: u8 = 14;

/// A tensor without elements, to be filled in.
pub(crate) const EMPTY: DLTensor = DLTensor {
    data: null_mut(),
    device: DLDevice { device_type: DLDevice::CPU, device_id: 0 },
    ndim: 0,
    dtype: DLDataType { code: FLOAT, bits: 32, lanes: 1 },
    shape: null_mut(),
    strides: null_mut(),
    byte_offset: 0,
};

/// The front of a table of functions, of any version.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) version: DLPackVersion,
    pub(crate) previous: Option<&'static Header>,
}

/// The table of functions of a type's attribute `__dlpack_c_exchange_api__` (DLPack 1.3). Of the
/// functions that are not called here it has the addresses.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) header: Header,
    allocate: usize,
    managed_of: usize,
    to_object: usize,
    /// Describes an object's array. The sizes and strides are the object's.
    pub(crate) tensor_of: Option<unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> c_int>,
    /// The current stream: kind and index of the device, the handle.
    pub(crate) current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}
