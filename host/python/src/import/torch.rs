//! PyTorch's tensors: what its table of functions does not say, and all of it for versions without
//! the table.

use gpu_gemm::{Error, Type};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyString, PyTuple},
};

use super::{kinds::Kind, operand::Operand};
use crate::{
    array::{Dims, Place, offered, types},
    dlpack::borrowed::Described,
    failure::to_python,
};

/// Objects of the module.
struct Torch {
    dtypes: Vec<(Py<PyAny>, Type)>,
    is_grad_enabled: Py<PyAny>,
    /// `None`: PyTorch before 2.1.
    increment_version: Option<Py<PyAny>>,
}

fn torch(py: Python<'_>) -> PyResult<&Torch> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
    TORCH.get_or_try_init(py, || {
        let torch = py.import("torch")?;
        let dtype = |of: Type| -> PyResult<_> {
            Ok(torch.getattr_opt(of.numpy())?.map(|known| (known.unbind(), of)))
        };
        Ok(Torch {
            dtypes: types().filter_map(|of| dtype(of).transpose()).collect::<PyResult<_>>()?,
            is_grad_enabled: torch.getattr("is_grad_enabled")?.unbind(),
            increment_version: py
                .import("torch.autograd.graph")?
                .getattr_opt("increment_version")?
                .map(Bound::unbind),
        })
    })
}

/// Refuses a tensor whose elements are not the product's whole business.
///
/// # Errors
/// `RuntimeError` if a gradient would be lost; `ValueError` for negated elements.
pub(super) fn check(name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    if object.getattr(intern!(py, "requires_grad"))?.is_truthy()?
        && torch(py)?.is_grad_enabled.bind(py).call0()?.is_truthy()?
    {
        let message = match name {
            // Written through `detach()`, the tensor would lose the gradients of its old elements.
            "out" => "out.requires_grad = True: out= does not support automatic differentiation. Pass a tensor that requires \
                      no gradient, or call it under torch.no_grad()"
                .to_owned(),
            _ => format!(
                "{name}.requires_grad = True: the product records no gradient. Pass {name}.detach(), or call it under \
                 torch.no_grad()"
            ),
        };
        return Err(PyRuntimeError::new_err(message));
    }
    if own(object, intern!(py, "is_neg"))?.is_truthy()? {
        let limit = format!("must be False: pass {name}.resolve_neg()");
        return Err(to_python(Error::argument(format!("{name}.is_neg()"), "True", limit)));
    }
    Ok(())
}

/// Tells PyTorch that a tensor is written, so that it refuses gradients by old elements that it has
/// saved.
///
/// # Errors
/// Those of PyTorch: a tensor of `torch.inference_mode()` may not be written outside of it.
pub(crate) fn written(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(increment_version) = &torch(tensor.py())?.increment_version {
        increment_version.bind(tensor.py()).call1((tensor,))?;
    }
    Ok(())
}

/// What a method of the type says. An object may have an attribute of that name, which is not
/// asked.
fn own<'py>(
    object: &Bound<'py, PyAny>,
    method: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    object.get_type().call_method1(method, (object,))
}

/// A tensor by its methods.
pub(super) fn array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
) -> PyResult<Operand<'py>> {
    let py = object.py();
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let known = torch(py)?.dtypes.iter().find(|(known, _)| known.is(&dtype));
    let dtype = known.map(|(_, dtype)| *dtype).ok_or_else(|| {
        PyTypeError::new_err(format!("{name}.dtype = {dtype}: must be {}", offered(name)))
    })?;
    let place = if object.getattr(intern!(py, "is_cuda"))?.is_truthy()? {
        Place::Cuda(own(object, intern!(py, "get_device"))?.extract()?)
    } else if object.getattr(intern!(py, "is_cpu"))?.is_truthy()? {
        Place::Host
    } else {
        let device = object.getattr(intern!(py, "device"))?;
        let limit = "must be host memory or a CUDA device";
        return Err(to_python(Error::argument(format!("{name}.device"), device, limit)));
    };
    // It refuses a layout without strides.
    let strides = own(object, intern!(py, "stride"))?;
    let sizes = object.getattr(intern!(py, "shape"))?;
    let (sizes, strides) = (sizes.cast::<PyTuple>()?, strides.cast::<PyTuple>()?);
    let sizes = sizes.iter().map(|size| size.extract()).collect::<PyResult<Vec<usize>>>()?;
    let strides =
        strides.iter().map(|stride| stride.extract()).collect::<PyResult<Vec<isize>>>()?;
    let dims = Dims::new(name, &sizes, Some(&strides)).map_err(to_python)?;
    let address = own(object, intern!(py, "data_ptr"))?.extract()?;
    Ok(Operand::described(object, kind, Described { address, dtype, dims, place }))
}
