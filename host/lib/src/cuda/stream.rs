//! Streams.

use super::Context;
use super::binding::{
    CU_STREAM_NON_BLOCKING, CUstream, cuStreamCreateWithPriority, cuStreamDestroy_v2,
    cuStreamSynchronize,
};
use super::failure::check;
use crate::error::Result;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stream that does not synchronise with the default stream.
#[derive(Debug)]
pub(crate) struct Stream {
    raw: CUstream,
    /// Somebody else destroys it.
    foreign: bool,
    context: Arc<Context>,
    /// Set when nothing can be queued any more. Memory that the stream has used may still hold it.
    closed: AtomicBool,
}

// SAFETY: a stream's handle belongs to its context, not to a thread, and the driver locks what it shares.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream of normal priority.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = null_mut();
        // SAFETY: the driver writes one handle, of the context that was made current.
        let result = unsafe { cuStreamCreateWithPriority(&mut raw, CU_STREAM_NON_BLOCKING, 0) };
        context.check(result)?;
        let (foreign, closed) = (false, AtomicBool::new(false));
        Ok(Stream { raw, foreign, context: context.clone(), closed })
    }

    /// A stream that somebody else owns and destroys.
    ///
    /// # Safety
    /// 1. `raw` is a stream of this context, or one of the default streams, until this value is dropped and no memory knows it any more.
    ///    The value is used in one thread alone if `raw` is the default stream of a thread.
    pub(crate) unsafe fn foreign(context: &Arc<Context>, raw: CUstream) -> Self {
        let (foreign, closed) = (true, AtomicBool::new(false));
        Stream { raw, foreign, context: context.clone(), closed }
    }

    /// Whether more work can be queued.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire)
    }

    /// Nothing is queued after this.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Waits for all work on the stream.
    ///
    /// # Errors
    /// Those of kernels in any stream of the device, too.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the stream lives as long as `self`.
        check(unsafe { cuStreamSynchronize(self.raw) })
    }

    /// The driver's handle, valid while this value lives.
    pub(crate) fn raw(&self) -> CUstream {
        self.raw
    }

    /// The device that the stream is on.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.foreign {
            return;
        }
        let _current = self.context.enter();
        // SAFETY: nothing uses the handle after this. Work still queued is finished first by the driver.
        let _ = unsafe { cuStreamDestroy_v2(self.raw) };
    }
}
