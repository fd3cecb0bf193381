//! Arrays of other libraries by `__dlpack__`.

use std::{ffi::CStr, mem::ManuallyDrop, ptr::NonNull};

use gpu_gemm::{Error, Type};
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    ffi, intern,
    prelude::*,
    types::PyDict,
};

use super::abi::{self, LEGACY, VERSION, VERSIONED};
use crate::{
    array::{Dims, Place, lent, offered, types},
    failure::to_python,
};
use gpu_gemm::interchange::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, Managed,
};

/// A tensor that was taken from its producer. Its deleter is called once: when this value is
/// dropped, by a thread that holds the GIL.
#[derive(Debug)]
pub(crate) struct Borrowed(ManuallyDrop<Managed>);

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: it is not used after this.
        let managed = unsafe { ManuallyDrop::take(&mut self.0) };
        // SAFETY: nothing uses the tensor after this.
        Python::attach(|_| unsafe { managed.delete() });
    }
}

/// What a tensor says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) address: u64,
    pub(crate) dtype: Type,
    pub(crate) dims: Dims,
    pub(crate) place: Place,
}

impl Borrowed {
    /// Takes the tensor of an object. `stream`: the one on which the array is to be ready, for
    /// memory of a GPU. `is_own`: it must be the array's own memory, and no copy.
    ///
    /// # Errors
    /// Those of the producer; `BufferError` for a version that nobody knows; `ValueError` for a
    /// copy.
    pub(crate) fn take(
        name: &str,
        object: &Bound<'_, PyAny>,
        stream: Option<u64>,
        is_own: bool,
    ) -> PyResult<Self> {
        let py = object.py();
        let options = PyDict::new(py);
        if let Some(stream) = stream {
            // DLPack has a number of its own for the default stream.
            options.set_item("stream", if stream == 0 { 1 } else { stream })?;
        }
        options.set_item("max_version", (VERSION.major, VERSION.minor))?;
        if is_own {
            options.set_item("copy", false)?;
        }
        let method = object.getattr(intern!(py, "__dlpack__"))?;
        let mut given = method.call((), Some(&options));
        if is_own {
            given = given.map_err(|error| no_own_memory(py, name, error));
        }
        // Producers from before version 1 know neither argument, and some know the version alone.
        for argument in ["copy", "max_version"] {
            let Err(error) = &given else { break };
            if !error.is_instance_of::<PyTypeError>(py) {
                break;
            }
            if options.contains(argument)? {
                options.del_item(argument)?;
                given = method.call((), Some(&options));
            }
        }
        let capsule = given?;
        if let Some(managed) = take_pointer::<DLManagedTensorVersioned>(&capsule, VERSIONED)? {
            // SAFETY: the capsule's name says what it points to. Nobody else takes it, since it was
            // renamed. It is used if its version is 1.
            let taken = Borrowed(ManuallyDrop::new(unsafe { Managed::versioned(managed) }));
            // SAFETY: as above. The version comes first in every version.
            let version = unsafe { (*managed.as_ptr()).version };
            if version.major != VERSION.major {
                let message = format!("{name}: DLPack of version {}: must be 1", version.major);
                return Err(PyBufferError::new_err(message));
            }
            if is_own && taken.0.flags() & DLManagedTensorVersioned::IS_COPIED != 0 {
                let limit = "must be the array's own memory, and its __dlpack__ gives a copy: what \
                             is written to one of both is not in the other";
                return Err(to_python(Error::argument(name, "a copy", limit)));
            }
            return Ok(taken);
        }
        match take_pointer::<DLManagedTensor>(&capsule, LEGACY)? {
            // SAFETY: as above.
            Some(managed) => Ok(Borrowed(ManuallyDrop::new(unsafe { Managed::plain(managed) }))),
            None => {
                let message = format!("{name}.__dlpack__() gives no capsule that DLPack knows");
                Err(PyBufferError::new_err(message))
            }
        }
    }

