//! What the threads of one block do, one thing after another.

use std::panic::Location;

use super::{Operation, Place, finding::MemoryId};

/// Everything that the threads of one block did. Between two barriers CUDA promises no order among threads:
/// these stand in the order in which they were run, and only the order within one thread means something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The block's index along x, y, z.
    pub block: [u32; 3],
    /// What was done: accesses to memory, and multiply-adds.
    pub steps: Vec<Step>,
    /// Barriers that the block passed.
    pub barriers: u32,
    /// Steps that were left out because there were too many.
    pub left_out: u64,
}

/// One thing that a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The thread's index along x, y, z.
    pub thread: [u32; 3],
    /// Barriers that the block had passed.
    pub barriers: u32,
    /// What it did.
    pub operation: Operation,
    /// The buffer or shared array, named as in a [`Finding`](super::Finding); `None` for a multiply-add.
    pub memory: Option<String>,
    /// Where a shared array is declared.
    pub declared: Option<Place>,
    /// Columns of a shared array that has rows and columns.
    pub columns: Option<usize>,
    /// The first element of it.
    pub element: usize,
    /// How many elements, one after another.
    pub elements: usize,
    /// The place in the source.
    pub place: Place,
}

/// A trace is for a reader; of more steps than this there is none.
const MOST_STEPS: usize = 1 << 20;

/// A step as it is made, before memory has a name.
pub(super) struct Recorded {
    pub(super) thread: [u32; 3],
    pub(super) place: &'static Location<'static>,
    pub(super) operation: Operation,
    /// Memory, the first element, how many.
    pub(super) at: Option<(MemoryId, usize, usize)>,
}

/// Writes down what a block does.
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
        let step = |(barriers, Recorded { thread, place, operation, at }): (u32, Recorded)| {
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
