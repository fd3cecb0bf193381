//! Which stream a product is queued on.

use std::{cell::OnceCell, sync::Arc};

use gpu_gemm::Stream;
use pyo3::{
    exceptions::PyTypeError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyInt},
};

use crate::{
    argument::refused,
    device::{foreign_stream, own_stream},
    import::{Kind, Module},
    product::ARRAYS,
};

/// The handle of the argument `stream`.
///
/// # Errors
/// `TypeError` for an object that is no stream; `ValueError` for a number that is no handle.
pub(crate) fn handle(stream: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = stream.py();
    let wrong = |cause| {
        let limit = "must be a handle (an int of 64 bits), a stream of PyTorch or CuPy, or have __cuda_stream__";
        refused("stream", stream, cause, limit)
    };
    let read = |handle: &Bound<'_, PyAny>| match handle.is_instance_of::<PyBool>() {
        true => Err(wrong(PyTypeError::new_err("a bool is no handle"))),
        false => handle.extract().map_err(wrong),
    };
    if stream.is_instance_of::<PyInt>() {
        return read(stream);
    }
    // PyTorch's, CuPy's.
    for attribute in [intern!(py, "cuda_stream"), intern!(py, "ptr")] {
        if let Some(handle) = stream.getattr_opt(attribute)? {
            return read(&handle);
        }
    }
    // NVIDIA's libraries'.
    if let Some(protocol) = stream.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let pair = protocol.call0()?;
        return Ok(pair.extract::<(u32, u64)>().map_err(wrong)?.1);
    }
    // What is as good as an int.
    read(stream)
}

/// The stream of a product. It is chosen once, by the first that asks: an array that is to be ready
/// on it, or the product.
pub(crate) struct Queue {
    /// Of A.
    kind: Kind,
    explicit: Option<u64>,
    chosen: OnceCell<(usize, Chosen)>,
}

/// A stream, and its handle if it is another library's.
type Chosen = (Arc<Stream>, Option<u64>);

impl Queue {
    /// The stream that the caller has named, or the one for an A of that kind.
    pub(crate) fn new(kind: Kind, explicit: Option<u64>) -> Self {
        Queue { kind, explicit, chosen: OnceCell::new() }
    }

    /// The stream on a GPU.
    ///
    /// # Errors
    /// Those of A's module, and of the driver.
    pub(crate) fn stream(&self, py: Python, index: usize) -> PyResult<Arc<Stream>> {
        Ok(self.chosen(py, index)?.0)
    }

    fn chosen(&self, py: Python, index: usize) -> PyResult<Chosen> {
        if let Some((of, chosen)) = self.chosen.get()
            && *of == index
        {
            return Ok(chosen.clone());
        }
        let handle = match self.explicit {
            Some(handle) => Some(handle),
            None => current(py, self.kind, index)?,
        };
        let stream = match handle {
            Some(handle) => foreign_stream(py, index, handle)?,
            None => own_stream(py, index)?,
        };
        // The first stays: an array on another GPU than A is refused later.
        let _ = self.chosen.set((index, (stream.clone(), handle)));
        Ok((stream, handle))
    }

    /// The handle on which an array that is asked for by `__dlpack__` is to be ready.
    ///
    /// # Errors
    /// As of [`Queue::stream`].
    pub(crate) fn handle(&self, py: Python, index: usize) -> PyResult<Option<u64>> {
        // The array may be on another GPU, which has no such stream.
        if self.explicit.is_some() {
            return Ok(self.explicit);
        }
        let (stream, handle) = self.chosen(py, index)?;
        Ok(handle.or_else(|| stream.raw_cuda_stream().map(|raw| raw.addr() as u64)))
    }

    /// What a product of these arrays waits for, and whether it is waited for. Of each array: its
    /// kind, and the stream that it says it waits for. A module that does not know the product's
    /// stream could free or write an array too early, or read C. If it has a current stream of its
    /// own, the product waits for that.
    ///
    /// # Errors
    /// As of [`Queue::stream`].
    pub(crate) fn order(
        &self,
        py: Python,
        index: usize,
        arrays: [Option<(Kind, Option<u64>)>; ARRAYS],
    ) -> PyResult<([Option<u64>; ARRAYS], bool)> {
        let mut after = arrays.map(|array| array.and_then(|(_, ready_on)| ready_on));
        let mut waits = !self.kind.is_known();
        for (after, array) in after.iter_mut().zip(arrays) {
            let Some((kind, _)) = array else { continue };
            if kind.has_streams_of(&self.kind) {
                continue;
            }
            waits |= !kind.is_known();
            if self.explicit.is_some() {
                // The caller orders it.
                continue;
            }
            let (_, handle) = self.chosen(py, index)?;
            let current = current(py, kind, index)?;
            if current.map(plain) != handle.map(plain) {
                *after = after.or(current);
                waits = true;
            }
        }
        Ok((after, waits))
    }
}

/// The default stream has two handles.
fn plain(handle: u64) -> u64 {
    if handle == 1 { 0 } else { handle }
}

/// The current stream of a kind's module on a GPU. `None`: it has none.
///
/// # Errors
/// Those of the module.
pub(crate) fn current(py: Python, kind: Kind, index: usize) -> PyResult<Option<u64>> {
    Ok(match kind.module {
        Module::Torch => match kind.current_stream(py, index)? {
            Some(current) => Some(current),
            None => Some(of_torch(py, index)?),
        },
        Module::Cupy => Some(of_cupy(py, index)?),
        Module::Jax | Module::Numpy => None,
        Module::Other => kind.current_stream(py, index)?,
    })
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

/// Tells PyTorch that a stream which the caller has named uses these tensors, so that their memory
/// is not given to others too early.
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
