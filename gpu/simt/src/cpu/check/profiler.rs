//! Counts what the sampled blocks do. The accesses of a warp's lanes are combined into requests, as
//! the hardware does.

use std::{
    collections::{BTreeMap, HashMap},
    panic::Location,
};

use super::{
    coalescing::{sectors, wavefronts},
    place::Place,
    profile::{Line, Operation, Profile},
};
use crate::cpu::limits::WARP;

/// An access of one thread.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) place: &'static Location<'static>,
    /// A byte address. Different buffers have different addresses, and each starts at a multiple of
    /// 256 bytes, as buffers of a GPU's driver do.
    pub(super) address: u64,
    pub(super) operation: Operation,
    pub(super) width: u32,
}

impl Event {
    fn site(&self) -> Site {
        (std::ptr::from_ref(self.place) as usize, self.operation, self.width)
    }
}

/// A place in the source (by the address of its `Location`), the operation, and the width.
type Site = (usize, Operation, u32);

/// A request of a warp whose lanes took different branches: the lanes of one site and pass.
struct Divergent {
    event: Event,
    /// The last place of the request in a lane's log.
    position: usize,
    lanes: Vec<(u32, u64)>,
}

/// Successive reads of neighbouring elements at one site, which the compiler may merge.
struct Run {
    event: Event,
    /// Each lane's address in the first of them.
    start: [u64; WARP as usize],
    /// Bytes of each lane in all of them.
    bytes: u64,
    /// Units of the unmerged reads.
    units: u64,
}

/// The widest access, in bytes.
const WIDEST: u64 = 16;

/// A request, kept for a trace.
pub(super) struct Combined {
    /// The number of the warp in its cluster.
    pub(super) warp: u32,
    /// The access of its first lane.
    pub(super) event: Event,
    /// Lanes and their addresses.
    pub(super) lanes: Vec<(u32, u64)>,
    pub(super) units: u64,
    pub(super) ideal: u64,
}

/// The counts of one worker.
#[derive(Default)]
pub(super) struct Profiler {
    /// The accesses of each thread of the block since the last wait.
    logs: Vec<Vec<Event>>,
    counts: HashMap<Site, Line>,
    sampled: u64,
    warp_intervals: u64,
    divergent_intervals: u64,
    /// The place of the last multiply-add, and how often it was executed in a row: an inner loop
    /// repeats it.
    fmas: Option<(&'static Location<'static>, u64)>,
    /// The requests since they were last taken, if they are kept.
    recorded: Option<Vec<Combined>>,
}

impl Profiler {
    /// A profiler that keeps the requests.
    pub(super) fn recording() -> Self {
        Profiler { recorded: Some(Vec::new()), ..Profiler::default() }
    }

    /// Takes the requests that were kept.
    pub(super) fn take_recorded(&mut self) -> impl Iterator<Item = Combined> {
        self.recorded.as_mut().map(std::mem::take).into_iter().flatten()
    }

    /// A cluster begins, with that number of threads and blocks.
    pub(super) fn begin_cluster(&mut self, threads: usize, blocks: usize) {
        self.sampled += blocks as u64;
        // Threads that make no access have a log, too: their warp diverges.
        self.logs.resize_with(threads, Vec::new);
    }

    /// Logs an access of a thread.
    pub(super) fn log(&mut self, thread: u32, event: Event) {
        self.logs[thread as usize].push(event);
    }

    /// Logs instructions of a thread that are no accesses. Their address is their number;
    /// successive ones are added.
    pub(super) fn log_times(
        &mut self,
        thread: u32,
        (place, operation): (&'static Location<'static>, Operation),
        times: u64,
    ) {
        let event = Event { place, address: times, operation, width: 0 };
        let log = &mut self.logs[thread as usize];
        match log.last_mut() {
            Some(last) if last.site() == event.site() => last.address += times,
            _ => log.push(event),
        }
    }

    /// The counts of one site.
    fn line(
        &mut self,
        place: &'static Location<'static>,
        operation: Operation,
        width: u32,
    ) -> &mut Line {
        let site = (std::ptr::from_ref(place) as usize, operation, width);
        self.counts.entry(site).or_insert_with(|| Line::new(Place::new(place), operation, width))
    }

    /// Counts an operation that is no memory access.
    pub(super) fn count(
        &mut self,
        place: &'static Location<'static>,
        operation: Operation,
        times: u64,
    ) {
        let count = self.line(place, operation, 0);
        count.requests += times;
        count.lanes += times;
        count.merged_requests += times;
    }

    /// Counts a TMA copy of those bytes of a matrix, and of those that move between L2 and the SMs.
    pub(super) fn copy(
        &mut self,
        place: &'static Location<'static>,
        operation: Operation,
        (bytes, moved): (u64, u64),
    ) {
        self.count(place, operation, 1);
        let count = self.line(place, operation, 0);
        count.units += bytes;
        count.ideal += bytes;
        count.merged_units += bytes;
        count.moved += moved;
    }

