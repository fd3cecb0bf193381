//! Accesses of threads to shared and global memory.

use std::{panic::Location, sync::atomic::Ordering};

use super::Checker;
use crate::cpu::{
    access::Access,
    block::{self, Thread},
    boxes::GlobalBox,
    check::{
        cells,
        clocks::VectorClocks,
        finding::Kind,
        findings::{Key, MemoryId, Seen, memory_of},
        global::{self, Buffer},
        limits::Limit,
        profile::Operation,
        profiler::Event,
        record::Record,
        shadow::{Now, Third},
        shared::Array,
        trace::{CopiedBox, Recorded},
        unit::Unit,
    },
    limits::WARP,
};

impl<'a> Checker<'a> {
    /// A fused multiply-add of the running thread.
    pub(in crate::cpu::check) fn fma(&self, place: &'static Location<'static>) {
        if self.profiling.get() {
            self.profiler.borrow_mut().fma(place);
        }
        self.trace(place, Operation::Fma, None);
        self.with_own_tracer(|tracer| {
            tracer.log_times(block::current().number, (place, Operation::Fma), 1);
        });
    }

    /// Instructions of tensor cores: that many of the running thread's warp.
    pub(crate) fn multiplied(
        &self,
        place: &'static Location<'static>,
        operation: Operation,
        times: usize,
    ) {
        if self.profiling.get() && block::linear_index().is_multiple_of(WARP) {
            self.profiler.borrow_mut().count(place, operation, times as u64);
        }
        (0..times).for_each(|_| self.trace(place, operation, None));
        self.with_own_tracer(|tracer| {
            tracer.log_times(block::current().number, (place, operation), times);
        });
    }

    /// A TMA copy of the running thread: of a box in a buffer, and that byte of its block's shared
    /// memory. A load goes to that many blocks, a store comes from none. Traces and profiles it.
    pub(in crate::cpu::check) fn copied(
        &self,
        buffer: &Buffer,
        (of, shared, blocks): (&GlobalBox, usize, usize),
        operation: Operation,
        place: &'static Location<'static>,
    ) {
        let rows = of.parts().count();
        if self.tracing.get() {
            let first = of.parts().next().map_or(0, |part| part.addr());
            let (memory, element) = self.element(buffer, first);
            let at = (memory, element.unwrap_or(0), of.cols_inside);
            self.trace_rows(place, operation, Some(at), rows);
        }
        let bytes = (rows * of.cols_inside * of.element) as u64;
        self.with_own_tracer(|tracer| {
            let first = of.parts().next().map_or(0, |part| part.addr());
            let (memory, element) = self.element(buffer, first);
            let area = [element.unwrap_or(0), of.cols_inside, rows];
            let copied = CopiedBox { memory, area, bytes, shared: (shared, of.extent()) };
            tracer.log_box(block::current().number, (place, operation), copied);
        });
        if self.profiling.get() {
            let moved = match blocks {
                0 => of.stored(buffer.address),
                _ => of.loaded(buffer.address) * blocks,
            };
            self.profiler.borrow_mut().copy(place, operation, (bytes, moved as u64));
        }
    }

    /// Records a step of the running thread, if its block is traced.
    fn trace(
        &self,
        place: &'static Location<'static>,
        operation: Operation,
        at: Option<(MemoryId, usize, usize)>,
    ) {
        self.trace_rows(place, operation, at, 1);
    }

    fn trace_rows(
        &self,
        place: &'static Location<'static>,
        operation: Operation,
        at: Option<(MemoryId, usize, usize)>,
        rows: usize,
    ) {
        let recorded = || Recorded { thread: block::current().index, place, operation, at, rows };
        self.with_own_tracer(|tracer| tracer.add(recorded()));
    }

