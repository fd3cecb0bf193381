//! Lanes: streams whose work a plan orders, on one of several devices.
//!
//! Elsewhere a stream waits by itself for others that use the same memory. A lane waits for the
//! [marks](Mark) that the plan names, and for nothing else. So a copy to a buffer runs while the
//! buffer's other half is read. What the plan forgets the [ledger](super::ledger) of CPU devices
//! finds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Kept, Mode, Stream,
    ledger::{Lane, Ledger},
};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{
    buffer::{BufferView, BufferViewMut, Pod, UsedRange},
    device::{Device, Kind},
    error::{Error, Result},
};

/// A point in a lane's work.
#[derive(Debug)]
pub(crate) enum Mark {
    /// The clock of a CPU device's lane.
    Host(Vec<u64>),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Event),
}

impl Mark {
    /// Whether it is known not to be reached.
    pub(crate) fn is_ahead(&self) -> bool {
        match self {
            Mark::Host(_) => false,
            #[cfg(feature = "cuda")]
            Mark::Cuda(event) => event.has_ended().is_ok_and(|ended| !ended),
        }
    }
}

impl Device {
    /// Uses it no more, nor frees what it may still use: its work does not end.
    fn give_up(&self, after: Duration) {
        match &*self.0 {
            Kind::Cpu(_) => {
                let _ = after;
            }
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => gpu.context.give_up(after),
        }
    }

    /// A new lane. The ledger is of all lanes of a plan.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn lane(&self, ledger: &Arc<Ledger>) -> Result<Stream> {
        let of_cpu = || (ledger.clone(), ledger.open());
        let known = (!self.is_cuda()).then(of_cpu);
        let stream = match &*self.0 {
            Kind::Cpu(_) => Stream::new(self, Mode::Launching, Kept::default()),
            #[cfg(feature = "cuda")]
            Kind::Cuda(_) => self.stream()?,
        };
        Ok(stream.ordered(Lane { device: self.clone(), ledger: known }))
    }
}

impl Stream {
    fn ordered(mut self, lane: Lane) -> Self {
        self.lane = Some(lane);
        self
    }

    /// What a plan's stream is known by.
    pub(crate) fn lane(&self) -> Option<&Lane> {
        self.lane.as_ref()
    }

    /// Marks the end of what is queued now. A mark of this lane that nobody needs any more can
    /// serve again: an event takes the driver time to make.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn mark(&self, kept: Option<Mark>) -> Result<Mark> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &self.cuda {
            let event = match kept {
                Some(Mark::Cuda(event)) => event,
                _ => cuda::Event::without_time(stream.context())?,
            };
            event.record(stream)?;
            return Ok(Mark::Cuda(event));
        }
        drop(kept);
        Ok(Mark::Host(match self.lane.as_ref().and_then(|lane| lane.ledger.as_ref()) {
            None => Vec::new(),
            Some((ledger, lane)) => ledger.mark(*lane),
        }))
    }

    /// Lets what is queued from now on wait for a mark, of any device.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn after(&self, mark: &Mark) -> Result<()> {
        match mark {
            Mark::Host(seen) => {
                if let Some((ledger, lane)) = self.lane.as_ref().and_then(|it| it.ledger.as_ref()) {
                    ledger.after(*lane, seen);
                }
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Mark::Cuda(event) => self.cuda().map_or(Ok(()), |stream| stream.wait_for(event)),
        }
    }
}

/// The lanes of all places. Waits for them when it is dropped, also while a panic unwinds: nothing
/// that was there before it is freed while a copy may use it.
pub(crate) struct AllLanes<'l, const COUNT: usize>(pub(crate) &'l [[Stream; COUNT]]);

