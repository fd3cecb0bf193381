//! The ledger of several CPU devices: who has used which memory, and in which order.
//!
//! On a GPU a forgotten mark is a race. CPU devices run all work in order, and would not show it.
//! So the ledger has a vector clock for each lane, and the ranges of addresses that the lanes have
//! used. An access that no mark orders behind an earlier one is an [`Error::Unordered`], and so is
//! one to the memory of a device to which this one has no permission.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    buffer::UsedRange,
    device::Device,
    error::{Error, Result},
};

/// What a stream of a plan is known by.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) device: Device,
    /// Of CPU devices: its number in the ledger.
    pub(super) ledger: Option<(Arc<Ledger>, usize)>,
}

/// What the lanes of CPU devices have done.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Names of devices of which the first may not access the second's memory.
    denied: Vec<[String; 2]>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// For each lane, how far it has seen each other one. Its own number counts its marks.
    clocks: Vec<Vec<u64>>,
    uses: Vec<Use>,
}

/// An access: by a lane, before its next mark. Two devices may use one address, one after the
/// other: memory that a lane has grown out of is freed.
#[derive(Clone, Debug)]
struct Use {
    lane: usize,
    tick: u64,
    owner: Device,
    range: UsedRange,
}

impl Ledger {
    /// A ledger of lanes that may access each other's memory, but for these pairs.
    pub(crate) fn new(denied: Vec<[String; 2]>) -> Arc<Self> {
        Arc::new(Ledger { denied, notes: Mutex::default() })
    }

    fn with<R>(&self, act: impl FnOnce(&mut Notes) -> R) -> R {
        act(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ledger {
    /// The number of a new lane.
    pub(super) fn open(&self) -> usize {
        self.with(Notes::open)
    }

    /// The clock of a lane at a mark.
    pub(super) fn mark(&self, lane: usize) -> Vec<u64> {
        self.with(|notes| {
            let clock = notes.clocks[lane].clone();
            notes.clocks[lane][lane] += 1;
            clock
        })
    }

    /// All that the lanes were given has ended, and the program has waited for it.
    pub(super) fn forget(&self) {
        self.with(|notes| notes.uses.clear());
    }

    /// A lane waits for a mark, whose clock this is.
    pub(super) fn after(&self, lane: usize, seen: &[u64]) {
        self.with(|notes| {
            let own = &mut notes.clocks[lane];
            own.iter_mut().zip(seen).for_each(|(own, seen)| *own = (*own).max(*seen));
        });
    }
}

impl Notes {
    /// The clock of a new lane, and its number.
    fn open(&mut self) -> usize {
        let lane = self.clocks.len();
        self.clocks.iter_mut().for_each(|clock| clock.push(0));
        self.clocks.push(vec![0; lane + 1]);
        self.clocks[lane][lane] = 1;
        lane
    }

    fn note(&mut self, lane: usize, owner: &Device, range: UsedRange) -> Option<Use> {
        if range.start == range.end {
            return None;
        }
        let clock = &self.clocks[lane];
        let is_seen = |other: &Use| other.lane == lane || clock[other.lane] >= other.tick;
        let shares = |other: &Use| other.range.start < range.end && range.start < other.range.end;
        let writes = |other: &Use| other.range.is_written || range.is_written;
        let is_its = |other: &Use| other.owner == *owner;
        let is_before =
            |other: &&Use| shares(other) && writes(other) && !is_seen(other) && is_its(other);
        let unseen = self.uses.iter().find(is_before).cloned();
        self.uses.push(Use { lane, tick: clock[lane], owner: owner.clone(), range });
        unseen
    }
}

impl Lane {
    /// Notes what is queued next.
    ///
    /// # Errors
    /// [`Error::Unordered`], on CPU devices.
    pub(crate) fn note(&self, owner: &Device, range: UsedRange) -> Result<()> {
        let Some((ledger, lane)) = &self.ledger else { return Ok(()) };
        let (device, of) = (self.device.name(), owner);
        let owner = of.name();
        let verb = if range.is_written { "writes" } else { "reads" };
        let UsedRange { start, end, .. } = range;
        if ledger.denied.iter().any(|[who, whose]| *who == device && *whose == owner) {
            let what =
                format!("{device} {verb} {start:#x}..{end:#x}, of {owner}, without permission");
            return Err(Error::Unordered { what });
        }
        match ledger.with(|notes| notes.note(*lane, of, range)) {
            None => Ok(()),
            Some(Use { lane: other, range: earlier, .. }) => {
                let before = if earlier.is_written { "written" } else { "read" };
                let what = format!(
                    "{device} {verb} {start:#x}..{end:#x}, of {owner}, on lane {lane}: lane {other} has {before} \
                     {:#x}..{:#x}, and no event orders the two",
                    earlier.start, earlier.end
                );
                Err(Error::Unordered { what })
            }
        }
    }
}
