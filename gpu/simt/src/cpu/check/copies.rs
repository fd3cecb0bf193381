//! Asynchronous copies (`cp.async`) in flight.

use std::{collections::VecDeque, panic::Location};

use super::{shared::Array, unit::Group};

/// A copy to a shared array. It is carried out when its thread waits for it, which is as late as
/// the hardware may.
pub(super) struct AsyncCopy {
    pub(super) array: *const Array,
    /// Bytes from the array's start.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// The address of the first byte.
    pub(super) place: *mut u8,
    /// The bytes, read from global memory when the copy began.
    pub(super) data: [u8; 16],
    pub(super) begun_at: &'static Location<'static>,
}

/// The copies of one thread, in groups.
#[derive(Default)]
pub(super) struct Copies {
    /// Copies in flight, each with the number of its group.
    in_flight: VecDeque<(u32, AsyncCopy)>,
    /// The number of committed groups. A copy that begins now will be in the next one.
    groups: u32,
}

impl Copies {
    pub(super) fn begin(&mut self, copy: AsyncCopy) {
        self.in_flight.push_back((self.groups, copy));
    }

    pub(super) fn commit(&mut self) {
        self.groups += 1;
    }

    /// Takes the next copy to carry out, if only the last `pending` groups may stay in flight.
    pub(super) fn next_before(&mut self, pending: u32) -> Option<AsyncCopy> {
        let (group, _) = self.in_flight.front()?;
        if u64::from(*group) + u64::from(pending) < u64::from(self.groups) {
            self.in_flight.pop_front().map(|(_, copy)| copy)
        } else {
            None
        }
    }

    /// The group of the last copy in flight to that byte of an array.
    pub(super) fn group_of(&self, array: *const Array, byte: usize) -> Option<Group> {
        let holds = |(_, copy): &&(u32, AsyncCopy)| {
            copy.array == array && (copy.offset..copy.offset + copy.bytes).contains(&byte)
        };
        let (group, _) = self.in_flight.iter().rev().find(holds)?;
        Some(match self.groups.checked_sub(group + 1) {
            None => Group::Open,
            Some(later) => Group::Committed(later),
        })
    }
}
