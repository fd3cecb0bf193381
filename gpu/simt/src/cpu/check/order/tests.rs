//! Who knows what of whom.

use super::*;
use crate::cpu::check::record::Now;
use std::panic::Location;

/// Two mbarriers.
const FULL: Place = (0, 0);
const EMPTY: Place = (0, 8);

fn new(threads: usize) -> ThreadOrder {
    let mut order = ThreadOrder::default();
    order.generalise(threads, 0);
    order.init(FULL);
    order.init(EMPTY);
    order
}

/// What a thread, or an engine, does now.
fn access(order: &ThreadOrder, number: u32) -> Record {
    Now::new((0, number), (1, 1), order, Location::caller()).record
}

#[test]
fn whoever_waits_knows_what_was_done_before_the_arrivals_and_not_after() {
    let mut order = new(64);
    let before = [access(&order, 0), access(&order, 40)];
    order.arrive(FULL, 0, false);
    order.arrive(FULL, 40, true);
    let after = access(&order, 40);
    assert!(before.iter().all(|old| !order.knows(1, old)));
    order.waited(FULL, 1, 0);
    assert!(before.iter().all(|old| order.knows(1, old)));
    assert!(!order.knows(1, &after) && !order.knows(2, &before[0]));
    // Arrivals of the next phase are known when it has ended.
    order.arrive(FULL, 40, false);
    order.waited(FULL, 1, 0);
    assert!(!order.knows(1, &after));
    order.arrive(FULL, 0, true);
    order.waited(FULL, 1, 1);
    assert!(order.knows(1, &after));
}

#[test]
fn what_was_known_is_handed_on() {
    let mut order = new(64);
    let first = access(&order, 0);
    order.arrive(FULL, 0, true);
    order.waited(FULL, 1, 0);
    order.arrive(EMPTY, 1, true);
    order.waited(EMPTY, 2, 0);
    assert!(order.knows(2, &first));
    // To the lanes of a warp, and to no other.
    order.sync(0, 0b1100);
    assert!(order.knows(3, &first) && !order.knows(4, &first) && !order.knows(34, &first));
    // To all threads of the block.
    order.barrier();
    assert!(order.knows(4, &first) && order.knows(63, &first));
}

#[test]
fn a_wait_that_need_not_wait_tells_nothing() {
    let mut order = new(64);
    let write = access(&order, 0);
    // The phase before the first counts as ended.
    order.waited(FULL, 1, 1);
    order.arrive(FULL, 0, true);
    order.waited(FULL, 1, 0);
    assert!(order.knows(1, &write));
    let second = access(&order, 0);
    order.arrive(FULL, 0, true);
    let third = access(&order, 0);
    order.arrive(FULL, 0, true);
    // Three phases have ended, but to wait for parity 0 again says no more than the first did.
    order.waited(FULL, 1, 0);
    assert!(!order.knows(1, &second));
    order.waited(FULL, 1, 1);
    assert!(order.knows(1, &second) && !order.knows(1, &third));
    order.waited(FULL, 1, 0);
    assert!(order.knows(1, &third));
    // What another thread has told counts, too.
    let fourth = access(&order, 0);
    order.arrive(FULL, 0, true);
    order.join(&[1, 2]);
    order.waited(FULL, 2, 1);
    assert!(order.knows(2, &fourth));
}

#[test]
fn who_falls_behind_what_is_remembered_learns_too_much_rather_than_nothing() {
    let mut order = new(32);
    let first = access(&order, 0);
    for _ in 0..2 * REMEMBERED + 1 {
        order.arrive(FULL, 0, true);
    }
    order.waited(FULL, 1, 0);
    assert!(order.knows(1, &first));
}

#[test]
fn a_copy_is_known_to_those_who_have_waited_for_its_mbarrier() {
    let mut order = new(64);
    order.arrive(FULL, 0, false);
    let engine = order.engine(FULL);
    assert!(engine >= FIRST_ENGINE && engine != order.engine(EMPTY));
    let copies = [(); 2].map(|()| {
        let copy = access(&order, engine);
        order.landed(FULL, copy.own_clock() == 1);
        copy
    });
    // Not even to who began it, nor after a barrier.
    order.barrier();
    assert!(!order.knows(0, &copies[0]));
    order.waited(FULL, 33, 0);
    assert!(copies.iter().all(|copy| copy.is_engine() && order.knows(33, copy)));
    assert!(order.has_learnt(33, engine, 1) && !order.has_learnt(33, engine, 2));
    order.barrier();
    assert!(order.knows(0, &copies[1]) && order.has_learnt(63, engine, 1));
    // The next one is another matter.
    let next = access(&order, engine);
    order.landed(FULL, false);
    assert!(!order.knows(33, &next));
}

