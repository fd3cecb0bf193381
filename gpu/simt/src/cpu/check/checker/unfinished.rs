//! Says of a race with a copy, or a product, that it is not waited for.

use super::Checker;
use crate::cpu::{
    block,
    check::{
        place::Place,
        record::{LAST_CLOCK, Record},
        shared::Array,
        unit::{Group, Unit},
    },
    limits::WARP,
};

/// Threads of a warpgroup.
const WARPGROUP: u32 = 4 * WARP;

impl Checker<'_> {
    /// What is missing between the access `other` and the one with which it is in a race, if a unit
    /// made `other` in this cluster. `at`: a shared array, and a byte of it in which the two meet.
    /// Empty: two threads are in a race, or two clusters, which no wait orders.
    pub(super) fn not_waited_for(
        &self,
        other: Option<Record>,
        at: Option<(&Array, usize)>,
    ) -> String {
        let is_near = |old: &Record| old.slot() == self.slot && old.clock >= self.block_start.get();
        let Some(other) = other.filter(is_near) else { return String::new() };
        match (other.unit(), other.place()) {
            (Some(unit), Some(place)) => {
                unit.not_waited_for(&Place::new(place), self.group_of(unit, &other, at))
            }
            _ => String::new(),
        }
    }

    /// The group of an access that a unit made, where its thread makes groups of them.
    fn group_of(&self, unit: Unit, other: &Record, at: Option<(&Array, usize)>) -> Option<Group> {
        match unit {
            Unit::AsyncCopy => {
                let (copies, (array, byte)) = (self.copies.borrow(), at?);
                copies.get(other.thread() as usize)?.group_of(array, byte)
            }
            Unit::StoreRead | Unit::StoreWrite => {
                self.clocks.borrow().group_of_store(other.thread(), other.own_clock())
            }
            Unit::Product => self.group_of_product(other),
            Unit::Load => None,
        }
    }

    /// The same of a product of a warpgroup: by the groups of the running thread, if it is of that
    /// warpgroup, and else of the first thread.
    fn group_of_product(&self, other: &Record) -> Option<Group> {
        let key = self.clocks.borrow().warpgroup_of(other.thread())?;
        let own = block::linear_index();
        let is_own = key == (block::rank(), own / WARPGROUP);
        let thread = if is_own { own % WARPGROUP } else { 0 };
        // Its reads are recorded before the engine's clock ticks.
        let clock = other.own_clock().checked_add(1).filter(|clock| *clock < LAST_CLOCK)?;
        let since = block::current_cluster().warpgroup(key).groups_since(thread as usize, clock)?;
        Some(match since.checked_sub(1) {
            None => Group::Open,
            Some(later) => Group::Committed(later as u32), // fewer than the clock counts
        })
    }
}
