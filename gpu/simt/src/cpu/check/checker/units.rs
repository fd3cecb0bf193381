//! What a checker does about Hopper's units: clusters, mbarriers, copies of boxes, products of warpgroups.

use std::{collections::BTreeMap, panic::Location};

use super::{Checker, LateUse, POISON, memory_of};
use crate::cpu::{
    block::{self, Thread, WARP},
    boxes::GlobalBox,
    check::{
        finding::{Key, Kind, Seen},
        global::Buffer,
        order::ThreadOrder,
        profile::Operation,
        record::{Now, Record},
        shared::Array,
        words::Release,
    },
    cluster,
    mode::Access,
    named_barrier::Arrival,
    warpgroup::{Key as WarpgroupKey, Request},
};

impl Checker<'_> {
    /// Threads are about to be ordered otherwise than by their block and their warp.
    fn order_generally<R>(&self, act: impl FnOnce(&mut ThreadOrder) -> R) -> R {
        let mut order = self.order.borrow_mut();
        order.generalise(self.watch.block_stride * self.watch.cluster, self.clock.get());
        let result = act(&mut order);
        drop(order);
        self.set_hot();
        result
    }

    /// The running thread uses the shared memory of the block of that rank, which may be another.
    pub(in crate::cpu) fn use_remote(
        &self,
        rank: u32,
        what: &'static str,
        place: &'static Location<'static>,
    ) {
        if rank != block::rank() {
            let thread = block::current();
            let clock = self.order.borrow().clock(thread.number);
            let (block, index) = (block::block_index(), thread.index);
            let late_use = LateUse { clock, what, place, block, thread: index };
            self.late_uses.borrow_mut().insert((rank, thread.number), late_use);
            self.check_has_begun(rank, thread, (what, place));
        }
    }

    /// A thread must know of another block, by what one of its threads did, before it uses its shared memory.
    fn check_has_begun(
        &self,
        rank: u32,
        thread: &Thread,
        (what, place): (&'static str, &'static Location<'static>),
    ) {
        let first = rank * self.watch.block_stride as u32;
        let mut others = first..first + self.watch.threads as u32;
        let order = self.order.borrow();
        // All threads' clocks are at 1 when the cluster begins, which nobody has to learn.
        if others.any(|other| order.has_learnt(thread.number, other, 1)) {
            return;
        }
        let key = Key {
            kind: Kind::UnbegunBlock,
            memory: None,
            place: Some(place),
            other_place: None,
            fault_place: String::new(),
        };
        let seen =
            Seen { block: block::block_index(), thread: thread.index, element: None, other: None };
        self.findings.borrow_mut().add(key, seen, || {
            format!("{what}, and the block of rank {rank} may not have begun: a barrier of the cluster tells that")
        });
    }

    /// A block must not end before the last use of its shared memory: one of its threads must know of it.
    pub(super) fn check_ends(&self) {
        let (order, blocks) = (self.order.borrow(), self.blocks.borrow());
        let Some((_, indices)) = blocks.last() else { return };
        let stride = self.watch.block_stride as u32;
        for (&(rank, who), late_use) in &*self.late_uses.borrow() {
            let LateUse { clock, what, place, block, thread } = *late_use;
            let threads = rank * stride..rank * stride + self.watch.threads as u32;
            if threads.into_iter().any(|thread| order.has_learnt(thread, who, clock)) {
                continue;
            }
            let key = Key {
                kind: Kind::EndedBlock,
                memory: None,
                place: Some(place),
                other_place: None,
                fault_place: String::new(),
            };
            let seen = Seen { block, thread, element: None, other: None };
            self.findings.borrow_mut().add(key, seen, || {
                format!(
                    "{what}, and block {:?} may end before: one of its threads must know of it",
                    indices[rank as usize]
                )
            });
        }
    }

    /// All threads of the cluster that have not ended wait for each other.
    pub(in crate::cpu) fn cluster_barrier(&self, threads: &[&Thread]) {
        // The lanes of a warp must wait at the same place.
        for pair in threads.windows(2) {
            let ([one, other], place) = ([pair[0], pair[1]], |thread: &Thread| thread.place.get());
            if one.number / WARP == other.number / WARP && place(one) != place(other) {
                let key = Key {
                    kind: Kind::BarrierMismatch,
                    memory: None,
                    place: place(one),
                    other_place: place(other),
                    fault_place: String::new(),
                };
                let block = one.run().index;
                let seen = Seen { block, thread: one.index, element: None, other: None };
                let detail = || format!("lanes of a warp, {:?} at the second", other.index);
                self.findings.borrow_mut().add(key, seen, detail);
            }
        }
        let numbers = threads.iter().map(|thread| thread.number).collect::<Vec<_>>();
        self.order_generally(|order| order.join(&numbers));
    }

    /// The running thread comes to a named barrier.
    pub(in crate::cpu) fn come_to_named(
        &self,
        at: cluster::Place,
        place: &'static Location<'static>,
    ) {
        self.count(place);
        let thread = block::current();
        let unknown = self.order_generally(|order| order.come_to_named(at, thread.number));
        let Some(other) = unknown else { return };
        let (block, index) = (block::block_index(), thread.index);
        let other = block::current_block().threads()
            [(other % self.watch.block_stride as u32) as usize]
            .index;
        let key = Key {
            kind: Kind::BarrierMismatch,
            memory: None,
            place: Some(place),
            other_place: None,
            fault_place: String::new(),
        };
        let seen = Seen { block, thread: index, element: None, other: None };
        self.findings.borrow_mut().add(key, seen, || {
            format!(
                "at named barrier {}, whose round before thread {other:?} has come to: this one may come before that \
                 round has ended, and be counted in it",
                at.1
            )
        });
    }

    /// Those have come to a named barrier for whom its round ends.
    pub(in crate::cpu) fn end_named_round(&self, at: cluster::Place, come: &[Arrival]) {
        let mut warps = BTreeMap::new();
        for arrival in come {
            let first = warps.entry(arrival.thread / WARP).or_insert(arrival);
            if first.place != arrival.place {
                let key = Key {
                    kind: Kind::BarrierMismatch,
                    memory: None,
                    place: Some(first.place),
                    other_place: Some(arrival.place),
                    fault_place: String::new(),
                };
                let (block, thread) = (block::block_index(), block::current().index);
                let seen = Seen { block, thread, element: None, other: None };
                self.findings.borrow_mut().add(key, seen, || "lanes of a warp".to_owned());
            }
        }
        if self.profiling.get() {
            let mut profiler = self.profiler.borrow_mut();
            for (warp, arrival) in &warps {
                profiler.flush_one(*warp);
                profiler.count(arrival.place, Operation::Barrier, 1);
            }
        }
        let threads = |who: fn(&Arrival) -> bool| {
            come.iter().filter(|one| who(one)).map(|one| one.thread).collect::<Vec<_>>()
        };
        let (all, waiting) = (threads(|_| true), threads(|one| one.waits));
        self.order_generally(|order| order.end_named_round(at, &all, &waiting));
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
        self.order_generally(|order| order.init(at));
        self.watched(array, (at.1 as usize - array.offset, 8), Access::Write, place);
        self.not_fenced.borrow_mut().insert(at, (block::current().number, place));
    }

    /// The running thread makes what it has initialised seen by copies and by other blocks.
    #[track_caller]
    pub(in crate::cpu) fn fence_init(&self) {
        self.count(Location::caller());
        let number = block::current().number;
        self.not_fenced.borrow_mut().retain(|_, (by, _)| *by != number);
    }

    /// The running thread uses an mbarrier in a way that needs it to be made seen after its initialisation.
    pub(in crate::cpu) fn needs_fence(
        &self,
        at: cluster::Place,
        place: &'static Location<'static>,
    ) {
        let Some(&(_, init)) = self.not_fenced.borrow().get(&at) else { return };
        // SAFETY: as in `init_mbarrier`.
        let memory = unsafe { self.array_of(at).as_ref() }.map(memory_of);
        let key = Key {
            kind: Kind::ReadAfterWrite,
            memory,
            place: Some(place),
            other_place: Some(init),
            fault_place: String::new(),
        };
        let (block, thread) = (block::block_index(), block::current().index);
        let seen = Seen { block, thread, element: None, other: None };
        let detail = || "mbarrier::fence_init must stand between, and a barrier".to_owned();
        self.findings.borrow_mut().add(key, seen, detail);
    }

    /// The running thread uses an mbarrier: it must know that it has been initialised.
    pub(in crate::cpu) fn use_mbarrier(
        &self,
        at: cluster::Place,
        place: &'static Location<'static>,
    ) {
        self.count(place);
        // Another block may not have declared it yet: then nobody has written there.
        if let Some((array, offset)) = self.array_of_block(at.0, at.1) {
            // SAFETY: as in `init_mbarrier`.
            self.watched(unsafe { &*array }, (offset, 8), Access::Read, place);
        }
    }

    /// The running thread has arrived at an mbarrier.
    pub(in crate::cpu) fn arrive(&self, at: cluster::Place, ends_phase: bool) {
        self.order.borrow_mut().arrive(at, block::current().number, ends_phase);
    }

    /// The running thread has waited for the end of an mbarrier's phase.
    pub(in crate::cpu) fn waited(&self, at: cluster::Place, parity: u32) {
        self.order.borrow_mut().waited(at, block::current().number, parity);
    }

    /// The running thread begins to copy a box to a shared array, from byte `offset` on.
    pub(in crate::cpu::check) fn begin_box(
        &self,
        array: &Array,
        offset: usize,
        copy: cluster::BoxCopy,
    ) {
        self.use_mbarrier(copy.done, copy.begun.at);
        self.needs_fence(copy.done, copy.begun.at);
        for (place, bytes) in copy.source.places(copy.to.addr()) {
            let part = (offset + place, bytes);
            self.check_written_before(array, part, copy.begun.at);
            self.watched(array, part, Access::Write, copy.begun.at);
            array.begin_copy(part);
            // SAFETY: inside the array, as whoever began the copy has seen to. Until it comes nobody knows what is there.
            unsafe { copy.to.add(place).write_bytes(POISON, bytes) };
        }
        block::current_cluster().begin(copy);
    }

    /// A copy by the accelerator is to come to where a thread has written: no barrier tells the accelerator of that without
    /// a proxy fence.
    fn check_written_before(
        &self,
        array: &Array,
        bytes: (usize, usize),
        place: &'static Location<'static>,
    ) {
        let (thread, order) = (block::current(), self.order.borrow());
        let now = self.now(thread, &order, place);
        let other = array.ordered_write(&now, bytes, self.block_start.get());
        if let Some(other) = other.filter(|other| !order.is_behind_fence(thread.number, other)) {
            let (memory, element) = (memory_of(array), bytes.0 / array.declaration.element);
            let detail = "fence_proxy_async belongs behind the write, before the barrier";
            let (kind, other) = (Kind::WriteAfterWrite, Some(other));
            self.add(kind, memory, place, thread, Some(element), other, detail.to_owned());
        }
    }

    /// A box has come: its mbarrier has been told, and its phase has ended or not.
    pub(in crate::cpu) fn land_box(&self, copy: &cluster::BoxCopy, ends_phase: bool) {
        let array = self.array_of(copy.to_place);
        let mut order = self.order.borrow_mut();
        let engine = order.engine(copy.done);
        let clocks = (self.clock.get(), self.block_start.get());
        let now = Now::new((self.worker, engine), clocks, &order, copy.begun.at);
        // SAFETY: as in `init_mbarrier`.
        if let Some(array) = unsafe { array.as_ref() } {
            let offset = copy.to_place.1 as usize - array.offset;
            for (place, bytes) in copy.source.places(copy.to.addr()) {
                array.end_copy(&now, (offset + place, bytes));
            }
        }
        let clock = order.clock(engine);
        order.landed(copy.done, ends_phase);
        // SAFETY: a thread's block runs.
        let begun = unsafe { &*copy.begun.thread };
        let (block, thread) = (begun.run().index, begun.index);
        let late_use =
            LateUse { clock, what: "a copy that comes", place: copy.begun.at, block, thread };
        self.late_uses.borrow_mut().insert((copy.to_place.0, engine), late_use);
    }

    /// The running thread has waited for the grids before. That its block's other threads know of that, too, is not
    /// looked at.
    #[track_caller]
    pub(in crate::cpu) fn waited_for_earlier(&self) {
        self.count(Location::caller());
        self.waited_for_earlier.borrow_mut().insert(block::rank());
    }

    /// The running thread adds to a word that other blocks wait for, by `add`, which gives what the word is then.
    pub(in crate::cpu) fn release(&self, word: usize, add: impl FnOnce() -> u32) {
        let (known, mut all) = self.order_generally(|order| {
            (order.release(block::current().number), order.told().cloned().collect::<Vec<_>>())
        });
        let (start, clock) = (self.block_start.get(), self.clock.get());
        all.push(Release { worker: self.worker, start, clock, known });
        self.watch.words.release(word, all, add);
    }

    /// The running thread has waited for a word to be so much.
    pub(in crate::cpu) fn acquire(&self, word: usize, wanted: u32) {
        let told = self.watch.words.told(word, wanted);
        self.order.borrow_mut().acquire(word, told);
    }

    /// The running thread has put a proxy fence behind what it knows.
    #[track_caller]
    pub(in crate::cpu) fn fence_proxy(&self) {
        self.count(Location::caller());
        self.order_generally(|order| order.fence_proxy(block::current().number));
    }

    /// The running thread begins a product of its warpgroup; where all have, the tensor cores read the operands from now
    /// on, until the wait.
    pub(in crate::cpu) fn begin_product(
        &self,
        key: WarpgroupKey,
        product: u64,
        all: bool,
        request: &Request,
    ) {
        let read = self.order_generally(|order| {
            order.begin_product(key, product, block::current().number);
            all.then(|| order.read_product(key, product))
        });
        let Some((engine, clock)) = read else { return };
        for (start, bytes) in request.places() {
            self.read_by_engine(engine, (key.0, start), bytes, request.place);
        }
        self.order.borrow_mut().end_product(key, clock);
        block::current_cluster().warpgroup(key).set_clock(product, clock);
    }

    /// The running thread begins to copy from a shared array, from a byte of it on, to a box of global memory.
    pub(in crate::cpu::check) fn begin_store(
        &self,
        (array, offset): (&Array, usize),
        buffer: &Buffer,
        (from, target): (*const u8, GlobalBox),
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        let (reads, writes, group) = self.order_generally(|order| order.begin_store(thread.number));
        for (part, bytes) in target.places(from.addr()) {
            let at = (array.rank, (array.offset + offset + part) as u32); // below 227 KiB
            self.read_by_engine(reads, at, bytes as u32, place);
        }
        for part in target.parts() {
            let bytes = target.cols_inside * target.element;
            self.global_by(writes, buffer, (part.addr(), bytes), Access::Write, place);
        }
        let clock = self.order.borrow().clock(reads);
        let (what, block) = ("a copy that reads", block::block_index());
        let late_use = LateUse { clock, what, place, block, thread: thread.index };
        self.late_uses.borrow_mut().insert((array.rank, reads), late_use);
        self.order.borrow_mut().end_store(thread.number);
        let store = cluster::BoxStore { from, target, thread: thread.number, group, data: None };
        block::current_cluster().begin_store(store);
    }

    /// The running thread makes a group of the copies to global memory that it has begun.
    #[track_caller]
    pub(in crate::cpu) fn commit_stores(&self) {
        self.count(Location::caller());
        self.order.borrow_mut().commit_stores(block::current().number);
    }

    /// The running thread waits until all but the last `pending` of its groups have read, or also `written`.
    #[track_caller]
    pub(in crate::cpu) fn wait_for_stores(&self, pending: u32, written: bool) {
        self.count(Location::caller());
        let number = block::current().number;
        let groups = self.order.borrow_mut().waited_for_stores(number, pending as usize, written);
        block::current_cluster().end_stores(number, groups, written);
    }

    /// An engine reads shared memory, as the running thread has told it to.
    fn read_by_engine(
        &self,
        engine: u32,
        at: cluster::Place,
        bytes: u32,
        place: &'static Location<'static>,
    ) {
        // SAFETY: an array lives as long as the launch.
        let Some(array) = (unsafe { self.array_of(at).as_ref() }) else { return };
        let bytes = (at.1 as usize - array.offset, bytes as usize);
        let order = self.order.borrow();
        let clocks = (self.clock.get(), self.block_start.get());
        let now = Now::new((self.worker, engine), clocks, &order, place);
        let is_unseen = |old: &Record| {
            old.clock >= clocks.1 && now.is_ordered(old) && !order.is_behind_fence(engine, old)
        };
        if let Some((at, writer)) = array.find_writer(bytes, is_unseen) {
            let element = Some(at / array.declaration.element);
            let (memory, thread) = (memory_of(array), block::current());
            let detail =
                "fence_proxy_async belongs behind the write, before the barrier".to_owned();
            self.add(Kind::ProxyFence, memory, place, thread, element, Some(writer), detail);
        }
        self.watched_by(now, array, bytes, Access::Read, place);
    }

    /// The running thread has waited for the products of its warpgroup up to the one of that clock.
    pub(in crate::cpu) fn waited_for_products(&self, key: WarpgroupKey, clock: u16) {
        self.order.borrow_mut().waited_for_products(key, clock, block::current().number);
    }
}
