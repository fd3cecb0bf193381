//! What is in flight while a block goes on: asynchronous copies and products, from the events of
//! its trace.

use std::collections::{BTreeMap, BTreeSet};

use simt::check::{Asynchronous, Trace};

/// Groups of `cp.async` that the first thread commits, without empty ones.
pub(crate) fn copy_groups(trace: &Trace) -> usize {
    let begins = |what| matches!(what, Asynchronous::GroupBegins { .. });
    trace.events.iter().filter(|event| begins(event.what)).count()
}

/// Instructions of `wgmma` of the block, each for a warpgroup.
pub(crate) fn instructions(trace: &Trace) -> usize {
    let of_event = trace.events.iter().map(|event| match event.what {
        Asynchronous::ProductBegins { instructions, .. } => instructions,
        _ => 0,
    });
    of_event.sum()
}

/// Of the intervals between barriers in which the first thread waits for its groups: the per cent
/// in which each wait leaves a group in flight. `None`: it never waits.
pub(crate) fn copies_left(trace: &Trace) -> Option<f64> {
    let mut in_flight = BTreeSet::new();
    let mut intervals = BTreeMap::<u32, bool>::new();
    for event in &trace.events {
        match event.what {
            Asynchronous::GroupBegins { group, .. } => {
                in_flight.insert(group);
            }
            Asynchronous::GroupsEnd { below } => {
                in_flight.retain(|group| *group >= below);
                *intervals.entry(event.barriers).or_insert(true) &= !in_flight.is_empty();
            }
            _ => {}
        }
    }
    per_cent(intervals.into_values())
}

/// Of the waits of warpgroups for products: the per cent that leave one in flight. `None`: none
/// waits.
pub(crate) fn products_left(trace: &Trace) -> Option<f64> {
    let mut begun = BTreeMap::new();
    let waits = trace.events.iter().filter_map(|event| match event.what {
        Asynchronous::ProductBegins { warpgroup, product, .. } => {
            begun.insert(warpgroup, product + 1);
            None
        }
        Asynchronous::ProductsEnd { warpgroup, below } => {
            Some(begun.get(&warpgroup).is_some_and(|begun| *begun > below))
        }
        _ => None,
    });
    per_cent(waits.collect::<Vec<_>>())
}

/// Of the products of warpgroups: the per cent that begin while TMA copies to shared memory.
/// `None`: there are none.
pub(crate) fn tma_ahead(trace: &Trace) -> Option<f64> {
    let mut in_flight = 0u32;
    let products = trace.events.iter().filter_map(|event| match event.what {
        Asynchronous::BoxBegins { .. } => {
            in_flight += 1;
            None
        }
        Asynchronous::BoxEnds { .. } => {
            in_flight = in_flight.saturating_sub(1);
            None
        }
        Asynchronous::ProductBegins { .. } => Some(in_flight > 0),
        _ => None,
    });
    per_cent(products.collect::<Vec<_>>())
}

/// Of the products of warpgroups after the first TMA copy to global memory: the per cent that begin
/// while such a copy reads shared memory. `None`: there are none.
pub(crate) fn stores_behind(trace: &Trace) -> Option<f64> {
    let (mut in_flight, mut any) = (BTreeSet::new(), false);
    let products = trace.events.iter().filter_map(|event| match event.what {
        Asynchronous::StoreBegins { thread, copy, .. } => {
            any = true;
            in_flight.insert((thread, copy));
            None
        }
        Asynchronous::StoresRead { thread, below } => {
            in_flight.retain(|(by, copy)| *by != thread || *copy >= below);
            None
        }
        Asynchronous::ProductBegins { .. } => any.then_some(!in_flight.is_empty()),
        _ => None,
    });
    per_cent(products.collect::<Vec<_>>())
}

/// The per cent of what holds. `None` of nothing.
fn per_cent(each: impl IntoIterator<Item = bool>) -> Option<f64> {
    let (mut all, mut held) = (0u32, 0u32);
    for holds in each {
        all += 1;
        held += u32::from(holds);
    }
    (all > 0).then(|| 100.0 * f64::from(held) / f64::from(all))
}