impl<const COUNT: usize> AllLanes<'_, COUNT> {
    /// Lets the ledger know that all has been waited for.
    fn have_ended(&self) {
        let ledgers = self.0.iter().flatten().filter_map(|lane| lane.lane()?.ledger.as_ref());
        ledgers.for_each(|(ledger, _)| ledger.forget());
    }

    /// Waits for all, at most so long, and lets the ledger know. Gives the first error, as `named`
    /// makes it of its place's. Devices whose work has not ended are given up. `stuck`: the place
    /// for which the others wait, if that is known.
    pub(crate) fn wait(
        self,
        limit: Duration,
        stuck: impl FnOnce() -> Option<usize>,
        named: impl Fn(usize, Error) -> Error,
    ) -> Result<()> {
        let deadline = Instant::now().checked_add(limit);
        let (mut ended, mut hung) = (Ok(()), Vec::new());
        for (place, lanes) in self.0.iter().enumerate() {
            for lane in lanes {
                match lane.ends_by(deadline) {
                    Ok(true) => {}
                    Ok(false) => hung.push((place, lane)),
                    Err(error) => ended = ended.and(Err(named(place, error))),
                }
            }
        }
        if let Some((first, _)) = hung.first() {
            let place = stuck().unwrap_or(*first);
            hung.iter().for_each(|(_, lane)| lane.device().give_up(limit));
            let device = self.0[place][0].device().name();
            ended = ended.and(Err(named(place, Error::Hung { device, after: limit })));
        }
        self.have_ended();
        // It would wait again.
        std::mem::forget(self);
        ended
    }
}

impl<const COUNT: usize> Drop for AllLanes<'_, COUNT> {
    fn drop(&mut self) {
        for lane in self.0.iter().flatten() {
            // What has failed was reported, or a panic is.
            let _ = lane.synchronize();
        }
        self.have_ended();
    }
}

/// Queues a copy of `rows` rows of `cols` elements on a lane of the target's device. Pitches are in
/// elements.
///
/// # Errors
/// [`Error::Argument`] for rows beyond either side; [`Error::Unordered`]; those of the driver.
///
/// # Safety
/// 1. Both memories exist until the copy has ended. Until then nobody else writes what it reads, or
///    accesses what it writes, but in an order that marks ensure.
pub(crate) unsafe fn transfer<T: Pod>(
    lane: &Stream,
    (from, from_pitch): (BufferView<T>, usize),
    (mut to, to_pitch): (BufferViewMut<T>, usize),
    [rows, cols]: [usize; 2],
) -> Result<()> {
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    for (name, len, pitch) in [("from", from.len(), from_pitch), ("to", to.len(), to_pitch)] {
        let end = (rows - 1).saturating_mul(pitch).saturating_add(cols);
        if end > len || pitch < cols {
            let limit = format!("must have {rows} rows of {cols} elements, {pitch} apart");
            return Err(Error::argument(name, format!("{len} elements"), limit));
        }
    }
    crate::check_interrupt()?;
    let (source, target) = (from.address(), to.address());
    let range = |start: u64, pitch: usize, is_written: bool| {
        UsedRange::new::<T>(start, (rows - 1) * pitch + cols, is_written)
    };
    if let Some(noted) = lane.lane() {
        noted.note(from.device(), range(source as u64, from_pitch, false))?;
        noted.note(to.device(), range(target as u64, to_pitch, true))?;
    }
    #[cfg(feature = "cuda")]
    if let (Some(stream), Kind::Cuda(peer)) = (lane.cuda(), &*from.device().0) {
        let (bytes, from_device) = (size_of::<T>(), from.device().clone());
        let from = cuda::Pitched { start: source as u64, pitch: from_pitch * bytes };
        let to = cuda::Pitched { start: target as u64, pitch: to_pitch * bytes };
        let size = [cols * bytes, rows];
        // Two places may be one GPU.
        if from_device == *lane.device() {
            // SAFETY: as below.
            return unsafe { stream.copy_on_device(from, to, size) };
        }
        // SAFETY: condition 1. The rows are within both views, and two buffers do not overlap.
        return unsafe { stream.copy_from_peer(&peer.context, from, to, size) };
    }
    for row in 0..rows {
        let from = source.wrapping_add(row * from_pitch);
        // SAFETY: as above. On CPU devices all earlier work has ended.
        unsafe { target.wrapping_add(row * to_pitch).copy_from_nonoverlapping(from, cols) };
    }
    Ok(())
}

#[cfg(all(test, feature = "cpu"))]
mod tests;
