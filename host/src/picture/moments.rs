//! When a request happens: its phase, and its place among the events of the stages.
//!
//! Where asynchronous copies fill stages, a phase is what a warp does from one wait for a stage to
//! the next: it reads that stage, and may begin copies to a later one. A warp that only fills
//! stages has a phase for each. Elsewhere a phase begins where shared memory is written for the
//! first time, or for the first time after a barrier.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use simt::check::{Operation, Request, Trace};

use super::stages::{Fills, Moment, Stages};

/// When requests happen, in the order of the trace.
#[derive(Debug)]
pub(super) struct Moments {
    /// The number of phases.
    pub(super) phases: usize,
    /// The phase of each request.
    pub(super) phase: Vec<usize>,
    /// The tick of the stages at which each request happens, if there are stages. It never
    /// decreases within a warp.
    pub(super) tick: Vec<Option<usize>>,
}

/// What a request has to do with a stage.
#[derive(Clone, Copy, Debug)]
enum Role {
    Fills(Moment),
    Reads(Moment),
}

impl Moments {
    pub(super) fn of(trace: &Trace, stages: Option<&(Stages, Fills)>) -> Moments {
        match stages {
            Some((stages, fills)) => by_stages(trace, stages, fills),
            None => by_barriers(trace),
        }
    }
}

fn by_barriers(trace: &Trace) -> Moments {
    let stores = trace.requests.iter().filter(|request| request.operation.writes_shared());
    let begins = stores.map(|request| request.barriers).collect::<BTreeSet<_>>();
    let phase = |request: &Request| begins.range(..=request.barriers).count().saturating_sub(1);
    Moments {
        phases: begins.len().max(1),
        phase: trace.requests.iter().map(phase).collect(),
        tick: vec![None; trace.requests.len()],
    }
}

fn by_stages(trace: &Trace, stages: &Stages, fills: &Fills) -> Moments {
    let requests = &trace.requests;
    let mut warps = BTreeMap::<u32, Vec<usize>>::new();
    for (number, request) in requests.iter().enumerate() {
        warps.entry(request.warp).or_default().push(number);
    }
    let (mut phase, mut tick) = (vec![0; requests.len()], vec![None; requests.len()]);
    let mut boxes = fills.boxes.clone();
    for (warp, numbers) in warps {
        let own = numbers.iter().map(|number| &requests[*number]).collect::<Vec<_>>();
        let mut roles = Roles::new(stages, fills, warp);
        let roles = (0..own.len()).map(|at| roles.of(&own[at..], &mut boxes)).collect::<Vec<_>>();
        let mut now = 0;
        for (at, of_warp) in phases(&own, &roles).into_iter().enumerate() {
            if let Some(Role::Fills(moment) | Role::Reads(moment)) = roles[at] {
                now = moment.tick.max(now);
            }
            (phase[numbers[at]], tick[numbers[at]]) = (of_warp, Some(now));
        }
    }
    Moments { phases: fills.filled.len().max(1), phase, tick }
}

/// The phases of a warp's requests.
fn phases(own: &[&Request], roles: &[Option<Role>]) -> Vec<usize> {
    let read = |at: usize| match roles[at] {
        Some(Role::Reads(moment)) => Some(moment.fill),
        _ => None,
    };
    let filled = |at: usize| match roles[at] {
        Some(Role::Fills(moment)) => Some(moment.fill),
        _ => None,
    };
    let reads = (0..own.len()).any(|at| read(at).is_some());
    let mut last = 0;
    let of = |at: usize| {
        let here = match reads {
            false => filled(at),
            true => read(at),
        };
        // Before the first read after a barrier: that read's phase.
        let since = own[at].barriers;
        let first = at == 0 || own[at - 1].barriers != since;
        let next = || (at..own.len()).take_while(|at| own[*at].barriers == since).find_map(read);
        last = here.or_else(|| if reads && first { next() } else { None }).unwrap_or(last);
        last
    };
    (0..own.len()).map(of).collect()
}

