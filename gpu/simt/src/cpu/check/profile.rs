//! What a checked launch counts: a warp's accesses put together into requests, as the hardware does.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    panic::Location,
};

use super::Place;
use crate::cpu::{block::WARP, mode::Access};

/// What the sampled blocks of a launch did, line by line.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// Blocks of the grid.
    pub blocks: u64,
    /// Blocks that were counted. The counts below are of these.
    pub sampled: u64,
    /// One entry for each source line, operation and width, in the order of the source.
    pub lines: Vec<Line>,
    /// Intervals between waits, counted for each warp.
    pub warp_intervals: u64,
    /// Those in which the lanes did not all make the same accesses: where they took different branches.
    pub divergent_intervals: u64,
}

/// What one source line did to one kind of memory in accesses of one width.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The source line.
    pub place: Place,
    /// What it did.
    pub operation: Operation,
    /// Bytes that a lane moves at once.
    pub width: u32,
    /// How often a warp did it: requests, and for barriers and multiply-adds the warps and threads.
    pub requests: u64,
    /// Lanes that took part, summed over the requests.
    pub lanes: u64,
    /// Sectors of 32 bytes of global memory, or wavefronts of shared memory.
    pub units: u64,
    /// The fewest that the same bytes could take: densely packed and aligned, and without bank conflicts.
    pub ideal: u64,
    /// Requests if reads of neighbouring elements of shared memory, one after another in the loop, are made
    /// 128 bits at a time: the compiler does that where it unrolls the loop and knows the alignment.
    pub merged_requests: u64,
    /// Units of these.
    pub merged_units: u64,
}

/// What a line does.
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
    /// A fused multiply-add of a thread.
    Fma,
    /// A barrier, for each warp that comes to it.
    Barrier,
}

impl Operation {
    /// A short name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Operation::GlobalLoad => "global-load",
            Operation::GlobalStore => "global-store",
            Operation::GlobalAtomic => "global-atomic",
            Operation::SharedLoad => "shared-load",
            Operation::SharedStore => "shared-store",
            Operation::SharedAtomic => "shared-atomic",
            Operation::Fma => "fma",
            Operation::Barrier => "barrier",
        }
    }

    pub(super) fn global(access: Access) -> Self {
        match access {
            Access::Read => Operation::GlobalLoad,
            Access::Write => Operation::GlobalStore,
            Access::Atomic => Operation::GlobalAtomic,
        }
    }

    pub(super) fn shared(access: Access) -> Self {
        match access {
            Access::Read => Operation::SharedLoad,
            Access::Write => Operation::SharedStore,
            Access::Atomic => Operation::SharedAtomic,
        }
    }

    /// Is it an access to global memory?
    pub fn is_global(self) -> bool {
        matches!(self, Operation::GlobalLoad | Operation::GlobalStore | Operation::GlobalAtomic)
    }
}

impl Profile {
    /// A sum over the lines that do `operation`, scaled from the sampled blocks to all.
    pub fn total(&self, operation: Operation, count: impl Fn(&Line) -> u64) -> f64 {
        let lines = self.lines.iter().filter(|line| line.operation == operation);
        let sum: u64 = lines.map(count).sum();
        sum as f64 * self.scale()
    }

    /// Adds what others did at the same lines: another worker's blocks, or another launch's.
    pub fn add(&mut self, other: Profile) {
        self.blocks += other.blocks;
        self.sampled += other.sampled;
        self.warp_intervals += other.warp_intervals;
        self.divergent_intervals += other.divergent_intervals;
        other.lines.into_iter().for_each(|line| self.add_line(line));
    }

