//! Whether writes that are in a race wrote the value that was there already.
//!
//! An access is observed before it is made, so the value is compared when the worker observes the
//! next one: the thread has stored by then, and no other thread of this worker has. (It has not
//! where it holds a reference, `let y = &mut y[i]; *y = x[i];`: such a write counts as one of the
//! same value. So a finding says that it seems so.)

use std::panic::Location;

use super::Checker;
use crate::cpu::check::{finding::Kind, findings::Key, racing_write::RacingWrite, record::Record};

impl Checker<'_> {
    /// Remembers that a write of the running thread has just been reported, if the other writer is
    /// a thread, too.
    pub(super) fn note_racing_write(&self, key: &Key, other: Option<&Record>) {
        let by_thread = other.is_some_and(|old| !old.is_engine() && old.unit().is_none());
        if key.kind == Kind::WriteAfterWrite && by_thread {
            self.has_reported_write.set(true);
            self.reported_write.set(Some(key.clone()));
        }
    }

    /// A thread is about to write there, and a write has been reported. If it was this one, its
    /// value will be compared.
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
        let write = address.and_then(|address| RacingWrite::new(key, address, bytes));
        if let Some(write) = write {
            self.has_racing_write.set(true);
            *self.racing_write.borrow_mut() = Some(write);
        }
    }

    /// The write has been made.
    #[cold]
    pub(super) fn end_racing_write(&self) {
        self.has_racing_write.set(false);
        if let Some(write) = self.racing_write.take().filter(RacingWrite::is_same) {
            self.findings.borrow_mut().add_same_value(&write.key);
        }
    }
}
