//! The trace of a block: what its threads and warps did, in the order in which they ran.

use std::{collections::BTreeMap, panic::Location};

use super::{
    findings::MemoryId,
    place::Place,
    profile::Operation,
    profiler::{Combined, Event, Profiler},
    requests::{AsyncEvent, Asynchronous, Request, TracedMemory},
    shared::Array,
};
use crate::cpu::limits::WARP;

/// The steps of a block's threads, in the order in which they ran. Between two barriers CUDA
/// promises no order among threads, so only the order within one thread is meaningful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The block's index along x, y, z.
    pub block: [u32; 3],
    /// Memory accesses and multiply-adds.
    pub steps: Vec<Step>,
    /// The number of barriers that the block passed.
    pub barriers: u32,
    /// The number of steps beyond the limit, which are left out.
    pub left_out: u64,
    /// The number of requests beyond their own limit.
    pub requests_left_out: u64,
    /// The buffers of the launch and the shared arrays of the block.
    pub memories: Vec<TracedMemory>,
    /// What the block's warps did. They are combined as for a [`Profile`](super::Profile). Only the
    /// order within one warp is meaningful.
    pub requests: Vec<Request>,
    /// Asynchronous copies and products, in the order in which they ran.
    pub events: Vec<AsyncEvent>,
}

/// A memory access or a multiply-add of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The thread's index along x, y, z.
    pub thread: [u32; 3],
    /// The number of barriers that the block had passed.
    pub barriers: u32,
    /// The operation.
    pub operation: Operation,
    /// The buffer or shared array, named as in a [`Finding`](super::Finding); `None` for a
    /// multiply-add.
    pub memory: Option<String>,
    /// Where a shared array is declared.
    pub declared: Option<Place>,
    /// Columns of a shared array that has rows and columns.
    pub columns: Option<usize>,
    /// The index of the first element.
    pub element: usize,
    /// The number of consecutive elements.
    pub elements: usize,
    /// Rows of the box that TMA copies, each with so many elements; 1 for an access.
    pub rows: usize,
    /// The place in the source.
    pub place: Place,
}

/// The most steps of a trace: it is for a human reader.
const MOST_STEPS: usize = 1 << 20;

/// The most requests. A warp's multiply-adds in a row are one.
const MOST_REQUESTS: usize = 1 << 17;

/// A step while it is recorded: the memory has no name yet.
pub(super) struct Recorded {
    pub(super) thread: [u32; 3],
    pub(super) place: &'static Location<'static>,
    pub(super) operation: Operation,
    /// The memory, the first element, and the number of elements.
    pub(super) at: Option<(MemoryId, usize, usize)>,
    /// Rows of so many elements.
    pub(super) rows: usize,
}

/// A box that TMA copies.
pub(super) struct CopiedBox {
    /// Its buffer.
    pub(super) memory: MemoryId,
    /// Its first element, columns and rows, as far as they are inside the matrix.
    pub(super) area: [usize; 3],
    /// Its bytes inside the matrix.
    pub(super) bytes: u64,
    /// Its start in the block's shared memory, and the bytes that it takes there.
    pub(super) shared: (usize, usize),
}

impl CopiedBox {
    /// The number of its buffer.
    fn buffer(&self) -> Option<usize> {
        match self.memory {
            MemoryId::Global(number) => Some(number),
            MemoryId::Shared(..) => None,
        }
    }
}

/// A shared array, while it is recorded: its declaration, its shape, and the bytes before it.
type Declared = (MemoryId, usize, usize);

/// Records the trace of a block.
pub(super) struct Tracer {
    block: [u32; 3],
    /// The block's rank in its cluster, and the number of its first thread there.
    rank: u32,
    first: u32,
    barriers: u32,
    steps: Vec<(u32, Recorded)>,
    left_out: u64,
    /// Combines the block's accesses into requests.
    profiler: Profiler,
    requests: Vec<(u32, Combined)>,
    requests_left_out: u64,
    boxes: Vec<CopiedBox>,
    arrays: Vec<Declared>,
    events: Vec<AsyncEvent>,
    /// Thread 0's groups of `cp.async`, and the destination and bytes of the group that it has not
    /// committed.
    groups: u32,
    group: Option<(usize, usize)>,
    /// For each thread the number of its TMA copies to global memory, and that number at each
    /// commit.
    stores: BTreeMap<u32, (usize, Vec<usize>)>,
    /// For each warpgroup the number below which it has waited for its products.
    waited: BTreeMap<u32, u64>,
}

