//! Devices and streams of the process, opened once.

use std::{
    process,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread::{self, ThreadId},
};

use gpu_gemm::{Best, Device, Result, Stream};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::{array::Place, failure::to_python};

/// The process that has started the driver. 0: none.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// The most streams of other libraries whose workspace is kept.
const MOST_STREAMS: usize = 32;

/// The GPUs that were opened, each with its own stream.
static GPUS: Mutex<Vec<(usize, Arc<Stream>)>> = Mutex::new(Vec::new());

/// Streams of other libraries. The last used is the last.
static STREAMS: Mutex<Vec<(Key, Arc<Stream>)>> = Mutex::new(Vec::new());

/// The handle of the driver's default stream of each thread. It is another stream in each.
const PER_THREAD: u64 = 2;

/// A stream of another library: the GPU's index, the handle, and for [`PER_THREAD`] the thread.
type Key = (usize, u64, Option<ThreadId>);

/// Refuses a process that was forked after the driver was started: CUDA does not work in it.
pub(crate) fn check_fork() -> PyResult<()> {
    let started_by = STARTED_BY.load(Ordering::Relaxed);
    if started_by == 0 || started_by == process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!(
        "CUDA was started in process {started_by}, and a child after a fork cannot use it: start the child with \
         multiprocessing.get_context(\"spawn\"), or pass device=\"cpu\" for arrays in host memory"
    )))
}

/// The first GPU that can run the kernels, or the CPU.
pub(crate) fn best(py: Python) -> PyResult<&'static Best> {
    static BEST: OnceLock<Best> = OnceLock::new();
    check_fork()?;
    let best = py.detach(|| {
        BEST.get_or_init(|| {
            let best = Device::best();
            if best.device.is_cuda() {
                STARTED_BY.store(process::id(), Ordering::Relaxed);
            }
            best
        })
    });
    check_fork()?;
    Ok(best)
}

/// The library's own stream on a GPU.
pub(crate) fn own_stream(py: Python, index: usize) -> PyResult<Arc<Stream>> {
    check_fork()?;
    let find = || {
        let gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
        gpus.iter().find(|(known, _)| *known == index).map(|(_, stream)| stream.clone())
    };
    if let Some(stream) = find() {
        return Ok(stream);
    }
    let open = || -> Result<_> {
        let stream = Arc::new(Device::cuda(index)?.stream()?);
        STARTED_BY.store(process::id(), Ordering::Relaxed);
        let mut gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
        gpus.push((index, stream));
        Ok(())
    };
    py.detach(open).map_err(to_python)?;
    find().ok_or_else(|| PyRuntimeError::new_err(format!("cuda:{index} is not open")))
}

/// The stream of another library with that handle on a GPU.
pub(crate) fn foreign_stream(py: Python, index: usize, handle: u64) -> PyResult<Arc<Stream>> {
    check_fork()?;
    let key = (index, handle, (handle == PER_THREAD).then(|| thread::current().id()));
    {
        let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = streams.iter().rposition(|(known, _)| *known == key) {
            let stream = streams[at].1.clone();
            streams[at..].rotate_left(1);
            return Ok(stream);
        }
    }
    let own = own_stream(py, index)?;
    // SAFETY: the handle is a stream of this device: the caller, or the library that the array is
    // from, says so. A stream is used only for products that were given it, and nothing is queued
    // on it afterwards.
    let stream = unsafe { own.device().foreign_stream(handle as *mut _) }.map_err(to_python)?;
    let stream = Arc::new(stream);
    let dropped = {
        let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = streams.len() >= MOST_STREAMS;
        streams.push((key, stream.clone()));
        is_full.then(|| streams.remove(0))
    };
    // Its workspace is freed, and the driver waits for the kernels that use it.
    py.detach(|| {
        if let Some(stream) = dropped.and_then(|(_, stream)| Arc::into_inner(stream)) {
            // Its module may have destroyed it. What went wrong with its work is told to whoever
            // waits for that.
            let _ = stream.abandon();
        }
    });
    Ok(stream)
}

/// The device of arrays in host memory: the one that is named, or the best.
///
/// # Errors
/// Those of opening the device.
pub(crate) fn or_best(py: Python, named: Option<Place>) -> PyResult<Place> {
    match named {
        Some(place) => Ok(place),
        None => Ok(index_of(&best(py)?.device).map_or(Place::Host, Place::Cuda)),
    }
}

/// The index of a GPU.
fn index_of(device: &Device) -> Option<usize> {
    device.name().strip_prefix("cuda:").and_then(|index| index.parse().ok())
}
