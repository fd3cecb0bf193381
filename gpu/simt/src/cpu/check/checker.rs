//! What watches the blocks of one worker. What it does about Hopper's units is in a file of its own.

mod arrays;
mod copies;
mod ends;
mod units;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    panic::Location,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

pub(super) use self::arrays::memory_of;
use super::{
    copies::Copies,
    finding::{Finding, Findings, Key, Kind, MemoryId, Place, Seen},
    global::{self, Buffer},
    order::ThreadOrder,
    profile::{Event, Operation, Profile, Profiler},
    record::{Now, Record},
    shared::{self, Array},
    trace::{Recorded, Trace, Tracer},
    words::Words,
};
use crate::{
    Declaration,
    cpu::{
        block::{self, BlockRun, Thread, WARP},
        cluster,
        fault::{Fault, FaultKind, Stop},
        mode::Access,
        watchdog::{Beat, Watchdog},
    },
};

/// A checked launch, as all its workers see it.
pub(in crate::cpu) struct Watch<'a> {
    pub(super) kernel: &'static str,
    /// May the kernel begin before the one before it has ended?
    dependent: bool,
    pub(super) buffers: &'a [Buffer],
    /// Threads of a block, and those of whole warps; blocks of a cluster.
    threads: usize,
    block_stride: usize,
    cluster: usize,
    /// Counts what one block in so many does.
    profile: Option<u64>,
    /// The block whose every access is written down.
    trace: Option<[u32; 3]>,
    /// Has a lane come to `sync_warp`? Then two readers of one warp do not stand for all of the block.
    lanes_ordered: AtomicBool,
    collected: Mutex<Vec<Collected>>,
    words: Words,
    /// Accesses of a thread before it waits, at most.
    most_accesses: u64,
    /// Rounds of a cluster, whose threads go on to their next waits, at most.
    most_waits: u64,
    pub(in crate::cpu) watchdog: Watchdog,
}

/// What a worker leaves behind.
struct Collected {
    worker: u32,
    findings: Findings,
    profiler: Profiler,
    tracer: Option<Tracer>,
    /// When each of its clusters started, and the blocks of that.
    blocks: Vec<(u32, Vec<[u32; 3]>)>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        declaration: &Declaration,
        buffers: &'a [Buffer],
        (block, cluster): ([u32; 3], usize),
        profile: Option<u64>,
        trace: Option<[u32; 3]>,
        (most_accesses, most_waits, patience): (u64, u64, Duration),
    ) -> Self {
        let threads = block.iter().product::<u32>() as usize;
        Watch {
            kernel: declaration.name,
            dependent: declaration.dependent,
            buffers,
            threads,
            block_stride: threads.next_multiple_of(WARP as usize),
            cluster,
            profile,
            trace,
            lanes_ordered: AtomicBool::new(false),
            collected: Mutex::default(),
            words: Words::default(),
            most_accesses,
            most_waits,
            watchdog: Watchdog::new(patience),
        }
    }

    /// What all workers counted, of a grid of so many blocks.
    pub(super) fn take_profile(&self, blocks: u64) -> Option<Profile> {
        self.profile?;
        let mut workers = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Profile { blocks, ..Profile::default() };
        for worker in &mut *workers {
            all.add(std::mem::take(&mut worker.profiler).into_profile());
        }
        Some(all)
    }

    /// What the block did that was to be traced.
    pub(super) fn take_trace(&self, memory_name: impl Fn(MemoryId) -> String) -> Option<Trace> {
        let mut workers = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let tracer = workers.iter_mut().find_map(|worker| worker.tracer.take())?;
        Some(tracer.into_trace(memory_name))
    }

    /// What all workers found, worst kinds first.
    pub(super) fn take_findings(
        &self,
        memory_name: impl Fn(MemoryId) -> String,
        thread_index: impl Fn(u32) -> [u32; 3],
    ) -> Vec<Finding> {
        let mut workers = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        // Not in the order in which they came to their end.
        workers.sort_by_key(|worker| worker.worker);
        let mut findings = Findings::default();
        for worker in &mut *workers {
            findings.merge(std::mem::take(&mut worker.findings));
        }
        let block_of = |worker: u32, clock: u32, rank: usize| {
            let collected = workers.iter().find(|collected| collected.worker == worker)?;
            let next = collected.blocks.partition_point(|(start, _)| *start <= clock);
            collected.blocks[next.checked_sub(1)?].1.get(rank).copied()
        };
        let mut groups: Vec<_> = findings.0.into_iter().collect();
        groups.sort_by(|(one, _), (other, _)| one.cmp(other));
        groups
            .into_iter()
            .map(|(key, group)| Finding {
                kind: key.kind,
                kernel: self.kernel,
                memory: key.memory.map(&memory_name),
                columns: match key.memory {
                    Some(MemoryId::Shared(_, _, (_, columns))) if columns > 1 => Some(columns),
                    _ => None,
                },
                place: key.place.map(Place::new),
                other_place: key.other_place.map(Place::new),
                detail: group.detail,
                count: group.count,
                examples: group
                    .examples
                    .iter()
                    .map(|seen| super::finding::Example {
                        block: seen.block,
                        thread: seen.thread,
                        element: seen.element,
                        other: seen.other.filter(|record| !record.is_engine()).and_then(|record| {
                            let number = record.thread() as usize;
                            let (rank, linear) =
                                (number / self.block_stride, number % self.block_stride);
                            let block = block_of(record.worker(), record.clock, rank)?;
                            Some((block, thread_index(linear as u32)))
                        }),
                    })
                    .collect(),
            })
            .collect()
    }
}