impl Tracer {
    /// For the block of that index and rank. A block of the cluster has `stride` threads, rounded
    /// up to whole warps.
    pub(super) fn new(block: [u32; 3], rank: u32, stride: usize) -> Self {
        let first = rank * stride as u32;
        let mut profiler = Profiler::recording();
        profiler.begin_cluster(first as usize + stride, 1);
        Tracer {
            block,
            rank,
            first,
            barriers: 0,
            steps: Vec::new(),
            left_out: 0,
            profiler,
            requests: Vec::new(),
            requests_left_out: 0,
            boxes: Vec::new(),
            arrays: Vec::new(),
            events: Vec::new(),
            groups: 0,
            group: None,
            stores: BTreeMap::new(),
            waited: BTreeMap::new(),
        }
    }

    /// The block's rank in its cluster.
    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// The block passes a barrier.
    pub(super) fn barrier(&mut self) {
        self.flush();
        self.barriers += 1;
    }

    /// Combines the accesses of all warps into requests.
    pub(super) fn flush(&mut self) {
        self.profiler.flush();
        self.take_requests();
    }

    /// Combines those of a warp of the cluster.
    pub(super) fn flush_one(&mut self, warp: u32) {
        self.profiler.flush_one(warp);
        self.take_requests();
    }

    fn take_requests(&mut self) {
        for request in self.profiler.take_recorded() {
            if self.requests.len() < MOST_REQUESTS {
                self.requests.push((self.barriers, request));
            } else {
                self.requests_left_out += 1;
            }
        }
    }

    pub(super) fn add(&mut self, step: Recorded) {
        if self.steps.len() < MOST_STEPS {
            self.steps.push((self.barriers, step));
        } else {
            self.left_out += 1;
        }
    }

    /// Logs an access of a thread, by its number in the cluster.
    pub(super) fn log(&mut self, thread: u32, event: Event) {
        self.profiler.log(thread, event);
    }

    /// Logs instructions of a thread that access no memory.
    pub(super) fn log_times(
        &mut self,
        thread: u32,
        (place, operation): (&'static Location<'static>, Operation),
        times: usize,
    ) {
        self.profiler.log_times(thread, (place, operation), times as u64);
    }

    /// Logs a TMA copy.
    pub(super) fn log_box(
        &mut self,
        thread: u32,
        (place, operation): (&'static Location<'static>, Operation),
        copied: CopiedBox,
    ) {
        let address = self.boxes.len() as u64;
        self.boxes.push(copied);
        self.log(thread, Event { place, address, operation, width: 0 });
    }

    /// Records what a hardware unit does.
    pub(super) fn event(&mut self, what: Asynchronous) {
        self.events.push(AsyncEvent { barriers: self.barriers, what });
    }

    /// The thread of that number begins a copy by `cp.async`.
    pub(super) fn begin_copy(&mut self, thread: u32, to: usize, bytes: usize) {
        if thread == self.first {
            let (first, before) = self.group.unwrap_or((to, 0));
            self.group = Some((first.min(to), before + bytes));
        }
    }

    /// The thread of that number commits a group.
    pub(super) fn commit_group(&mut self, thread: u32) {
        if thread == self.first {
            let group = self.groups;
            self.groups += 1;
            if let Some((to, bytes)) = self.group.take() {
                self.event(Asynchronous::GroupBegins { group, to, bytes });
            }
        }
    }

    /// The thread of that number waits for all but the last groups.
    pub(super) fn wait_group(&mut self, thread: u32, pending: u32) {
        if thread == self.first {
            self.event(Asynchronous::GroupsEnd { below: self.groups.saturating_sub(pending) });
        }
    }

    /// The thread of that number begins a TMA copy to global memory.
    pub(super) fn begin_store(&mut self, thread: u32, from: usize, bytes: usize) {
        let thread = thread - self.first;
        let (begun, _) = self.stores.entry(thread).or_default();
        let copy = *begun;
        *begun += 1;
        self.event(Asynchronous::StoreBegins { thread, copy, from, bytes });
    }

    /// The thread of that number commits a bulk group.
    pub(super) fn commit_stores(&mut self, thread: u32) {
        // As the clocks number groups: those before the thread's first copy do not count.
        if let Some((begun, committed)) = self.stores.get_mut(&(thread - self.first)) {
            committed.push(*begun);
        }
    }

    /// The thread of that number has waited until its first `groups` bulk groups have read.
    pub(super) fn waited_for_stores(&mut self, thread: u32, groups: usize) {
        let thread = thread - self.first;
        let committed = self.stores.get(&thread).map(|(_, committed)| committed);
        let below = committed.and_then(|committed| committed[..groups].last().copied());
        if let Some(below) = below {
            self.event(Asynchronous::StoresRead { thread, below });
        }
    }

    /// A thread of a warpgroup has waited for the products below that number.
    pub(super) fn waited_for_products(&mut self, warpgroup: u32, below: u64) {
        let known = self.waited.entry(warpgroup).or_default();
        if *known < below {
            *known = below;
            self.event(Asynchronous::ProductsEnd { warpgroup, below });
        }
    }