/// Finds the roles of a warp's requests, one after another.
struct Roles<'s> {
    stages: &'s Stages,
    fills: &'s Fills,
    warp: u32,
    /// The stage that the warp has filled last, and the number of fills; the same of stages that it
    /// has read.
    filled: Run,
    read: Run,
    /// The next product of its warpgroup.
    product: usize,
}

/// The stage of last time, and how often it has changed.
#[derive(Default)]
struct Run {
    stage: Option<usize>,
    count: usize,
}

impl Run {
    /// The number of the fill, from 0.
    fn at(&mut self, stage: usize) -> usize {
        if self.stage.replace(stage) != Some(stage) {
            self.count += 1;
        }
        self.count - 1
    }
}

impl<'s> Roles<'s> {
    fn new(stages: &'s Stages, fills: &'s Fills, warp: u32) -> Self {
        let (filled, read) = (Run::default(), Run::default());
        Roles { stages, fills, warp, filled, read, product: 0 }
    }

    /// The role of the first of these requests.
    fn of(
        &mut self,
        requests: &[&Request],
        boxes: &mut BTreeMap<usize, VecDeque<Moment>>,
    ) -> Option<Role> {
        let (request, rest) = requests.split_first()?;
        let by_threads = self.stages.filled_by == "cp.async";
        match request.operation {
            Operation::TmaLoad => {
                let (to, _) = *request.operands.first()?;
                boxes.get_mut(&to)?.pop_front().map(Role::Fills)
            }
            Operation::Wgmma => {
                let products = self.fills.products.get(&(self.warp / 4))?;
                let (_, moment) = *products.get(self.product)?;
                let mut missing = request.lanes.first().map_or(0, |(_, times)| *times as usize);
                while let Some((instructions, _)) = products.get(self.product)
                    && missing > 0
                {
                    missing = missing.saturating_sub(*instructions);
                    self.product += 1;
                }
                Some(Role::Reads(moment))
            }
            // `cp.async` loads and stores.
            Operation::GlobalLoad if by_threads => {
                let stores = |one: &&&Request| one.operation.writes_shared();
                let store =
                    rest.iter().take_while(|one| one.place == request.place).find(stores)?;
                self.fills_stage(store)
            }
            _ if by_threads && request.operation.writes_shared() => self.fills_stage(request),
            Operation::SharedLoad => {
                let stage = self.stages.stage_at(place(request)?)?;
                let fill = self.of_only_stage(request).unwrap_or_else(|| self.read.at(stage));
                let tick = self.fills.read.get(&fill).or(self.fills.filled.get(fill))?;
                Some(Role::Reads(Moment { fill, tick: *tick }))
            }
            _ => None,
        }
    }

    /// The only stage's fill at the time of a request. It never changes its stage, so barriers tell
    /// its fills apart. `None` if there are several stages, or if nothing is filled yet.
    fn of_only_stage(&self, request: &Request) -> Option<usize> {
        if self.stages.starts.len() > 1 {
            return None;
        }
        let barriers = |tick: &usize| self.stages.ticks[*tick].barriers;
        let filled = &self.fills.filled;
        let begun = filled.partition_point(|tick| barriers(tick) <= request.barriers);
        let since = barriers(filled.get(begun.checked_sub(1)?)?);
        // Of several fills between two barriers the first.
        Some(filled.partition_point(|tick| barriers(tick) < since))
    }

    fn fills_stage(&mut self, store: &Request) -> Option<Role> {
        let stage = self.stages.stage_at(place(store)?)?;
        let fill = self.of_only_stage(store).unwrap_or_else(|| self.filled.at(stage));
        self.fills.filled.get(fill).map(|tick| Role::Fills(Moment { fill, tick: *tick }))
    }
}

/// The lowest address of a request's lanes.
fn place(request: &Request) -> Option<usize> {
    if request.width == 0 {
        return None;
    }
    request.lanes.iter().map(|(_, address)| *address as usize).min()
}
