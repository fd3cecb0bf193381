//! What each thread of one block does, phase by phase. The kernel is run and traced.
//!
//! A phase starts when a thread of the block writes shared memory for the first time, or for the
//! first time after a barrier. It ends where the next phase starts. A kernel without shared memory
//! has one phase.
//!
//! ```
//! use host::{Shape, gpu::registry::TOY, phases};
//!
//! let seen = phases::of_block(&TOY, Shape::new(4, 4, 4)?, [0, 0], 1)?;
//! assert_eq!(seen.phases.len(), 2);
//! let thread = &seen.phases[1].threads[0];
//! assert_eq!(thread.loads[0].to_string(), "A[0,2] -> tile_a[0,0]");
//! assert_eq!(thread.adds[1].to_string(), "tile_a[0,1] tile_b[1,0]");
//! # Ok::<(), host::Error>(())
//! ```

use std::{borrow::Cow, collections::BTreeSet, fmt};

use gpu::registry::{Entry, source};
use serde::Serialize;
use simt::{
    LaunchConfig,
    check::{Asynchronous, Finding, Operation, Place, Step, Trace},
};

use crate::check::{self, Options};
use gpu_gemm::{Device, Error, Result, Shape, product::launches};

/// A block of a product, phase by phase.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Phases {
    /// The kernel's errors, as [`check::multiply`] finds them.
    pub findings: Vec<Finding>,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Whether asynchronous copies fill shared memory. Then a phase here is an interval between
    /// barriers, and may fill several stages of a pipeline; a phase of a
    /// [`picture`](crate::picture) is one stage.
    pub asynchronous: bool,
    /// Barriers that the block passed.
    pub barriers: u32,
    /// Steps of threads that are left out because there were too many.
    pub left_out: u64,
}

/// A phase, and what every thread of the block did in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Phase {
    /// The threads that did anything, row by row.
    pub threads: Vec<Thread>,
}

/// What a thread did in a phase, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thread {
    /// Its row and column in the block: `threadIdx.y` and `threadIdx.x`.
    pub thread: [u32; 2],
    /// Its reads of global memory that it kept, its writes of shared memory, and its TMA copies to
    /// shared memory.
    pub loads: Vec<Load>,
    /// The products that it added after reading both factors.
    pub adds: Vec<Product>,
    /// Other multiply-adds, with factors in registers.
    pub other_adds: usize,
    /// Instructions of tensor cores.
    #[serde(skip_serializing_if = "is_zero")]
    pub tensor_ops: usize,
    /// Its writes of global memory, and its TMA copies there.
    pub stores: Vec<Elements>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

/// Elements of a matrix or of a shared array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Elements {
    /// `A`, `B`, `C`, or the array's name.
    pub memory: String,
    /// The row of the first. `None` in an array without rows.
    pub row: Option<usize>,
    /// The column of the first.
    pub col: usize,
    /// The number of consecutive elements. A vector has more than one.
    pub count: usize,
    /// The number of rows of a box that TMA copies. Otherwise 1.
    #[serde(skip_serializing_if = "is_one")]
    pub rows: usize,
}

/// A load, or half of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Load {
    /// The origin of the value.
    pub from: Origin,
    /// The elements of shared memory that were written. `None` if the value stayed in a register.
    pub to: Option<Elements>,
}

/// The origin of a loaded value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Elements of a matrix, read in the same statement.
    Elements(Elements),
    /// A box of a matrix, by TMA.
    Box(Elements),
    /// Outside the matrix: zero.
    Zero,
    /// A register that was written before.
    Register,
}

