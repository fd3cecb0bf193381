//! The checker of one slot: it observes the clusters that run there, one after another.
//!
//! Here is its state, and what happens between clusters. The files below have what it does at each
//! operation of a thread.

mod accesses;
mod arrays;
mod atomics;
mod barriers;
mod copies;
mod engines;
mod limits;
mod mbarriers;
mod tracing;
mod unfinished;
mod values;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    panic::Location,
    sync::{
        Arc, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    checked_launch::{CheckedLaunch, Collected},
    clocks::VectorClocks,
    copies::Copies,
    finding::Kind,
    findings::{Findings, Key, Seen},
    limits::Limit,
    profiler::Profiler,
    racing_write::RacingWrite,
    shared::Array,
    trace::Tracer,
    unit::Unit,
};
use crate::{
    cpu::{
        cluster,
        fault::{Fault, FaultKind, Stop},
        watchdog::Heartbeat,
    },
    float::has_fma,
};

/// The number of blocks of the process that are profiled or traced at the moment; one more, until a
/// launch has seen that this processor has an instruction for a fused multiply-add. While it is 0,
/// an access need not look whether its block is one of them, and a multiply-add need not ask.
pub(super) static PROFILED_BLOCKS: AtomicUsize = AtomicUsize::new(1);

/// The checker of one slot.
#[doc(hidden)]
pub struct Checker<'a> {
    launch: &'a CheckedLaunch<'a>,
    /// The number of the slot.
    slot: u32,
    /// The slot's clock, which ticks at every barrier of a block.
    clock: Cell<u32>,
    /// The clock at the start of the cluster.
    block_start: Cell<u32>,
    /// The clock that saturated shared memory has ([`Array::saturated`]). `u32::MAX` where every
    /// read must be recorded.
    saturated_clock: Cell<u32>,
    clocks: RefCell<VectorClocks>,
    /// The shadows of shared arrays. Boxed, because a kernel's arrays hold their addresses.
    #[allow(clippy::vec_box)]
    arrays: RefCell<Vec<Box<Array>>>,
    /// Each thread's asynchronous copies.
    copies: RefCell<Vec<Copies>>,
    /// Uses of a block's shared memory by other blocks' threads and by engines: by the block's
    /// rank, and the number of the thread or engine.
    late_uses: RefCell<BTreeMap<(u32, u32), LateUse>>,
    /// Mbarriers without a `fence_init` since their initialisation: the number of the thread that
    /// initialised it, and the place.
    not_fenced: RefCell<BTreeMap<cluster::Place, (u32, &'static Location<'static>)>>,
    /// Whether the threads of the running cluster have met at its barrier: each knows that all have
    /// begun.
    has_met: Cell<bool>,
    /// Ranks of the blocks of which a thread has waited for earlier grids.
    waited_for_earlier: RefCell<BTreeSet<u32>>,
    /// Registers of a thread that each warp has taken, or has left, by the ranks of the blocks and
    /// the warps' numbers.
    registers: RefCell<BTreeMap<(u32, u32), u32>>,
    /// By the ranks of the blocks whose warps have more registers than an SM: where a warp took
    /// them, all registers, and the thread.
    lacking_registers: RefCell<BTreeMap<u32, LackingRegisters>>,
    /// The number of clusters that have ended. Until the first has, it is not known whether the
    /// kernel uses `sync_warp`.
    ended_blocks: Cell<u64>,
    /// For each cluster the slot's clock at its start, and the indices of its blocks.
    blocks: RefCell<Vec<(u32, Vec<[u32; 3]>)>>,
    findings: RefCell<Findings>,
    /// The race of the write that is being observed.
    reported_write: Cell<Option<Key>>,
    has_reported_write: Cell<bool>,
    /// A write in a race whose value is compared next, and whether there is one.
    racing_write: RefCell<Option<RacingWrite>>,
    has_racing_write: Cell<bool>,
    /// Whether the cluster is profiled.
    profiling: Cell<bool>,
    profiler: RefCell<Profiler>,
    /// Whether the traced block is in the cluster.
    tracing: Cell<bool>,
    tracer: RefCell<Option<Tracer>>,
    /// Memory for accesses out of bounds.
    scratch: Box<[Cell<u128>]>,
    heartbeat: Arc<Heartbeat>,
    /// Accesses since a thread last went on after a wait.
    accesses: Cell<u64>,
    /// Accesses out of bounds in this cluster, by the threads' numbers.
    outside: RefCell<Vec<u32>>,
}

/// A checked launch begins.
pub(super) fn ask_for_fma() {
    static ASK: Once = Once::new();
    ASK.call_once(|| {
        if has_fma() {
            PROFILED_BLOCKS.fetch_sub(1, Ordering::Relaxed);
        }
    });
}

/// The byte that fills the destination of a copy in flight: it makes NaN.
const POISON: u8 = 0xff;

/// The last use of a block's shared memory by a thread of another block, or by an engine.
struct LateUse {
    /// The thread's, or engine's, own clock then.
    clock: u16,
    what: &'static str,
    /// The unit that does it, if it is no thread.
    unit: Option<Unit>,
    place: &'static Location<'static>,
    /// The thread that did it, or began it.
    block: [u32; 3],
    thread: [u32; 3],
}

