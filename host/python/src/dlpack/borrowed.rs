//! Arrays of other libraries by `__dlpack__`.

use std::{ffi::CStr, ptr::NonNull, slice};

use gpu_gemm::Error;
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    ffi, intern,
    prelude::*,
    types::PyDict,
};

use super::abi::{self, LEGACY, VERSION, VERSIONED};
use crate::{
    array::{Dims, Dtype, MOST_DIMS, Place},
    failure::to_python,
};
use gpu_gemm::interchange::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
};

/// A tensor that was taken from its producer. Its deleter is called once: when this value is dropped, by a thread that holds the GIL.
#[derive(Debug)]
pub(crate) enum Borrowed {
    Legacy(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

// SAFETY: a producer lets any thread that holds the GIL call the deleter, and `drop` takes it.
unsafe impl Send for Borrowed {}
// SAFETY: a shared reference reads what the producer does not change.
unsafe impl Sync for Borrowed {}

impl Drop for Borrowed {
    fn drop(&mut self) {
        Python::attach(|_| match *self {
            Borrowed::Legacy(managed) => {
                // SAFETY: the capsule was renamed when the value was made, so nobody else calls the deleter.
                if let Some(delete) = unsafe { managed.as_ref() }.deleter {
                    // SAFETY: as above, and nothing uses the tensor after this.
                    unsafe { delete(managed.as_ptr()) }
                }
            }
            Borrowed::Versioned(managed) => {
                // SAFETY: as above.
                if let Some(delete) = unsafe { managed.as_ref() }.deleter {
                    // SAFETY: as above.
                    unsafe { delete(managed.as_ptr()) }
                }
            }
        });
    }
}

/// What a tensor says about itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described {
    pub(crate) address: u64,
    pub(crate) dtype: Dtype,
    pub(crate) dims: Dims,
    pub(crate) place: Place,
}

impl Borrowed {
    /// Takes the tensor of an object. `stream`: the one on which the array is to be ready, for memory of a GPU.
    ///
    /// # Errors
    /// Those of the producer; `BufferError` for a version that nobody knows.
    pub(crate) fn take(
        name: &str,
        object: &Bound<'_, PyAny>,
        stream: Option<u64>,
    ) -> PyResult<Self> {
        let py = object.py();
        let options = PyDict::new(py);
        if let Some(stream) = stream {
            // DLPack has a number of its own for the default stream.
            options.set_item("stream", if stream == 0 { 1 } else { stream })?;
        }
        options.set_item("max_version", (VERSION.major, VERSION.minor))?;
        let method = object.getattr(intern!(py, "__dlpack__"))?;
        let capsule = match method.call((), Some(&options)) {
            // Producers from before version 1 do not know the argument.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                options.del_item("max_version")?;
                method.call((), Some(&options))?
            }
            other => other?,
        };
        if let Some(managed) = take_pointer::<DLManagedTensorVersioned>(&capsule, VERSIONED)? {
            let taken = Borrowed::Versioned(managed);
            // SAFETY: the capsule's name says what it points to.
            let version = unsafe { managed.as_ref() }.version;
            if version.major != VERSION.major {
                let message = format!("{name}: DLPack of version {}: must be 1", version.major);
                return Err(PyBufferError::new_err(message));
            }
            return Ok(taken);
        }
        match take_pointer::<DLManagedTensor>(&capsule, LEGACY)? {
            Some(managed) => Ok(Borrowed::Legacy(managed)),
            None => {
                let message = format!("{name}.__dlpack__() gives no capsule that DLPack knows");
                Err(PyBufferError::new_err(message))
            }
        }
    }

    /// The tensor.
    pub(crate) fn tensor(&self) -> &DLTensor {
        match self {
            // SAFETY: the producer keeps it until the deleter is called.
            Borrowed::Legacy(managed) => unsafe { &managed.as_ref().dl_tensor },
            // SAFETY: as above.
            Borrowed::Versioned(managed) => unsafe { &managed.as_ref().dl_tensor },
        }
    }

    /// Whether it must not be written. Before version 1 a producer could not say so.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Borrowed::Legacy(_) => false,
            Borrowed::Versioned(managed) => {
                // SAFETY: as above.
                let flags = unsafe { managed.as_ref() }.flags;
                flags & DLManagedTensorVersioned::READ_ONLY != 0
            }
        }
    }
}

/// The pointer of a capsule with the first name, which is given the second.
fn take_pointer<T>(
    capsule: &Bound<'_, PyAny>,
    [name, used]: [&'static CStr; 2],
) -> PyResult<Option<NonNull<T>>> {
    let capsule = capsule.as_ptr();
    // SAFETY: any object may be asked; the name lives as long as the program.
    if unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } == 0 {
        return Ok(None);
    }
    // SAFETY: it is a capsule of this name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) };
    // SAFETY: as above. From now on the capsule's destructor leaves the tensor alone.
    unsafe { ffi::PyCapsule_SetName(capsule, used.as_ptr()) };
    Ok(NonNull::new(pointer.cast()))
}