    /// Adds what was done at one line; the lines stay in order.
    fn add_line(&mut self, line: Line) {
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
            }
        }
    }

    /// Blocks of the grid for each that was counted.
    pub fn scale(&self) -> f64 {
        self.blocks as f64 / self.sampled.max(1) as f64
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "{:32} {:14} {:>5} {:>14} {:>6} {:>18} {:>6}",
            "line", "operation", "bytes", "warp requests", "lanes", "units a request", "ideal"
        )?;
        for line in &self.lines {
            let requests = line.requests as f64 * self.scale();
            let place = line.place.to_string();
            // The end of a path tells more than its beginning.
            let tail = place.char_indices().rev().nth(31).map_or(&place[..], |(i, _)| &place[i..]);
            write!(f, "{tail:32} {:14}", line.operation.name())?;
            if line.width == 0 {
                writeln!(f, " {:>5} {requests:>14.0}", "")?;
                continue;
            }
            let each = |count: u64| count as f64 / line.requests.max(1) as f64;
            let unit = if line.operation.is_global() { "sectors" } else { "wavefronts" };
            writeln!(
                f,
                " {:>5} {requests:>14.0} {:>6.1} {:>7.2} {unit:10} {:>6.2}",
                line.width,
                each(line.lanes),
                each(line.units),
                each(line.ideal),
            )?;
        }
        let share = 100.0 * self.divergent_intervals as f64 / self.warp_intervals.max(1) as f64;
        write!(f, "{share:.1} % of the warps' intervals between waits were divergent; ")?;
        write!(f, "{} of {} blocks counted", self.sampled, self.blocks)
    }
}

/// An access of one thread.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) place: &'static Location<'static>,
    /// In bytes; those of different buffers differ, and each buffer starts at a multiple of 256, as a
    /// GPU's driver gives them.
    pub(super) address: u64,
    pub(super) operation: Operation,
    pub(super) width: u32,
}

impl Event {
    fn site(&self) -> Site {
        (std::ptr::from_ref(self.place) as usize, self.operation, self.width)
    }
}

/// A place in the source (by its address), what it does, and in what width.
type Site = (usize, Operation, u32);

/// What is counted at one site.
struct Count {
    place: &'static Location<'static>,
    requests: u64,
    lanes: u64,
    units: u64,
    ideal: u64,
    merged_requests: u64,
    merged_units: u64,
}

/// Reads of neighbouring elements at one site, so far.
struct Run {
    event: Event,
    /// Of each lane where the first of them began.
    start: [u64; WARP as usize],
    /// Bytes of each lane so far.
    bytes: u64,
    /// Units of the reads by themselves.
    units: u64,
}

/// The widest access, in bytes.
const WIDEST: u64 = 16;

/// The counts of one worker.
#[derive(Default)]
pub(super) struct Profiler {
    /// The accesses of each thread of the block since the last wait.
    logs: Vec<Vec<Event>>,
    counts: HashMap<Site, Count>,
    sampled: u64,
    warp_intervals: u64,
    divergent_intervals: u64,
    /// Multiply-adds at the line that made the last one: an inner loop makes many in a row.
    fmas: Option<(&'static Location<'static>, u64)>,
}

impl Profiler {
    /// A cluster begins, of so many threads and blocks.
    pub(super) fn begin_cluster(&mut self, threads: usize, blocks: usize) {
        self.sampled += blocks as u64;
        // Of threads that make no access, too: the others of their warp have taken another branch.
        self.logs.resize_with(threads, Vec::new);
    }

    pub(super) fn log(&mut self, thread: u32, event: Event) {
        self.logs[thread as usize].push(event);
    }

    /// Counts what is no access.
    pub(super) fn count(
        &mut self,
        place: &'static Location<'static>,
        operation: Operation,
        times: u64,
    ) {
        let site = (std::ptr::from_ref(place) as usize, operation, 0);
        let count = self.counts.entry(site).or_insert_with(|| Count::new(place));
        count.requests += times;
        count.lanes += times;
        count.merged_requests += times;
    }

    /// Counts a fused multiply-add of one thread.
    pub(super) fn fma(&mut self, place: &'static Location<'static>) {
        match &mut self.fmas {
            Some((last, times)) if std::ptr::eq(*last, place) => *times += 1,
            _ => {
                self.count_fmas();
                self.fmas = Some((place, 1));
            }
        }
    }

