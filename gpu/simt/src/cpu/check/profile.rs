//! The profile of a checked launch: counts of memory requests, multiply-adds and barriers for each
//! source line.

use std::{borrow::Cow, fmt, ptr};

use super::{place::Place, source};
use crate::cpu::access::Access;

/// What the sampled blocks of a launch did at each source line.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// The number of blocks of the grid.
    pub blocks: u64,
    /// The number of sampled blocks. The counts below are of these.
    pub sampled: u64,
    /// One entry for each source line, operation and width, in the order of the source.
    pub lines: Vec<Line>,
    /// Intervals between waits, summed over the warps.
    pub warp_intervals: u64,
    /// Divergent intervals: those in which the lanes made different accesses, because they took
    /// different branches.
    pub divergent_intervals: u64,
}

/// Counts of one source line, operation and width.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The source line.
    pub place: Place,
    /// The operation.
    pub operation: Operation,
    /// Bytes that a lane moves in one access; 0 for what is no access of a lane.
    pub width: u32,
    /// Requests of warps. For barriers and instructions of tensor cores the number of warps, for
    /// multiply-adds the number of threads, for TMA the number of copies, summed over the
    /// executions.
    pub requests: u64,
    /// Participating lanes, summed over the requests.
    pub lanes: u64,
    /// 32-byte sectors of global memory, wavefronts of shared memory, or bytes that TMA copies.
    pub units: u64,
    /// The fewest units for the same bytes: densely packed and aligned, without bank conflicts.
    pub ideal: u64,
    /// The requests if successive reads of neighbouring elements of shared memory are merged into
    /// 128-bit reads. The compiler does that where it unrolls the loop and knows the alignment.
    pub merged_requests: u64,
    /// The units of the merged requests.
    pub merged_units: u64,
    /// Bytes that TMA moves between L2 and the SMs, as Nsight Compute counts them: each row of a
    /// box in sectors of 32 bytes; of a load also the zeros outside the matrix, and once for each
    /// block that receives it. Buffers are taken to start a sector. 0 for other operations.
    pub moved: u64,
}

/// The operations that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A read of global memory.
    GlobalLoad,
    /// A write of global memory.
    GlobalStore,
    /// An atomic addition to global memory.
    GlobalAtomic,
    /// A read of shared memory.
    SharedLoad,
    /// A write of shared memory.
    SharedStore,
    /// An atomic addition to shared memory.
    SharedAtomic,
    /// A write of shared memory by an asynchronous copy (`cp.async`). Its read of global memory is
    /// a [`GlobalLoad`](Self::GlobalLoad).
    SharedCopy,
    /// A fused multiply-add of a thread.
    Fma,
    /// A barrier, counted for each warp.
    Barrier,
    /// A TMA copy from global to shared memory. A copy to several blocks is one.
    TmaLoad,
    /// A TMA copy from shared to global memory.
    TmaStore,
    /// An instruction `mma.sync` of a warp.
    Mma,
    /// An instruction `wgmma.mma_async`, counted for each of the four warps.
    Wgmma,
}

impl Operation {
    /// A short name for programs, such as `global-load`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::GlobalLoad => "global-load",
            Operation::GlobalStore => "global-store",
            Operation::GlobalAtomic => "global-atomic",
            Operation::SharedLoad => "shared-load",
            Operation::SharedStore => "shared-store",
            Operation::SharedAtomic => "shared-atomic",
            Operation::SharedCopy => "shared-copy",
            Operation::Fma => "fma",
            Operation::Barrier => "barrier",
            Operation::TmaLoad => "tma-load",
            Operation::TmaStore => "tma-store",
            Operation::Mma => "mma",
            Operation::Wgmma => "wgmma",
        }
    }

    /// What is counted of it: the unit of a request's cost, or of what is no access of a lane.
    pub fn unit(self) -> &'static str {
        match self {
            Operation::Fma => "threads",
            Operation::Barrier | Operation::Mma | Operation::Wgmma => "warps",
            Operation::TmaLoad | Operation::TmaStore => "boxes",
            operation if operation.is_global() => "sectors",
            _ => "wavefronts",
        }
    }

    pub(super) fn global(access: Access) -> Self {
        match access {
            Access::Read => Operation::GlobalLoad,
            Access::Write => Operation::GlobalStore,
            Access::Atomic | Access::AtomicStore => Operation::GlobalAtomic,
        }
    }

    pub(super) fn shared(access: Access) -> Self {
        match access {
            Access::Read => Operation::SharedLoad,
            Access::Write => Operation::SharedStore,
            Access::Atomic | Access::AtomicStore => Operation::SharedAtomic,
        }
    }

    /// Whether it writes shared memory: by a store, or by an asynchronous copy.
    pub fn writes_shared(self) -> bool {
        matches!(self, Operation::SharedStore | Operation::SharedCopy)
    }

    /// Whether it reads or writes shared memory, not atomically.
    pub fn is_shared(self) -> bool {
        self.writes_shared() || self == Operation::SharedLoad
    }

    /// Whether it is an access to global memory.
    pub fn is_global(self) -> bool {
        matches!(self, Operation::GlobalLoad | Operation::GlobalStore | Operation::GlobalAtomic)
    }
}

impl Line {
    /// Nothing is counted yet.
    pub(super) fn new(place: Place, operation: Operation, width: u32) -> Self {
        Line {
            place,
            operation,
            width,
            requests: 0,
            lanes: 0,
            units: 0,
            ideal: 0,
            merged_requests: 0,
            merged_units: 0,
            moved: 0,
        }
    }