/// What a tensor says about itself.
///
/// # Errors
/// `TypeError` for elements that no product has; `ValueError` for other devices and too many dimensions.
///
/// # Safety
/// 1. `shape` points to `ndim` sizes, and `strides` to as many strides or nowhere.
pub(crate) unsafe fn describe(name: &str, tensor: &DLTensor) -> PyResult<Described> {
    let DLDataType { code, bits, lanes } = tensor.dtype;
    let dtype = match dtype_of(tensor) {
        Some(dtype) => dtype,
        None => {
            let kind = match code {
                0 => "int",
                1 => "uint",
                abi::FLOAT => "float",
                5 => "complex",
                6 => "bool",
                _ => "",
            };
            let value = match kind {
                "" => format!("DLPack's type {code} of {bits} bits"),
                kind if lanes == 1 => format!("{kind}{bits}"),
                kind => format!("{kind}{bits}, {lanes} lanes"),
            };
            let limit = format!("must be {}", Dtype::NAMES);
            return Err(to_python(Error::argument(format!("{name}.dtype"), value, limit)));
        }
    };
    let place = match place_of(tensor) {
        Some(place) => place,
        None => {
            let DLDevice { device_type: kind, device_id: index } = tensor.device;
            let value = format!("DLPack's device {kind}, {index}");
            let limit = "must be host memory or a CUDA device";
            return Err(to_python(Error::argument(format!("{name}.device"), value, limit)));
        }
    };
    let ndim = tensor.ndim.unsigned_abs() as usize;
    if ndim > MOST_DIMS {
        let limit = format!("must be at most {MOST_DIMS}");
        return Err(to_python(Error::argument(format!("{name}.ndim"), ndim, limit)));
    }
    let (mut sizes, mut strides) = ([0; MOST_DIMS], [0; MOST_DIMS]);
    let mut has_strides = false;
    if ndim > 0 {
        // SAFETY: the caller's promise.
        let from = unsafe { slice::from_raw_parts(tensor.shape, ndim) };
        for (to, &from) in sizes.iter_mut().zip(from) {
            *to = from.unsigned_abs() as usize;
        }
        has_strides = !tensor.strides.is_null();
        if has_strides {
            // SAFETY: the caller's promise.
            let from = unsafe { slice::from_raw_parts(tensor.strides, ndim) };
            for (to, &from) in strides.iter_mut().zip(from) {
                *to = from as isize;
            }
        }
    }
    let dims = Dims::new(name, &sizes[..ndim], has_strides.then_some(&strides[..ndim]));
    let address = address_of(tensor);
    Ok(Described { address, dtype, dims: dims.map_err(to_python)?, place })
}

/// Whether a tensor says the same about itself as before.
///
/// # Safety
/// 1. As of [`describe`].
pub(crate) unsafe fn says(tensor: &DLTensor, was: &Described) -> bool {
    let ndim = tensor.ndim.unsigned_abs() as usize;
    let is_same = address_of(tensor) == was.address
        && dtype_of(tensor) == Some(was.dtype)
        && place_of(tensor) == Some(was.place)
        && was.dims.sizes().len() == ndim;
    if !is_same || ndim == 0 {
        return is_same;
    }
    // SAFETY: the caller's promise.
    let sizes = unsafe { slice::from_raw_parts(tensor.shape, ndim) };
    let strides = (!tensor.strides.is_null()).then(|| {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts(tensor.strides, ndim) }
    });
    was.dims.are(sizes, strides)
}

fn dtype_of(tensor: &DLTensor) -> Option<Dtype> {
    let DLDataType { code, bits, lanes } = tensor.dtype;
    match (code, bits, lanes) {
        (abi::FLOAT, 64, 1) => Some(Dtype::F64),
        (abi::FLOAT, 32, 1) => Some(Dtype::F32),
        (abi::FLOAT, 16, 1) => Some(Dtype::F16),
        (abi::BFLOAT, 16, 1) => Some(Dtype::Bf16),
        _ => None,
    }
}

fn place_of(tensor: &DLTensor) -> Option<Place> {
    match tensor.device {
        DLDevice { device_type: DLDevice::CPU | DLDevice::CUDA_HOST, .. } => Some(Place::Host),
        DLDevice { device_type: DLDevice::CUDA, device_id: index } => {
            Some(Place::Cuda(index.unsigned_abs() as usize))
        }
        _ => None,
    }
}

fn address_of(tensor: &DLTensor) -> u64 {
    (tensor.data.addr() as u64).wrapping_add(tensor.byte_offset)
}
