//! Launches on a stream that are prepared, or captured for a graph.

#[cfg(feature = "cuda")]
use std::{
    cell::Cell,
    ptr::null,
    sync::{Arc, MutexGuard},
};
use std::{mem, sync::PoisonError};

#[cfg(feature = "cuda")]
use super::mode::Recorded;
use super::{Kept, Mode, Stream};
use crate::buffer::UsedRange;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::error::{Error, Result};

impl Stream {
    /// The same stream of the driver, with another mode, and with what it keeps.
    pub(crate) fn with(&self, mode: Mode, kept: Kept) -> Stream {
        let stream = Stream::new(&self.device, mode, kept);
        #[cfg(feature = "cuda")]
        let stream = stream.on(self.cuda.clone(), true);
        stream
    }

    /// The mode, and what the stream keeps.
    pub(crate) fn into_parts(mut self) -> (Mode, Kept) {
        let mode = mem::replace(&mut self.mode, Mode::Launching);
        (mode, mem::take(&mut self.kept))
    }

    /// Takes what is reserved for the next graph.
    pub(crate) fn take_reserved(&self) -> Kept {
        mem::take(&mut *self.reserved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reserves it for the next graph.
    pub(crate) fn reserve(&self, kept: Kept) {
        *self.reserved.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    /// Whether launches are neither launched nor captured.
    pub(crate) fn is_preparing(&self) -> bool {
        matches!(self.mode, Mode::Preparing)
    }

    /// Whether launches are launched now.
    pub(crate) fn is_launching(&self) -> bool {
        matches!(self.mode, Mode::Launching)
    }

    /// What was recorded so far, to be added to. `None` outside of a capture.
    #[cfg(feature = "cuda")]
    fn recorded(&self) -> Option<MutexGuard<'_, Recorded>> {
        match &self.mode {
            Mode::Capturing(recorded) => {
                Some(recorded.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Mode::Launching | Mode::Preparing => None,
        }
    }

    /// Notes the use of a range for the graph. Returns whether work on other streams is to be
    /// waited for now: in a capture that is done at the launch of the graph.
    pub(crate) fn notes_use(&self, range: UsedRange) -> bool {
        #[cfg(feature = "cuda")]
        if let Some(mut recorded) = self.recorded() {
            recorded.uses(range);
        }
        #[cfg(not(feature = "cuda"))]
        let _ = range;
        self.is_launching()
    }

    /// The kernel as it is launched, noted for the graph in a capture. `None` if it is not to be
    /// launched.
    ///
    /// # Errors
    /// As [`is_captured_by_others`](Self::is_captured_by_others).
    #[cfg(feature = "cuda")]
    pub(crate) fn noted(&self, function: cuda::Function) -> Result<Option<cuda::Function>> {
        if let Some(mut recorded) = self.recorded() {
            recorded.functions.push(function.clone());
            return Ok(Some(function.captured()));
        }
        if self.is_preparing() {
            return Ok(None);
        }
        if self.is_captured_by_others()? {
            // Nobody says how long that graph exists.
            function.keep_loaded();
        }
        Ok(Some(function))
    }

    /// Whether somebody else captures the stream at this moment. The driver is asked: once for a
    /// launch, and once for all launches of a product with workspace
    /// ([`in_no_capture`](Self::in_no_capture)). A stream whose handle nobody else has asks
    /// nothing.
    ///
    /// The answer holds for what is queued next. So nobody begins or ends a capture of the stream
    /// on another thread meanwhile.
    ///
    /// # Errors
    /// [`Error::Capture`] if the stream is lent to a scope: the graph would outlive the scope.
    /// Those of the driver.
    #[cfg(feature = "cuda")]
    fn is_captured_by_others(&self) -> Result<bool> {
        let Some(stream) = self.cuda() else { return Ok(false) };
        if Known::is(stream) || !stream.is_captured()? {
            return Ok(false);
        }
        if self.borrowed {
            let what = "a stream that is lent to a scope, and captured by its library";
            return Err(Error::capture(what));
        }
        Ok(true)
    }

    /// Whether its work may be waited for: it is neither prepared nor captured, also not by another
    /// library.
    ///
    /// # Errors
    /// Those of the driver; [`Error::Capture`] for a stream that is lent to a scope and captured.
    pub(crate) fn may_be_waited_for(&self) -> Result<bool> {
        #[cfg(feature = "cuda")]
        if self.is_launching() {
            return Ok(!self.is_captured_by_others()?);
        }
        Ok(self.is_launching())
    }

    /// Refuses `what` while the stream is prepared or captured.
    ///
    /// # Errors
    /// [`Error::Capture`].
    pub(crate) fn refuse_in_capture(&self, what: &str) -> Result<()> {
        if !self.is_launching() {
            return Err(Error::capture(what));
        }
        #[cfg(feature = "cuda")]
        if self.borrowed {
            self.is_captured_by_others()?;
        }
        Ok(())
    }

    /// Runs `queue`, which queues work with workspace. In a capture of another library it is
    /// refused: the graph would keep the address of memory that this stream frees or uses again.
    /// What `queue` queues does not ask the driver again.
    ///
    /// # Errors
    /// [`Error::Capture`]; those of the driver and of `queue`.
    pub(super) fn in_no_capture<R>(&self, queue: impl FnOnce() -> Result<R>) -> Result<R> {
        #[cfg(feature = "cuda")]
        let _known = match (&self.mode, self.cuda()) {
            (Mode::Launching, Some(stream)) => {
                if self.is_captured_by_others()? {
                    let what = "a product that needs workspace, in a capture of another library: Stream::capture makes graphs with workspace";
                    return Err(Error::capture(what));
                }
                Some(Known::not_captured(stream))
            }
            _ => None,
        };
        queue()
    }

    /// Refuses the allocation of workspace in a capture.
    ///
    /// # Errors
    /// As [`refuse_unprepared`](Self::refuse_unprepared).
    pub(super) fn may_allocate(&self, bytes: usize) -> Result<()> {
        self.refuse_unprepared(|| {
            format!(
                "{bytes} bytes of workspace are not reserved: prepare the same launches before, on the stream that is captured \
                 (Gemm::prepare, Stream::prepare)"
            )
        })
    }

    /// Refuses what must be done before a capture. Somebody else may capture this stream, too.
    ///
    /// # Errors
    /// [`Error::Capture`]; those of the driver.
    pub(crate) fn refuse_unprepared(&self, what: impl FnOnce() -> String) -> Result<()> {
        #[cfg(feature = "cuda")]
        if self.cuda().is_some() {
            let is_captured = match &self.mode {
                Mode::Capturing(_) => true,
                // Nothing is queued, so it does not matter what the stream does.
                Mode::Preparing => false,
                Mode::Launching => self.is_captured_by_others()?,
            };
            if is_captured {
                return Err(Error::capture(what()));
            }
        }
        let _ = what;
        Ok(())
    }
}

#[cfg(feature = "cuda")]
thread_local! {
    /// The stream of which this thread knows that nobody else captures it, or null.
    static KNOWN: Cell<*const cuda::Stream> = const { Cell::new(null()) };
}

/// While this value lives, its thread knows of a stream that nobody else captures it. No code of
/// others runs meanwhile.
#[cfg(feature = "cuda")]
struct Known {
    /// What the thread knew before.
    before: *const cuda::Stream,
}

#[cfg(feature = "cuda")]
impl Known {
    /// The driver has just said it of `stream`.
    fn not_captured(stream: &Arc<cuda::Stream>) -> Self {
        Known { before: KNOWN.replace(Arc::as_ptr(stream)) }
    }

    /// Whether it is known of `stream`.
    fn is(stream: &Arc<cuda::Stream>) -> bool {
        KNOWN.get() == Arc::as_ptr(stream)
    }
}

#[cfg(feature = "cuda")]
impl Drop for Known {
    fn drop(&mut self) {
        KNOWN.set(self.before);
    }
}
