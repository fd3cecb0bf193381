//! Arrays on a GPU by `__cuda_array_interface__`: CuPy's, Numba's.

use gpu_gemm::{Device, Error, Type};
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyDict, PyInt, PyList, PyTuple},
};

use super::{kinds::Kind, operand::Operand};
use crate::{
    argument::refused,
    array::{Dims, MOST_DIMS, Place, named, offered, types},
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
    let of = |key: &str| match key {
        "" => format!("{name}.__cuda_array_interface__"),
        key => format!("{name}.__cuda_array_interface__[{key:?}]"),
    };
    let limit = "must be a dictionary";
    let dict = interface.cast::<PyDict>();
    let dict = dict.map_err(|cause| refused(&of(""), &interface, cause.into(), limit))?;
    let missing =
        |key: &str| PyTypeError::new_err(format!("{name}.__cuda_array_interface__ has no `{key}`"));
    let get = |key: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(dict.get_item(key)?.filter(|value| !value.is_none()))
    };
    let need = |key: &str| get(key)?.ok_or_else(|| missing(key));
    if get("mask")?.is_some() {
        let message = format!("{name} has a mask, which a product does not know");
        return Err(PyValueError::new_err(message));
    }
    let typestr = need("typestr")?;
    let limit = "must be a text";
    let typestr: String =
        typestr.extract().map_err(|cause| refused(&of("typestr"), &typestr, cause, limit))?;
    let dtype = match typestr.as_str() {
        "<f2" | "<V2" | "|V2" | "<f1" | "|f1" | "<V1" | "|V1" => match object
            .getattr_opt(intern!(py, "dtype"))?
        {
            Some(dtype) => {
                let dtype = dtype.str()?;
                let dtype = dtype.to_string_lossy();
                named(&dtype).filter(|of| typestr.ends_with(char::from(b'0' + of.bytes() as u8)))
            }
            None => (typestr == "<f2").then_some(Type::F16),
        },
        // A byte has no order.
        code => types().find(|of| code.trim_start_matches(['<', '|']) == of.numpy_code()),
    };
    let dtype = dtype.ok_or_else(|| wrong_type(name, &typestr))?;
    let sizes = numbers::<usize>(name, &of("shape"), &need("shape")?)?;
    let strides = match get("strides")? {
        Some(strides) => Some(numbers::<isize>(name, &of("strides"), &strides)?),
        None => None,
    };
    let data = need("data")?;
    let limit = "must be an address, and whether it is read-only";
    let (address, is_read_only) =
        data.extract::<(u64, bool)>().map_err(|cause| refused(&of("data"), &data, cause, limit))?;
    let dims =
        Dims::in_parts(name, &sizes, strides.as_deref(), dtype.bytes()).map_err(to_python)?;
    let place = Place::Cuda(device_of(name, object)?);
    let mut operand = Operand::described(object, kind, Described { address, dtype, dims, place });
    operand.is_read_only |= is_read_only;
    operand.ready_on = match get("stream")? {
        Some(stream) => {
            let limit = "must be a handle, an int of 64 bits";
            let handle = stream.extract();
            Some(handle.map_err(|cause| refused(&of("stream"), &stream, cause, limit))?)
        }
        None => None,
    };
    operand.held = [Some(interface), None];
    Ok(operand)
}

/// The whole numbers of a tuple. An object that only says that it is a sequence may say any length.
///
/// # Errors
/// `TypeError`, `ValueError`.
fn numbers<T>(name: &str, of: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<T>>
where
    T: for<'py> FromPyObjectOwned<'py, Error = PyErr>,
{
    let wrong = |cause| refused(of, value, cause, "must be a tuple of whole numbers");
    let numbers = match value.cast::<PyList>() {
        Ok(list) => list.to_tuple(),
        Err(_) => value.cast::<PyTuple>().map_err(|cause| wrong(cause.into()))?.clone(),
    };
    if numbers.len() > MOST_DIMS {
        let limit = format!("must be at most {MOST_DIMS}");
        return Err(to_python(Error::argument(format!("{name}.ndim"), numbers.len(), limit)));
    }
    numbers.iter().map(|number| number.extract().map_err(wrong)).collect()
}

fn wrong_type(name: &str, typestr: &str) -> PyErr {
    let limit = format!("must be {}", offered(name));
    to_python(Error::argument(format!("{name}.dtype"), typestr, limit))
}

/// The index of the array's GPU, which the interface does not have.
fn device_of(name: &str, object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = object.py();
    if let Some(device) = object.getattr_opt(intern!(py, "device"))?
        && let Some(id) = device.getattr_opt(intern!(py, "id"))?
        && id.is_instance_of::<PyInt>()
    {
        let limit = "must be the index of a GPU";
        let index = id.extract();
        return index.map_err(|cause| refused(&format!("{name}.device.id"), &id, cause, limit));
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
