//! Ends of waits: what has come of copies, warp operations, barriers and words.

use super::Scheduler;
use crate::cpu::{
    block::{BlockRun, State, Thread, WARP, WarpKind, WarpOperation},
    cluster::{Begun, BoxCopy, Wait},
    fault::{FaultKind, Stop, place_name},
};

impl Scheduler<'_> {
    /// Lets a copy come or go, or a product read its operands, if there is one and it is its time; `must`: no thread can go on.
    pub(super) fn land(&mut self, must: bool) -> Result<bool, Stop> {
        let (copies, products) = (self.cluster.copies(), self.cluster.products());
        let all = copies + products + self.cluster.stores();
        let Some(number) = self.shuffle.copy(all, must) else {
            return Ok(false);
        };
        if let Some(store) = number.checked_sub(copies + products) {
            self.cluster.advance_store(store);
            return Ok(true);
        }
        if let Some(product) = number.checked_sub(copies) {
            self.cluster.read_sent_product(product);
            return Ok(true);
        }
        let copy = self.cluster.take_copy(number);
        let BoxCopy { source, to, done, begun, .. } = copy;
        // SAFETY: whoever began the copy has seen to source and target.
        unsafe { source.load(to) };
        let ended = self.cluster.complete(done, source.bytes() as u32, begun);
        let ended = ended.map_err(|reason| self.wrong_copy(begun, reason))?;
        if let Some(checker) = self.checker {
            checker.land_box(&copy, ended);
        }
        Ok(true)
    }

    #[cold]
    pub(super) fn wrong_copy(&self, Begun { thread, at }: Begun, reason: String) -> Stop {
        let location = place_name(at);
        // SAFETY: one of this worker's threads.
        self.fault(unsafe { &*thread }, FaultKind::Copy { reason, location })
    }

    /// Ends the waits for what has come.
    pub(super) fn complete_waits(&self) -> bool {
        let mut some = false;
        for thread in &self.slot.threads {
            if thread.state.get() == State::Waits && self.cluster.has_come(thread) {
                thread.state.set(State::Released);
                some = true;
            }
        }
        some
    }

    /// Ends the wait of a cluster's threads for each other, if all have come that have not ended.
    pub(super) fn complete_cluster_barrier(&self) -> bool {
        let threads = || self.slot.threads.iter();
        let waits = |thread: &Thread| {
            thread.state.get() == State::Waits
                && matches!(self.cluster.wait_of(thread).get(), Wait::Cluster)
        };
        let has_come = |thread: &Thread| thread.state.get() == State::Ended || waits(thread);
        if !threads().all(has_come) || !threads().any(waits) {
            return false;
        }
        if let Some(checker) = self.checker {
            checker.cluster_barrier(&threads().filter(|thread| waits(thread)).collect::<Vec<_>>());
        }
        threads()
            .filter(|thread| waits(thread))
            .for_each(|thread| thread.state.set(State::Released));
        true
    }

    /// Ends the wait of a block's threads for each other, if all have come.
    pub(super) fn complete_barrier(&self, rank: usize) -> Result<bool, Stop> {
        let threads = self.runs[rank].threads();
        let state = |thread: &Thread| thread.state.get();
        let has_come = |thread: &Thread| matches!(state(thread), State::Running | State::Ended);
        let waits = |thread: &&Thread| state(thread) == State::Running;
        if !threads.iter().all(has_come) || !threads.iter().any(|thread| waits(&thread)) {
            return Ok(false);
        }
        self.barrier(rank)?;
        threads.iter().filter(waits).for_each(|thread| thread.state.set(State::Released));
        Ok(true)
    }

    /// Ends the waits of those lanes whose partners have all come.
    #[inline(never)]
    pub(super) fn complete_warp_operations(&self) -> Result<bool, Stop> {
        let mut complete = false;
        for (run, lanes) in self.warps() {
            for thread in lanes {
                if thread.state.get() != State::InWarp
                    || self.missing_partner(lanes, thread).is_some()
                {
                    continue;
                }
                let operation = run.warp_operation(thread).get();
                let partners =
                    || lanes.iter().filter(|lane| operation.mask >> lane.lane() & 1 == 1);
                let mut values = [None; WARP as usize];
                let (mut votes, mut present) = (0, 0);
                for lane in partners() {
                    let value = run.warp_operation(lane).get().value;
                    values[lane.lane() as usize] = Some(value);
                    votes |= (value & 1) << lane.lane();
                    present |= 1 << lane.lane();
                }
                for lane in partners() {
                    let cell = run.warp_operation(lane);
                    let own = cell.get();
                    let value = match own.kind {
                        WarpKind::Sync | WarpKind::Exchange(_) => 0,
                        WarpKind::Ballot => votes,
                        WarpKind::All => (votes == present).into(),
                        WarpKind::Any => (votes != 0).into(),
                        WarpKind::Elect => (present.trailing_zeros() == lane.lane()).into(),
                        WarpKind::Relative(source) => values[source as usize].unwrap_or(u32::MAX),
                        WarpKind::Shuffle(source) => match values[source as usize] {
                            Some(value) => value,
                            None => return Err(self.wrong_source(lane, source)),
                        },
                    };
                    cell.set(WarpOperation { value, ..own });
                    lane.state.set(State::Released);
                    complete = true;
                }
                if let (Some(checker), WarpKind::Sync) = (self.checker, operation.kind) {
                    checker.warp_sync(thread.number / WARP, operation.mask);
                }
            }
        }
        Ok(complete)
    }

    /// The warps of all blocks.
    pub(super) fn warps(&self) -> impl Iterator<Item = (&BlockRun, &[Thread])> {
        self.runs.iter().flat_map(|run| {
            let warps = run.threads().chunks(WARP as usize);
            warps.map(move |lanes| (run, lanes))
        })
    }
}