/// How many blocks of the process are being counted at this moment. While there are none, an access need not
/// ask whether it is one of theirs.
pub(super) static PROFILED_BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// Watches the blocks that one worker runs.
#[doc(hidden)]
pub struct Checker<'a> {
    watch: &'a Watch<'a>,
    worker: u32,
    clock: Cell<u32>,
    block_start: Cell<u32>,
    /// The clock again, for the shortest way through a read of shared memory.
    hot: Cell<u32>,
    order: RefCell<ThreadOrder>,
    /// Boxed, because a kernel's arrays hold their addresses.
    #[allow(clippy::vec_box)]
    arrays: RefCell<Vec<Box<Array>>>,
    /// Each thread's asynchronous copies.
    copies: RefCell<Vec<Copies>>,
    /// What others than its own threads do with a block's shared memory: the block's rank, and which thread or engine.
    late_uses: RefCell<BTreeMap<(u32, u32), LateUse>>,
    /// Mbarriers that only their block's threads see initialised: by whom, and where.
    not_fenced: RefCell<BTreeMap<cluster::Place, (u32, &'static Location<'static>)>>,
    /// Ranks of the blocks of which a thread has waited for the grids before.
    waited_for_earlier: RefCell<BTreeSet<u32>>,
    /// Until the first has ended it is not known whether the kernel uses `sync_warp`.
    ended_blocks: Cell<u64>,
    blocks: RefCell<Vec<(u32, Vec<[u32; 3]>)>>,
    findings: RefCell<Findings>,
    /// Is this block counted?
    profiling: Cell<bool>,
    profiler: RefCell<Profiler>,
    /// Is this block the one that is traced?
    tracing: Cell<bool>,
    tracer: RefCell<Option<Tracer>>,
    /// Stands in for memory outside.
    scratch: Box<[Cell<u128>]>,
    /// What the worker does, counted; and the accesses since a thread last went on after a wait.
    beat: Arc<Beat>,
    accesses: Cell<u64>,
    /// By the threads' numbers, accesses outside of the cluster that runs.
    outside: RefCell<Vec<u32>>,
}

/// What memory holds that a copy will write: NaN.
const POISON: u8 = 0xff;

/// The last use of a block's shared memory by one of another block's threads, or by an engine.
struct LateUse {
    /// Its clock then.
    clock: u16,
    what: &'static str,
    place: &'static Location<'static>,
    /// Who did it, or began it.
    block: [u32; 3],
    thread: [u32; 3],
}

