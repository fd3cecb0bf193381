//! Mbarriers, uses of other blocks' shared memory, flags in global memory, and the wait for earlier
//! grids.

use std::panic::Location;

use super::{Checker, LateUse};
use crate::cpu::{
    access::Access,
    block::{self, Thread},
    check::{
        finding::Kind,
        findings::{Key, Seen, memory_of},
        shared::Array,
    },
    cluster,
};

impl Checker<'_> {
    /// The running thread uses the shared memory of the block of that rank, which may be another.
    pub(in crate::cpu) fn use_remote(
        &self,
        rank: u32,
        what: &'static str,
        place: &'static Location<'static>,
    ) {
        if rank != block::rank() {
            let thread = block::current();
            let clock = self.clocks.borrow().clock(thread.number);
            let (block, index) = (block::block_index(), thread.index);
            let late_use = LateUse { clock, what, unit: None, place, block, thread: index };
            self.late_uses.borrow_mut().insert((rank, thread.number), late_use);
            self.check_has_begun(rank, thread, (what, place));
        }
    }

    /// Reports a use of another block's shared memory by a thread that knows nothing of that block:
    /// it may not have begun.
    fn check_has_begun(
        &self,
        rank: u32,
        thread: &Thread,
        (what, place): (&'static str, &'static Location<'static>),
    ) {
        let first = rank * self.launch.block_stride as u32;
        let mut others = first..first + self.launch.threads as u32;
        let clocks = self.clocks.borrow();
        let has_learnt = |other| clocks.has_learnt(thread.number, other, 1);
        if self.has_met.get() || others.any(has_learnt) {
            return;
        }
        let key = Key { place: Some(place), ..Key::of(Kind::UnbegunBlock) };
        let seen =
            Seen { block: block::block_index(), thread: thread.index, element: None, other: None };
        self.findings.borrow_mut().add(key, seen, || {
            format!("{what}, and the block of rank {rank} may not have begun: a barrier of the cluster must stand before")
        });
    }

    /// The running thread initialises an mbarrier of its block.
    pub(in crate::cpu) fn init_mbarrier(
        &self,
        at: cluster::Place,
        array: *const Array,
        place: &'static Location<'static>,
    ) {
        // SAFETY: an array lives as long as the launch.
        let array = unsafe { &*array };
        self.with_general_clocks(|clocks| clocks.init(at));
        self.check_shared(array, (at.1 as usize - array.offset, 8), Access::Write, place);
        self.not_fenced.borrow_mut().insert(at, (block::current().number, place));
    }

    /// The running thread calls `fence_init`: copies and other blocks see its initialisations of
    /// mbarriers.
    #[track_caller]
    pub(in crate::cpu) fn fence_init(&self) {
        self.count(Location::caller());
        let number = block::current().number;
        self.not_fenced.borrow_mut().retain(|_, (by, _)| *by != number);
        self.clocks.borrow_mut().fence_init(number);
    }

    /// The running thread uses an mbarrier in a way that requires a `fence_init` after its
    /// initialisation.
    pub(in crate::cpu) fn needs_fence(
        &self,
        at: cluster::Place,
        place: &'static Location<'static>,
    ) {
        let Some(&(_, init)) = self.not_fenced.borrow().get(&at) else { return };
        // SAFETY: as in `init_mbarrier`.
        let memory = unsafe { self.array_of(at).as_ref() }.map(memory_of);
        let key = Key {
            memory,
            place: Some(place),
            other_place: Some(init),
            ..Key::of(Kind::ReadAfterWrite)
        };
        let (block, thread) = (block::block_index(), block::current().index);
        let seen = Seen { block, thread, element: None, other: None };
        let detail = || "mbarrier::fence_init must stand between, and a barrier".to_owned();
        self.findings.borrow_mut().add(key, seen, detail);
    }

    /// The running thread uses an mbarrier, which must happen after its initialisation.
    pub(in crate::cpu) fn use_mbarrier(
        &self,
        at: cluster::Place,
        place: &'static Location<'static>,
    ) {
        self.count(place);
        // Another block may not have declared it yet: then no thread has written there.
        if let Some((array, offset)) = self.array_of_block(at.0, at.1) {
            // SAFETY: as in `init_mbarrier`.
            self.check_shared(unsafe { &*array }, (offset, 8), Access::Read, place);
        }
    }

    /// The running thread has arrived at an mbarrier.
    pub(in crate::cpu) fn arrive(&self, at: cluster::Place, ends_phase: bool) {
        self.clocks.borrow_mut().arrive(at, block::current().number, ends_phase);
    }

    /// The running thread has waited for the end of an mbarrier's phase.
    pub(in crate::cpu) fn waited(&self, at: cluster::Place, parity: u32) {
        self.clocks.borrow_mut().waited(at, block::current().number, parity);
    }

    /// The running thread has waited for earlier grids. Whether the block's other threads know of
    /// that is not checked.
    #[track_caller]
    pub(in crate::cpu) fn waited_for_earlier(&self) {
        self.count(Location::caller());
        self.waited_for_earlier.borrow_mut().insert(block::rank());
    }
}
