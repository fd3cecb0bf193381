//! Events: points in a stream, with times of the device's clock.

use super::binding::{
    CUevent, cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventRecord,
    cuEventSynchronize,
};
use super::failure::{check, has_ended};
use super::{Context, Stream};
use crate::error::Result;
use std::ptr::null_mut;
use std::sync::Arc;

/// `CU_EVENT_DISABLE_TIMING` of cuda.h.
const CU_EVENT_DISABLE_TIMING: u32 = 2;

/// A point in a stream's work.
#[derive(Debug)]
pub(crate) struct Event {
    raw: CUevent,
    context: Arc<Context>,
    /// Whether it is a node of a capture of another library. A stream that waits for it becomes a
    /// part of that.
    in_capture: bool,
}

// SAFETY: an event's handle belongs to its context, not to a thread, and the driver locks what it
// shares.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// A new event with timing, not recorded yet.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        Event::with_flags(context, 0)
    }

    /// The same without timing, for streams that wait for each other: the driver is done sooner.
    pub(crate) fn without_time(context: &Arc<Context>) -> Result<Self> {
        Event::with_flags(context, CU_EVENT_DISABLE_TIMING)
    }

    fn with_flags(context: &Arc<Context>, flags: u32) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = null_mut();
        // SAFETY: the driver writes one handle, of the context that was made current.
        context.check(unsafe { cuEventCreate(&mut raw, flags) })?;
        Ok(Event { raw, context: context.clone(), in_capture: false })
    }

    /// Records the event after all work that is in `stream` now.
    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: both handles live as long as the borrows. The driver refuses a pair of two
        // devices.
        check(unsafe { cuEventRecord(self.raw, *stream.raw()) })
    }

    /// A new event after all work that is in `stream` now, which another library may capture.
    pub(crate) fn of(stream: &Stream) -> Result<Self> {
        let mut event = Event::new(stream.context())?;
        event.record(stream)?;
        event.in_capture = stream.is_captured()?;
        Ok(event)
    }

    /// Whether it is a node of a capture of another library.
    pub(super) fn is_in_capture(&self) -> bool {
        self.in_capture
    }

    /// The driver's handle, valid while this value lives.
    pub(super) fn raw(&self) -> CUevent {
        self.raw
    }

    /// Waits until the event is reached.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the event lives as long as `self`.
        check(unsafe { cuEventSynchronize(self.raw) })
    }

    /// Whether the event is reached.
    pub(crate) fn has_ended(&self) -> Result<bool> {
        let _current = self.context.enter()?;
        // SAFETY: the event lives as long as `self`.
        has_ended(unsafe { cuda_dyn::cuEventQuery(self.raw.cast()) })
    }

    /// Microseconds between two events, by the device's clock, which has a resolution of about half
    /// a microsecond. Waits for the second.
    pub(crate) fn elapsed_us(start: &Event, end: &Event) -> Result<f64> {
        end.synchronize()?;
        let _current = end.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events live as long as the borrows, and the driver writes one float.
        check(unsafe { cuEventElapsedTime(&mut milliseconds, start.raw, end.raw) })?;
        Ok(f64::from(milliseconds) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _current = self.context.enter();
        // SAFETY: nothing uses the handle after this.
        let _ = unsafe { cuEventDestroy_v2(self.raw) };
    }
}
