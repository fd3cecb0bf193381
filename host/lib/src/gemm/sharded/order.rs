//! Which step waits for which.

use super::plan::{Memory, Rect, Step, What};

/// What a step reads and writes, and whether it writes.
pub(super) fn accesses(what: &What) -> Vec<(Rect, bool)> {
    match what {
        What::Transfer { from, to } => vec![(*from, false), (*to, true)],
        What::Multiply { operands: [a, b], c, .. } => vec![(*a, false), (*b, false), (*c, true)],
        What::Sum { partials, c, .. } => vec![(*partials, false), (*c, true)],
    }
}

/// Whether both may use an element. As the ledger sees it: by the ranges of addresses, with what is
/// between the rows.
fn share((one, writes): &(Rect, bool), (other, also): &(Rect, bool)) -> bool {
    let (of_one, of_other) = (one.range(), other.range());
    let is_there = (one.place, one.memory) == (other.place, other.memory);
    // Nobody writes A and B.
    let may_be_written = !matches!(one.memory, Memory::A | Memory::B);
    let meets = of_one.start < of_other.end && of_other.start < of_one.end;
    (*writes || *also) && is_there && may_be_written && meets
}

/// Lets each step wait for the earlier ones on other lanes that use memory which it writes, or
/// write memory that it uses. Of each lane the last one is enough, and of a step whose wait is
/// implied by another's nothing is said.
pub(super) fn order(steps: &mut [Step]) {
    let used = steps.iter().map(|step| accesses(&step.what)).collect::<Vec<_>>();
    // For each step the last step of each lane that has ended before it begins.
    let mut seen: Vec<Vec<(usize, usize, usize)>> = Vec::new();
    for index in 0..steps.len() {
        let (place, lane) = (steps[index].place, steps[index].lane);
        let before = (0..index).rev().find(|&i| (steps[i].place, steps[i].lane) == (place, lane));
        let mut known = before
            .map_or_else(Vec::new, |before| with(seen[before].clone(), &steps[before], before));
        let mut after = Vec::new();
        for earlier in (0..index).rev() {
            let its = (steps[earlier].place, steps[earlier].lane);
            let is_known = known.iter().any(|&(p, l, last)| (p, l) == its && last >= earlier);
            if its == (place, lane) || is_known {
                continue;
            }
            if used[index].iter().any(|use_| used[earlier].iter().any(|other| share(use_, other))) {
                after.push(earlier);
                for &(p, l, last) in &seen[earlier] {
                    note(&mut known, p, l, last);
                }
                known = with(known, &steps[earlier], earlier);
            }
        }
        seen.push(known);
        steps[index].after = after;
    }
}

/// What is known after a step has ended.
fn with(
    mut known: Vec<(usize, usize, usize)>,
    step: &Step,
    index: usize,
) -> Vec<(usize, usize, usize)> {
    note(&mut known, step.place, step.lane, index);
    known
}

fn note(known: &mut Vec<(usize, usize, usize)>, place: usize, lane: usize, index: usize) {
    match known.iter_mut().find(|(p, l, _)| (*p, *l) == (place, lane)) {
        Some((.., last)) => *last = (*last).max(index),
        None => known.push((place, lane, index)),
    }
}