    /// The current access of a thread.
    pub(super) fn now<'l>(
        &self,
        thread: &Thread,
        clocks: &'l VectorClocks,
        place: &'static Location<'static>,
    ) -> Now<'l> {
        let times = (self.clock.get(), self.block_start.get());
        Now::new((self.slot, thread.number), times, clocks, place)
    }

    /// An access of the running thread to a shared array, inside it: traces, profiles and checks
    /// it.
    #[inline(always)]
    pub(in crate::cpu::check) fn shared(
        &self,
        array: &Array,
        (offset, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        self.shared_by(array, (offset, bytes), (access, Operation::shared(access)), place);
    }

    /// The same for an access that is counted as that operation.
    #[inline(always)]
    pub(super) fn shared_by(
        &self,
        array: &Array,
        (offset, bytes): (usize, usize),
        (access, operation): (Access, Operation),
        place: &'static Location<'static>,
    ) {
        if self.is_profiling() && !self.observe(array, (offset, bytes), (access, operation), place)
        {
            return;
        }
        self.check_shared(array, (offset, bytes), access, place);
        if self.has_reported_write.get() && operation == Operation::SharedStore {
            let is_own = array.rank == block::rank();
            let address = is_own.then(|| {
                block::shared_base().wrapping_add(array.offset + offset).expose_provenance()
            });
            self.begin_racing_write((address, bytes), place);
        }
    }

    /// Traces and profiles an access. Gives whether it is to be checked.
    #[inline(never)]
    fn observe(
        &self,
        array: &Array,
        (offset, bytes): (usize, usize),
        (access, operation): (Access, Operation),
        place: &'static Location<'static>,
    ) -> bool {
        let thread = block::current();
        if self.tracing.get() {
            let element = array.declaration.element;
            let at = (memory_of(array), offset / element, bytes.div_ceil(element));
            self.trace(place, operation, Some(at));
        }
        let address = (array.offset + offset) as u64;
        let event = Event { place, address, operation, width: bytes as u32 };
        self.with_own_tracer(|tracer| tracer.log(thread.number, event));
        if self.profiling.get() {
            self.profiler.borrow_mut().log(thread.number, event);
            return access != Access::Read
                || self.clocks.borrow().is_general()
                || !array.is_saturated(offset, bytes, self.clock.get());
        }
        true
    }

    /// Records and checks an access of the running thread to a shared array, inside it.
    #[inline(always)]
    pub(super) fn check_shared(
        &self,
        array: &Array,
        bytes: (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let clocks = self.clocks.borrow();
        self.check_shared_by(
            self.now(block::current(), &clocks, place),
            array,
            bytes,
            access,
            place,
        );
    }

    /// The same for an access `now`, which may be that of an engine.
    pub(super) fn check_shared_by(
        &self,
        now: Now,
        array: &Array,
        (offset, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        let across =
            self.ended_blocks.get() == 0 || self.launch.lanes_ordered.load(Ordering::Relaxed);
        let block_start = self.block_start.get();
        if array.ordered_access(&now, (offset, bytes), access, block_start, across) {
            return;
        }
        let mut last = None;
        let what = (access, self.third(access));
        array.access(&now, (offset, bytes), what, block_start, across, |at, wrong| {
            let (kind, other) = match wrong {
                cells::Wrong::Race(hazard, other) => (hazard.into(), Some(other)),
                cells::Wrong::NeverWritten => (Kind::Uninitialised, None),
                cells::Wrong::TooMany => return self.launch.limits.add(Limit::Accesses),
            };
            // A wide access may be wrong in several granules: each kind and other place is reported
            // once.
            let what = Some((kind, other.and_then(|other| other.place())));
            if last != what {
                last = what;
                let element = at.max(offset) / array.declaration.element;
                self.add(kind, memory_of(array), place, thread, Some(element), other, || {
                    self.not_waited_for(other, Some((array, at)))
                });
            }
        });
    }

    /// Whether a read of global memory adds nothing but that somebody has read what nobody writes.
    #[inline]
    pub(in crate::cpu::check) fn is_free_read(
        &self,
        buffer: &Buffer,
        bytes: (usize, usize),
    ) -> bool {
        let is_quiet = buffer.is_read_only && !self.is_profiling() && !self.launch.dependent;
        is_quiet && buffer.mark_read(bytes).is_none()
    }

    /// An access of the running thread to global memory, inside a buffer: traces, profiles and
    /// checks it.
    pub(in crate::cpu::check) fn global(
        &self,
        buffer: &Buffer,
        (address, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let number = block::current().number;
        if self.tracing.get() {
            let (memory, element) = self.element(buffer, address);
            let size = buffer.regions.first().map_or(1, |region| region.element.max(1));
            let at = (memory, element.unwrap_or(0), bytes.div_ceil(size));
            self.trace(place, Operation::global(access), Some(at));
        }
        if self.is_profiling() {
            let event = Event {
                place,
                address: (self.number_of(buffer) as u64) << 48 | (address - buffer.address) as u64,
                operation: Operation::global(access),
                width: bytes as u32,
            };
            self.with_own_tracer(|tracer| tracer.log(number, event));
            if self.profiling.get() {
                self.profiler.borrow_mut().log(number, event);
            }
        }
        self.global_by((number, None), buffer, (address, bytes), access, place);
        if self.has_reported_write.get() && access == Access::Write {
            self.begin_racing_write((Some(address), bytes), place);
        }
    }

    /// Checks an access to global memory by the thread, or the engine of a unit, of that number. An
    /// engine acts for the running thread.
    pub(in crate::cpu::check) fn global_by(
        &self,
        (number, unit): (u32, Option<Unit>),
        buffer: &Buffer,
        (address, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        if self.launch.dependent
            && !buffer.is_early
            && !self.waited_for_earlier.borrow().contains(&block::rank())
        {
            let (memory, element) = self.element(buffer, address);
            let detail = "a `dependent` kernel must call grid::wait_for_earlier before it, unless no earlier launch \
                          writes the buffer (check::Options::early)";
            let kind = Kind::BeforeWait;
            self.add(kind, memory, place, thread, element, None, || detail.to_owned());
        }
        if self.profiling.get() && access == Access::Read && buffer.is_saturated(address, bytes) {
            return;
        }
        let clocks = self.clocks.borrow();
        let times = (self.clock.get(), self.block_start.get());
        let now = Now::new((self.slot, number), times, &clocks, place).by(unit);
        let mut last = None;
        let keep = if access == Access::Write { Third::No } else { self.third(access) };
        buffer.access(&now, (address, bytes), (access, keep), |at, wrong| {
            let (kind, other) = match wrong {
                global::Wrong::TooMany => return self.launch.limits.add(Limit::Accesses),
                global::Wrong::Race(hazard, other) => (hazard.into(), Some(other)),
                global::Wrong::NeverWritten => (Kind::Uninitialised, None),
                global::Wrong::InGap => (Kind::OutOfBounds, None),
            };
            // A wide access may be wrong in several granules: each kind and other place is reported
            // once.
            let what = Some((kind, other.and_then(|other| other.place())));
            if last != what {
                last = what;
                let at = buffer.address + at;
                let (memory, element) = self.element(buffer, at.max(address));
                let detail = || match kind {
                    Kind::OutOfBounds => "between the elements of the view".to_owned(),
                    _ => self.not_waited_for(other, None),
                };
                self.add(kind, memory, place, thread, element, other, detail);
            }
        });
    }

    /// Which third reads, or additions, of a word are remembered.
    fn third(&self, access: Access) -> Third {
        let is_first = || self.ended_blocks.get() == 0;
        if self.launch.flags.are_used() {
            Third::Any
        } else if self.launch.threads_ordered.load(Ordering::Relaxed) {
            Third::OfBlock
        } else if matches!(access, Access::Atomic | Access::AtomicStore) && is_first() {
            // What the kernel will use is not known yet. Reads of one word by all threads are too
            // many to keep them for that.
            Third::OfBlock
        } else if self.launch.halves_ordered.load(Ordering::Relaxed) || is_first() {
            Third::OfWarp
        } else {
            Third::No
        }
    }

    /// A buffer's number in the launch.
    fn number_of(&self, buffer: &Buffer) -> usize {
        let mut buffers = self.launch.buffers.iter();
        buffers.position(|other| std::ptr::eq(other, buffer)).unwrap_or(0)
    }

    /// The buffer's id, and the index of the element at an address.
    fn element(&self, buffer: &Buffer, address: usize) -> (MemoryId, Option<usize>) {
        let region = buffer
            .regions
            .iter()
            .find(|region| (region.address..region.address + region.bytes).contains(&address));
        let element = region.map(|region| (address - region.address) / region.element.max(1));
        (MemoryId::Global(self.number_of(buffer)), element)
    }

    /// The launch's buffers.
    pub(in crate::cpu::check) fn buffers(&self) -> &'a [Buffer] {
        self.launch.buffers
    }

    /// Reports an error of the running thread, `thread`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn add(
        &self,
        kind: Kind,
        memory: MemoryId,
        place: &'static Location<'static>,
        thread: &Thread,
        element: Option<usize>,
        other: Option<Record>,
        detail: impl FnOnce() -> String,
    ) {
        let other_place = other.and_then(|record| record.place());
        let key = Key { memory: Some(memory), place: Some(place), other_place, ..Key::of(kind) };
        let seen = Seen { block: block::block_index(), thread: thread.index, element, other };
        self.note_racing_write(&key, other.as_ref());
        self.findings.borrow_mut().add(key, seen, detail);
    }
}
