//! Device memory that a stream keeps from one launch to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "cuda")]
use crate::buffer::Storage;
use crate::{buffer::Buffer, device::Device, error::Result};

/// Where memory is allocated, and a check that so many bytes may be allocated now.
pub(crate) type Allocator<'a> = (&'a Device, &'a dyn Fn(usize) -> Result<()>);

/// What a stream keeps. Work on a stream runs in order, so one of each serves all launches.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    workspace: Mutex<Option<Buffer<u8>>>,
    partials: Mutex<Option<Buffer<u8>>>,
    /// Words that are zero between launches.
    zeros: Mutex<Option<Buffer<u32>>>,
    /// Words in which kernels count. Allocated for the first kernel that does.
    counters: Mutex<Option<Buffer<u32>>>,
    /// What the program knows of the counters. A thread locks it while it launches a kernel that
    /// counts, or waits for one. So no thread takes the counts of another for its own.
    known: Mutex<Option<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(feature = "cuda")]
fn owned<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    /// Hands `launch` a workspace of so many bytes. Nothing else uses it before the launches on the
    /// stream that `launch` makes. It is kept for the next one.
    pub(crate) fn with_workspace<R>(
        &self,
        allocator: Allocator,
        bytes: usize,
        launch: impl FnOnce(&mut Buffer<u8>) -> Result<R>,
    ) -> Result<R> {
        with_kept(&self.workspace, allocator, bytes, launch)
    }

    /// As [`with_workspace`](Self::with_workspace), for the sums of partial products.
    pub(crate) fn with_partials<R>(
        &self,
        allocator: Allocator,
        bytes: usize,
        launch: impl FnOnce(&mut Buffer<u8>) -> Result<R>,
    ) -> Result<R> {
        with_kept(&self.partials, allocator, bytes, launch)
    }

    /// Hands `launch` words that are zero. The kernels that it launches leave them zero.
    pub(crate) fn with_zeros<R>(
        &self,
        (device, may_allocate): Allocator,
        len: usize,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<R>,
    ) -> Result<R> {
        let mut zeros = lock(&self.zeros);
        if zeros.as_ref().is_none_or(|words| words.len() < len) {
            may_allocate(len * size_of::<u32>())?;
            *zeros = None;
        }
        let mut words = match zeros.take() {
            Some(words) => words,
            None => device.zeros(len)?,
        };
        // After an error nobody knows what the words are: they are not kept.
        let done = launch(&mut words)?;
        *zeros = Some(words);
        Ok(done)
    }

    /// Hands `launch` the stream's counters: `len` words that are zero at first.
    pub(crate) fn with_counters<R>(
        &self,
        (device, may_allocate): Allocator,
        len: usize,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<R>,
    ) -> Result<R> {
        let mut words = lock(&self.counters);
        let words = match &mut *words {
            Some(words) => words,
            none => {
                may_allocate(len * size_of::<u32>())?;
                none.insert(device.zeros(len)?)
            }
        };
        launch(words)
    }

    pub(super) fn read_counter(&self, first: usize) -> Result<u64> {
        let words = lock(&self.counters);
        let Some(words) = &*words else { return Ok(0) };
        let mut halves = [0; 2];
        words.read(first, &mut halves)?;
        let [low, high] = halves.map(u64::from);
        Ok(high << 32 | low)
    }

    /// The memories, for the graph that uses them.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_memories(self) -> Vec<Storage> {
        let Kept { workspace, partials, zeros, counters, known: _ } = self;
        let bytes = [workspace, partials].map(|memory| owned(memory).map(Buffer::into_storage));
        let words = [zeros, counters].map(|memory| owned(memory).map(Buffer::into_storage));
        bytes.into_iter().chain(words).flatten().collect()
    }

    pub(super) fn known_counter(&self) -> MutexGuard<'_, Option<u64>> {
        lock(&self.known)
    }
}

/// Hands `launch` a memory of at least so many bytes: the kept one if it is large enough, else a
/// new one, which is kept.
fn with_kept<R>(
    kept: &Mutex<Option<Buffer<u8>>>,
    (device, may_allocate): Allocator,
    bytes: usize,
    launch: impl FnOnce(&mut Buffer<u8>) -> Result<R>,
) -> Result<R> {
    let mut kept = lock(kept);
    if kept.as_ref().is_none_or(|memory| memory.len() < bytes) {
        may_allocate(bytes)?;
        // A memory that is too small is freed first: it may be what leaves no room.
        *kept = None;
    }
    let mut memory = match kept.take() {
        Some(memory) => memory,
        None => device.uninit(bytes)?,
    };
    let outcome = launch(&mut memory);
    *kept = Some(memory);
    outcome
}
