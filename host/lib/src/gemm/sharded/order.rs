//! Which step waits for which.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use super::plan::{Memory, Rect, Step, What};

/// What a step reads and writes, and whether it writes.
fn accesses(what: &What) -> Vec<(Rect, bool)> {
    match what {
        What::Transfer { from, to } => vec![(*from, false), (*to, true)],
        What::Multiply { operands: [a, b], c, .. } => vec![(*a, false), (*b, false), (*c, true)],
        What::Sum { partials, c, .. } => vec![(*partials, false), (*c, true)],
    }
}

/// For each lane, by place and number, the last step that is known to have ended.
type Ended = HashMap<(usize, usize), usize>;

fn note(ended: &mut Ended, lane: (usize, usize), step: usize) {
    let last = ended.entry(lane).or_insert(step);
    *last = (*last).max(step);
}

/// Lets each step wait for the earlier ones on other lanes that use memory which it writes, or
/// write memory that it uses. A wait that others imply is left out.
///
/// Whether two use the same memory is decided by the ranges from the first element to the last,
/// with what is between the rows: so does the ledger of the CPU devices.
pub(super) fn order(steps: &mut [Step]) {
    // What was done to each memory.
    let mut used = HashMap::<(usize, Memory), Vec<(usize, Range<usize>, bool)>>::new();
    // What has ended when a step begins, and the last step of each lane.
    let mut before = Vec::<Ended>::with_capacity(steps.len());
    let mut last = HashMap::<(usize, usize), usize>::new();
    let lanes_of = steps.iter().map(|step| (step.place, step.lane)).collect::<Vec<_>>();
    for (index, step) in steps.iter_mut().enumerate() {
        let lane = lanes_of[index];
        let mut ended = Ended::new();
        if let Some(&previous) = last.get(&lane) {
            ended.clone_from(&before[previous]);
            note(&mut ended, lane, previous);
        }
        let accessed = accesses(&step.what);
        let mut earlier = BTreeSet::new();
        for (rect, writes) in &accessed {
            let range = rect.range();
            for (other, its, wrote) in used.get(&(rect.place, rect.memory)).into_iter().flatten() {
                let meets = its.start < range.end && range.start < its.end;
                if meets && (*writes || *wrote) {
                    earlier.insert(*other);
                }
            }
        }
        // The latest first: it implies others.
        for other in earlier.into_iter().rev() {
            let (its, what_it_knows) = (lanes_of[other], &before[other]);
            if its == lane || ended.get(&its).is_some_and(|&known| known >= other) {
                continue;
            }
            step.after.push(other);
            what_it_knows.iter().for_each(|(&lane, &known)| note(&mut ended, lane, known));
            note(&mut ended, its, other);
        }
        for (rect, writes) in accessed {
            // Nobody writes A and B.
            if !matches!(rect.memory, Memory::A | Memory::B) {
                let of_it = used.entry((rect.place, rect.memory)).or_default();
                of_it.push((index, rect.range(), writes));
            }
        }
        before.push(ended);
        last.insert(lane, index);
    }
}
