//! Reads an array in the way that its type has.

use gpu_gemm::interchange::dlpack::DLDevice;
use pyo3::{intern, prelude::*};

use super::{
    cuda_interface,
    kinds::{How, Kind, Module},
    numpy,
    operand::Operand,
    torch,
};
use crate::dlpack::{
    abi::{self, Exchange},
    borrowed::{Borrowed, Described, describe, says},
};

/// The handle of the product's stream on a GPU. An array that is asked for by `__dlpack__` is to be ready on it.
pub(crate) type ReadyOn<'a> = &'a dyn Fn(usize) -> PyResult<Option<u64>>;

/// The array of that argument.
///
/// # Errors
/// `TypeError` for an object that is no array, and for elements that no product has; `ValueError` for a place that is not supported.
pub(crate) fn array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    ready_on: ReadyOn,
) -> PyResult<Operand<'py>> {
    let kind = Kind::of(name, object)?;
    match kind.module {
        Module::Numpy => return numpy::array(name, object, kind),
        Module::Torch => torch::check(name, object)?,
        Module::Cupy | Module::Jax | Module::Other => {}
    }
    match kind.how {
        How::Exchange(exchange) => exchanged(name, object, kind, exchange, ready_on),
        How::Attributes => torch::array(name, object, kind),
        How::CudaInterface => cuda_interface::array(name, object, kind),
        How::Dlpack => borrowed(name, object, kind, ready_on),
    }
}

/// An array by its type's table of functions.
fn exchanged<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    exchange: &Exchange,
    ready_on: ReadyOn,
) -> PyResult<Operand<'py>> {
    let mut tensor = abi::EMPTY;
    let Some(tensor_of) = exchange.tensor_of else { return borrowed(name, object, kind, ready_on) };
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
) -> PyResult<Operand<'py>> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    let stream = match device {
        (DLDevice::CUDA, index) => ready_on(index.unsigned_abs() as usize)?,
        _ => None,
    };
    let borrowed = Borrowed::take(name, object, stream)?;
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

/// What a tensor, or an array of a type with a table of functions, says about itself now.
///
/// # Errors
/// As of [`array`].
pub(crate) fn described(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Described> {
    let kind = Kind::of(name, object)?;
    let operand = match kind.how {
        How::Exchange(exchange) => exchanged(name, object, kind, exchange, &|_| Ok(None)),
        _ => torch::array(name, object, kind),
    };
    Ok(operand?.as_described())
}
