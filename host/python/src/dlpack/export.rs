//! Arrays of this library: the result of a product whose module has no function that makes an
//! array, or none that is known.

use std::{
    ffi::{CStr, c_void},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use gpu_gemm::{Buffer, Device, Stream, Type};
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError},
    ffi, intern,
    prelude::*,
    types::{PyDict, PyTuple},
};

use super::abi::{LEGACY, VERSION, VERSIONED};
use crate::{
    argument::refused,
    array::{Place, is_raw, shown},
    failure::to_python,
};
use gpu_gemm::interchange::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
};

/// Tensors whose deleter was not called yet, for tests.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// The number of tensors whose deleter was not called yet.
pub(crate) fn lent() -> usize {
    LENT.load(Ordering::Relaxed)
}

/// The memory of an array. It is freed when the array and all tensors of it are gone.
#[derive(Debug)]
struct Memory {
    /// Frees it.
    _buffer: Buffer<u8>,
    address: u64,
    dtype: Type,
    place: Place,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// A dense array in the memory of a device, for other libraries: by DLPack, or by
/// `__cuda_array_interface__`.
#[pyclass(frozen, module = "gpu_gemm")]
#[derive(Debug)]
pub(crate) struct Array(Arc<Memory>);

impl Array {
    /// An array that is not initialised, and the address of its first element. The stream that
    /// writes it is waited for before another library sees it.
    ///
    /// # Errors
    /// `MemoryError`.
    pub(crate) fn new(
        stream: &Stream,
        dtype: Type,
        place: Place,
        sizes: &[usize],
    ) -> PyResult<(Self, u64)> {
        let bytes = sizes.iter().try_fold(dtype.bytes(), |bytes, size| bytes.checked_mul(*size));
        let device: &Device = stream.device();
        let mut buffer = device.uninit::<u8>(bytes.unwrap_or(usize::MAX)).map_err(to_python)?;
        let address = buffer.all_mut().address_on(stream).map_err(to_python)?.addr() as u64;
        let shape = sizes.iter().map(|&size| size as i64).collect::<Vec<_>>();
        let mut strides = vec![1; shape.len()];
        for index in (1..shape.len()).rev() {
            strides[index - 1] = strides[index] * shape[index].max(1);
        }
        let memory = Memory { _buffer: buffer, address, dtype, place, shape, strides };
        Ok((Array(Arc::new(memory)), address))
    }

    fn device(&self) -> DLDevice {
        match self.0.place {
            Place::Host => DLDevice { device_type: DLDevice::CPU, device_id: 0 },
            Place::Cuda(index) => DLDevice { device_type: DLDevice::CUDA, device_id: index as i32 },
        }
    }

    fn tensor(&self) -> DLTensor {
        let Memory { address, dtype, shape, strides, .. } = &*self.0;
        let code = dtype.dlpack();
        DLTensor {
            data: *address as *mut c_void,
            device: self.device(),
            ndim: shape.len() as i32,
            dtype: DLDataType { code, bits: 8 * dtype.bytes() as u8, lanes: 1 },
            shape: shape.as_ptr().cast_mut(),
            strides: strides.as_ptr().cast_mut(),
            byte_offset: 0,
        }
    }

    /// The memory's owner, for a tensor.
    fn lend(&self) -> *mut c_void {
        LENT.fetch_add(1, Ordering::Relaxed);
        Arc::into_raw(self.0.clone()).cast_mut().cast()
    }
}

/// Takes the owner of a tensor's memory back.
///
/// # Safety
/// 1. `context` is of [`Array::lend`], and is given back once.
unsafe fn give_back(context: *mut c_void) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(context.cast_const().cast::<Memory>()) });
    LENT.fetch_sub(1, Ordering::Relaxed);
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensor) {
    // SAFETY: `Array::__dlpack__` made the box, and DLPack has the deleter called once.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    unsafe { give_back(managed.manager_ctx) }
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as above.
    unsafe { give_back(managed.manager_ctx) }
}

/// Deletes the tensor of a capsule that nobody has taken: then it has its first name still.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    let pointer = |name: &CStr| {
        // SAFETY: Python calls this with the capsule.
        match unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } {
            0 => None,
            // SAFETY: it has this name.
            _ => Some(unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) }),
        }
    };
    if let Some(managed) = pointer(LEGACY[0]) {
        // SAFETY: nobody has taken it.
        unsafe { delete(managed.cast()) }
    } else if let Some(managed) = pointer(VERSIONED[0]) {
        // SAFETY: nobody has taken it.
        unsafe { delete_versioned(managed.cast()) }
    }
}

/// An argument of two whole numbers.
fn pair<T>(name: &str, value: Option<&Bound<'_, PyAny>>, limit: &str) -> PyResult<Option<(T, T)>>
where
    T: for<'py> FromPyObjectOwned<'py, Error = PyErr>,
{
    let read = |value: &Bound<'_, PyAny>| {
        value.extract().map_err(|cause| refused(name, value, cause, limit))
    };
    value.map(read).transpose()
}