#[test]
fn a_named_barrier_tells_those_who_wait_what_all_knew_when_they_came() {
    let mut order = new(64);
    let before = access(&order, 0);
    assert_eq!(order.come_to_named((0, 1), 0), None);
    let after = access(&order, 0);
    assert_eq!(order.come_to_named((0, 1), 1), None);
    order.end_named_round((0, 1), &[0, 1], &[1]);
    assert!(order.knows(1, &before) && !order.knows(1, &after) && !order.knows(2, &before));
    // Who comes next must know of both.
    assert_eq!(order.come_to_named((0, 1), 2), Some(0));
    assert_eq!(order.come_to_named((0, 1), 0), Some(1));
    assert_eq!(order.come_to_named((0, 1), 1), None);
    assert_eq!(order.come_to_named((0, 2), 3), None);
}

#[test]
fn a_copy_to_global_memory_is_known_to_have_read_and_to_have_written() {
    let mut order = new(64);
    let write = access(&order, 5);
    let (reads, writes, group) = order.begin_store(5);
    assert!(group == 0 && order.knows(reads, &write) && !order.is_behind_fence(reads, &write));
    let (read, written) = (access(&order, reads), access(&order, writes));
    order.end_store(5);
    // One that is in no group is not waited for.
    assert_eq!(order.waited_for_stores(5, 0, true), 0);
    assert!(!order.knows(5, &read));
    order.commit_stores(5);
    assert_eq!(order.waited_for_stores(5, 1, true), 0);
    assert_eq!(order.waited_for_stores(5, 0, false), 1);
    assert!(order.knows(5, &read) && !order.knows(5, &written) && !order.knows(6, &read));
    assert_eq!(order.waited_for_stores(5, 0, true), 1);
    assert!(order.knows(5, &written));
    order.fence_proxy(5);
    let (reads, ..) = order.begin_store(5);
    assert!(order.is_behind_fence(reads, &write) && order.knows(reads, &written));
}

/// Nobody had an mbarrier yet, and a barrier of the block has told all what was written.
#[test]
fn a_fence_behind_a_barrier_is_one_for_what_was_written_before() {
    let mut order = ThreadOrder::default();
    let write = |order: &ThreadOrder, number: u32, clock: u32| {
        Now::new((0, number), (clock, 1), order, Location::caller()).record
    };
    let before = write(&order, 33, 1);
    order.barrier();
    let behind = write(&order, 33, 2);
    order.generalise(64, 2);
    let (reads, ..) = order.begin_store(5);
    assert!(!order.is_behind_fence(reads, &before), "there is no fence yet");
    order.fence_proxy(5);
    let (reads, ..) = order.begin_store(5);
    assert!(order.is_behind_fence(reads, &before) && !order.is_behind_fence(reads, &behind));
    // Another thread learns of it at the next barrier.
    let (reads, ..) = order.begin_store(6);
    assert!(!order.is_behind_fence(reads, &before));
    order.barrier();
    let (reads, ..) = order.begin_store(6);
    assert!(order.is_behind_fence(reads, &before));
}

#[test]
fn what_warps_knew_before_is_kept() {
    let mut order = ThreadOrder::default();
    assert!(order.is_empty());
    let old = access(&order, 33);
    order.sync(1, u32::MAX);
    assert!(order.knows(34, &old) && !order.knows(2, &old) && !order.is_general());
    let new = access(&order, 33);
    order.generalise(64, 0);
    assert!(order.knows(34, &old) && !order.knows(2, &old) && !order.knows(34, &new));
    // A warp that is not full, and more lanes than there are.
    let mut order = ThreadOrder::default();
    order.generalise(40, 0);
    let old = access(&order, 39);
    order.sync(1, u32::MAX);
    assert!(order.knows(32, &old));
}

#[test]
fn blocks_of_a_cluster_meet_at_its_barrier_and_not_at_their_own() {
    // Two blocks of 32 threads; a barrier of the first.
    let mut order = new(64);
    let (one, other) = (access(&order, 3), access(&order, 40));
    order.join(&(0..32).collect::<Vec<_>>());
    assert!(order.knows(0, &one) && !order.knows(32, &one) && !order.knows(0, &other));
    order.join(&(0..64).collect::<Vec<_>>());
    assert!(order.knows(32, &one) && order.knows(0, &other));
    let after = access(&order, 40);
    assert!(!order.knows(0, &after));
}

#[test]
fn a_clock_at_its_end_makes_no_race_up() {
    let mut order = new(32);
    for _ in 0..usize::from(LAST) - 1 {
        order.arrive(FULL, 0, true);
    }
    let last_but_one = access(&order, 0);
    assert_eq!(last_but_one.own_clock(), LAST - 1);
    assert!(!order.knows(1, &last_but_one));
    order.arrive(FULL, 0, true);
    for phase in 0..2 * REMEMBERED as u32 {
        order.waited(FULL, 1, phase);
    }
    assert!(order.knows(1, &last_but_one));
    // From here on nothing is told apart, and everything counts as known.
    let last = access(&order, 0);
    assert!(last.own_clock() == LAST && order.knows(2, &last) && order.has_learnt(2, 0, LAST));
    for _ in 0..5 {
        order.arrive(FULL, 0, true);
        order.waited(FULL, 3, 0);
        order.waited(FULL, 3, 1);
    }
    let engine = order.engine(FULL);
    for _ in 0..=LAST {
        order.landed(FULL, true);
    }
    assert!(order.knows(2, &access(&order, engine)));
}