/// Bytes that an access outside may use instead.
const SCRATCH_BYTES: usize = 4096;

impl<'a> Checker<'a> {
    pub(in crate::cpu) fn new(watch: &'a Watch<'a>, worker: usize, beat: Arc<Beat>) -> Self {
        Checker {
            watch,
            worker: worker as u32, // fewer than `MOST_SLOTS`
            clock: Cell::new(0),
            block_start: Cell::new(0),
            hot: Cell::new(0),
            order: RefCell::default(),
            arrays: RefCell::default(),
            copies: RefCell::default(),
            late_uses: RefCell::default(),
            not_fenced: RefCell::default(),
            waited_for_earlier: RefCell::default(),
            ended_blocks: Cell::new(0),
            blocks: RefCell::default(),
            findings: RefCell::default(),
            profiling: Cell::new(false),
            profiler: RefCell::default(),
            tracing: Cell::new(false),
            tracer: RefCell::default(),
            scratch: vec![Cell::new(u128::MAX); SCRATCH_BYTES / 16].into(),
            beat,
            accesses: Cell::new(0),
            outside: RefCell::default(),
        }
    }

    /// A cluster begins, the `number`th, of blocks of these indices.
    pub(in crate::cpu) fn begin_cluster(&self, number: u64, indices: Vec<[u32; 3]>) {
        let threads = self.watch.block_stride * self.watch.cluster;
        self.profiling.set(self.watch.profile.is_some_and(|every| is_sampled(number, every)));
        if self.profiling.get() {
            self.profiler.borrow_mut().begin_cluster(threads, self.watch.cluster);
        }
        let traced = self.watch.trace.filter(|traced| indices.contains(traced));
        self.tracing.set(traced.is_some());
        if let Some(traced) = traced {
            *self.tracer.borrow_mut() = Some(Tracer::new(traced));
        }
        if self.is_profiling() {
            PROFILED_BLOCKS.fetch_add(1, Ordering::Relaxed);
        }
        self.order.borrow_mut().begin();
        if self.watch.cluster > 1 {
            self.order.borrow_mut().generalise(threads, self.clock.get());
        }
        self.tick();
        self.block_start.set(self.clock.get());
        // What a block began and never waited for ends with it.
        self.copies.borrow_mut().clear();
        self.waited_for_earlier.borrow_mut().clear();
        self.outside.borrow_mut().clear();
        self.blocks.borrow_mut().push((self.clock.get(), indices));
    }

    /// A new interval begins, after everything that this worker has seen.
    fn tick(&self) {
        // Four thousand million intervals take a worker longer than anyone will wait.
        let clock = self.clock.get().checked_add(1).expect("more barriers than can be counted");
        self.clock.set(clock);
        self.order.borrow_mut().barrier();
        self.set_hot();
    }

    /// A block that is counted goes the long way at every access; and so does one in which two readers of the same
    /// interval do not stand for all.
    fn set_hot(&self) {
        let long = self.is_profiling() || self.order.borrow().is_general();
        self.hot.set(if long { u32::MAX } else { self.clock.get() });
    }

    /// The address of the clock that a saturated word of shared memory bears.
    pub(super) fn hot(&self) -> &Cell<u32> {
        &self.hot
    }

    /// A cluster has come to its end, or to where it cannot go on.
    pub(in crate::cpu) fn end_cluster(&self, outcome: Result<(), Stop>) -> Result<(), Stop> {
        self.ended_blocks.set(self.ended_blocks.get() + 1);
        if self.is_profiling() {
            PROFILED_BLOCKS.fetch_sub(1, Ordering::Relaxed);
        }
        if self.profiling.get() {
            self.profiler.borrow_mut().flush();
        }
        if outcome.is_ok() {
            self.check_ends();
        }
        self.late_uses.borrow_mut().clear();
        self.not_fenced.borrow_mut().clear();
        match outcome {
            Err(Stop::Fault(fault)) => {
                self.add_fault(fault);
                Ok(())
            }
            other => other,
        }
    }

