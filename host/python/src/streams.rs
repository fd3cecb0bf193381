//! Which stream a product is queued on.

use std::sync::Arc;

use gpu_gemm::Stream;
use pyo3::{exceptions::PyTypeError, intern, prelude::*, sync::PyOnceLock};

use crate::{
    device::{foreign_stream, own_stream},
    import::{Kind, Module},
};

/// The handle of the argument `stream`.
///
/// # Errors
/// `TypeError` for an object that is no stream.
pub(crate) fn handle(stream: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = stream.py();
    if let Ok(handle) = stream.extract() {
        return Ok(handle);
    }
    // PyTorch's, CuPy's.
    for attribute in [intern!(py, "cuda_stream"), intern!(py, "ptr")] {
        if let Some(handle) = stream.getattr_opt(attribute)? {
            return handle.extract();
        }
    }
    // NVIDIA's libraries'.
    if let Some(protocol) = stream.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let (_, handle): (u32, u64) = protocol.call0()?.extract()?;
        return Ok(handle);
    }
    let message = format!(
        "stream = {stream}: must be a handle (an int), a stream of PyTorch or CuPy, or have __cuda_stream__"
    );
    Err(PyTypeError::new_err(message))
}

/// The stream for arrays of that kind on a GPU, and whether the product is waited for: the arrays' module does not know the stream, so it
/// could free or write them too early.
///
/// # Errors
/// Those of the module, and of the driver.
pub(crate) fn select(
    py: Python,
    kind: Kind,
    index: usize,
    explicit: Option<u64>,
) -> PyResult<(Arc<Stream>, bool)> {
    let is_known = matches!(kind.module, Module::Torch | Module::Cupy);
    if let Some(handle) = explicit {
        return Ok((foreign_stream(py, index, handle)?, !is_known));
    }
    let current = match kind.module {
        Module::Torch => match kind.current_stream(py, index)? {
            Some(current) => Some(current),
            None => Some(of_torch(py, index)?),
        },
        Module::Cupy => Some(of_cupy(py, index)?),
        Module::Jax | Module::Numpy => None,
        Module::Other => kind.current_stream(py, index)?,
    };
    match current {
        Some(handle) => Ok((foreign_stream(py, index, handle)?, !is_known)),
        None => Ok((own_stream(py, index)?, true)),
    }
}

fn of_torch(py: Python, index: usize) -> PyResult<u64> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT.import(py, "torch.cuda", "current_stream")?;
    current.call1((index,))?.getattr(intern!(py, "cuda_stream"))?.extract()
}

fn of_cupy(py: Python, index: usize) -> PyResult<u64> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT.import(py, "cupy.cuda", "get_current_stream")?;
    current.call1((index,))?.getattr(intern!(py, "ptr"))?.extract()
}

/// Tells PyTorch that a stream which the caller has named uses these tensors, so that their memory is not given to others too early.
///
/// # Errors
/// Those of PyTorch.
pub(crate) fn record_on_torch<'a, 'py: 'a>(
    tensors: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
    index: usize,
    handle: u64,
) -> PyResult<()> {
    let mut tensors = tensors.into_iter().peekable();
    let Some(py) = tensors.peek().map(|tensor| tensor.py()) else { return Ok(()) };
    static EXTERNAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let external = EXTERNAL.import(py, "torch.cuda", "ExternalStream")?;
    let stream = external.call1((handle, format!("cuda:{index}")))?;
    for tensor in tensors {
        tensor.call_method1(intern!(py, "record_stream"), (&stream,))?;
    }
    Ok(())
}
