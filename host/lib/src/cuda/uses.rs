//! Who has used some memory: so that a stream waits for what other streams do with it.
//!
//! Work that is queued on one stream runs in order, and costs nothing here: two pointers are compared. Where another
//! stream has used the memory, that stream's work so far is marked then, and the new one waits for the mark on the
//! device; no thread of the host does.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Event, Stream};
use crate::error::Result;

/// From so many readers on, those of them are waited for and forgotten on which nothing can be queued any more.
const MANY_READERS: usize = 8;

/// The streams whose work may still be at some memory.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    /// The last one that writes.
    writer: Option<Arc<Stream>>,
    /// Those that read since then.
    readers: Vec<Arc<Stream>>,
}

impl Uses {
    /// What is queued on `stream` from now on reads.
    pub(crate) fn read_by(&self, stream: &Arc<Stream>) -> Result<()> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Who has read it since it was written has waited for that.
        if streams.readers.iter().any(|reader| Arc::ptr_eq(reader, stream)) {
            return Ok(());
        }
        if let Some(writer) = &streams.writer {
            behind(stream, writer)?;
        }
        // Of a stream that somebody still has, the read that was announced here may not have been queued yet.
        while streams.readers.len() >= MANY_READERS
            && let Some(index) = streams.readers.iter().position(|reader| !reader.is_open())
        {
            behind(stream, &streams.readers[index])?;
            streams.readers.swap_remove(index);
        }
        streams.readers.push(stream.clone());
        Ok(())
    }

    /// What is queued on `stream` from now on writes.
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

    /// All work of the device has ended, and nobody can queue more on this memory meanwhile.
    pub(crate) fn ended(&mut self) {
        *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = Streams::default();
    }
}

/// Puts what is queued on `stream` from now on behind all that is queued on `other` so far.
fn behind(stream: &Arc<Stream>, other: &Arc<Stream>) -> Result<()> {
    if Arc::ptr_eq(stream, other) {
        return Ok(());
    }
    let event = Event::new(other.context())?;
    event.record(other)?;
    stream.wait_for(&event)
}
