//! The stages of a pipeline over time: when each is filled, full, and read.
//!
//! Time is the order in which the CPU ran the block's asynchronous copies and products. It is one
//! of the orders that CUDA allows: a copy completes as late as possible, when no thread can go on.
//! How long something takes is not known.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use simt::check::{AsyncEvent, Asynchronous, Operation, Request, Trace};

/// The stages of a pipeline over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stages {
    /// `tma` if TMA fills the stages, `cp.async` if threads do. Then only the groups of thread 0
    /// are shown.
    pub filled_by: &'static str,
    /// Where each stage begins in the block's shared memory, in bytes.
    pub starts: Vec<usize>,
    /// The bytes of a stage: from the last stage but one to the last. Of a single stage those to
    /// the end of its array.
    pub bytes: usize,
    /// What happens, one after another.
    pub ticks: Vec<Tick>,
    /// What each stage is doing, and from which tick to which.
    pub spans: Vec<Span>,
    /// The number of stages in flight after each tick: filled or being filled, and not yet read.
    pub in_flight: Vec<usize>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tick {
    /// The number of barriers that the block had passed.
    pub barriers: u32,
    /// The stage.
    pub stage: usize,
    /// What happens to it, as a short sentence.
    pub what: String,
}

/// What a stage is doing for a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The stage.
    pub stage: usize,
    /// The round of the ring, from 0: how often the stage was filled before.
    pub round: usize,
    /// What it is doing.
    pub state: State,
    /// The tick at which this begins.
    pub from: usize,
    /// The tick at which it ends.
    pub to: usize,
}

/// What a stage is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// Copies to it are in flight.
    Filling,
    /// The copies are complete, and nothing reads it yet.
    Full,
    /// Products read it: tensor cores, or warps.
    Read,
}

/// The events of stages, before they are spans.
enum Change {
    Fills { bytes: usize },
    Filled,
    Read { by: String },
    Done,
}

impl Stages {
    /// The stages that a traced block fills, and which copy and which product belongs to which
    /// fill. `None` if it fills none.
    pub(super) fn of(trace: &Trace) -> Option<(Stages, Fills)> {
        let boxes = trace.events.iter().filter_map(|event| match event.what {
            Asynchronous::BoxBegins { to, mbarrier, .. } => Some((mbarrier, to)),
            _ => None,
        });
        // A stage is what completes at one mbarrier.
        let mut by_mbarrier = BTreeMap::<usize, usize>::new();
        for (mbarrier, to) in boxes {
            let start = by_mbarrier.entry(mbarrier).or_insert(to);
            *start = to.min(*start);
        }
        let mut groups = trace.events.iter().filter_map(|event| match event.what {
            Asynchronous::GroupBegins { to, .. } => Some(to),
            _ => None,
        });
        if !by_mbarrier.is_empty() {
            let mut starts = by_mbarrier.values().copied().collect::<Vec<_>>();
            starts.sort_unstable();
            starts.dedup();
            return Some(Builder::new("tma", starts, trace).by_tma(&by_mbarrier));
        }
        let first = groups.next()?;
        let mut starts = [first].into_iter().chain(groups).collect::<Vec<_>>();
        starts.sort_unstable();
        starts.dedup();
        Some(Builder::new("cp.async", starts, trace).by_groups())
    }
}

/// What fills stages, and what reads them. A fill is the filling of a stage; fills are numbered in
/// their order.
#[derive(Debug, Default)]
pub(super) struct Fills {
    /// For each destination of TMA in the block's shared memory its copies, one after another.
    pub(super) boxes: BTreeMap<usize, VecDeque<Moment>>,
    /// For each warpgroup its products, one after another, each with its number of instructions.
    pub(super) products: BTreeMap<u32, Vec<(usize, Moment)>>,
    /// The tick at which each fill begins.
    pub(super) filled: Vec<usize>,
    /// The tick at which each fill is first read.
    pub(super) read: BTreeMap<usize, usize>,
}

/// A fill, and the tick at which something happens to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) fill: usize,
    pub(super) tick: usize,
}

impl Stages {
    /// The stage of a place in shared memory. `None` outside.
    pub(super) fn stage_at(&self, place: usize) -> Option<usize> {
        let stage = self.starts.partition_point(|start| *start <= place).checked_sub(1)?;
        let last = self.starts.last()?;
        (self.bytes == 0 || place < last + self.bytes).then_some(stage)
    }
}

