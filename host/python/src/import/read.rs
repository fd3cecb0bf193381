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
use crate::{
    device::own_stream,
    dlpack::{
        abi::{self, Exchange},
        borrowed::{Borrowed, describe},
    },
};

/// The array of that argument. `stream`: the handle on which it is to be ready, if the caller has named one.
///
/// # Errors
/// `TypeError` for an object that is no array, and for elements that no product has; `ValueError` for a place that is not supported.
pub(crate) fn array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    stream: Option<u64>,
) -> PyResult<Operand<'py>> {
    let kind = Kind::of(name, object)?;
    match kind.module {
        Module::Numpy => return numpy::array(name, object, kind),
        Module::Torch => torch::check(name, object)?,
        Module::Cupy | Module::Jax | Module::Other => {}
    }
    match kind.how {
        How::Exchange(exchange) => exchanged(name, object, kind, exchange),
        How::Attributes => torch::array(name, object, kind),
        How::CudaInterface => cuda_interface::array(name, object, kind),
        How::Dlpack => borrowed(name, object, kind, stream),
    }
}

/// An array by its type's table of functions.
fn exchanged<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    exchange: &Exchange,
) -> PyResult<Operand<'py>> {
    let mut tensor = abi::EMPTY;
    let Some(tensor_of) = exchange.tensor_of else { return borrowed(name, object, kind, None) };
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
    stream: Option<u64>,
) -> PyResult<Operand<'py>> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    let stream = match (device, stream) {
        ((DLDevice::CUDA, _), Some(stream)) => Some(stream),
        ((DLDevice::CUDA, index), None) => {
            let own = own_stream(py, index.unsigned_abs() as usize)?;
            own.raw_cuda_stream().map(|raw| raw.addr() as u64)
        }
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
