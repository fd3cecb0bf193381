//! What a type of arrays can do.

use std::sync::{Mutex, PoisonError};

use gpu_gemm::Error;
use gpu_gemm::interchange::dlpack::DLDevice;
use pyo3::{
    exceptions::{PyException, PyTypeError},
    ffi, intern,
    prelude::*,
    types::{PyDict, PyString, PyType},
};

use crate::dlpack::abi::{Exchange, Header};

/// The most types that are remembered.
const MOST_TYPES: usize = 64;

/// The types seen so far. Each is kept, so that no other gets its address.
static TYPES: Mutex<Vec<(Py<PyType>, Kind)>> = Mutex::new(Vec::new());

/// The module that an array is from: it makes the result, and has the current stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    Numpy,
    Torch,
    Cupy,
    Jax,
    Other,
}

/// How an array's address, type, sizes and strides are found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// By a table of C functions.
    Exchange(&'static Exchange),
    /// By methods, as PyTorch's before 2.10. NumPy's arrays have a C structure of their own.
    Attributes,
    CudaInterface,
    Dlpack,
}

/// What a type of arrays can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) module: Module,
    pub(super) how: How,
}

impl Kind {
    /// What the object's type can do.
    ///
    /// # Errors
    /// `TypeError` for a type that is no array, and for a subclass that may mean something else by
    /// its memory.
    pub(crate) fn of(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let known = |types: &Vec<(Py<PyType>, Kind)>| {
            let is_it =
                |kept: &&(Py<PyType>, Kind)| kept.0.as_ptr() == object.get_type_ptr().cast();
            types.iter().find(is_it).map(|(_, kind)| *kind)
        };
        let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = known(&types) {
            return Ok(kind);
        }
        // Python may run below.
        drop(types);
        let kind = Kind::found(name, object)?;
        let of_object = object.get_type().unbind();
        let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let old = (types.len() >= MOST_TYPES).then(|| std::mem::take(&mut *types));
        types.push((of_object, kind));
        drop(types);
        drop(old);
        Ok(kind)
    }

