//! Kernels that never end, kernels that access memory out of bounds and then do not end, and
//! correct kernels that wait and poll. The verdict is the same in every order and with every number
//! of workers, and no launch hangs.

mod launches;
mod never_end;
mod outside;
mod right;
mod told;

use std::collections::BTreeSet;

use simt::check::Order;

use self::launches::{MOST_WAITS_OF_WRONG, Wrong, each, one_order, orders};

/// Checks that these kinds are found, and no others.
fn found(wrong: &Wrong, orders: impl Iterator<Item = Order>) {
    let expected = wrong.kinds.iter().copied().collect::<BTreeSet<_>>();
    each(wrong.kernel, MOST_WAITS_OF_WRONG, orders, |name, report, _| {
        let kinds = report.findings.iter().map(|finding| finding.kind).collect::<BTreeSet<_>>();
        assert_eq!(kinds, expected, "{name}: {report}");
    });
}

#[test]
fn what_never_ends_is_ended() {
    never_end::WITH_ACCESSES.iter().for_each(|wrong| found(wrong, orders()));
}

#[test]
fn what_nobody_sees_is_ended() {
    never_end::UNSEEN.iter().for_each(|wrong| found(wrong, one_order()));
}

/// The place is that of the last access, and not of the barrier before it.
#[test]
fn what_computes_for_ever_is_named_by_its_last_access() {
    let computes = never_end::UNSEEN.last().unwrap().kernel;
    each(computes, MOST_WAITS_OF_WRONG, one_order(), |name, report, _| {
        let place = report.findings[0].place.as_ref().unwrap();
        let line = include_str!("endless/never_end.rs").lines().nth(place.line as usize - 1);
        assert!(line.unwrap().contains("= x[block * 32 + lane] as u32;"), "{name}: {report}");
    });
}

#[test]
fn what_waits_in_vain_is_ended() {
    never_end::WITH_WAITS.iter().for_each(|wrong| found(wrong, orders()));
}

#[test]
fn what_was_found_before_is_told() {
    outside::ALL.iter().for_each(|wrong| found(wrong, orders()));
    outside::UNSEEN.iter().for_each(|wrong| found(wrong, one_order()));
}

/// The list has the intended number of kernels.
#[test]
fn there_are_sixty() {
    let count = |lists: &[&[Wrong]]| lists.iter().map(|list| list.len()).sum::<usize>();
    let endless = count(&[never_end::WITH_ACCESSES, never_end::UNSEEN, never_end::WITH_WAITS]);
    let (outside, right) = (count(&[outside::ALL, outside::UNSEEN]), right::count());
    assert!(endless >= 40 && outside >= 18 && right >= 50, "{endless}, {outside}, {right}");
}