/// Where registers were taken that there are not, how many there would be, and by which thread.
type LackingRegisters = (&'static Location<'static>, u32, [u32; 3], [u32; 3]);

/// Bytes of memory for accesses out of bounds.
const SCRATCH_BYTES: usize = 4096;

impl<'a> Checker<'a> {
    pub(in crate::cpu) fn new(
        launch: &'a CheckedLaunch<'a>,
        slot: usize,
        heartbeat: Arc<Heartbeat>,
    ) -> Self {
        Checker {
            launch,
            slot: slot as u32, // fewer than `MOST_SLOTS`
            clock: Cell::new(0),
            block_start: Cell::new(0),
            saturated_clock: Cell::new(0),
            clocks: RefCell::default(),
            arrays: RefCell::default(),
            copies: RefCell::default(),
            late_uses: RefCell::default(),
            not_fenced: RefCell::default(),
            has_met: Cell::new(false),
            waited_for_earlier: RefCell::default(),
            registers: RefCell::default(),
            lacking_registers: RefCell::default(),
            ended_blocks: Cell::new(0),
            blocks: RefCell::default(),
            findings: RefCell::default(),
            reported_write: Cell::default(),
            has_reported_write: Cell::new(false),
            racing_write: RefCell::default(),
            has_racing_write: Cell::new(false),
            profiling: Cell::new(false),
            profiler: RefCell::default(),
            tracing: Cell::new(false),
            tracer: RefCell::default(),
            scratch: vec![Cell::new(u128::MAX); SCRATCH_BYTES / 16].into(),
            heartbeat,
            accesses: Cell::new(0),
            outside: RefCell::default(),
        }
    }

    /// The `number`th cluster begins, with blocks of these indices.
    pub(in crate::cpu) fn begin_cluster(&self, number: u64, indices: Vec<[u32; 3]>) {
        let threads = self.launch.block_stride * self.launch.cluster;
        self.profiling.set(self.launch.profile.is_some_and(|every| is_sampled(number, every)));
        if self.profiling.get() {
            self.profiler.borrow_mut().begin_cluster(threads, self.launch.cluster);
        }
        let rank = |traced| indices.iter().position(|index| *index == traced);
        let traced = self.launch.trace.and_then(|traced| Some((traced, rank(traced)?)));
        self.tracing.set(traced.is_some());
        if let Some((traced, rank)) = traced {
            let tracer = Tracer::new(traced, rank as u32, self.launch.block_stride);
            *self.tracer.borrow_mut() = Some(tracer);
        }
        if self.is_profiling() {
            PROFILED_BLOCKS.fetch_add(1, Ordering::Relaxed);
        }
        self.clocks.borrow_mut().begin();
        self.has_met.set(false);
        if self.launch.cluster > 1 {
            self.clocks.borrow_mut().generalise(threads, self.clock.get());
        }
        self.tick();
        if self.launch.threads_ordered.load(Ordering::Relaxed) {
            self.with_general_clocks(|_| ());
        }
        self.block_start.set(self.clock.get());
        self.arrays.borrow().iter().for_each(|array| array.begin_block());
        // Copies that a block began and never waited for end with it.
        self.copies.borrow_mut().clear();
        self.waited_for_earlier.borrow_mut().clear();
        self.outside.borrow_mut().clear();
        self.registers.borrow_mut().clear();
        self.blocks.borrow_mut().push((self.clock.get(), indices));
    }

    /// Advances the slot's clock: what follows is ordered after everything before.
    fn tick(&self) {
        // 2^32 barriers take longer than anyone will wait.
        let clock = self.clock.get().checked_add(1).expect("more barriers than can be counted");
        self.clock.set(clock);
        self.clocks.borrow_mut().barrier();
        self.set_saturated_clock();
    }

    /// Every read must be recorded in a profiled block, and where two readers do not stand for all.
    fn set_saturated_clock(&self) {
        let record_all = self.is_profiling() || self.clocks.borrow().is_general();
        self.saturated_clock.set(if record_all { u32::MAX } else { self.clock.get() });
    }

    /// The clock that saturated shared memory has.
    pub(super) fn saturated_clock(&self) -> &Cell<u32> {
        &self.saturated_clock
    }