    fn found(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, of_object) = (object.py(), object.get_type());
        let mut module = Module::Other;
        for base in of_object.mro() {
            let base = base.cast_into::<PyType>()?;
            let of_base = if is_of(&base, "numpy", "ndarray")? {
                Module::Numpy
            } else if is_of(&base, "torch", "Tensor")? {
                Module::Torch
            } else if is_of(&base, "cupy", "ndarray")? {
                Module::Cupy
            } else if is_of_jax(&base)? {
                module = Module::Jax;
                break;
            } else {
                continue;
            };
            let is_plain = base.is(&of_object)
                || is_of(&of_object, "numpy", "memmap")?
                || is_of(&of_object, "torch.nn.parameter", "Parameter")?;
            if !is_plain {
                let limit = format!(
                    "must be {} and no subclass: its elements may mean more",
                    full_name(&base)?
                );
                return Err(type_error(name, &full_name(&of_object)?, limit));
            }
            module = of_base;
            break;
        }
        let has = |attribute: &Bound<'_, PyString>| object.hasattr(attribute);
        let how = match module {
            Module::Numpy => How::Attributes,
            Module::Torch => exchange_of(&of_object)?.map_or(How::Attributes, How::Exchange),
            Module::Cupy => How::CudaInterface,
            _ if has(intern!(py, "__dlpack__"))? => {
                let table = exchange_of(&of_object)?;
                // PyTorch's functions are for its own tensors, whatever type has the table.
                let tensor = loaded(py, "torch", "Tensor")?;
                let torchs = match tensor.as_ref().and_then(|tensor| tensor.cast::<PyType>().ok()) {
                    Some(tensor) => exchange_of(tensor)?,
                    None => None,
                };
                let is_torchs = |of: &&Exchange| torchs.is_some_and(|it| std::ptr::eq(it, *of));
                table.filter(|table| !is_torchs(table)).map_or(How::Dlpack, How::Exchange)
            }
            // An array in host memory may have no such attribute; only a GPU's has.
            _ if has(intern!(py, "__cuda_array_interface__"))? => How::CudaInterface,
            _ => {
                let full = full_name(&of_object)?;
                let limit = match &*full {
                    "numpy.ndarray" | "torch.Tensor" | "cupy.ndarray" => {
                        "must be the module's own type of that name, or have __dlpack__ or \
                         __cuda_array_interface__"
                    }
                    _ => {
                        "must be an array of NumPy, PyTorch, CuPy or JAX, or have __dlpack__ or \
                         __cuda_array_interface__"
                    }
                };
                return Err(type_error(name, &full, limit.to_owned()));
            }
        };
        Ok(Kind { module, how })
    }

    /// Whether the module frees and writes arrays in the order of a stream that is its current one,
    /// or that the caller has named.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self.module, Module::Torch | Module::Cupy)
    }

    /// Whether arrays of both kinds are of one module, which has one current stream.
    pub(crate) fn has_streams_of(&self, other: &Kind) -> bool {
        match (self.how, other.how) {
            _ if self.module != other.module => false,
            // Unknown modules are told by their tables.
            (How::Exchange(one), How::Exchange(other)) => std::ptr::eq(one, other),
            _ => self.module != Module::Other,
        }
    }

    /// Whether Python code runs when an array is read: it could change another array, which was
    /// read before.
    pub(crate) fn runs_code(&self) -> bool {
        self.module != Module::Numpy
    }

    /// Whether an array says at each use which work it waits for: by `__cuda_array_interface__` or
    /// `__dlpack__`.
    pub(crate) fn says_when_ready(&self) -> bool {
        matches!(
            self.how,
            How::CudaInterface | How::Dlpack | How::Exchange(Exchange { tensor_of: None, .. })
        )
    }

    /// The current stream of the module, if its table of functions says it.
    pub(crate) fn current_stream(&self, py: Python, index: usize) -> PyResult<Option<u64>> {
        let How::Exchange(Exchange { current_stream: Some(current), .. }) = self.how else {
            return Ok(None);
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the table is the type's, one handle is written, and the GIL is held.
        match unsafe { current(DLDevice::CUDA, index as i32, &mut handle) } {
            0 => Ok(Some(handle.addr() as u64)),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// The error for an object that is no array.
fn type_error(name: &str, value: &str, limit: String) -> PyErr {
    PyTypeError::new_err(Error::argument(format!("type({name})"), value, limit).to_string())
}

/// Whether a type is a module's type of that name, if the module was imported. A type may say any
/// name of itself.
fn is_of(of: &Bound<'_, PyType>, module: &str, name: &str) -> PyResult<bool> {
    Ok(loaded(of.py(), module, name)?.is_some_and(|found| found.is(of)))
}

/// What a module has by that name, if the module was imported.
fn loaded<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    match modules.cast::<PyDict>()?.get_item(module)? {
        Some(module) => module.getattr_opt(name),
        None => Ok(None),
    }
}

/// Whether a type says that it is of JAX. It is not trusted more than others for it.
fn is_of_jax(of: &Bound<'_, PyType>) -> PyResult<bool> {
    let name = full_name(of)?;
    Ok(name.starts_with("jax.") || name.starts_with("jaxlib."))
}

/// The name of a type, as it says it.
///
/// # Errors
/// What Python raises meanwhile and is no `Exception`.
fn full_name(of: &Bound<'_, PyType>) -> PyResult<String> {
    let said = |name: PyResult<Bound<'_, PyString>>| match name {
        Ok(name) => Ok(name.to_string_lossy().into_owned()),
        Err(error) if error.is_instance_of::<PyException>(of.py()) => Ok("?".to_owned()),
        Err(error) => Err(error),
    };
    let (module, name) = (said(of.module())?, said(of.qualname())?);
    Ok(match module.as_str() {
        // Its type is called after the C module that has it.
        "torch._tensor" => format!("torch.{name}"),
        _ => format!("{module}.{name}"),
    })
}

/// The table of functions of a type. `None`: it has none of version 1.
fn exchange_of(of: &Bound<'_, PyType>) -> PyResult<Option<&'static Exchange>> {
    let attribute = intern!(of.py(), "__dlpack_c_exchange_api__");
    let Some(capsule) = of.getattr_opt(attribute)? else { return Ok(None) };
    let name = c"dlpack_exchange_api".as_ptr();
    // SAFETY: any object may be asked; the name lives as long as the program.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name) } == 0 {
        return Ok(None);
    }
    // SAFETY: it has this name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name) };
    // SAFETY: DLPack has a table live as long as the process, with this front.
    let mut table = unsafe { pointer.cast_const().cast::<Header>().as_ref() };
    // The newest version is the first.
    while let Some(found) = table {
        if found.version.major == 1 {
            let whole = std::ptr::from_ref(found).cast::<Exchange>();
            // SAFETY: as above; of version 1 the table is this structure.
            return Ok(unsafe { whole.as_ref() });
        }
        table = found.previous;
    }
    Ok(None)
}
