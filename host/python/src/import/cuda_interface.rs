//! Arrays on a GPU by `__cuda_array_interface__`: CuPy's, Numba's.

use gpu_gemm::{Device, Error};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::PyDict,
};

use super::{kinds::Kind, operand::Operand};
use crate::{
    array::{Dims, Dtype, Place},
    dlpack::borrowed::Described,
    failure::to_python,
};

/// An array with the interface.
pub(super) fn array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
) -> PyResult<Operand<'py>> {
    let py = object.py();
    let interface = object.getattr(intern!(py, "__cuda_array_interface__"))?;
    let interface = interface.cast::<PyDict>()?;
    let missing =
        |key: &str| PyTypeError::new_err(format!("{name}.__cuda_array_interface__ has no `{key}`"));
    let get = |key: &str| interface.get_item(key);
    let need = |key: &str| get(key)?.ok_or_else(|| missing(key));
    if get("mask")?.is_some_and(|mask| !mask.is_none()) {
        let message = format!("{name} has a mask, which a product does not know");
        return Err(PyValueError::new_err(message));
    }
    let typestr: String = need("typestr")?.extract()?;
    let dtype = match typestr.as_str() {
        "<f8" => Dtype::F64,
        "<f4" => Dtype::F32,
        "<f2" | "<V2" | "|V2" => match &*object.getattr("dtype")?.str()?.to_string() {
            "float16" => Dtype::F16,
            "bfloat16" => Dtype::Bf16,
            _ => return Err(refused(name, &typestr)),
        },
        _ => return Err(refused(name, &typestr)),
    };
    let sizes: Vec<usize> = need("shape")?.extract()?;
    let strides: Option<Vec<isize>> = match get("strides")? {
        Some(strides) if !strides.is_none() => Some(strides.extract()?),
        _ => None,
    };
    let bytes = dtype.bytes() as isize;
    let mut is_regular = true;
    let strides = strides.map(|strides| {
        let dims = sizes.iter().zip(strides);
        let elements = dims.map(|(&size, stride)| {
            is_regular &= size <= 1 || stride % bytes == 0;
            stride / bytes
        });
        elements.collect::<Vec<_>>()
    });
    let (address, is_read_only): (u64, bool) = need("data")?.extract()?;
    let dims = Dims::new(name, &sizes, strides.as_deref()).map_err(to_python)?;
    let place = Place::Cuda(device_of(name, object)?);
    let mut operand = Operand::described(object, kind, Described { address, dtype, dims, place });
    operand.is_read_only |= is_read_only;
    operand.is_regular &= is_regular;
    operand.ready_on = match get("stream")? {
        Some(stream) if !stream.is_none() => Some(stream.extract()?),
        _ => None,
    };
    Ok(operand)
}

fn refused(name: &str, typestr: &str) -> PyErr {
    let limit = format!("must be {}", Dtype::NAMES);
    to_python(Error::argument(format!("{name}.dtype"), typestr, limit))
}

/// The index of the array's GPU, which the interface does not have.
fn device_of(name: &str, object: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Some(device) = object.getattr_opt(intern!(object.py(), "device"))?
        && let Ok(index) = device.getattr("id").and_then(|id| id.extract())
    {
        return Ok(index);
    }
    match Device::cuda_count().map_err(to_python)? {
        1 => Ok(0),
        count => {
            let limit =
                format!("is not said, and there are {count} GPUs: pass the array by DLPack");
            Err(to_python(Error::argument(format!("{name}.device.id"), "none", limit)))
        }
    }
}
