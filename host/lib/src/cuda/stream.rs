//! Streams.

use super::Context;
use super::binding::{
    CU_STREAM_NON_BLOCKING, CUstream, cuStreamCreateWithPriority, cuStreamDestroy_v2,
    cuStreamSynchronize,
};
use super::failure::{check, has_ended};
use crate::error::{Error, Result};
use cuda_dyn::{cuStreamGetCtx, cuStreamQuery};
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A stream that does not synchronise with the default stream, or a stream of another library.
#[derive(Debug)]
pub(crate) struct Stream {
    handle: Handle,
    context: Arc<Context>,
    /// Set when nothing can be queued any more. Memory that the stream has used may still hold it.
    closed: AtomicBool,
    /// Set when others have its handle, or when it follows work of theirs that is captured.
    shared: AtomicBool,
}

/// The driver's handle.
#[derive(Debug)]
enum Handle {
    /// Made here, and destroyed here.
    Own(Raw),
    /// Of another library. While a call of the driver has the handle, the lock is held.
    Foreign(RwLock<Foreign>),
}

/// The handle of another library, or what has taken its place.
#[derive(Debug)]
struct Foreign {
    raw: Raw,
    /// Whether the handle is still the other library's.
    is_lent: bool,
    /// A stream of our own that follows the foreign one's work.
    _own: Option<Arc<Stream>>,
}

#[derive(Clone, Copy, Debug)]
struct Raw(CUstream);

// SAFETY: a stream's handle belongs to its context, not to a thread, and the driver locks what it
// shares.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// A stream's handle, to be used while this value lives.
pub(crate) struct Borrowed<'a> {
    raw: CUstream,
    _foreign: Option<RwLockReadGuard<'a, Foreign>>,
}

impl Deref for Borrowed<'_> {
    type Target = CUstream;

    fn deref(&self) -> &CUstream {
        &self.raw
    }
}

impl Stream {
    /// A new stream of normal priority.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = null_mut();
        // SAFETY: the driver writes one handle, of the context that was made current.
        let result = unsafe { cuStreamCreateWithPriority(&mut raw, CU_STREAM_NON_BLOCKING, 0) };
        context.check(result)?;
        Ok(Stream::with(Handle::Own(Raw(raw)), context))
    }

    fn with(handle: Handle, context: &Arc<Context>) -> Self {
        let (context, [closed, shared]) = (context.clone(), [false; 2].map(AtomicBool::new));
        Stream { handle, context, closed, shared }
    }

    /// A stream of another library. Null is the default stream.
    ///
    /// # Errors
    /// [`Error::Argument`] for a stream of another context than the device's primary one.
    ///
    /// # Safety
    /// 1. `raw` is a stream, or null, until [`replace`](Self::replace) returns.
    pub(crate) unsafe fn foreign(context: &Arc<Context>, raw: CUstream) -> Result<Self> {
        let _current = context.enter()?;
        let mut its = null_mut();
        // SAFETY: condition 1, and one handle is written.
        check(unsafe { cuStreamGetCtx(raw.cast(), &mut its) })?;
        if !context.is(its.cast()) {
            let limit = format!("must be of the primary context of {}", context.label());
            return Err(Error::argument("stream", format!("{raw:?}, of another context"), limit));
        }
        let foreign = Foreign { raw: Raw(raw), is_lent: true, _own: None };
        Ok(Stream::with(Handle::Foreign(RwLock::new(foreign)), context))
    }

    /// Lets a stream of our own, or the default stream, take the place of a foreign one, whose
    /// handle nobody uses here after this.
    pub(crate) fn replace(&self, own: Option<Arc<Stream>>) {
        if let Handle::Foreign(foreign) = &self.handle {
            let mut foreign = foreign.write().unwrap_or_else(PoisonError::into_inner);
            let raw = Raw(own.as_ref().map_or(null_mut(), |own| *own.raw()));
            *foreign = Foreign { raw, is_lent: false, _own: own };
        }
    }

    /// Whether it has the handle of another library.
    pub(crate) fn is_lent(&self) -> bool {
        match &self.handle {
            Handle::Own(_) => false,
            Handle::Foreign(foreign) => {
                foreign.read().unwrap_or_else(PoisonError::into_inner).is_lent
            }
        }
    }

    /// Others have its handle from now on, or it follows work of theirs that is captured.
    pub(crate) fn share(&self) {
        self.shared.store(true, Ordering::Release);
    }

    /// Whether somebody else may capture it. Nobody does that to a stream whose handle nobody else
    /// has.
    pub(crate) fn may_be_captured(&self) -> bool {
        self.shared.load(Ordering::Acquire) || self.is_lent()
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
        check(unsafe { cuStreamSynchronize(*self.raw()) })
    }

    /// Whether all work on the stream has ended.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub(crate) fn has_ended(&self) -> Result<bool> {
        let _current = self.context.enter()?;
        // SAFETY: the stream lives as long as `self`.
        has_ended(unsafe { cuStreamQuery(self.raw().cast()) })
    }

    /// The driver's handle.
    pub(crate) fn raw(&self) -> Borrowed<'_> {
        match &self.handle {
            Handle::Own(Raw(raw)) => Borrowed { raw: *raw, _foreign: None },
            Handle::Foreign(foreign) => {
                let foreign = foreign.read().unwrap_or_else(PoisonError::into_inner);
                Borrowed { raw: foreign.raw.0, _foreign: Some(foreign) }
            }
        }
    }

    /// The device that the stream is on.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Handle::Own(Raw(raw)) = self.handle {
            let _current = self.context.enter();
            // SAFETY: nothing uses the handle after this. Work still queued is finished first by
            // the driver.
            let _ = unsafe { cuStreamDestroy_v2(raw) };
        }
    }
}