    fn count_fmas(&mut self) {
        if let Some((place, times)) = self.fmas.take() {
            self.count(place, Operation::Fma, times);
        }
    }

    /// A block's threads wait, or have ended: their accesses become requests.
    pub(super) fn flush(&mut self) {
        self.count_fmas();
        let mut logs = std::mem::take(&mut self.logs);
        for lanes in logs.chunks_mut(WARP as usize) {
            self.flush_warp(lanes);
            lanes.iter_mut().for_each(Vec::clear);
        }
        self.logs = logs;
    }

    /// The same for one warp, whose lanes have come to a warp operation.
    pub(super) fn flush_one(&mut self, warp: u32) {
        let first = (warp * WARP) as usize;
        let last = (first + WARP as usize).min(self.logs.len());
        if first < last {
            let mut lanes: Vec<_> = self.logs[first..last].iter_mut().map(std::mem::take).collect();
            self.flush_warp(&lanes);
            lanes.iter_mut().for_each(Vec::clear);
            for (log, empty) in self.logs[first..last].iter_mut().zip(lanes) {
                *log = empty; // keeps its memory
            }
        }
    }

    fn flush_warp(&mut self, lanes: &[Vec<Event>]) {
        let longest = lanes.iter().map(Vec::len).max().unwrap_or(0);
        if longest == 0 {
            return;
        }
        self.warp_intervals += 1;
        let in_step = lanes.iter().all(|lane| {
            lane.len() == longest && lane.iter().zip(&lanes[0]).all(|(a, b)| a.site() == b.site())
        });
        let mut addresses = [0; WARP as usize];
        if in_step {
            let mut runs = Vec::new();
            for number in 0..longest {
                for (address, lane) in addresses.iter_mut().zip(lanes) {
                    *address = lane[number].address;
                }
                let event = &lanes[0][number];
                // The request sorts the addresses.
                let unsorted = addresses;
                let units = self.request(event, &mut addresses[..lanes.len()]);
                self.merge_reads(&mut runs, event, &unsorted, lanes.len(), units);
            }
            runs.iter().for_each(|run| self.end_run(run));
            return;
        }
        // Branches: a lane's k-th access at a site belongs to the warp's k-th request there.
        self.divergent_intervals += 1;
        let mut requests = BTreeMap::<(Site, u32), (Event, Vec<u64>)>::new();
        for lane in lanes {
            let mut passes = HashMap::<Site, u32>::new();
            for event in lane {
                let pass = passes.entry(event.site()).or_default();
                let request =
                    requests.entry((event.site(), *pass)).or_insert_with(|| (*event, Vec::new()));
                request.1.push(event.address);
                *pass += 1;
            }
        }
        for (event, mut addresses) in requests.into_values() {
            let units = self.request(&event, &mut addresses);
            self.count_merged(&event, 1, units);
        }
    }

    /// Counts a request as the compiler may make it, together with others at its site.
    fn merge_reads(
        &mut self,
        runs: &mut Vec<Run>,
        event: &Event,
        addresses: &[u64; WARP as usize],
        lanes: usize,
        units: u64,
    ) {
        let width = u64::from(event.width);
        if event.operation != Operation::SharedLoad || width >= WIDEST {
            return self.count_merged(event, 1, units);
        }
        let here = runs.iter().position(|run| run.event.site() == event.site());
        if let Some(here) = here {
            let run = &mut runs[here];
            let (starts, bytes) = (&run.start[..lanes], run.bytes);
            if starts.iter().zip(addresses).all(|(start, address)| start + bytes == *address) {
                run.bytes += width;
                run.units += units;
                if run.bytes == WIDEST {
                    let run = runs.swap_remove(here);
                    let mut starts = run.start;
                    let (units, _) = wavefronts(&mut starts[..lanes], WIDEST);
                    self.count_merged(event, 1, units);
                }
                return;
            }
            let run = runs.swap_remove(here);
            self.end_run(&run);
        }
        match addresses[..lanes].iter().all(|address| address.is_multiple_of(WIDEST)) {
            true => runs.push(Run { event: *event, start: *addresses, bytes: width, units }),
            false => self.count_merged(event, 1, units),
        }
    }

