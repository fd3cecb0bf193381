//! What one block of a product does to memory, request by request, as data for pictures.
//!
//! The kernel runs on the CPU with every access checked. A request is what the hardware serves together: the accesses
//! of a warp's lanes. Its sectors and wavefronts are counted as for a [`profile`](crate::profile). A pipeline's stages
//! are drawn from the asynchronous copies and products of the same run.
//!
//! ```
//! use host::{Shape, picture, product};
//!
//! let kernel = product::find("tiled16")?;
//! let picture = picture::of_block(kernel, Shape::new(16, 16, 16)?, [0, 0], 1)?;
//! let load = &picture.requests[0];
//! assert_eq!((load.operation, load.units, load.ideal), ("global-load", 4, 4));
//! // Two rows of A: lanes 0 to 15 and 16 to 31, four bytes apart.
//! assert_eq!(load.lanes, [[0, 16, 0, 4], [16, 16, 64, 4]]);
//! # Ok::<(), host::Error>(())
//! ```

mod requests;
mod stages;

use std::collections::BTreeSet;

use gpu::registry::{self, Entry};
use serde::Serialize;
use simt::check::{Finding, Operation, Trace, TracedMemory};

pub use self::{
    requests::{Drawn, Total},
    stages::{Span, Stages, State, Tick},
};
use crate::phases::{self, Traced};
use gpu_gemm::{Result, Shape};

/// The version of the format. It changes if a field goes or gets another meaning.
pub const SCHEMA: u32 = 1;

/// A block of a product: what its warps did to memory.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Picture {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kernel's name.
    pub kernel: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Its source file.
    pub file: &'static str,
    /// Its place in a ladder of the course, if it is a rung.
    pub rung: Option<Place>,
    /// The sizes.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// The type of A, B and C.
    pub dtype: &'static str,
    /// The seed of the operands.
    pub seed: u64,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// The block: its column and its row in the grid.
    pub at: [u32; 2],
    /// Barriers that the block passed.
    pub barriers: u32,
    /// Phases: a phase begins where shared memory is written for the first time, or for the first time after a barrier.
    pub phases: usize,
    /// Requests that are left out, because there were too many.
    pub left_out: u64,
    /// Whether the check of the run found nothing.
    pub clean: bool,
    /// Buffers and shared arrays.
    pub memories: Vec<Memory>,
    /// Lines of the source that requests refer to.
    pub lines: Vec<Line>,
    /// The requests of all warps. Only the order within a warp is meaningful.
    pub requests: Vec<Drawn>,
    /// The stages of a pipeline, if the kernel fills any by asynchronous copies.
    pub stages: Option<Stages>,
    /// The sums of the requests, for each operation.
    pub totals: Vec<Total>,
    /// The errors that the check found.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// A rung's place in its ladder.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// Its number, from 1.
    pub number: usize,
    /// The number of rungs.
    pub of: usize,
    /// Its idea.
    pub idea: &'static str,
    /// The name and the source file of the rung before.
    pub before: Option<[&'static str; 2]>,
}

/// A buffer or a shared array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// `A`, `B`, `C`, or the array's name.
    pub name: String,
    /// `global` or `shared`.
    pub space: &'static str,
    /// Bytes of an element.
    pub element: usize,
    /// Elements of a row, if it has rows.
    pub columns: Option<usize>,
    /// Bytes before it in the block's shared memory.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
}

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// Runs a product on the CPU with every access checked, and gives what the block at that column and row of the grid
/// does. `seed` is that of the operands.
///
/// # Errors
/// As [`phases::of_block`].
pub fn of_block(
    entry: &'static Entry,
    shape: Shape,
    block: [u32; 2],
    seed: u64,
) -> Result<Picture> {
    let Traced { findings, trace, pitches, config } = phases::traced(entry, shape, block, seed)?;
    let memories = trace.memories.iter().map(|memory| named(memory, pitches)).collect::<Vec<_>>();
    let begins = phase_begins(&trace);
    let mut lines = Vec::new();
    let requests = trace.requests.iter();
    let requests =
        requests.map(|request| Drawn::new(request, &begins, &mut lines)).collect::<Vec<_>>();
    Ok(Picture {
        schema: SCHEMA,
        kernel: entry.name(),
        summary: entry.summary,
        file: entry.declaration().file,
        rung: place(entry),
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        dtype: entry.product.as_ref().map_or("f32", |product| product.variant.operands.name()),
        seed,
        grid: config.grid,
        block: config.block,
        at: block,
        barriers: trace.barriers,
        phases: begins.len().max(1),
        left_out: trace.requests_left_out,
        clean: findings.is_empty(),
        stages: Stages::of(&trace),
        totals: requests::totals(&requests),
        memories,
        lines,
        requests,
        findings,
    })
}

/// The numbers of barriers before the phases.
fn phase_begins(trace: &Trace) -> BTreeSet<u32> {
    let writes =
        trace.requests.iter().filter(|request| request.operation == Operation::SharedStore);
    writes.map(|request| request.barriers).collect()
}

fn named(memory: &TracedMemory, [a, b, c]: [usize; 3]) -> Memory {
    let (name, columns) = match (&*memory.name, &memory.declared) {
        ("buffer a", _) => ("A".to_owned(), Some(a)),
        ("buffer b", _) => ("B".to_owned(), Some(b)),
        ("buffer c", _) => ("C".to_owned(), Some(c)),
        (_, Some(place)) => (phases::array_name(place), memory.columns),
        (name, None) => (name.to_owned(), None),
    };
    Memory {
        name,
        space: if memory.is_shared() { "shared" } else { "global" },
        element: memory.element,
        columns: columns.filter(|columns| *columns > 0),
        offset: memory.offset,
        bytes: memory.bytes,
    }
}

/// The kernel's place in its ladder.
fn place(entry: &Entry) -> Option<Place> {
    let operands = entry.product.as_ref()?.variant.operands;
    let rungs = registry::ladder_of(operands).collect::<Vec<_>>();
    let number = rungs.iter().position(|(rung, _)| rung.name() == entry.name())?;
    let before = number.checked_sub(1).map(|before| rungs[before].0);
    Some(Place {
        number: number + 1,
        of: rungs.len(),
        idea: rungs[number].1.idea,
        before: before.map(|entry| [entry.name(), entry.declaration().file]),
    })
}

#[cfg(test)]
mod tests;
