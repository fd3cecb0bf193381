//! Findings while they are collected: each worker has its own, and they are merged after the
//! launch.

use std::{collections::HashMap, panic::Location};

use super::{finding::Kind, record::Record, shared::Array};
use crate::cpu::access::ArrayDeclaration;

/// The most examples that are kept of a finding.
const EXAMPLES: usize = 3;
/// The most findings of a launch. A kernel with a bug in every access has few source lines.
const MOST_FINDINGS: usize = 200;

/// What identifies a finding: errors with the same key are counted as one finding.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) memory: Option<MemoryId>,
    pub(super) place: Option<&'static Location<'static>>,
    pub(super) other_place: Option<&'static Location<'static>>,
    /// The place of a fault, where it is known only as text.
    pub(super) fault_place: String,
}

impl Key {
    /// A finding of that kind, without memory and places.
    pub(super) fn of(kind: Kind) -> Self {
        Key { kind, memory: None, place: None, other_place: None, fault_place: String::new() }
    }
}

/// A buffer or a shared array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum MemoryId {
    /// A buffer, by its number in the launch.
    Global(usize),
    /// A shared array, by the place of its declaration, the bytes of an element, and its rows and
    /// columns.
    Shared(&'static Location<'static>, usize, (usize, usize)),
}

/// The id of a shared array.
pub(super) fn memory_of(array: &Array) -> MemoryId {
    let ArrayDeclaration { element, shape, place, .. } = array.declaration;
    MemoryId::Shared(place, element, shape)
}

/// The findings of one worker.
#[derive(Default)]
pub(super) struct Findings(pub(super) HashMap<Key, Group>);

/// What was seen of one finding.
pub(super) struct Group {
    pub(super) count: u64,
    pub(super) detail: String,
    pub(super) examples: Vec<Seen>,
    /// Of a race of two writes: how often the second wrote what was there already.
    pub(super) same_values: u64,
}

impl Group {
    /// Whether all writes that were seen wrote what was there already. One that was not compared
    /// may not have.
    pub(super) fn is_same_value(&self) -> bool {
        self.same_values > 0 && self.same_values == self.count
    }
}

/// One time that a finding was seen. The other thread is still a record: its block is known only
/// after the launch.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    pub(super) element: Option<usize>,
    pub(super) other: Option<Record>,
}

impl Findings {
    /// Adds an error. `detail` is called only for the first one of a key.
    pub(super) fn add(&mut self, key: Key, seen: Seen, detail: impl FnOnce() -> String) {
        let full = self.0.len() >= MOST_FINDINGS;
        if let Some(group) = self.0.get_mut(&key) {
            group.count += 1;
            group.examples.push(seen);
            keep_first(&mut group.examples);
        } else if !full {
            let (detail, examples) = (detail(), vec![seen]);
            let group = Group { count: 1, detail, examples, same_values: 0 };
            self.0.insert(key, group);
        }
    }

    /// Notes that a write in a race wrote what was there already.
    pub(super) fn add_same_value(&mut self, key: &Key) {
        if let Some(group) = self.0.get_mut(key) {
            group.same_values += 1;
        }
    }

    /// Adds another worker's findings.
    pub(super) fn merge(&mut self, other: Findings) {
        for (key, group) in other.0 {
            match self.0.get_mut(&key) {
                Some(known) => {
                    known.count += group.count;
                    known.same_values += group.same_values;
                    known.examples.extend(group.examples);
                    keep_first(&mut known.examples);
                }
                None => {
                    self.0.insert(key, group);
                }
            }
        }
    }
}

/// Keeps the first examples by block and thread, so that they do not depend on which worker ran
/// which blocks when. Repetitions by one thread at one element are one example.
fn keep_first(examples: &mut Vec<Seen>) {
    let key = |seen: &Seen| (seen.block, seen.thread, seen.element);
    examples.sort_by_key(key);
    examples.dedup_by_key(|seen| key(seen));
    examples.truncate(EXAMPLES);
}