    /// Reads that did not come to 128 bits.
    fn end_run(&mut self, run: &Run) {
        self.count_merged(&run.event, run.bytes / u64::from(run.event.width), run.units);
    }

    fn count_merged(&mut self, event: &Event, requests: u64, units: u64) {
        let count = self.counts.entry(event.site()).or_insert_with(|| Count::new(event.place));
        count.merged_requests += requests;
        count.merged_units += units;
    }

    /// One request of a warp: the addresses of the lanes that take part. Gives its units.
    fn request(&mut self, event: &Event, addresses: &mut [u64]) -> u64 {
        let width = u64::from(event.width);
        let lanes = addresses.len() as u64;
        let (units, ideal) = match event.operation.is_global() {
            true => sectors(addresses, width),
            false => wavefronts(addresses, width),
        };
        // Lanes that share what they read may need less than lanes that do not.
        let ideal = ideal.min(units);
        let count = self.counts.entry(event.site()).or_insert_with(|| Count::new(event.place));
        count.requests += 1;
        count.lanes += lanes;
        count.units += units;
        count.ideal += ideal;
        units
    }

    /// What was counted; the grid's blocks are for the launch to say.
    pub(super) fn into_profile(self) -> Profile {
        let mut profile = Profile {
            sampled: self.sampled,
            warp_intervals: self.warp_intervals,
            divergent_intervals: self.divergent_intervals,
            ..Profile::default()
        };
        for ((_, operation, width), count) in self.counts {
            let Count { place, requests, lanes, units, ideal, merged_requests, merged_units } =
                count;
            let place = Place::new(place);
            // One line may have several addresses: one for each instance of a generic function.
            profile.add_line(Line {
                place,
                operation,
                width,
                requests,
                lanes,
                units,
                ideal,
                merged_requests,
                merged_units,
            });
        }
        profile
    }
}

impl Count {
    fn new(place: &'static Location<'static>) -> Self {
        Count {
            place,
            requests: 0,
            lanes: 0,
            units: 0,
            ideal: 0,
            merged_requests: 0,
            merged_units: 0,
        }
    }
}

/// Bytes of a sector, the unit in which the caches move global memory.
const SECTOR: u64 = 32;
/// Shared memory has 32 banks of four bytes.
const BANKS: usize = 32;
const BANK_BYTES: u64 = 4;

/// Sectors that a request touches, and the fewest that its bytes could lie in.
fn sectors(addresses: &mut [u64], width: u64) -> (u64, u64) {
    sort(addresses);
    let (mut touched, mut last) = (0, None);
    let (mut distinct, mut before) = (0, None);
    for &address in &*addresses {
        let first = address / SECTOR;
        let end = (address + width - 1) / SECTOR;
        let start = last.map_or(first, |last: u64| first.max(last + 1));
        touched += (end + 1).saturating_sub(start);
        last = Some(last.map_or(end, |last| end.max(last)));
        distinct += u64::from(before != Some(address));
        before = Some(address);
    }
    (touched, (distinct * width).div_ceil(SECTOR))
}