    /// Counts a fused multiply-add of a thread.
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

    /// The threads of all blocks wait, or have ended: combines their accesses into requests.
    pub(super) fn flush(&mut self) {
        self.count_fmas();
        let mut logs = std::mem::take(&mut self.logs);
        for (warp, lanes) in (0..).zip(logs.chunks_mut(WARP as usize)) {
            self.flush_warp(warp, lanes);
            lanes.iter_mut().for_each(Vec::clear);
        }
        self.logs = logs;
    }

    /// The same for one warp, whose lanes wait in a warp operation.
    pub(super) fn flush_one(&mut self, warp: u32) {
        let first = (warp * WARP) as usize;
        let last = (first + WARP as usize).min(self.logs.len());
        if first < last {
            let mut lanes: Vec<_> = self.logs[first..last].iter_mut().map(std::mem::take).collect();
            self.flush_warp(warp, &lanes);
            lanes.iter_mut().for_each(Vec::clear);
            for (log, empty) in self.logs[first..last].iter_mut().zip(lanes) {
                *log = empty; // keeps its memory
            }
        }
    }

    /// Combines the accesses of a warp's lanes into requests.
    fn flush_warp(&mut self, warp: u32, lanes: &[Vec<Event>]) {
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
                let (units, ideal) = self.request(event, &mut addresses[..lanes.len()]);
                if let Some(recorded) = &mut self.recorded {
                    let lanes = (0..).zip(unsorted[..lanes.len()].iter().copied()).collect();
                    recorded.push(Combined { warp, event: *event, lanes, units, ideal });
                }
                self.merge_reads(&mut runs, event, &unsorted, lanes.len(), units);
            }
            runs.iter().for_each(|run| self.end_run(run));
            return;
        }
        // Branches: a lane's k-th access at a site belongs to the warp's k-th request there.
        self.divergent_intervals += 1;
        let mut requests = BTreeMap::<(Site, u32), Divergent>::new();
        for (lane, log) in (0..).zip(lanes) {
            let mut passes = HashMap::<Site, u32>::new();
            for (position, event) in log.iter().enumerate() {
                let pass = passes.entry(event.site()).or_default();
                let new = || Divergent { event: *event, position, lanes: Vec::new() };
                let request = requests.entry((event.site(), *pass)).or_insert_with(new);
                request.lanes.push((lane, event.address));
                request.position = request.position.max(position);
                *pass += 1;
            }
        }
        let mut kept = Vec::new();
        for Divergent { event, position, lanes } in requests.into_values() {
            let mut addresses = lanes.iter().map(|(_, address)| *address).collect::<Vec<_>>();
            let (units, ideal) = self.request(&event, &mut addresses);
            self.count_merged(&event, 1, units);
            if self.recorded.is_some() {
                kept.push((position, Combined { warp, event, lanes, units, ideal }));
            }
        }
        if let Some(recorded) = &mut self.recorded {
            // The order of the lane that does most: the others leave out some of it.
            kept.sort_by_key(|(position, _)| *position);
            recorded.extend(kept.into_iter().map(|(_, request)| request));
        }
    }

    /// Counts a request among the merged ones.
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

    /// Counts reads that did not add up to 128 bits.
    fn end_run(&mut self, run: &Run) {
        self.count_merged(&run.event, run.bytes / u64::from(run.event.width), run.units);
    }

    fn count_merged(&mut self, event: &Event, requests: u64, units: u64) {
        let count = self.line(event.place, event.operation, event.width);
        count.merged_requests += requests;
        count.merged_units += units;
    }

    /// Counts one request of a warp, by the addresses of its lanes. Gives its units, and the fewest
    /// possible. Instructions that are no accesses have none.
    fn request(&mut self, event: &Event, addresses: &mut [u64]) -> (u64, u64) {
        let width = u64::from(event.width);
        let lanes = addresses.len() as u64;
        if width == 0 {
            return (0, 0);
        }
        let (units, ideal) = match event.operation.is_global() {
            true => sectors(addresses, width),
            false => wavefronts(addresses, width),
        };
        // Lanes that read the same bytes may need fewer units than the ideal for distinct bytes.
        let ideal = ideal.min(units);
        let count = self.line(event.place, event.operation, event.width);
        count.requests += 1;
        count.lanes += lanes;
        count.units += units;
        count.ideal += ideal;
        (units, ideal)
    }

    /// The counts as a profile. The launch adds the number of the grid's blocks.
    pub(super) fn into_profile(self) -> Profile {
        let mut profile = Profile {
            sampled: self.sampled,
            warp_intervals: self.warp_intervals,
            divergent_intervals: self.divergent_intervals,
            ..Profile::default()
        };
        // A line may have several addresses: one for each instance of a generic function.
        self.counts.into_values().for_each(|line| profile.add_line(line));
        profile
    }
}