    /// A cluster has ended or failed. Faults of the kernel become findings.
    pub(in crate::cpu) fn end_cluster(&self, outcome: Result<(), Stop>) -> Result<(), Stop> {
        self.ended_blocks.set(self.ended_blocks.get() + 1);
        self.end_racing_write();
        if self.is_profiling() {
            PROFILED_BLOCKS.fetch_sub(1, Ordering::Relaxed);
        }
        if self.profiling.get() {
            self.profiler.borrow_mut().flush();
        }
        let arrays = self.arrays.borrow();
        self.with_tracer(|tracer| tracer.end(arrays.iter().map(|array| &**array)));
        drop(arrays);
        self.check_registers();
        if outcome.is_ok() {
            self.check_ends();
        }
        if self.clocks.borrow().has_run_out() {
            self.launch.limits.add(Limit::Clock);
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

    /// Reports a fault as a finding.
    fn add_fault(&self, fault: Fault) {
        let kind = match &fault.kind {
            FaultKind::Panic { .. } => Kind::Panic,
            FaultKind::BarrierMisuse { .. } => Kind::BarrierMisuse,
            FaultKind::BarrierSkipped { .. } => Kind::BarrierSkipped,
            FaultKind::WarpOperation { .. } | FaultKind::Wait { .. } => Kind::Deadlock,
            FaultKind::Copy { .. } => Kind::Transaction,
            FaultKind::SharedMismatch { .. } => Kind::SharedSize,
            FaultKind::StackOverflow { .. } => Kind::StackOverflow,
            FaultKind::Endless { .. } => Kind::Endless,
            // Its accesses out of bounds have been reported.
            FaultKind::Outside => return,
        };
        let seen = Seen { block: fault.block, thread: fault.thread, element: None, other: None };
        let fault_place = match &fault.kind {
            FaultKind::Panic { location, .. }
            | FaultKind::BarrierMisuse { location, .. }
            | FaultKind::BarrierSkipped { location, .. }
            | FaultKind::WarpOperation { location, .. }
            | FaultKind::Wait { location, .. }
            | FaultKind::Endless { location }
            | FaultKind::Copy { location, .. } => location.clone(),
            FaultKind::SharedMismatch { .. }
            | FaultKind::StackOverflow { .. }
            | FaultKind::Outside => String::new(),
        };
        let key = Key { fault_place, ..Key::of(kind) };
        self.findings.borrow_mut().add(key, seen, || fault.kind.to_string());
    }

    /// Whether every access must be seen, even one that adds nothing new.
    pub(super) fn is_profiling(&self) -> bool {
        self.profiling.get() || self.tracing.get()
    }

    /// Updates the vector clocks in their general form: threads are about to be ordered in other
    /// ways than by barriers and within warps.
    fn with_general_clocks<R>(&self, act: impl FnOnce(&mut VectorClocks) -> R) -> R {
        // It is mostly set already, and a store would take the line from the other workers.
        if !self.launch.threads_ordered.load(Ordering::Relaxed) {
            self.launch.threads_ordered.store(true, Ordering::Relaxed);
        }
        let mut clocks = self.clocks.borrow_mut();
        clocks.generalise(self.launch.block_stride * self.launch.cluster, self.clock.get());
        let result = act(&mut clocks);
        drop(clocks);
        self.set_saturated_clock();
        result
    }

    /// Reports uses of a block's shared memory that may come after the block's end: none of its
    /// threads knows of the use.
    fn check_ends(&self) {
        let (clocks, blocks) = (self.clocks.borrow(), self.blocks.borrow());
        let Some((_, indices)) = blocks.last() else { return };
        let stride = self.launch.block_stride as u32;
        for (&(rank, who), late_use) in &*self.late_uses.borrow() {
            let LateUse { clock, what, unit, place, block, thread } = *late_use;
            let threads = rank * stride..rank * stride + self.launch.threads as u32;
            if threads.into_iter().any(|thread| clocks.has_learnt(thread, who, clock)) {
                continue;
            }
            let key = Key { place: Some(place), ..Key::of(Kind::EndedBlock) };
            let seen = Seen { block, thread, element: None, other: None };
            self.findings.borrow_mut().add(key, seen, || {
                let group = clocks.group_of_store(who, clock);
                let by = unit.map(|unit| format!(", by {}", unit.waits(group))).unwrap_or_default();
                format!(
                    "{what}, and block {:?} may end before that: one of its threads must wait for it{by}",
                    indices[rank as usize]
                )
            });
        }
    }

    /// The most rounds of a cluster. In each, threads go on to their next waits.
    #[inline]
    pub(in crate::cpu) fn most_rounds(&self) -> u64 {
        self.launch.most_waits
    }

    /// A thread begins, or goes on after a wait: its accesses are counted anew.
    #[inline]
    pub(in crate::cpu) fn reset_accesses(&self) {
        self.heartbeat.tick();
        self.accesses.set(0);
    }

    /// The accesses since a thread last went on after a wait.
    pub(in crate::cpu) fn counted_accesses(&self) -> u64 {
        self.accesses.get()
    }

    /// Reduces the counted accesses to that number.
    pub(in crate::cpu) fn limit_accesses(&self, counted: u64) {
        self.accesses.set(self.accesses.get().min(counted));
    }

    /// Hands its findings to the launch.
    pub(in crate::cpu) fn finish(self) {
        let collected = Collected {
            slot: self.slot,
            findings: self.findings.into_inner(),
            profiler: self.profiler.into_inner(),
            tracer: self.tracer.into_inner(),
            blocks: self.blocks.into_inner(),
        };
        self.launch.collect(collected);
    }
}

/// Whether a block is sampled. Multiples of the golden ratio, modulo one, spread evenly over
/// any row or column of blocks (Weyl); every n-th block might always be in the same column.
fn is_sampled(number: u64, every: u64) -> bool {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) <= u64::MAX / every
}
