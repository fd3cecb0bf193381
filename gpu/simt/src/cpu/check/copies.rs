//! Asynchronous copies that a thread has begun.

use std::{collections::VecDeque, panic::Location};

use super::shared::Array;

/// A copy to a shared array that is on its way. It is carried out when its thread waits for it, as late as
/// the hardware may.
pub(super) struct AsyncCopy {
    pub(super) array: *const Array,
    /// Bytes from the array's start.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Where the first byte goes.
    pub(super) place: *mut u8,
    /// What was read from global memory when the copy began.
    pub(super) data: [u8; 16],
    pub(super) begun_at: &'static Location<'static>,
}

/// The copies of one thread, in groups.
#[derive(Default)]
pub(super) struct Copies {
    /// Each with the number of its group.
    on_their_way: VecDeque<(u32, AsyncCopy)>,
    /// Groups so far; a copy that begins now will be in the next.
    groups: u32,
}

impl Copies {
    pub(super) fn begin(&mut self, copy: AsyncCopy) {
        self.on_their_way.push_back((self.groups, copy));
    }

    pub(super) fn commit(&mut self) {
        self.groups += 1;
    }

    /// The next copy to carry out, if only the last `pending` groups may stay on their way.
    pub(super) fn next_before(&mut self, pending: u32) -> Option<AsyncCopy> {
        let (group, _) = self.on_their_way.front()?;
        if u64::from(*group) + u64::from(pending) < u64::from(self.groups) {
            self.on_their_way.pop_front().map(|(_, copy)| copy)
        } else {
            None
        }
    }
}
