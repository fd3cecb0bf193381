//! Whether writes that are in a race wrote the value that was there already.
//!
//! An access is observed before it is made, so the value is compared when the worker observes the
//! next one: the thread has stored by then, and no other thread of this worker has.

use std::{
    panic::Location,
    sync::atomic::{AtomicU8, Ordering},
};

use super::Checker;
use crate::cpu::check::{finding::Kind, findings::Key, record::Record};

/// The most bytes of a write that are compared: those of one access.
const MOST: usize = 16;

/// A write of which a race has been reported, and what was there before.
pub(super) struct RacingWrite {
    key: Key,
    address: usize,
    bytes: usize,
    before: [u8; MOST],
}

impl Checker<'_> {
    /// Remembers that a write of the running thread has just been reported, if the other writer is a
    /// thread, too.
    pub(super) fn note_racing_write(&self, key: &Key, other: Option<&Record>) {
        let by_thread = other.is_some_and(|old| !old.is_engine() && old.unit().is_none());
        if key.kind == Kind::WriteAfterWrite && by_thread {
            self.has_reported_write.set(true);
            self.reported_write.set(Some(key.clone()));
        }
    }

    /// A thread is about to write there, and a write has been reported. If it was this one, its value
    /// will be compared.
    #[cold]
    pub(super) fn begin_racing_write(
        &self,
        (address, bytes): (Option<usize>, usize),
        place: &'static Location<'static>,
    ) {
        self.has_reported_write.set(false);
        let Some(key) = self.reported_write.take() else { return };
        if key.place != Some(place) {
            return; // It was a copy.
        }
        match address.filter(|_| bytes <= MOST) {
            Some(address) => {
                let before = read(address, bytes);
                let write = RacingWrite { key, address, bytes, before };
                self.has_racing_write.set(true);
                *self.racing_write.borrow_mut() = Some(write);
            }
            None => self.findings.borrow_mut().compared(&key, false),
        }
    }

    /// The write has been made.
    #[cold]
    pub(super) fn end_racing_write(&self) {
        self.has_racing_write.set(false);
        if let Some(write) = self.racing_write.take() {
            let is_same = read(write.address, write.bytes) == write.before;
            self.findings.borrow_mut().compared(&write.key, is_same);
        }
    }
}

/// The bytes of memory that a thread of the kernel has been allowed to write.
fn read(address: usize, bytes: usize) -> [u8; MOST] {
    let mut all = [0; MOST];
    for (at, byte) in all.iter_mut().take(bytes).enumerate() {
        // SAFETY: inside a buffer, or the shared memory of a block of this worker: the access has
        // been checked. Both live as long as the launch, and have been written, since there is a
        // race of two writes. Other workers may write there, as in every race of the kernel.
        let place = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU8>(address + at) };
        *byte = place.load(Ordering::Relaxed);
    }
    all
}
