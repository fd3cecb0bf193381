//! Counters that kernels keep in the device's memory, for as long as the stream lives.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Stream;
use crate::{buffer::Buffer, error::Result};

/// A stream's counters, made when a kernel first needs them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    words: Mutex<Option<Buffer<u32>>>,
    /// What the program knows of them. Whoever launches a kernel that counts, or waits for one, has it locked: so no thread takes
    /// another's counts for its own.
    known: Mutex<Option<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// Hands `launch` the counters, `len` words that are zero at first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); those of `launch`.
    pub(crate) fn with_counters<R>(
        &self,
        len: usize,
        launch: impl FnOnce(&mut Buffer<u32>) -> Result<R>,
    ) -> Result<R> {
        let mut words = lock(&self.counters.words);
        let words = match &mut *words {
            Some(words) => words,
            none => none.insert(self.device().zeros(len)?),
        };
        launch(words)
    }

    /// Two counters from `first` on, as one number: the low word first. 0 where no kernel has counted. Waits for all that was launched.
    ///
    /// # Errors
    /// Those of the kernels.
    pub(crate) fn read_counter(&self, first: usize) -> Result<u64> {
        let words = lock(&self.counters.words);
        let Some(words) = &*words else { return Ok(0) };
        let mut halves = [0; 2];
        words.read(first, &mut halves)?;
        let [low, high] = halves.map(u64::from);
        Ok(high << 32 | low)
    }

    /// What is known of the counters, locked: `None` after a launch that nobody waited for.
    pub(crate) fn known_counter(&self) -> MutexGuard<'_, Option<u64>> {
        lock(&self.counters.known)
    }
}
