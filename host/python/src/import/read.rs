//! Reads an array in the way that its type has.

use gpu_gemm::interchange::dlpack::DLDevice;
use pyo3::{exceptions::PyRuntimeError, intern, prelude::*};

use super::{
    cuda_interface,
    kinds::{How, Kind, Module},
    numpy,
    operand::Operand,
    torch,
};
use crate::{
    argument::refused,
    dlpack::{
        abi::{self, Exchange},
        borrowed::{Borrowed, Described, describe, says},
    },
};

/// The handle of the product's stream on a GPU. An array that is asked for by `__dlpack__` is to be
/// ready on it.
pub(crate) type ReadyOn<'a> = &'a dyn Fn(usize) -> PyResult<Option<u64>>;

/// The array of that argument. `is_own`: what is read must be the array's own memory, and no copy:
/// it is written, or read again later.
///
/// # Errors
/// `TypeError` for an object that is no array, and for elements that no product has; `ValueError`
/// for a place that is not supported, and for a description that fits no memory.
pub(crate) fn array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    ready_on: ReadyOn,
    is_own: bool,
) -> PyResult<Operand<'py>> {
    let kind = Kind::of(name, object)?;
    let operand = read(name, object, kind, ready_on, is_own)?;
    operand.check_memory(name)?;
    Ok(operand)
}

fn read<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    ready_on: ReadyOn,
    is_own: bool,
) -> PyResult<Operand<'py>> {
    match kind.module {
        Module::Numpy => return numpy::array(name, object, kind),
        Module::Torch => torch::check(name, object)?,
        Module::Cupy | Module::Jax | Module::Other => {}
    }
    match kind.how {
        How::Exchange(exchange) => exchanged(name, object, kind, exchange, ready_on, is_own),
        How::Attributes => torch::array(name, object, kind),
        How::CudaInterface => cuda_interface::array(name, object, kind),
        How::Dlpack => borrowed(name, object, kind, ready_on, is_own),
    }
}

/// An array by its type's table of functions.
fn exchanged<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    exchange: &Exchange,
    ready_on: ReadyOn,
    is_own: bool,
) -> PyResult<Operand<'py>> {
    let mut tensor = abi::EMPTY;
    let Some(tensor_of) = exchange.tensor_of else {
        return borrowed(name, object, kind, ready_on, is_own);
    };
    // SAFETY: the table is of the object's type, and the GIL is held.
    if unsafe { tensor_of(object.as_ptr().cast(), &mut tensor) } != 0 {
        let error = PyErr::fetch(object.py());
        return match kind.module {
            // The other way names the argument and what is wrong with it.
            Module::Torch => torch::array(name, object, kind),
            _ => Err(error),
        };
    }
    // SAFETY: the object keeps its sizes and strides until Python runs again.
    let described = unsafe { describe(name, &tensor) }?;
    Ok(Operand::described(object, kind, described))
}

/// An array by `__dlpack__`.
fn borrowed<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    ready_on: ReadyOn,
    is_own: bool,
) -> PyResult<Operand<'py>> {
    let py = object.py();
    let device = object.call_method0(intern!(py, "__dlpack_device__"))?;
    let wrong = |cause| {
        let limit = "must be the kind and the index of a device, as DLPack has them";
        refused(&format!("{name}.__dlpack_device__()"), &device, cause, limit)
    };
    let stream = match device.extract::<(i32, i32)>().map_err(wrong)? {
        // The tensor itself says an index that is none.
        (DLDevice::CUDA, index) => match usize::try_from(index) {
            Ok(index) => ready_on(index)?,
            Err(_) => None,
        },
        _ => None,
    };
    let borrowed = Borrowed::take(name, object, stream, is_own)?;
    // SAFETY: the producer keeps sizes and strides until the deleter is called.
    let described = unsafe { describe(name, borrowed.tensor()) }?;
    let mut operand = Operand::described(object, kind, described);
    operand.is_read_only |= borrowed.is_read_only();
    operand.borrowed = Some(borrowed);
    Ok(operand)
}

/// Whether an array is still as it was. `None`: its type has no quick way to say it.
///
/// # Safety
/// 1. `kind` is that of the object's type.
pub(crate) unsafe fn is_unchanged(
    object: &Bound<'_, PyAny>,
    kind: Kind,
    was: &Described,
) -> Option<bool> {
    let How::Exchange(Exchange { tensor_of: Some(tensor_of), .. }) = kind.how else { return None };
    let mut tensor = abi::EMPTY;
    // SAFETY: the caller's promise: the table is of the object's type. The GIL is held.
    if unsafe { tensor_of(object.as_ptr().cast(), &mut tensor) } != 0 {
        // The slow way says what is wrong.
        drop(PyErr::fetch(object.py()));
        return Some(false);
    }
    // SAFETY: the object keeps its sizes and strides until Python runs again.
    Some(unsafe { says(&tensor, was) })
}

/// The array again, without a request for its memory: as NumPy's, as a tensor, or by its type's
/// table of functions. `None`: it is in another way, and keeps its memory as long as it was asked
/// to.
///
/// # Errors
/// As of [`array`].
pub(crate) fn again<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Operand<'py>>> {
    let kind = Kind::of(name, object)?;
    let operand = match (kind.module, kind.how) {
        (Module::Numpy, _) => numpy::array(name, object, kind)?,
        (_, How::Exchange(exchange)) if exchange.tensor_of.is_some() => {
            exchanged(name, object, kind, exchange, &|_| Ok(None), true)?
        }
        (Module::Torch, How::Attributes) => torch::array(name, object, kind)?,
        _ => return Ok(None),
    };
    operand.check_memory(name)?;
    Ok(Some(operand))
}

/// Refuses an array that Python code has given other memory since it was read: that of another
/// array's `__dlpack__`, for example.
///
/// # Errors
/// `RuntimeError`; those of the array's module.
pub(crate) fn check_unchanged(name: &'static str, operand: &Operand) -> PyResult<()> {
    match again(name, &operand.object)? {
        Some(now) if now.as_described() != operand.as_described() => {
            let message = format!("{name} was changed while the arguments were read");
            Err(PyRuntimeError::new_err(message))
        }
        _ => Ok(()),
    }
}
