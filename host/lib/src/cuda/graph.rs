//! Graphs: work of a stream that is captured once, and launched as often as it is needed.

use super::failure::check;
use super::{Context, Stream, release};
use crate::error::Result;
use cuda_dyn::{
    CU_STREAM_CAPTURE_STATUS_NONE, CUgraphExec, CUstreamCaptureMode, cuGraphDestroy,
    cuGraphExecDestroy, cuGraphInstantiateWithFlags, cuGraphLaunch, cuStreamBeginCapture_v2,
    cuStreamEndCapture, cuStreamIsCapturing,
};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The driver does not lock what threads share of it.
    raw: Mutex<Handle>,
    context: Arc<Context>,
}

/// The driver's handle of a graph.
#[derive(Clone, Copy, Debug)]
struct Handle(CUgraphExec);

// SAFETY: a graph's handle belongs to its context, not to a thread.
unsafe impl Send for Handle {}

impl Stream {
    /// Whether somebody else captures the work of the stream. The driver is asked only where that
    /// is possible.
    pub(crate) fn is_captured(&self) -> Result<bool> {
        if !self.may_be_captured() {
            return Ok(false);
        }
        let _current = self.context().enter()?;
        let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream lives as long as `self`, and one number is written.
        check(unsafe { cuStreamIsCapturing(self.raw().cast(), &mut status) })?;
        Ok(status != CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Begins a capture: from now on the stream's work is noted, and not done. Until it ends, the
    /// driver refuses calls of this thread that would spoil it, as allocations. Other threads are
    /// not disturbed.
    pub(crate) fn begin_capture(&self) -> Result<()> {
        let _current = self.context().enter()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as `self`.
        check(unsafe { cuStreamBeginCapture_v2(self.raw().cast(), mode) })
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Those of the driver, if the capture was spoilt. It has ended all the same.
    pub(crate) fn end_capture(&self) -> Result<Graph> {
        let _current = self.context().enter()?;
        let mut graph = null_mut();
        // SAFETY: the stream lives as long as `self`, and one handle is written, or null.
        check(unsafe { cuStreamEndCapture(self.raw().cast(), &mut graph) })?;
        let mut raw = null_mut();
        // SAFETY: the graph was made above, one handle is written, and there are no flags.
        let made = unsafe { cuGraphInstantiateWithFlags(&mut raw, graph, 0) };
        // SAFETY: nothing uses the handle after this. The executable graph is another object.
        let _ = unsafe { cuGraphDestroy(graph) };
        self.context().check(made)?;
        Ok(Graph { raw: Mutex::new(Handle(raw)), context: self.context().clone() })
    }
}

impl Graph {
    /// Queues the graph's work on a stream, after `before`, which orders it behind the work of
    /// other streams. No other thread launches the graph meanwhile. A launch follows all earlier
    /// ones of the same graph, on any stream.
    ///
    /// # Errors
    /// Those of `before` and of the driver.
    ///
    /// # Safety
    /// 1. The memory that its kernels access exists until they have ended. Until then nothing else
    ///    writes what they read, or accesses what they write, except in the order of the stream.
    /// 2. The modules of its kernels are loaded.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        before()?;
        let _current = self.context.enter()?;
        // SAFETY: both handles live as long as the borrows. The driver refuses a stream of another
        // device.
        check(unsafe { cuGraphLaunch(raw.0, stream.raw().cast()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Handle(raw) = *self.raw.get_mut().unwrap_or_else(PoisonError::into_inner);
        let context = self.context.clone();
        release(move || {
            let _current = context.enter();
            // SAFETY: nothing uses the handle after this. The driver frees a graph that runs when
            // it has ended.
            let _ = unsafe { cuGraphExecDestroy(raw) };
        });
    }
}
