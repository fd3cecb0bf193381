//! Says of a race with a copy, or a product, that it is not waited for.

use super::Checker;
use crate::cpu::check::{
    place::Place,
    record::Record,
    shared::Array,
    unit::{Group, Unit},
};

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
            Unit::Load | Unit::Product => None,
        }
    }
}