    fn add_fault(&self, fault: Fault) {
        let kind = match &fault.kind {
            FaultKind::Panic { .. } => Kind::Panic,
            FaultKind::BarrierSkipped { .. } => Kind::BarrierSkipped,
            FaultKind::WarpOperation { .. } | FaultKind::Wait { .. } => Kind::Deadlock,
            FaultKind::Copy { .. } => Kind::Transaction,
            FaultKind::SharedMismatch { .. } => Kind::SharedSize,
            FaultKind::StackOverflow { .. } => Kind::StackOverflow,
            FaultKind::Endless { .. } => Kind::Endless,
            // What it did outside is told already.
            FaultKind::Outside => return,
        };
        let seen = Seen { block: fault.block, thread: fault.thread, element: None, other: None };
        let fault_place = match &fault.kind {
            FaultKind::Panic { location, .. }
            | FaultKind::BarrierSkipped { location, .. }
            | FaultKind::WarpOperation { location, .. }
            | FaultKind::Wait { location, .. }
            | FaultKind::Endless { location }
            | FaultKind::Copy { location, .. } => location.clone(),
            FaultKind::SharedMismatch { .. }
            | FaultKind::StackOverflow { .. }
            | FaultKind::Outside => String::new(),
        };
        let key = Key { kind, memory: None, place: None, other_place: None, fault_place };
        self.findings.borrow_mut().add(key, seen, || fault.kind.to_string());
    }