#[pymethods]
impl Array {
    /// A capsule with the tensor. Its memory is ready on every stream.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream; // the product was waited for
        let limit = "must be None or a version of DLPack, two whole numbers";
        let max_version = pair::<u32>("max_version", max_version, limit)?;
        let limit = "must be None or a device as DLPack has them, two whole numbers";
        let dl_device = pair::<i32>("dl_device", dl_device, limit)?;
        let own = self.__dlpack_device__();
        if let Some(asked) = dl_device.filter(|asked| *asked != own) {
            let message = format!("dl_device = {asked:?}: must be the array's, {own:?}");
            return Err(PyBufferError::new_err(message));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("copy = True: the array is never copied"));
        }
        let (dl_tensor, manager_ctx) = (self.tensor(), self.lend());
        let (pointer, name) = match max_version {
            Some((major, _)) if major >= 1 => {
                let deleter: Option<unsafe extern "C" fn(_)> = Some(delete_versioned);
                let managed = DLManagedTensorVersioned {
                    version: VERSION,
                    manager_ctx,
                    deleter,
                    flags: 0,
                    dl_tensor,
                };
                (Box::into_raw(Box::new(managed)).cast::<c_void>(), VERSIONED[0])
            }
            _ => {
                let managed = DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete) };
                (Box::into_raw(Box::new(managed)).cast::<c_void>(), LEGACY[0])
            }
        };
        // SAFETY: the pointer is not null, the name lives as long as the program, and the
        // destructor is for capsules of these names.
        unsafe {
            let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }

    /// Kind and index of the device, as DLPack has them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let DLDevice { device_type: kind, device_id: index } = self.device();
        (kind, index)
    }

    /// The CUDA array interface, version 3, for an array on a GPU.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Memory { address, dtype, place, shape, .. } = &*self.0;
        if *place == Place::Host {
            // What hasattr() takes for "there is none".
            let message = "an array in host memory has no __cuda_array_interface__";
            return Err(PyAttributeError::new_err(message));
        }
        if is_raw(*dtype) {
            let name = dtype.numpy();
            let message = format!("the interface has no {name}: take the array by DLPack");
            return Err(PyTypeError::new_err(message));
        }
        let typestr = format!("<{}", dtype.numpy_code());
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("typestr", typestr)?;
        dict.set_item("shape", PyTuple::new(py, shape)?)?;
        dict.set_item("strides", py.None())?;
        dict.set_item("data", (*address, false))?;
        dict.set_item("stream", py.None())?;
        Ok(dict)
    }

    /// NumPy's array of the same memory, for `numpy.asarray` and the functions of NumPy that call
    /// it.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, Memory { dtype: own, place, .. }) = (slf.py(), &*slf.get().0);
        if *place != Place::Host {
            let message = format!(
                "the array is on {place}: copy it to host memory by a library that takes DLPack"
            );
            return Err(PyTypeError::new_err(message));
        }
        if is_raw(*own) {
            let message = format!("NumPy has no {}: take the array by DLPack", own.numpy());
            return Err(PyTypeError::new_err(message));
        }
        let numpy = py.import(intern!(py, "numpy"))?;
        let array = numpy.call_method1(intern!(py, "from_dlpack"), (slf,))?;
        let of = |array: Bound<'py, PyAny>, is_copied: bool| -> PyResult<_> {
            let Some(dtype) = dtype else { return Ok(array) };
            let options = PyDict::new(py);
            options.set_item(intern!(py, "copy"), is_copied)?;
            array.call_method(intern!(py, "astype"), (dtype,), Some(&options))
        };
        match copy {
            Some(true) if dtype.is_none() => array.call_method0(intern!(py, "copy")),
            Some(true) => of(array, true),
            None => of(array, false),
            Some(false) => {
                let result = of(array.clone(), false)?;
                match result.is(&array) {
                    true => Ok(result),
                    false => {
                        let message = "copy = False: elements of another type are a copy";
                        Err(PyValueError::new_err(message))
                    }
                }
            }
        }
    }

    /// The sizes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.shape)
    }

    /// The type of the elements, by its name.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype.numpy()
    }

    /// Where the array is: `"cpu"` or `"cuda:0"`.
    #[getter(device)]
    fn device_name(&self) -> String {
        match self.0.place {
            Place::Host => "cpu".to_owned(),
            place => place.to_string(),
        }
    }

    fn __repr__(&self) -> String {
        let sizes = self.0.shape.iter().map(|&size| size as usize).collect::<Vec<_>>();
        let (sizes, dtype, device) = (shown(&sizes), self.dtype(), self.device_name());
        format!("<gpu_gemm.Array {sizes} {dtype} on {device}>")
    }
}
