//! What the lanes of a warp hand to each other in an operation of all of them, more than the word of a shuffle.

use std::array;

use super::block::WARP;

/// The words of each lane, of this operation and of the one before: a lane may already come to the next while others still
/// read. It comes to no later one, since all wait for all.
#[derive(Default)]
pub(super) struct Exchange {
    lanes: [Lane; WARP as usize],
}

#[derive(Default)]
struct Lane {
    turns: [Vec<u32>; 2],
    next: usize,
}

impl Exchange {
    /// Puts a lane's words down. Gives the turn by which all lanes' are read.
    pub(super) fn put(&mut self, lane: u32, words: &[u32]) -> usize {
        let lane = &mut self.lanes[lane as usize];
        let turn = lane.next;
        lane.next = 1 - turn;
        lane.turns[turn].clear();
        lane.turns[turn].extend_from_slice(words);
        turn
    }

    /// The words that each lane has put down.
    pub(super) fn of_turn(&self, turn: usize) -> [&[u32]; WARP as usize] {
        array::from_fn(|lane| &*self.lanes[lane].turns[turn])
    }
}
