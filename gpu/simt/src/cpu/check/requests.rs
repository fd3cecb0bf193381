//! What a trace says of a block besides its threads' steps: its memories, its warps' requests, and
//! its asynchronous copies and products.

use super::{place::Place, profile::Operation};

/// A buffer, or a shared array of the traced block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedMemory {
    /// Its name, as in a [`Finding`](super::Finding).
    pub name: String,
    /// Where a shared array is declared. `None` for a buffer.
    pub declared: Option<Place>,
    /// Bytes of an element.
    pub element: usize,
    /// Columns of a shared array that has rows and columns.
    pub columns: Option<usize>,
    /// Bytes from the start of the block's shared memory. 0 for a buffer.
    pub offset: usize,
    /// Its length in bytes.
    pub bytes: usize,
}

impl TracedMemory {
    /// Whether it is in shared memory.
    pub fn is_shared(&self) -> bool {
        self.declared.is_some()
    }
}

/// A warp's request to memory: the accesses of its lanes that the hardware serves together. Or what
/// a warp does between two of them: multiply-adds, instructions of tensor cores, TMA copies of
/// boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The number of the warp in its block.
    pub warp: u32,
    /// The number of barriers that the block had passed.
    pub barriers: u32,
    /// The operation.
    pub operation: Operation,
    /// The place in the source.
    pub place: Place,
    /// Bytes of each lane. 0 if it is no access of lanes.
    pub width: u32,
    /// Which of [`Trace::memories`](super::Trace::memories) is accessed.
    pub memory: Option<usize>,
    /// The lanes that take part. Each has its byte address, from the start of the buffer, or of the
    /// block's shared memory. If it is no access of lanes, each has the number of instructions
    /// instead.
    pub lanes: Vec<(u32, u64)>,
    /// Sectors of global memory, or wavefronts of shared memory. For a TMA copy its bytes inside
    /// the matrix.
    pub units: u64,
    /// The fewest units for as many bytes.
    pub ideal: u64,
    /// For a TMA copy of a box: its first element, its columns and its rows, as far as they are
    /// inside the matrix.
    pub area: Option<[usize; 3]>,
    /// For products of a warpgroup: the start and the bytes of each operand in the block's shared
    /// memory. For a TMA copy: those of the box.
    pub operands: Vec<(usize, usize)>,
}

/// An event of the hardware units that work on their own: asynchronous copies, and products of
/// warpgroups on tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AsyncEvent {
    /// The number of barriers that the block had passed.
    pub barriers: u32,
    /// What happens.
    pub what: Asynchronous,
}

/// What happens. Places are bytes from the start of the block's shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asynchronous {
    /// A TMA copy to shared memory begins.
    BoxBegins {
        /// The destination.
        to: usize,
        /// Bytes that are written.
        bytes: usize,
        /// The mbarrier at which it completes its bytes.
        mbarrier: usize,
    },
    /// That copy completes. The order in which copies complete is that of the launch: if nothing
    /// else can go on.
    BoxEnds {
        /// The destination.
        to: usize,
        /// The mbarrier.
        mbarrier: usize,
    },
    /// Thread 0 commits a group of copies by `cp.async`. Empty groups are left out.
    GroupBegins {
        /// The number of the group, from 0.
        group: u32,
        /// The lowest destination.
        to: usize,
        /// Bytes of thread 0.
        bytes: usize,
    },
    /// Thread 0 has waited for all groups below that number.
    GroupsEnd {
        /// The number.
        below: u32,
    },
    /// A thread begins a TMA copy to global memory.
    StoreBegins {
        /// The number of the thread in its block.
        thread: u32,
        /// The number of the copy among the thread's, from 0.
        copy: usize,
        /// The source.
        from: usize,
        /// Bytes of the box in shared memory.
        bytes: usize,
    },
    /// A thread has waited until its copies below that number have read shared memory.
    StoresRead {
        /// The number of the thread in its block.
        thread: u32,
        /// The number.
        below: usize,
    },
    /// All threads of a warpgroup have begun a product.
    ProductBegins {
        /// The number of the warpgroup in its block.
        warpgroup: u32,
        /// The number of the product, from 0.
        product: u64,
        /// Its instructions, for each warp.
        instructions: usize,
        /// The start and the bytes of A, if it is in shared memory.
        a: Option<(usize, usize)>,
        /// The start and the bytes of B.
        b: (usize, usize),
    },
    /// A thread of a warpgroup has waited for all products below that number.
    ProductsEnd {
        /// The number of the warpgroup in its block.
        warpgroup: u32,
        /// The number.
        below: u64,
    },
}