/// Wavefronts of a request to shared memory, and the fewest that it could take, when each lane wants
/// something else. In each of them a bank gives one word of four bytes; lanes that want the same word get
/// it together.
///
/// Accesses of 8 bytes are served half a warp at a time, those of 16 a quarter; twice as many lanes where
/// all neighbours, or all lanes two apart, want the same. (So it was measured on an H200 for 16 bytes with one
/// and with two addresses in a warp: two wavefronts each.)
fn wavefronts(addresses: &mut [u64], width: u64) -> (u64, u64) {
    let words = width.div_ceil(BANK_BYTES);
    let at_once = (BANKS / words as usize).max(1);
    let most_at_once = (2 * at_once).min(BANKS);
    let (mut units, mut ideal) = (0, 0);
    for lanes in addresses.chunks_mut(most_at_once) {
        ideal += lanes.len().div_ceil(at_once) as u64;
        let group = if is_paired(lanes) { most_at_once } else { at_once };
        units += lanes.chunks_mut(group).map(|lanes| one_group(lanes, width)).sum::<u64>();
    }
    (units, ideal)
}

/// Do all neighbours, or all lanes two apart, want the same?
fn is_paired(lanes: &[u64]) -> bool {
    let same = |apart: usize| {
        (0..lanes.len())
            .all(|lane| lanes.get(lane ^ apart).is_none_or(|other| *other == lanes[lane]))
    };
    same(1) || same(2)
}

/// Wavefronts of lanes that are served together.
fn one_group(lanes: &mut [u64], width: u64) -> u64 {
    sort(lanes);
    let mut words_of_bank = [0u32; BANKS];
    let mut last = None;
    for &address in &*lanes {
        for word in address / BANK_BYTES..(address + width).div_ceil(BANK_BYTES) {
            if last.is_none_or(|last| word > last) {
                words_of_bank[word as usize % BANKS] += 1;
                last = Some(word);
            }
        }
    }
    u64::from(words_of_bank.into_iter().max().unwrap_or(0))
}

fn sort(addresses: &mut [u64]) {
    if !addresses.is_sorted() {
        addresses.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(address: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..32).map(address).collect()
    }

    #[test]
    fn sectors_of_a_request() {
        assert_eq!(sectors(&mut lanes(|lane| 4 * lane), 4), (4, 4), "a row, aligned");
        assert_eq!(sectors(&mut lanes(|lane| 4 * lane + 4), 4), (5, 4), "not aligned");
        assert_eq!(sectors(&mut lanes(|lane| 64 * lane), 4), (32, 4), "a column");
        assert_eq!(sectors(&mut lanes(|_| 100), 4), (1, 1), "one element for all");
        assert_eq!(sectors(&mut lanes(|lane| 16 * lane), 16), (16, 16), "128 bits a lane");
        assert_eq!(sectors(&mut lanes(|lane| 4 * (31 - lane)), 4), (4, 4), "backwards");
        assert_eq!(sectors(&mut [0], 4), (1, 1), "one lane");
    }

    #[test]
    fn wavefronts_of_a_request() {
        assert_eq!(wavefronts(&mut lanes(|lane| 4 * lane), 4), (1, 1), "a row");
        assert_eq!(wavefronts(&mut lanes(|lane| 128 * lane), 4), (32, 1), "a column");
        assert_eq!(wavefronts(&mut lanes(|lane| 132 * lane), 4), (1, 1), "a padded column");
        assert_eq!(wavefronts(&mut lanes(|_| 8), 4), (1, 1), "one element for all");
        assert_eq!(wavefronts(&mut lanes(|lane| 8 * lane), 4), (2, 1), "every second word");
        assert_eq!(wavefronts(&mut lanes(|lane| 2 * lane), 2), (1, 1), "half words");
        assert_eq!(wavefronts(&mut lanes(|lane| 8 * lane), 8), (2, 2), "64 bits a lane");
        assert_eq!(wavefronts(&mut lanes(|lane| 16 * lane), 16), (4, 4), "128 bits a lane");
        assert_eq!(wavefronts(&mut lanes(|lane| 128 * lane), 16), (32, 4), "all in four banks");
        assert_eq!(wavefronts(&mut lanes(|_| 32), 16).0, 2, "128 bits, the same for all");
        assert_eq!(
            wavefronts(&mut lanes(|lane| lane / 16 * 64), 16).0,
            2,
            "the same for half a warp"
        );
    }
}