/// The factors of a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Product(pub Elements, pub Elements);

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Elements { memory, row, col, count, rows } = self;
        write!(f, "{memory}[")?;
        match (row, rows) {
            (Some(row), 1) => write!(f, "{row},")?,
            (Some(row), _) => write!(f, "{row}..{},", row + rows)?,
            (None, _) => {}
        }
        match count {
            1 => write!(f, "{col}]"),
            _ => write!(f, "{col}..{}]", col + count),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.from {
            Origin::Elements(elements) => write!(f, "{elements}")?,
            Origin::Box(elements) => write!(f, "TMA {elements}")?,
            Origin::Zero => f.write_str("0")?,
            Origin::Register => f.write_str("register")?,
        }
        match &self.to {
            Some(to) => write!(f, " -> {to}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Product(a, b) = self;
        write!(f, "{a} {b}")
    }
}

/// Runs a product on the CPU with every access checked, and reports what the block at that column
/// and row of the grid does. `seed` is that of the operands.
///
/// # Errors
/// [`Error::Argument`] for a block that the grid does not have; as [`check::multiply`].
pub fn of_block(entry: &'static Entry, shape: Shape, block: [u32; 2], seed: u64) -> Result<Phases> {
    let Traced { findings, trace, pitches, .. } = traced(entry, shape, block, seed)?;
    Ok(Phases {
        findings,
        phases: phases(&trace, pitches),
        asynchronous: trace.events.iter().any(|event| fills(event.what)),
        barriers: trace.barriers,
        left_out: trace.left_out,
    })
}

/// Whether it is the begin of an asynchronous copy to shared memory.
fn fills(what: Asynchronous) -> bool {
    matches!(what, Asynchronous::BoxBegins { .. } | Asynchronous::GroupBegins { .. })
}

/// A product with the trace of one of its blocks.
pub(crate) struct Traced {
    pub(crate) findings: Vec<Finding>,
    pub(crate) trace: Trace,
    /// Elements from one row of A, B and C to the next.
    pub(crate) pitches: [usize; 3],
    pub(crate) config: LaunchConfig,
}

/// Runs a product on the CPU with every access checked and the block at that column and row traced.
///
/// # Errors
/// As [`of_block`].
pub(crate) fn traced(
    entry: &'static Entry,
    shape: Shape,
    block: [u32; 2],
    seed: u64,
) -> Result<Traced> {
    let launches = launches(entry, shape, &simt::cpu::LIMITS)?;
    let config = launches.first().map_or(LaunchConfig::new([0; 3], [0; 3]), |launch| launch.config);
    let pitches = launches.first().map_or([0; 3], |launch| launch.pitches);
    let [columns, rows, _] = config.grid;
    if block[0] >= columns || block[1] >= rows {
        let limit = format!("the grid has {columns} x {rows} blocks, counted from 0,0");
        return Err(Error::argument("block", format!("{},{}", block[0], block[1]), limit));
    }
    Device::cpu().require_memory(crate::profile::bytes(entry, shape))?;
    let options = Options { trace: Some(block), ..Options::default() };
    let watched = check::drawn(entry, shape, seed, options)?;
    let trace = watched.trace.unwrap_or_default();
    Ok(Traced { findings: watched.findings, trace, pitches, config })
}

/// The steps of a trace, sorted by phase and thread.
fn phases(trace: &Trace, pitches: [usize; 3]) -> Vec<Phase> {
    let writes = trace.steps.iter().filter(|step| step.operation.writes_shared());
    let begins = writes.map(|step| step.barriers).collect::<BTreeSet<_>>();
    let phase_of = |barriers: u32| begins.range(..=barriers).count().saturating_sub(1);
    let threads = trace.steps.iter().map(row_and_column).collect::<BTreeSet<_>>();
    let mut phases = vec![Phase::default(); begins.len().max(1)];
    for thread in threads {
        let own = trace.steps.iter().filter(|step| row_and_column(step) == thread);
        let mut reader = Reader { pitches, phase: 0, pending: Vec::new(), reads: Vec::new() };
        let row = || Thread { thread: [thread[1], thread[2]], ..Thread::default() };
        let mut rows = vec![row(); phases.len()];
        for step in own {
            let phase = phase_of(step.barriers);
            reader.enter(phase, &mut rows);
            reader.step(step, &mut rows[phase]);
        }
        reader.enter(usize::MAX, &mut rows);
        for (phase, row) in phases.iter_mut().zip(rows) {
            phase.threads.push(row);
        }
    }
    phases
}

/// The order of the block's rows.
fn row_and_column(step: &Step) -> [u32; 3] {
    let [x, y, z] = step.thread;
    [z, y, x]
}

/// Reads the steps of one thread.
struct Reader<'t> {
    /// Elements from one row of A, B and C to the next.
    pitches: [usize; 3],
    phase: usize,
    /// Reads of global memory that have not yet been matched to shared memory or to a product.
    pending: Vec<&'t Step>,
    /// Reads since the last multiply-add.
    reads: Vec<&'t Step>,
}

impl<'t> Reader<'t> {
    /// Starts a phase. Pending reads of the phase before stay in registers.
    fn enter(&mut self, phase: usize, rows: &mut [Thread]) {
        if phase != self.phase {
            for step in std::mem::take(&mut self.pending) {
                let from = Origin::Elements(self.elements(step));
                rows[self.phase].loads.push(Load { from, to: None });
            }
            self.reads.clear();
            self.phase = phase;
        }
    }

