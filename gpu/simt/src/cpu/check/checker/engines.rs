//! Engines: TMA copies of boxes, and products of warpgroups on tensor cores.

use std::panic::Location;

use super::{Checker, LateUse, POISON};
use crate::cpu::{
    access::Access,
    block,
    boxes::GlobalBox,
    check::{
        finding::Kind, findings::memory_of, global::Buffer, profile::Operation, record::Record,
        requests::Asynchronous, shadow::Now, shared::Array, unit::Unit,
    },
    cluster,
    warpgroup::{Request, WarpgroupKey},
};

impl Checker<'_> {
    /// The running thread begins a TMA copy of a box to a shared array, from byte `offset` on.
    pub(in crate::cpu::check) fn begin_box(
        &self,
        array: &Array,
        offset: usize,
        copy: cluster::BoxCopy,
    ) {
        self.use_mbarrier(copy.done, copy.origin.at);
        self.needs_fence(copy.done, copy.origin.at);
        for (place, bytes) in copy.source.places(copy.to.addr()) {
            let part = (offset + place, bytes);
            self.check_used_before(array, part, copy.origin.at);
            self.check_shared(array, part, Access::Write, copy.origin.at);
            array.begin_copy(part, Unit::Load);
            // SAFETY: inside the array, as whoever began the copy has checked. Until the copy
            // completes, the contents are undefined.
            unsafe { copy.to.add(place).write_bytes(POISON, bytes) };
        }
        self.with_tracer(|tracer| {
            if copy.to_place.0 == tracer.rank() {
                let (to, mbarrier) = (copy.to_place.1 as usize, copy.done.1 as usize);
                let bytes = copy.source.bytes();
                tracer.event(Asynchronous::BoxBegins { to, bytes, mbarrier });
            }
        });
        block::current_cluster().begin_copy(copy);
    }

    /// Reports a TMA copy to where a thread has written, or read, if no proxy fence stands between:
    /// a barrier, or an mbarrier, alone does not order the two.
    fn check_used_before(
        &self,
        array: &Array,
        bytes: (usize, usize),
        place: &'static Location<'static>,
    ) {
        let (thread, clocks) = (block::current(), self.clocks.borrow());
        let now = self.now(thread, &clocks, place);
        let start = self.block_start.get();
        let memory = memory_of(array);
        let element = Some(bytes.0 / array.declaration.element);
        let other = array.ordered_write(&now, bytes, start);
        if let Some(other) = other.filter(|other| !now.is_behind_fence(other)) {
            let detail = "fence_proxy_async must stand after the write, before the barrier";
            let (kind, other) = (Kind::WriteAfterWrite, Some(other));
            return self.add(kind, memory, place, thread, element, other, || detail.to_owned());
        }
        // Whoever is not ordered after it at all is reported as a race.
        let is_unfenced = |old: &Record| {
            // Mostly it is an engine, or there is a fence, and the rest need not be asked.
            old.clock >= start
                && !old.is_engine()
                && !now.is_behind_fence(old)
                && now.is_ordered(old)
        };
        if let Some(other) = array.find_reader(bytes, is_unfenced) {
            let detail = "fence_proxy_async must stand between: after the read (Consumer::release_warp has it), or \
                          where the copy's thread has waited for it (Producer::acquire_read_warp)";
            let (kind, other) = (Kind::WriteAfterRead, Some(other));
            self.add(kind, memory, place, thread, element, other, || detail.to_owned());
        }
    }

    /// A TMA copy has completed its bytes at its mbarrier, which has ended the phase or not.
    pub(in crate::cpu) fn land_box(&self, copy: &cluster::BoxCopy, ends_phase: bool) {
        self.with_tracer(|tracer| {
            if copy.to_place.0 == tracer.rank() {
                let (to, mbarrier) = (copy.to_place.1 as usize, copy.done.1 as usize);
                tracer.event(Asynchronous::BoxEnds { to, mbarrier });
            }
        });
        let array = self.array_of(copy.to_place);
        let mut clocks = self.clocks.borrow_mut();
        let engine = clocks.engine(copy.done);
        let times = (self.clock.get(), self.block_start.get());
        let now = Now::new((self.slot, engine), times, &clocks, copy.origin.at);
        let now = now.by(Some(Unit::Load));
        // SAFETY: as in `init_mbarrier`.
        if let Some(array) = unsafe { array.as_ref() } {
            let offset = copy.to_place.1 as usize - array.offset;
            for (place, bytes) in copy.source.places(copy.to.addr()) {
                array.end_copy(&now, (offset + place, bytes));
            }
        }
        let clock = clocks.clock(engine);
        clocks.landed(copy.done, ends_phase);
        let cluster::CopyOrigin { block, thread, at } = copy.origin;
        let (what, unit) = ("a copy that completes", Some(Unit::Load));
        let late_use = LateUse { clock, what, unit, place: at, block, thread };
        self.late_uses.borrow_mut().insert((copy.to_place.0, engine), late_use);
    }

    /// The running thread executes a proxy fence.
    #[track_caller]
    pub(in crate::cpu) fn fence_proxy(&self) {
        self.count(Location::caller());
        self.with_general_clocks(|clocks| clocks.fence_proxy(block::current().number));
    }

    /// The running thread begins a product of its warpgroup. When all threads have, the tensor
    /// cores read the operands from now on, until the wait.
    pub(in crate::cpu) fn begin_product(
        &self,
        key: WarpgroupKey,
        product: u64,
        all: bool,
        request: &Request,
    ) {
        self.multiplied(request.place, Operation::Wgmma, request.steps);
        let read = self.with_general_clocks(|clocks| {
            clocks.begin_product(key, product, block::current().number);
            all.then(|| clocks.read_product(key, product))
        });
        let Some((engine, clock)) = read else { return };
        self.with_own_tracer(|tracer| {
            let (a, b) = request.operands();
            let (warpgroup, instructions) = (key.1, request.steps);
            tracer.event(Asynchronous::ProductBegins { warpgroup, product, instructions, a, b });
        });
        for (start, bytes) in request.places() {
            let unit = (engine, Unit::Product);
            self.read_by_engine(unit, (key.0, start), bytes, request.place);
        }
        self.clocks.borrow_mut().end_product(key, clock);
        block::current_cluster().warpgroup(key).set_clock(product, clock);
    }

    /// The running thread has waited for the products of its warpgroup below that number. `clock`:
    /// that of the last one.
    pub(in crate::cpu) fn waited_for_products(&self, key: WarpgroupKey, below: u64, clock: u16) {
        self.with_own_tracer(|tracer| tracer.waited_for_products(key.1, below));
        self.clocks.borrow_mut().waited_for_products(key, clock, block::current().number);
    }

    /// The running thread begins a TMA copy from a shared array, from a byte of it on, to a box of
    /// global memory.
    pub(in crate::cpu::check) fn begin_store(
        &self,
        (array, offset): (&Array, usize),
        buffer: &Buffer,
        (from, target): (*const u8, GlobalBox),
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        let (reader, writer, group) =
            self.with_general_clocks(|clocks| clocks.begin_store(thread.number));
        for (part, bytes) in target.places(from.addr()) {
            let at = (array.rank, (array.offset + offset + part) as u32); // below 227 KiB
            self.read_by_engine((reader, Unit::StoreRead), at, bytes as u32, place);
        }
        for part in target.parts() {
            let bytes = target.cols_inside * target.element;
            let who = (writer, Some(Unit::StoreWrite));
            self.global_by(who, buffer, (part.addr(), bytes), Access::Write, place);
        }
        self.copied(buffer, (&target, array.offset + offset, 0), Operation::TmaStore, place);
        let clock = self.clocks.borrow().clock(reader);
        let (what, unit) = ("a copy that reads", Some(Unit::StoreRead));
        let block = block::block_index();
        let late_use = LateUse { clock, what, unit, place, block, thread: thread.index };
        self.late_uses.borrow_mut().insert((array.rank, reader), late_use);
        self.clocks.borrow_mut().end_store(thread.number);
        let (start, bytes) = (array.offset + offset, target.extent());
        self.with_own_tracer(|tracer| tracer.begin_store(thread.number, start, bytes));
        let store = cluster::BoxStore { from, target, thread: thread.number, group, data: None };
        block::current_cluster().begin_store(store);
    }

    /// The running thread makes a bulk group of its copies to global memory.
    #[track_caller]
    pub(in crate::cpu) fn commit_stores(&self) {
        self.count(Location::caller());
        let number = block::current().number;
        self.clocks.borrow_mut().commit_stores(number);
        self.with_own_tracer(|tracer| tracer.commit_stores(number));
    }

    /// The running thread waits until all but the last `pending` of its bulk groups have read, or
    /// also have `written`.
    #[track_caller]
    pub(in crate::cpu) fn wait_for_stores(&self, pending: u32, written: bool) {
        self.count(Location::caller());
        let number = block::current().number;
        let groups = self.clocks.borrow_mut().waited_for_stores(number, pending as usize, written);
        self.with_own_tracer(|tracer| tracer.waited_for_stores(number, groups));
        block::current_cluster().end_stores(number, groups, written);
    }

    /// An engine reads shared memory for the running thread.
    fn read_by_engine(
        &self,
        (engine, unit): (u32, Unit),
        at: cluster::Place,
        bytes: u32,
        place: &'static Location<'static>,
    ) {
        // SAFETY: an array lives as long as the launch.
        let Some(array) = (unsafe { self.array_of(at).as_ref() }) else { return };
        let bytes = (at.1 as usize - array.offset, bytes as usize);
        let clocks = self.clocks.borrow();
        let times = (self.clock.get(), self.block_start.get());
        let now = Now::new((self.slot, engine), times, &clocks, place).by(Some(unit));
        let is_unseen =
            |old: &Record| old.clock >= times.1 && now.is_ordered(old) && !now.is_behind_fence(old);
        if let Some((at, writer)) = array.find_writer(bytes, is_unseen) {
            let element = Some(at / array.declaration.element);
            let (memory, thread) = (memory_of(array), block::current());
            let detail = "fence_proxy_async must stand after the write, before the barrier";
            let (kind, other) = (Kind::ProxyFence, Some(writer));
            self.add(kind, memory, place, thread, element, other, || detail.to_owned());
        }
        self.check_shared_by(now, array, bytes, Access::Read, place);
    }
}
