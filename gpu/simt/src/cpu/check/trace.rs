//! The trace of a block: the accesses and multiply-adds of its threads in the order in which they ran.

use std::panic::Location;

use super::{findings::MemoryId, place::Place, profile::Operation};

/// The steps of a block's threads, in the order in which they ran. Between two barriers CUDA promises no order among threads, so only the
/// order within one thread is meaningful.
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
    /// The buffer or shared array, named as in a [`Finding`](super::Finding); `None` for a multiply-add.
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

/// Records the trace of a block.
pub(super) struct Tracer {
    block: [u32; 3],
    barriers: u32,
    steps: Vec<(u32, Recorded)>,
    left_out: u64,
}

impl Tracer {
    pub(super) fn new(block: [u32; 3]) -> Self {
        Tracer { block, barriers: 0, steps: Vec::new(), left_out: 0 }
    }

    pub(super) fn barrier(&mut self) {
        self.barriers += 1;
    }

    pub(super) fn add(&mut self, step: Recorded) {
        if self.steps.len() < MOST_STEPS {
            self.steps.push((self.barriers, step));
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn into_trace(self, memory_name: impl Fn(MemoryId) -> String) -> Trace {
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
        Trace {
            block: self.block,
            steps: self.steps.into_iter().map(step).collect(),
            barriers: self.barriers,
            left_out: self.left_out,
        }
    }
}