    fn step(&mut self, step: &'t Step, row: &mut Thread) {
        match step.operation {
            Operation::GlobalLoad => {
                self.pending.push(step);
                self.reads.push(step);
            }
            Operation::SharedLoad => self.reads.push(step),
            Operation::SharedStore | Operation::SharedCopy => {
                let to = Some(self.elements(step));
                let last = self.pending.last().filter(|read| same_statement(read, step));
                let from = match last {
                    Some(read) => {
                        let from = Origin::Elements(self.elements(read));
                        self.pending.pop();
                        from
                    }
                    None if statement(&step.place).contains("0.0") => Origin::Zero,
                    None => Origin::Register,
                };
                self.reads.clear();
                row.loads.push(Load { from, to });
            }
            Operation::Fma => match std::mem::take(&mut self.reads)[..] {
                [a, b] => {
                    row.adds.push(Product(self.elements(a), self.elements(b)));
                    self.pending.retain(|step| !std::ptr::eq(*step, a) && !std::ptr::eq(*step, b));
                }
                _ => row.other_adds += 1,
            },
            Operation::GlobalStore | Operation::TmaStore => row.stores.push(self.elements(step)),
            // A box outside the matrix has no elements: it is filled with zeros.
            Operation::TmaLoad if step.rows * step.elements == 0 => {
                row.loads.push(Load { from: Origin::Zero, to: None });
            }
            Operation::TmaLoad => {
                let from = Origin::Box(self.elements(step));
                row.loads.push(Load { from, to: None });
            }
            Operation::Mma | Operation::Wgmma => row.tensor_ops += 1,
            _ => {}
        }
    }

    /// The elements that a step accesses, by name, row and column.
    fn elements(&self, step: &Step) -> Elements {
        let memory = step.memory.as_deref().unwrap_or_default();
        let (memory, columns) = match (memory, &step.declared) {
            ("buffer a", _) => ("A".to_owned(), Some(self.pitches[0])),
            ("buffer b", _) => ("B".to_owned(), Some(self.pitches[1])),
            ("buffer c", _) => ("C".to_owned(), Some(self.pitches[2])),
            (_, Some(place)) => (array_name(place), step.columns),
            (name, None) => (name.to_owned(), None),
        };
        let (row, col) = match columns {
            Some(columns) if columns > 0 => (Some(step.element / columns), step.element % columns),
            _ => (None, step.element),
        };
        Elements { memory, row, col, count: step.elements, rows: step.rows }
    }
}

/// The name of a shared array: that of its variable.
pub(crate) fn array_name(place: &Place) -> String {
    let line = line_of(&place.file, place.line).unwrap_or_default();
    name_in(&line, place.column).unwrap_or_else(|| format!("shared:{}", place.line))
}

/// A line of a kernel's source: of the registry, or of a file that is there.
fn line_of(file: &str, line: u32) -> Option<Cow<'static, str>> {
    if let Some(known) = source(file, line) {
        return Some(known.into());
    }
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.lines().nth((line as usize).checked_sub(1)?)?.to_owned().into())
}

/// The variable that a `let` gives the value which begins at that column, from 1.
fn name_in(line: &str, column: u32) -> Option<String> {
    let (pattern, value) = line.trim_start().strip_prefix("let ")?.split_once(" = ")?;
    // Of a tuple the part that holds the column.
    let before = line.len() - value.len();
    let number = value.get(..(column as usize).saturating_sub(before))?.matches(", ").count();
    let names = pattern.trim_matches(['(', ')']).split(", ").collect::<Vec<_>>();
    let name = if names.len() > 1 { *names.get(number)? } else { names[0] };
    Some(name.strip_prefix("mut ").unwrap_or(name).to_owned())
}

/// Whether one step reads the value that the other writes: both are in one statement.
fn same_statement(read: &Step, write: &Step) -> bool {
    let (read, write) = (&read.place, &write.place);
    read.file == write.file
        && write.line <= read.line
        && (read.line - write.line) < statement(write).lines().count() as u32
}

/// The lines from a place to the end of its statement.
pub(crate) fn statement(place: &Place) -> String {
    const LONGEST: u32 = 8;
    let lines = (place.line..place.line + LONGEST).map_while(|line| line_of(&place.file, line));
    let mut text = String::new();
    for line in lines {
        text += &line;
        text.push('\n');
        if line.contains(';') {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests;
