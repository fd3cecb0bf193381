//! The streams that use a memory, so that a stream waits for others that use the same memory.
//!
//! Uses on one stream are in order, and cost a comparison of pointers here. If another stream has
//! used the memory, an event is recorded there, and the new stream waits for it on the device. The
//! host does not wait.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Event, Stream};
use crate::error::{Error, Result};

/// With that many readers, those that are closed are waited for and removed.
const MANY_READERS: usize = 8;

/// The streams whose work may still use a memory.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    /// The last stream that writes.
    writer: Option<Arc<Stream>>,
    /// The streams that read since then.
    readers: Vec<Arc<Stream>>,
}

impl Uses {
    /// What is queued on `stream` from now on reads the memory.
    pub(crate) fn read_by(&self, stream: &Arc<Stream>) -> Result<()> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader since the last write has waited for that.
        if streams.readers.iter().any(|reader| Arc::ptr_eq(reader, stream)) {
            return Ok(());
        }
        if let Some(writer) = &streams.writer {
            behind(stream, writer)?;
        }
        // Only closed streams: on an open one the read may not be queued yet.
        while streams.readers.len() >= MANY_READERS
            && let Some(index) = streams.readers.iter().position(|reader| !reader.is_open())
        {
            behind(stream, &streams.readers[index])?;
            streams.readers.swap_remove(index);
        }
        streams.readers.push(stream.clone());
        Ok(())
    }

    /// What is queued on `stream` from now on writes the memory.
    pub(crate) fn written_by(&self, stream: &Arc<Stream>) -> Result<()> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Streams { writer, readers } = &mut *streams;
        for other in writer.iter().chain(readers.iter()) {
            behind(stream, other)?;
        }
        readers.clear();
        *writer = Some(stream.clone());
        Ok(())
    }

    /// All work of the device has ended, and no more is queued meanwhile.
    pub(crate) fn ended(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Streams::default();
    }

    /// Waits on the host for all work that may use the memory. Its streams stay known: what is
    /// launched elsewhere meanwhile, or after an error, waits for them.
    ///
    /// # Errors
    /// The first of those of the kernels. The other streams are waited for, too.
    pub(crate) fn synchronize(&self) -> Result<()> {
        let streams = {
            let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            streams.writer.iter().chain(&streams.readers).cloned().collect::<Vec<_>>()
        };
        let mut waited = Ok(());
        for stream in &streams {
            // After an error, too.
            let outcome = stream.synchronize();
            waited = waited.and(outcome);
        }
        waited
    }
}

/// Lets what is queued on `stream` from now on wait for all that is queued on `other` so far.
fn behind(stream: &Arc<Stream>, other: &Arc<Stream>) -> Result<()> {
    if Arc::ptr_eq(stream, other) {
        return Ok(());
    }
    if other.is_captured()? {
        // The event would draw `stream` into a graph that outlives what it uses.
        return Err(Error::capture("work after that of a stream that another library captures"));
    }
    let event = Event::new(other.context())?;
    event.record(other)?;
    stream.wait_for(&event)
}
