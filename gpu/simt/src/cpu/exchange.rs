//! Words that the lanes of a warp exchange in an operation of the whole warp: a shuffle moves one
//! word a lane, this any number.

use std::array;

use super::limits::WARP;

/// The words of each lane in the current operation and in the one before: a lane may come to the
/// next operation while others still read. It cannot be two operations ahead, because each
/// operation waits for all lanes.
#[derive(Default)]
pub(super) struct Exchange {
    lanes: [Lane; WARP as usize],
}

/// Two buffers of a lane, used in turn.
#[derive(Default)]
struct Lane {
    buffers: [Vec<u32>; 2],
    next: usize,
}

impl Exchange {
    /// Stores a lane's words. Gives the number of the buffer from which all lanes' words of this
    /// operation are read.
    pub(super) fn store(&mut self, lane: u32, words: &[u32]) -> usize {
        let lane = &mut self.lanes[lane as usize];
        let buffer = lane.next;
        lane.next = 1 - buffer;
        lane.buffers[buffer].clear();
        lane.buffers[buffer].extend_from_slice(words);
        buffer
    }

    /// The words of each lane in that buffer.
    pub(super) fn load(&self, buffer: usize) -> [&[u32]; WARP as usize] {
        array::from_fn(|lane| &*self.lanes[lane].buffers[buffer])
    }
}
