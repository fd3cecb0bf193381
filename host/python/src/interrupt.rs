//! Ctrl-C during work that takes long.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use gpu_gemm::Result;
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::failure::to_python;

/// The time between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a function without the GIL, in a thread of its own. In Python's main thread, signals are
/// handled meanwhile. If a handler raises an exception, as that of Ctrl-C does, the flag that the
/// function has is set.
///
/// # Errors
/// The exception; those of the function.
pub(crate) fn interruptible<T: Send>(
    py: Python,
    run: impl FnOnce(&AtomicBool) -> Result<T> + Send,
) -> PyResult<T> {
    let cancel = AtomicBool::new(false);
    py.detach(|| {
        let (tells_end, ends) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let work = || {
                // Dropped at the end, after a panic too.
                let _tells_end = tells_end;
                run(&cancel)
            };
            let work = thread::Builder::new().spawn_scoped(scope, work).map_err(|error| {
                PyRuntimeError::new_err(format!("the system starts no thread: {error}"))
            })?;
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = ends.recv_timeout(LOOK) {
                if raised.is_none() {
                    // Nobody waits for the work of a daemon thread after the interpreter's end.
                    let handled = Python::try_attach(|py| py.check_signals());
                    let goes_on = matches!(handled, Some(Ok(())));
                    raised = handled.and_then(PyResult::err);
                    cancel.store(!goes_on, Ordering::Relaxed);
                }
            }
            let done = match work.join() {
                Ok(done) => done.map_err(to_python),
                Err(panic) => std::panic::resume_unwind(panic),
            };
            raised.map_or(done, Err)
        })
    })
}