    /// The ratio of the units to the ideal, if it is at least a quarter above.
    pub fn over_ideal(&self) -> Option<f64> {
        let times = self.units as f64 / self.ideal as f64;
        (self.ideal > 0 && times >= 1.25).then_some(times)
    }
}

impl Profile {
    /// The sum of `count` over the lines with that operation, scaled from the sampled blocks to all
    /// blocks.
    pub fn total(&self, operation: Operation, count: impl Fn(&Line) -> u64) -> f64 {
        let lines = self.lines.iter().filter(|line| line.operation == operation);
        let sum: u64 = lines.map(count).sum();
        sum as f64 * self.scale()
    }

    /// Adds another profile: of another worker, or of another launch.
    pub fn add(&mut self, other: Profile) {
        self.blocks += other.blocks;
        self.sampled += other.sampled;
        self.warp_intervals += other.warp_intervals;
        self.divergent_intervals += other.divergent_intervals;
        other.lines.into_iter().for_each(|line| self.add_line(line));
    }

    /// Adds the counts of a line. The lines stay sorted.
    pub(super) fn add_line(&mut self, line: Line) {
        let site = |line: &Line| (line.place.clone(), line.operation, line.width);
        match self.lines.binary_search_by_key(&site(&line), site) {
            Err(place) => self.lines.insert(place, line),
            Ok(known) => {
                let known = &mut self.lines[known];
                known.requests += line.requests;
                known.lanes += line.lanes;
                known.units += line.units;
                known.ideal += line.ideal;
                known.merged_requests += line.merged_requests;
                known.merged_units += line.merged_units;
                known.moved += line.moved;
            }
        }
    }

    /// The line with the largest loss: the most excess sectors or wavefronts among the lines [far
    /// above their ideal](Line::over_ideal).
    pub fn worst(&self) -> Option<&Line> {
        let far = self.lines.iter().filter(|line| line.over_ideal().is_some());
        far.max_by_key(|line| line.units - line.ideal)
    }

    /// The number of blocks of the grid for each sampled one.
    pub fn scale(&self) -> f64 {
        self.blocks as f64 / self.sampled.max(1) as f64
    }
}

impl Profile {
    /// The counts of each source line, below its place and its text, which `source` gives: a table.
    pub fn table<'text>(&self, source: impl Fn(&Place) -> Option<&'text str>) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write_table(f, &|place| source(place).map(Cow::Borrowed)))
    }

    /// The same text as `Display`, with the source lines that `source` gives. (`Display` reads each
    /// line from its file, if the file exists and is not newer than the program.)
    pub fn with_source<'text>(
        &self,
        source: impl Fn(&Place) -> Option<&'text str>,
    ) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(f, &|place| source(place).map(Cow::Borrowed)))
    }

    fn write(&self, f: &mut fmt::Formatter, source: &SourceOf) -> fmt::Result {
        self.write_table(f, source)?;
        let share = 100.0 * self.divergent_intervals as f64 / self.warp_intervals.max(1) as f64;
        write!(f, "{share:.1} % of the warps' intervals between waits were divergent; ")?;
        write!(f, "{} of {} blocks counted", self.sampled, self.blocks)
    }

    fn write_table(&self, f: &mut fmt::Formatter, source: &SourceOf) -> fmt::Result {
        writeln!(
            f,
            "column  {:13} {:>5} {:>14} {:>6}  {:18} {:>6}",
            "operation", "bytes", "requests", "lanes", "   units a request", "ideal"
        )?;
        let worst = self.worst();
        let all = |count: u64| (count as f64 * self.scale()).round() as u64;
        let mut before = None;
        for line in &self.lines {
            let place = &line.place;
            if before.replace((&place.file, place.line)) != Some((&place.file, place.line)) {
                let text = source(place).unwrap_or_default();
                writeln!(
                    f,
                    "{}",
                    format!("{}:{}  {}", place.file, place.line, text.trim()).trim_end()
                )?;
            }
            let (requests, unit) = (all(line.requests), line.operation.unit());
            write!(f, "{:>6}  {:13}", place.column, line.operation.name())?;
            if line.width == 0 {
                write!(f, " {:>5} {requests:>14} {unit}", "")?;
                match line.units {
                    0 => writeln!(f)?,
                    bytes => writeln!(f, ", {} bytes", all(bytes))?,
                }
                continue;
            }
            let each = |count: u64| count as f64 / line.requests.max(1) as f64;
            write!(
                f,
                " {:>5} {requests:>14} {:>6.1}  {:>7.2} {unit:10} {:>6.2}",
                line.width,
                each(line.lanes),
                each(line.units),
                each(line.ideal),
            )?;
            match line.over_ideal() {
                None => writeln!(f)?,
                Some(times) if worst.is_some_and(|worst| ptr::eq(worst, line)) => {
                    writeln!(f, "  <-- {times:.2} x ideal, loses most")?;
                }
                Some(times) => writeln!(f, "  <-- {times:.2} x ideal")?,
            }
        }
        Ok(())
    }
}

/// Gives the text of a source line.
type SourceOf<'a> = dyn Fn(&Place) -> Option<Cow<'a, str>> + 'a;

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.write(f, &|place| source::line(place).map(Cow::Owned))
    }
}