    /// The tensor.
    pub(crate) fn tensor(&self) -> &DLTensor {
        self.0.tensor()
    }

    /// Whether it must not be written. Before version 1 a producer could not say so.
    pub(crate) fn is_read_only(&self) -> bool {
        self.0.flags() & DLManagedTensorVersioned::READ_ONLY != 0
    }
}

/// The error of a producer that gives a copy, or no tensor. It raises `BufferError` where it cannot
/// do without a copy.
fn no_own_memory(py: Python, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyBufferError>(py) {
        return error;
    }
    let name = format!("{name}.__dlpack__(copy=False)");
    let limit = "must give the array's own memory: a copy would not be the array";
    let refused = to_python(Error::argument(name, &error, limit));
    refused.set_cause(py, Some(error));
    refused
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
    let Some(pointer) = NonNull::new(pointer.cast::<T>()).filter(|pointer| pointer.is_aligned())
    else {
        return Ok(None);
    };
    // SAFETY: as above. From now on the capsule's destructor leaves the tensor alone.
    unsafe { ffi::PyCapsule_SetName(capsule, used.as_ptr()) };
    Ok(Some(pointer))
}

/// What a tensor says about itself.
///
/// # Errors
/// `TypeError` for elements that no product has; `ValueError` for other devices and too many
/// dimensions.
///
/// # Safety
/// 1. `shape` and `strides` are null, or point to `ndim` numbers each.
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
                "" if code == abi::E8M0 => "float8_e8m0fnu".to_owned(),
                "" => format!("DLPack's type {code} of {bits} bits"),
                kind if lanes == 1 => format!("{kind}{bits}"),
                kind => format!("{kind}{bits}, {lanes} lanes"),
            };
            let limit = format!("must be {}", offered(name));
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
    let pointers = [tensor.shape, tensor.strides].map(<*mut i64>::cast_const);
    // SAFETY: the caller's promise.
    let dims = unsafe { Dims::of_lent(name, tensor.ndim, pointers, 1) }.map_err(to_python)?;
    let address = address_of(tensor).ok_or_else(|| {
        let value = format!("{:p} and an offset of {}", tensor.data, tensor.byte_offset);
        to_python(Error::argument(format!("{name}.data"), value, "is no address"))
    })?;
    Ok(Described { address, dtype, dims, place })
}

/// Whether a tensor says the same about itself as before.
///
/// # Safety
/// 1. As of [`describe`].
pub(crate) unsafe fn says(tensor: &DLTensor, was: &Described) -> bool {
    let is_same = address_of(tensor) == Some(was.address)
        && dtype_of(tensor) == Some(was.dtype)
        && place_of(tensor) == Some(was.place);
    let pointers = [tensor.shape, tensor.strides].map(<*mut i64>::cast_const);
    // SAFETY: the caller's promise.
    is_same
        && unsafe { lent("", tensor.ndim, pointers) }
            .is_ok_and(|(sizes, strides)| was.dims.are(sizes, strides))
}

fn dtype_of(tensor: &DLTensor) -> Option<Type> {
    let DLDataType { code, bits, lanes } = tensor.dtype;
    let is_it = |of: &Type| (of.dlpack(), 8 * of.bytes(), 1) == (code, usize::from(bits), lanes);
    types().find(is_it)
}

fn place_of(tensor: &DLTensor) -> Option<Place> {
    match tensor.device {
        DLDevice { device_type: DLDevice::CPU | DLDevice::CUDA_HOST, .. } => Some(Place::Host),
        DLDevice { device_type: DLDevice::CUDA, device_id: index } => {
            usize::try_from(index).ok().map(Place::Cuda)
        }
        _ => None,
    }
}

/// The address of the first element: 0 where no memory is named.
fn address_of(tensor: &DLTensor) -> Option<u64> {
    match tensor.data.addr() as u64 {
        0 => Some(0),
        address => address.checked_add(tensor.byte_offset),
    }
}