    /// The block has ended. `arrays`: those of its cluster.
    pub(super) fn end<'a>(&mut self, arrays: impl Iterator<Item = &'a Array>) {
        self.flush();
        let own = arrays.filter(|array| array.rank == self.rank);
        self.arrays = own
            .map(|array| (super::findings::memory_of(array), array.offset, array.bytes()))
            .collect();
        self.arrays.sort_by_key(|(_, offset, _)| *offset);
    }

    /// The trace. `buffers`: bytes of an element, and of all elements, of each buffer of the
    /// launch.
    pub(super) fn into_trace(
        self,
        memory_name: impl Fn(MemoryId) -> String,
        buffers: &[(usize, usize)],
    ) -> Trace {
        let step =
            |(barriers, Recorded { thread, place, operation, at, rows }): (u32, Recorded)| {
                let memory = at.map(|(memory, ..)| memory);
                let (declared, columns) = match memory {
                    Some(MemoryId::Shared(declared, _, (_, columns))) => {
                        (Some(Place::new(declared)), Some(columns).filter(|columns| *columns > 1))
                    }
                    _ => (None, None),
                };
                Step {
                    thread,
                    barriers,
                    operation,
                    memory: memory.map(&memory_name),
                    declared,
                    columns,
                    element: at.map_or(0, |(_, element, _)| element),
                    elements: at.map_or(0, |(.., elements)| elements),
                    rows,
                    place: Place::new(place),
                }
            };
        let of_buffers = (0..).zip(buffers).map(|(number, &(element, bytes))| TracedMemory {
            name: memory_name(MemoryId::Global(number)),
            declared: None,
            element,
            columns: None,
            offset: 0,
            bytes,
        });
        let of_arrays = self.arrays.iter().filter_map(|&(memory, offset, bytes)| match memory {
            MemoryId::Shared(place, element, (_, columns)) => Some(TracedMemory {
                name: memory_name(memory),
                declared: Some(Place::new(place)),
                element,
                columns: Some(columns).filter(|columns| *columns > 1),
                offset,
                bytes,
            }),
            MemoryId::Global(_) => None,
        });
        let memories = of_buffers.chain(of_arrays).collect::<Vec<_>>();
        let (first_warp, boxes) = (self.first / WARP, &self.boxes);
        let mut products = Products { events: &self.events, next: BTreeMap::new() };
        let mut request = |(barriers, combined): (u32, Combined)| {
            let Combined { warp, event, mut lanes, units, ideal } = combined;
            let Event { place, operation, width, .. } = event;
            let is_box = matches!(operation, Operation::TmaLoad | Operation::TmaStore);
            let copied = boxes.get(event.address as usize).filter(|_| is_box);
            let memory = match copied {
                Some(copied) => copied.buffer(),
                None if width == 0 => None,
                None if operation.is_global() => Some((event.address >> 48) as usize),
                None => memories.iter().position(|memory| {
                    let bytes = memory.offset as u64..(memory.offset + memory.bytes) as u64;
                    memory.is_shared() && bytes.contains(&event.address)
                }),
            };
            let operands = match operation {
                Operation::Wgmma => products.take(warp - first_warp, event.address),
                _ => copied.map(|copied| copied.shared).into_iter().collect(),
            };
            for (_, address) in &mut lanes {
                *address = if is_box { 1 } else { *address & ((1 << 48) - 1) };
            }
            Request {
                warp: warp - first_warp,
                barriers,
                operation,
                place: Place::new(place),
                width,
                memory,
                lanes,
                units: copied.map_or(units, |copied| copied.bytes),
                ideal: copied.map_or(ideal, |copied| copied.bytes),
                area: copied.map(|copied| copied.area),
                operands,
            }
        };
        let requests = self.requests.into_iter().map(&mut request).collect();
        Trace {
            block: self.block,
            steps: self.steps.into_iter().map(step).collect(),
            barriers: self.barriers,
            left_out: self.left_out,
            requests_left_out: self.requests_left_out,
            requests,
            memories,
            events: self.events,
        }
    }
}

/// The products of the block's warpgroups, from which each warp takes those that it issues.
struct Products<'t> {
    events: &'t [AsyncEvent],
    /// For each warp the event after its last product.
    next: BTreeMap<u32, usize>,
}

impl Products<'_> {
    /// The operands of the next products of that warp's warpgroup, with that number of instructions
    /// in all.
    fn take(&mut self, warp: u32, instructions: u64) -> Vec<(usize, usize)> {
        let next = self.next.entry(warp).or_default();
        let (mut operands, mut missing) = (Vec::new(), instructions);
        while missing > 0 {
            let Some(event) = self.events.get(*next) else { break };
            *next += 1;
            if let Asynchronous::ProductBegins { warpgroup, instructions, a, b, .. } = event.what
                && warpgroup == warp / 4
            {
                operands.extend(a);
                operands.push(b);
                missing = missing.saturating_sub(instructions as u64);
            }
        }
        operands
    }
}
