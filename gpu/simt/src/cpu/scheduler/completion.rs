//! Ends of waits: copies that have been carried out, warp operations, barriers and flags.

use super::Scheduler;
use crate::cpu::{
    block::{BlockRun, State, Thread},
    cluster::{BoxCopy, ClusterArrival, CopyOrigin, Wait},
    fault::{Fault, FaultKind, Stop, place_name},
    limits::WARP,
    warp_operation::{WarpKind, WarpOperation},
};

impl Scheduler<'_> {
    /// Carries out one step of an asynchronous operation: a copy, or the operand reads of a
    /// warpgroup's product. Gives whether there was one. The order of threads decides whether one
    /// is due; with `must` it is, because no thread can go on.
    pub(super) fn advance_async(&mut self, must: bool) -> Result<bool, Stop> {
        let (copies, products) = (self.cluster.copies(), self.cluster.products());
        let all = copies + products + self.cluster.stores();
        let Some(number) = self.order.copy(all, must) else {
            return Ok(false);
        };
        if let Some(store) = number.checked_sub(copies + products) {
            self.cluster.advance_store(store);
            return Ok(true);
        }
        if let Some(product) = number.checked_sub(copies) {
            self.cluster.read_pending_product(product);
            return Ok(true);
        }
        let copy = self.cluster.take_copy(number);
        let BoxCopy { source, to, done, origin, .. } = copy;
        // SAFETY: whoever began the copy has checked source and target.
        unsafe { source.load(to) };
        let ended = self.cluster.complete(done, source.bytes() as u32, origin);
        let ended = ended.map_err(|reason| self.wrong_copy(origin, reason))?;
        if let Some(checker) = self.checker {
            checker.land_box(&copy, ended);
        }
        Ok(true)
    }

    #[cold]
    pub(super) fn wrong_copy(&self, origin: CopyOrigin, reason: String) -> Stop {
        let CopyOrigin { block, thread, at } = origin;
        let kind = FaultKind::Copy { reason, location: place_name(at) };
        Stop::Fault(Fault { kernel: self.launch.program.name, block, thread, kind })
    }

    /// Ends the waits for mbarriers, named barriers, products and flags that are over.
    pub(super) fn complete_waits(&self) -> bool {
        let mut some = false;
        for thread in &self.slot.threads {
            if thread.state.get() == State::Waits && self.cluster.is_wait_over(thread.number) {
                thread.state.set(State::Released);
                some = true;
            }
        }
        some
    }

    /// Releases a barrier of the cluster if all threads that have not ended wait there.
    pub(super) fn complete_cluster_barrier(&self) -> bool {
        let threads = || self.slot.threads.iter();
        let waits = |thread: &Thread| {
            thread.state.get() == State::Waits
                && matches!(self.cluster.wait_of(thread.number).get(), Wait::Cluster(_))
        };
        let has_arrived = |thread: &Thread| thread.state.get() == State::Ended || waits(thread);
        if !threads().all(has_arrived) || !threads().any(waits) {
            return false;
        }
        if let Some(checker) = self.checker {
            let is_relaxed = |thread: &Thread| {
                let wait = self.cluster.wait_of(thread.number).get();
                matches!(wait, Wait::Cluster(ClusterArrival::Relaxed))
            };
            let waiting = threads().filter(|thread| waits(thread)).collect::<Vec<_>>();
            checker.cluster_barrier(&waiting, is_relaxed);
        }
        threads()
            .filter(|thread| waits(thread))
            .for_each(|thread| thread.state.set(State::Released));
        true
    }

    /// Releases a barrier of a block if all its threads that have not ended wait at one.
    pub(super) fn complete_barrier(&self, rank: usize) -> Result<bool, Stop> {
        let threads = self.runs[rank].threads();
        let state = |thread: &Thread| thread.state.get();
        let has_arrived = |thread: &Thread| matches!(state(thread), State::Running | State::Ended);
        let waits = |thread: &&Thread| state(thread) == State::Running;
        if !threads.iter().all(has_arrived) || !threads.iter().any(|thread| waits(&thread)) {
            return Ok(false);
        }
        self.barrier(rank)?;
        threads.iter().filter(waits).for_each(|thread| thread.state.set(State::Released));
        Ok(true)
    }

    /// Completes the warp operations whose lanes have all arrived.
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
                        WarpKind::Match => {
                            let same = |lane: &u32| values[*lane as usize] == Some(own.value);
                            (0..WARP).filter(same).map(|lane| 1 << lane).sum()
                        }
                        WarpKind::Reduce(by) => {
                            values.iter().flatten().copied().reduce(by).unwrap_or(0)
                        }
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