/// A stage's copies in flight, and where its current span began.
#[derive(Clone, Copy, Default)]
struct Stage {
    /// The number of its current fill.
    fill: usize,
    rounds: usize,
    in_flight: usize,
    since: Option<(State, usize)>,
}

/// The bytes from a place in shared memory to the end of the array that holds it. 0 if none does.
fn to_the_end(trace: &Trace, place: usize) -> usize {
    let shared = trace.memories.iter().filter(|memory| memory.is_shared());
    let mut ends = shared.filter_map(|memory| {
        let end = memory.offset + memory.bytes;
        (memory.offset..end).contains(&place).then_some(end)
    });
    ends.next().map_or(0, |end| end - place)
}

struct Builder<'t> {
    trace: &'t Trace,
    stages: Stages,
    fills: Fills,
    now: Vec<Stage>,
}

impl<'t> Builder<'t> {
    fn new(filled_by: &'static str, starts: Vec<usize>, trace: &'t Trace) -> Self {
        let now = vec![Stage::default(); starts.len()];
        let (ticks, spans, in_flight) = (Vec::new(), Vec::new(), Vec::new());
        let bytes = match starts[..] {
            [.., before, last] => last - before,
            [only] => to_the_end(trace, only),
            [] => 0,
        };
        let stages = Stages { filled_by, starts, bytes, ticks, spans, in_flight };
        Builder { trace, stages, fills: Fills::default(), now }
    }

    /// The stage of a place in shared memory. `None` outside.
    fn stage_at(&self, place: usize) -> Option<usize> {
        self.stages.stage_at(place)
    }

    /// The stage's fill, and the tick at which what it is doing began.
    fn moment(&self, stage: usize) -> Moment {
        let Stage { fill, since, .. } = self.now[stage];
        Moment { fill, tick: since.map_or(0, |(_, tick)| tick) }
    }

    fn change(&mut self, barriers: u32, stage: usize, change: Change) {
        let tick = self.stages.ticks.len();
        let state = self.now[stage].since.map(|(state, _)| state);
        let (next, what) = match change {
            Change::Fills { bytes } => {
                (Some(State::Filling), format!("{bytes} bytes on their way"))
            }
            Change::Filled => (Some(State::Full), "full".to_owned()),
            Change::Read { by } => (Some(State::Read), format!("read by {by}")),
            Change::Done => (None, "has been read".to_owned()),
        };
        if state == next {
            return;
        }
        if let Some((state, from)) = self.now[stage].since.take() {
            let round = self.now[stage].rounds.saturating_sub(1);
            self.stages.spans.push(Span { stage, round, state, from, to: tick });
        }
        self.now[stage].since = next.map(|state| (state, tick));
        if next == Some(State::Filling) {
            self.now[stage].rounds += 1;
            self.now[stage].fill = self.fills.filled.len();
            self.fills.filled.push(tick);
        }
        if next == Some(State::Read) {
            self.fills.read.entry(self.now[stage].fill).or_insert(tick);
        }
        self.stages.ticks.push(Tick { barriers, stage, what });
        self.stages.in_flight.push(self.now.iter().filter(|stage| stage.since.is_some()).count());
    }

    fn end(mut self) -> (Stages, Fills) {
        let last = self.stages.ticks.len();
        for (stage, now) in self.now.iter().enumerate() {
            if let Some((state, from)) = now.since {
                let round = now.rounds.saturating_sub(1);
                self.stages.spans.push(Span { stage, round, state, from, to: last });
            }
        }
        self.stages.spans.sort_by_key(|span| (span.stage, span.from));
        (self.stages, self.fills)
    }

