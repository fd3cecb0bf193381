//! Launches on a stream that are prepared, or captured for a graph.

#[cfg(feature = "cuda")]
use std::sync::MutexGuard;
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

    /// Notes the use of a range for the graph. Returns whether work on other streams is to be waited for now: in a capture that is done at
    /// the launch of the graph.
    pub(crate) fn notes_use(&self, range: UsedRange) -> bool {
        #[cfg(feature = "cuda")]
        if let Some(mut recorded) = self.recorded() {
            recorded.uses(range);
        }
        #[cfg(not(feature = "cuda"))]
        let _ = range;
        self.is_launching()
    }

    /// The kernel as it is launched, noted for the graph in a capture. `None` if it is not to be launched.
    ///
    /// # Errors
    /// As [`refuse_in_capture`](Self::refuse_in_capture), for a stream that is lent to a scope.
    #[cfg(feature = "cuda")]
    pub(crate) fn noted(&self, function: cuda::Function) -> Result<Option<cuda::Function>> {
        if let Some(mut recorded) = self.recorded() {
            recorded.functions.push(function.clone());
            return Ok(Some(function.captured()));
        }
        if self.is_preparing() {
            return Ok(None);
        }
        self.refuse_if_lent_and_captured()?;
        if let Some(stream) = self.cuda()
            && !self.borrowed
            && stream.may_be_captured()
        {
            // Nobody says how long that graph exists.
            function.keep_loaded();
        }
        Ok(Some(function))
    }

    /// Refuses work on a stream that is lent to a scope while its library captures it: the graph would outlive the scope.
    #[cfg(feature = "cuda")]
    fn refuse_if_lent_and_captured(&self) -> Result<()> {
        match self.cuda() {
            Some(stream) if self.borrowed && stream.is_captured()? => {
                Err(Error::capture("a stream that is lent to a scope, and captured by its library"))
            }
            _ => Ok(()),
        }
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
        self.refuse_if_lent_and_captured()?;
        Ok(())
    }

    /// Refuses workspace in a capture of another library. Its graph would keep the address of memory that this stream frees or uses again.
    ///
    /// # Errors
    /// [`Error::Capture`]; those of the driver.
    pub(super) fn may_use_workspace(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        // A launch on a stream that is lent to a scope is refused by itself.
        if let (Mode::Launching, false, Some(stream)) = (&self.mode, self.borrowed, self.cuda())
            && stream.is_captured()?
        {
            let what = "a product that needs workspace, in a capture of another library: Stream::capture makes graphs with workspace";
            return Err(Error::capture(what));
        }
        Ok(())
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
        if let Some(stream) = self.cuda() {
            let is_captured = match &self.mode {
                Mode::Capturing(_) => true,
                // Nothing is queued, so it does not matter what the stream does.
                Mode::Preparing => false,
                Mode::Launching => stream.is_captured()?,
            };
            if is_captured {
                return Err(Error::capture(what()));
            }
        }
        let _ = what;
        Ok(())
    }
}
