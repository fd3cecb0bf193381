//! What one block of a product does to memory, request by request, as data for pictures.
//!
//! The kernel runs on the CPU with every access checked. A request is what the hardware serves
//! together: the accesses of a warp's lanes. Its sectors and wavefronts are counted as for a
//! [`profile`](crate::profile). A pipeline's stages are drawn from the asynchronous copies and
//! products of the same run.
//!
//! ```
//! use host::{Shape, picture, product};
//!
//! let kernel = product::find("tiled16")?;
//! let picture = picture::of_block(kernel, Shape::new(16, 16, 32)?, [0, 0], 1)?;
//! let load = &picture.requests[0];
//! assert_eq!((load.operation, load.units, load.ideal), ("global-load", 4, 4));
//! // Two rows of A: lanes 0 to 15 and 16 to 31, four bytes apart.
//! assert_eq!(load.lanes, [[0, 16, 0, 4], [16, 16, 128, 4]]);
//! # Ok::<(), host::Error>(())
//! ```

mod moments;
#[cfg(feature = "cli")]
pub mod page;
mod parts;
mod requests;
mod stages;

use gpu::registry::{self, Entry};
use serde::Serialize;
use simt::{
    LaunchConfig,
    check::{Finding, Trace, TracedMemory},
};

use self::moments::Moments;
pub use self::{
    parts::{Line, Memory, Place},
    requests::{Drawn, Total},
    stages::{Span, Stages, State, Tick},
};
use crate::phases::{self, Traced};
use gpu_gemm::{Result, Shape};

/// The version of the format. It changes if a field goes or gets another meaning.
pub const SCHEMA: u32 = 2;

/// A block of a product: what its warps did to memory.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Picture {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kernel's name.
    pub kernel: String,
    /// What it is, in a few words. Empty if nobody has said it.
    pub summary: &'static str,
    /// Its source file, if it is a kernel of the registry.
    pub file: Option<&'static str>,
    /// Its place in a ladder of the course, if it is a rung.
    pub rung: Option<Place>,
    /// Rows of A and C, if it is a product.
    pub m: Option<usize>,
    /// Columns of B and C.
    pub n: Option<usize>,
    /// Columns of A and rows of B.
    pub k: Option<usize>,
    /// The type of A, B and C.
    pub dtype: Option<&'static str>,
    /// The seed of the operands.
    pub seed: Option<u64>,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// The block: its column and its row in the grid.
    pub at: [u32; 2],
    /// Barriers that the block passed.
    pub barriers: u32,
    /// Phases. Where asynchronous copies fill stages, a phase is what a warp does from one wait for
    /// a stage to the next; a warp that only fills stages has a phase for each. Elsewhere a phase
    /// begins where shared memory is written for the first time, or for the first time after a
    /// barrier.
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

/// Runs a product on the CPU with every access checked, and gives what the block at that column and
/// row of the grid does. `seed` is that of the operands.
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
    let product = entry.product.as_ref();
    Ok(Picture {
        summary: entry.summary,
        file: Some(entry.declaration().file),
        rung: place(entry),
        m: Some(shape.m()),
        n: Some(shape.n()),
        k: Some(shape.k()),
        dtype: product.map(|product| product.variant.operands.name()),
        seed: Some(seed),
        clean: findings.is_empty(),
        findings,
        ..of_trace_by(entry.name(), &config, &trace, pitches)
    })
}

/// The picture of a traced block of any kernel: what [`simt::check::launch`] gives with
/// [`Options::trace`](simt::check::Options::trace). The source is read from the files that the
/// compiler was given, as far as they are there: in a test of a package, those of the package.
///
/// ```no_run
/// # let (report, config): (simt::check::Report, simt::LaunchConfig) = todo!();
/// use host::picture;
///
/// let trace = report.trace.as_ref().expect("a trace was asked for");
/// let picture = picture::of_trace("transpose", &config, trace);
/// let page = picture::page::html("transpose", &[picture::page::block(&picture)]);
/// std::fs::write("transpose.html", page)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn of_trace(kernel: &str, config: &LaunchConfig, trace: &Trace) -> Picture {
    of_trace_by(kernel, config, trace, [0; 3])
}

/// The same. `pitches`: elements from one row of A, B and C to the next; 0 if there are no rows.
fn of_trace_by(kernel: &str, config: &LaunchConfig, trace: &Trace, pitches: [usize; 3]) -> Picture {
    let stages = Stages::of(trace);
    let moments = Moments::of(trace, stages.as_ref());
    let mut lines = Vec::new();
    let requests = trace.requests.iter().enumerate();
    let requests = requests
        .map(|(at, request)| Drawn::new(request, (&moments, at), &mut lines))
        .collect::<Vec<_>>();
    Picture {
        schema: SCHEMA,
        kernel: kernel.to_owned(),
        summary: "",
        file: None,
        rung: None,
        m: None,
        n: None,
        k: None,
        dtype: None,
        seed: None,
        grid: config.grid,
        block: config.block,
        at: [trace.block[0], trace.block[1]],
        barriers: trace.barriers,
        phases: moments.phases,
        left_out: trace.requests_left_out,
        clean: true,
        memories: trace.memories.iter().map(|memory| named(memory, pitches)).collect(),
        lines,
        stages: stages.map(|(stages, _)| stages),
        totals: requests::totals(&requests),
        requests,
        findings: Vec::new(),
    }
}

fn named(memory: &TracedMemory, [a, b, c]: [usize; 3]) -> Memory {
    let (name, columns) = match (&*memory.name, &memory.declared) {
        ("buffer a", _) if a > 0 => ("A".to_owned(), Some(a)),
        ("buffer b", _) if b > 0 => ("B".to_owned(), Some(b)),
        ("buffer c", _) if c > 0 => ("C".to_owned(), Some(c)),
        (_, Some(place)) => (phases::array_name(place), memory.columns),
        (name, None) => (name.strip_prefix("buffer ").unwrap_or(name).to_owned(), None),
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