    /// Stages that TMA fills: of each mbarrier the start of its stage.
    fn by_tma(mut self, by_mbarrier: &BTreeMap<usize, usize>) -> (Stages, Fills) {
        let events = &self.trace.events;
        let mut reading = BTreeMap::<(u32, u64), Vec<usize>>::new();
        for (place, AsyncEvent { barriers, what, .. }) in events.iter().enumerate() {
            let of = |mbarrier: &usize| by_mbarrier.get(mbarrier).copied();
            match what {
                Asynchronous::BoxBegins { to, mbarrier, .. } => {
                    let Some(stage) = of(mbarrier).and_then(|start| self.stage_at(start)) else {
                        continue;
                    };
                    self.now[stage].in_flight += 1;
                    // All boxes that begin before one of them ends.
                    let together = events[place..].iter().take_while(|event| {
                        !matches!(event.what, Asynchronous::BoxEnds { mbarrier: other, .. } if other == *mbarrier)
                    });
                    let bytes = together.filter_map(|event| match event.what {
                        Asynchronous::BoxBegins { mbarrier: other, bytes, .. } => {
                            (other == *mbarrier).then_some(bytes)
                        }
                        _ => None,
                    });
                    let change = Change::Fills { bytes: bytes.sum() };
                    self.change(*barriers, stage, change);
                    let moment = self.moment(stage);
                    self.fills.boxes.entry(*to).or_default().push_back(moment);
                }
                Asynchronous::BoxEnds { mbarrier, .. } => {
                    let Some(stage) = of(mbarrier).and_then(|start| self.stage_at(start)) else {
                        continue;
                    };
                    self.now[stage].in_flight = self.now[stage].in_flight.saturating_sub(1);
                    if self.now[stage].in_flight == 0 {
                        self.change(*barriers, stage, Change::Filled);
                    }
                }
                other => self.product(*barriers, *other, &mut reading),
            }
        }
        self.end()
    }

    /// A product that reads a stage begins, or products have ended. `reading`: the stages of each
    /// product in flight.
    fn product(
        &mut self,
        barriers: u32,
        what: Asynchronous,
        reading: &mut BTreeMap<(u32, u64), Vec<usize>>,
    ) {
        match what {
            Asynchronous::ProductBegins { warpgroup, product, instructions, a, b } => {
                let operands = [a, Some(b)].into_iter().flatten();
                let of = operands.filter_map(|(place, _)| self.stage_at(place));
                let mut of = of.collect::<Vec<_>>();
                of.dedup();
                let by = format!("the tensor cores, for warpgroup {warpgroup}");
                for stage in &of {
                    self.change(barriers, *stage, Change::Read { by: by.clone() });
                }
                if let Some(&stage) = of.first() {
                    let product = (instructions, self.moment(stage));
                    self.fills.products.entry(warpgroup).or_default().push(product);
                }
                reading.insert((warpgroup, product), of);
            }
            Asynchronous::ProductsEnd { warpgroup, below } => {
                let ended = reading
                    .extract_if(.., |(group, product), _| *group == warpgroup && *product < below);
                let ended = ended.flat_map(|(_, stages)| stages).collect::<Vec<_>>();
                for stage in ended {
                    // Another warpgroup may still read it.
                    if !reading.values().flatten().any(|other| *other == stage) {
                        self.change(barriers, stage, Change::Done);
                    }
                }
            }
            _ => {}
        }
    }

    /// Stages that groups of `cp.async` fill, as thread 0 sees it. Its warp's reads of shared
    /// memory between two barriers come after the copies that begin there.
    fn by_groups(mut self) -> (Stages, Fills) {
        let is_read = |request: &&Request| {
            request.warp == 0 && request.operation == Operation::SharedLoad && request.width > 0
        };
        let mut reads = BTreeMap::<u32, Vec<usize>>::new();
        for request in self.trace.requests.iter().filter(is_read) {
            let first = request.lanes.first().map_or(0, |(_, address)| *address as usize);
            let stages = reads.entry(request.barriers).or_default();
            stages.extend(self.stage_at(first).filter(|stage| !stages.contains(stage)));
        }
        let (mut groups, mut reading) = (BTreeMap::<u32, usize>::new(), BTreeMap::new());
        let last = self.trace.barriers;
        for barriers in 0..=last {
            let events = &self.trace.events;
            for event in events.iter().filter(|event| event.barriers == barriers) {
                match event.what {
                    Asynchronous::GroupBegins { group, to, bytes } => {
                        let Some(stage) = self.stage_at(to) else { continue };
                        groups.insert(group, stage);
                        self.change(barriers, stage, Change::Fills { bytes });
                    }
                    Asynchronous::GroupsEnd { below } => {
                        let ended = groups.extract_if(.., |group, _| *group < below);
                        for (_, stage) in ended.collect::<Vec<_>>() {
                            self.change(barriers, stage, Change::Filled);
                        }
                    }
                    other => self.product(barriers, other, &mut reading),
                }
            }
            for stage in reads.remove(&barriers).unwrap_or_default() {
                if self.now[stage].since.is_some_and(|(state, _)| state == State::Full) {
                    self.change(barriers, stage, Change::Read { by: "warps".to_owned() });
                    self.change(barriers, stage, Change::Done);
                }
            }
        }
        self.end()
    }
}