    /// All threads that have not ended wait at a barrier.
    pub(in crate::cpu) fn barrier<'t>(
        &self,
        run: &BlockRun,
        waiting: impl Iterator<Item = &'t Thread> + Clone,
    ) {
        let place = |thread: &Thread| thread.place.get();
        let Some(first) = waiting.clone().next() else { return };
        if self.profiling.get() {
            let mut profiler = self.profiler.borrow_mut();
            profiler.flush();
            let mut warps = vec![None; run.threads().len().div_ceil(WARP as usize)];
            waiting.clone().for_each(|thread| warps[thread.warp() as usize] = place(thread));
            for place in warps.into_iter().flatten() {
                profiler.count(place, Operation::Barrier, 1);
            }
        }
        if self.watch.trace == Some(run.index)
            && let Some(tracer) = &mut *self.tracer.borrow_mut()
        {
            tracer.barrier();
        }
        let seen = Seen { block: run.index, thread: first.index, element: None, other: None };
        if run.ended.get() > 0 {
            let key = Key {
                kind: Kind::BarrierSkipped,
                memory: None,
                place: place(first),
                other_place: None,
                fault_place: String::new(),
            };
            let exited = run.threads()[run.first_ended.get() as usize].index;
            let (waits, ended) = (waiting.clone().count(), run.ended.get());
            self.findings.borrow_mut().add(key, seen, || {
                format!("{waits} threads of the block wait, {ended} have ended, {exited:?} first")
            });
        }
        // One place may have several addresses, but mostly it is the same one: that is seen at once.
        let elsewhere = |thread: &&Thread| match (place(thread), place(first)) {
            (Some(one), Some(other)) => !std::ptr::eq(one, other) && one != other,
            (one, other) => one.is_some() != other.is_some(),
        };
        if let Some(other) = waiting.clone().find(elsewhere) {
            let key = Key {
                kind: Kind::BarrierMismatch,
                memory: None,
                place: place(first),
                other_place: place(other),
                fault_place: String::new(),
            };
            let count = |at| waiting.clone().filter(|thread| place(thread) == place(at)).count();
            self.findings.borrow_mut().add(key, seen, || {
                let other = other.index;
                format!("{} threads wait at the first, {other:?} at the second", count(first))
            });
        }
        if self.watch.cluster > 1 {
            // It orders nothing of the other blocks.
            let numbers = waiting.map(|thread| thread.number).collect::<Vec<_>>();
            self.order.borrow_mut().join(&numbers);
        } else {
            self.tick();
        }
    }

    pub(in crate::cpu) fn warp_sync(&self, warp: u32, mask: u32) {
        self.watch.lanes_ordered.store(true, Ordering::Relaxed);
        self.order.borrow_mut().sync(warp, mask);
        if self.profiling.get() {
            self.profiler.borrow_mut().flush_one(warp);
        }
    }

    /// A fused multiply-add of the running thread.
    pub(super) fn fma(&self, place: &'static Location<'static>) {
        if self.profiling.get() {
            self.profiler.borrow_mut().fma(place);
        }
        self.trace(place, Operation::Fma, None);
    }

    /// Writes down what the running thread does, if its block is traced.
    fn trace(
        &self,
        place: &'static Location<'static>,
        operation: Operation,
        at: Option<(MemoryId, usize, usize)>,
    ) {
        if self.tracing.get()
            && self.watch.trace == Some(block::block_index())
            && let Some(tracer) = &mut *self.tracer.borrow_mut()
        {
            tracer.add(Recorded { thread: block::current().index, place, operation, at });
        }
    }

    /// Must every access be seen, also those that say nothing new?
    pub(super) fn is_profiling(&self) -> bool {
        self.profiling.get() || self.tracing.get()
    }

    fn now<'l>(
        &self,
        thread: &Thread,
        order: &'l ThreadOrder,
        place: &'static Location<'static>,
    ) -> Now<'l> {
        let clocks = (self.clock.get(), self.block_start.get());
        Now::new((self.worker, thread.number), clocks, order, place)
    }

    /// An access to a shared array, inside it.
    pub(super) fn shared(
        &self,
        array: &Array,
        (offset, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        if self.tracing.get() {
            let element = array.declaration.element;
            let at = (memory_of(array), offset / element, bytes.div_ceil(element));
            self.trace(place, Operation::shared(access), Some(at));
        }
        if self.profiling.get() {
            let address = (array.offset + offset) as u64;
            let (operation, width) = (Operation::shared(access), bytes as u32);
            let event = Event { place, address, operation, width };
            self.profiler.borrow_mut().log(thread.number, event);
            if access == Access::Read
                && !self.order.borrow().is_general()
                && array.is_saturated(offset, bytes, self.clock.get())
            {
                return;
            }
        }
        self.watched(array, (offset, bytes), access, place);
    }

    /// What is wrong with an access of the running thread to a shared array, inside it.
    fn watched(
        &self,
        array: &Array,
        bytes: (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let order = self.order.borrow();
        self.watched_by(self.now(block::current(), &order, place), array, bytes, access, place);
    }

    /// The same of an access that the running thread has begun.
    fn watched_by(
        &self,
        now: Now,
        array: &Array,
        (offset, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        let across =
            self.ended_blocks.get() == 0 || self.watch.lanes_ordered.load(Ordering::Relaxed);
        let block_start = self.block_start.get();
        if array.ordered_access(&now, (offset, bytes), access, block_start, across) {
            return;
        }
        let mut last = None;
        array.access(&now, (offset, bytes), access, block_start, across, |at, wrong| {
            let (kind, other) = match wrong {
                shared::Wrong::Race(hazard, other) => (hazard.into(), Some(other)),
                shared::Wrong::NeverWritten => (Kind::Uninitialised, None),
            };
            // Of a wide access, what is wrong with its parts once each.
            let what = Some((kind, other.and_then(|other| other.place())));
            if last != what {
                last = what;
                let element = at.max(offset) / array.declaration.element;
                self.add(
                    kind,
                    memory_of(array),
                    place,
                    thread,
                    Some(element),
                    other,
                    String::new(),
                );
            }
        });
    }

    /// An access to global memory, inside a buffer.
    pub(super) fn global(
        &self,
        buffer: &Buffer,
        bytes: (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        self.global_by(block::current().number, buffer, bytes, access, place);
    }

    /// The same by the thread, or engine, of that number, as the running thread has told it to.
    fn global_by(
        &self,
        number: u32,
        buffer: &Buffer,
        (address, bytes): (usize, usize),
        access: Access,
        place: &'static Location<'static>,
    ) {
        let thread = block::current();
        if self.watch.dependent && !self.waited_for_earlier.borrow().contains(&block::rank()) {
            let (memory, element) = self.element(buffer, address);
            let detail = "grid::wait_for_earlier belongs before it: the kernel is `dependent`";
            self.add(Kind::BeforeWait, memory, place, thread, element, None, detail.to_owned());
        }
        if self.tracing.get() {
            let (memory, element) = self.element(buffer, address);
            let size = buffer.regions.first().map_or(1, |region| region.element.max(1));
            let at = (memory, element.unwrap_or(0), bytes.div_ceil(size));
            self.trace(place, Operation::global(access), Some(at));
        }
        if self.profiling.get() {
            let event = Event {
                place,
                address: (self.number_of(buffer) as u64) << 48 | (address - buffer.address) as u64,
                operation: Operation::global(access),
                width: bytes as u32,
            };
            self.profiler.borrow_mut().log(thread.number, event);
            if access == Access::Read && buffer.is_saturated(address, bytes) {
                return;
            }
        }
        let order = self.order.borrow();
        let clocks = (self.clock.get(), self.block_start.get());
        let now = Now::new((self.worker, number), clocks, &order, place);
        let mut last = None;
        buffer.access(&now, (address, bytes), access, |at, wrong| {
            let (kind, other) = match wrong {
                global::Wrong::Race(hazard, other) => (hazard.into(), Some(other)),
                global::Wrong::NeverWritten => (Kind::Uninitialised, None),
            };
            // Of a wide access, what is wrong with its parts once each.
            let what = Some((kind, other.and_then(|other| other.place())));
            if last != what {
                last = what;
                let at = buffer.address + at;
                let (memory, element) = self.element(buffer, at.max(address));
                self.add(kind, memory, place, thread, element, other, String::new());
            }
        });
    }

    fn number_of(&self, buffer: &Buffer) -> usize {
        let mut buffers = self.watch.buffers.iter();
        buffers.position(|other| std::ptr::eq(other, buffer)).unwrap_or(0)
    }

    /// The buffer's number and the element at an address.
    fn element(&self, buffer: &Buffer, address: usize) -> (MemoryId, Option<usize>) {
        let region = buffer
            .regions
            .iter()
            .find(|region| (region.address..region.address + region.bytes).contains(&address));
        let element = region.map(|region| (address - region.address) / region.element.max(1));
        (MemoryId::Global(self.number_of(buffer)), element)
    }

    /// Buffers of the launch.
    pub(super) fn buffers(&self) -> &'a [Buffer] {
        self.watch.buffers
    }

    #[allow(clippy::too_many_arguments)]
    fn add(
        &self,
        kind: Kind,
        memory: MemoryId,
        place: &'static Location<'static>,
        thread: &Thread,
        element: Option<usize>,
        other: Option<Record>,
        detail: String,
    ) {
        let other_place = other.and_then(|record| record.place());
        let fault_place = String::new();
        let key = Key { kind, memory: Some(memory), place: Some(place), other_place, fault_place };
        let seen = Seen { block: block::block_index(), thread: thread.index, element, other };
        self.findings.borrow_mut().add(key, seen, || detail);
    }

    /// Hands over what was found.
    pub(in crate::cpu) fn finish(self) {
        let collected = Collected {
            worker: self.worker,
            findings: self.findings.into_inner(),
            profiler: self.profiler.into_inner(),
            tracer: self.tracer.into_inner(),
            blocks: self.blocks.into_inner(),
        };
        let mut all = self.watch.collected.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(collected);
    }
}

/// Is a block one of those that are counted? Multiples of the golden ratio, modulo one, spread evenly over
/// any row or column of blocks (Weyl); every so-manieth block might always be in the same column.
fn is_sampled(number: u64, every: u64) -> bool {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) <= u64::MAX / every
}
