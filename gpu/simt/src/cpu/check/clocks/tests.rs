//! What threads know of each other after the operations that clocks them.

use super::*;
use crate::cpu::check::shadow::Now;
use std::panic::Location;

/// Two mbarriers.
const FULL: Place = (0, 0);
const EMPTY: Place = (0, 8);

fn new(threads: usize) -> VectorClocks {
    let mut clocks = VectorClocks::default();
    clocks.generalise(threads, 0);
    clocks.init(FULL);
    clocks.init(EMPTY);
    clocks
}

/// An access of a thread, or an engine, now.
fn access(clocks: &VectorClocks, number: u32) -> Record {
    Now::new((0, number), (1, 1), clocks, Location::caller()).record
}

/// Whether a thread, or an engine, knows of an access.
fn knows(clocks: &VectorClocks, number: u32, old: &Record) -> bool {
    match clocks.known_to(number) {
        Some(known) => clocks.tells(known, old),
        None => clocks.knows_lane(number, old),
    }
}

fn is_behind_fence(clocks: &VectorClocks, number: u32, old: &Record) -> bool {
    clocks.known_to(number).is_some_and(|known| clocks.is_behind_fence(known, old))
}

#[test]
fn whoever_waits_knows_what_was_done_before_the_arrivals_and_not_after() {
    let mut clocks = new(64);
    let before = [access(&clocks, 0), access(&clocks, 40)];
    clocks.arrive(FULL, 0, false);
    clocks.arrive(FULL, 40, true);
    let after = access(&clocks, 40);
    assert!(before.iter().all(|old| !knows(&clocks, 1, old)));
    clocks.waited(FULL, 1, 0);
    assert!(before.iter().all(|old| knows(&clocks, 1, old)));
    assert!(!knows(&clocks, 1, &after) && !knows(&clocks, 2, &before[0]));
    // Arrivals of the next phase are known when it has ended.
    clocks.arrive(FULL, 40, false);
    clocks.waited(FULL, 1, 0);
    assert!(!knows(&clocks, 1, &after));
    clocks.arrive(FULL, 0, true);
    clocks.waited(FULL, 1, 1);
    assert!(knows(&clocks, 1, &after));
}

#[test]
fn what_was_known_is_handed_on() {
    let mut clocks = new(64);
    let first = access(&clocks, 0);
    clocks.arrive(FULL, 0, true);
    clocks.waited(FULL, 1, 0);
    clocks.arrive(EMPTY, 1, true);
    clocks.waited(EMPTY, 2, 0);
    assert!(knows(&clocks, 2, &first));
    // To the lanes of a warp, and to no other.
    clocks.sync(0, 0b1100);
    assert!(knows(&clocks, 3, &first) && !knows(&clocks, 4, &first) && !knows(&clocks, 34, &first));
    // To all threads of the block.
    clocks.barrier();
    assert!(knows(&clocks, 4, &first) && knows(&clocks, 63, &first));
}

#[test]
fn a_wait_that_need_not_wait_tells_nothing() {
    let mut clocks = new(64);
    let write = access(&clocks, 0);
    // The phase before the first counts as ended.
    clocks.waited(FULL, 1, 1);
    clocks.arrive(FULL, 0, true);
    clocks.waited(FULL, 1, 0);
    assert!(knows(&clocks, 1, &write));
    let second = access(&clocks, 0);
    clocks.arrive(FULL, 0, true);
    let third = access(&clocks, 0);
    clocks.arrive(FULL, 0, true);
    // Three phases have ended, but to wait for parity 0 again says no more than the first did.
    clocks.waited(FULL, 1, 0);
    assert!(!knows(&clocks, 1, &second));
    clocks.waited(FULL, 1, 1);
    assert!(knows(&clocks, 1, &second) && !knows(&clocks, 1, &third));
    clocks.waited(FULL, 1, 0);
    assert!(knows(&clocks, 1, &third));
    // Knowledge that another thread passed on counts, too.
    let fourth = access(&clocks, 0);
    clocks.arrive(FULL, 0, true);
    clocks.join(&[1, 2]);
    clocks.waited(FULL, 2, 1);
    assert!(knows(&clocks, 2, &fourth));
}

#[test]
fn who_falls_behind_what_is_remembered_learns_too_much_rather_than_nothing() {
    let mut clocks = new(32);
    let first = access(&clocks, 0);
    for _ in 0..2 * REMEMBERED_PHASES + 1 {
        clocks.arrive(FULL, 0, true);
    }
    clocks.waited(FULL, 1, 0);
    assert!(knows(&clocks, 1, &first));
}

#[test]
fn a_copy_is_known_to_those_who_have_waited_for_its_mbarrier() {
    let mut clocks = new(64);
    clocks.arrive(FULL, 0, false);
    let engine = clocks.engine(FULL);
    assert!(engine >= FIRST_ENGINE && engine != clocks.engine(EMPTY));
    let copies = [(); 2].map(|()| {
        let copy = access(&clocks, engine);
        clocks.landed(FULL, copy.own_clock() == 1);
        copy
    });
    // Not even to who began it, nor after a barrier.
    clocks.barrier();
    assert!(!knows(&clocks, 0, &copies[0]));
    clocks.waited(FULL, 33, 0);
    assert!(copies.iter().all(|copy| copy.is_engine() && knows(&clocks, 33, copy)));
    assert!(clocks.has_learnt(33, engine, 1) && !clocks.has_learnt(33, engine, 2));
    clocks.barrier();
    assert!(knows(&clocks, 0, &copies[1]) && clocks.has_learnt(63, engine, 1));
    // The next one is another matter.
    let next = access(&clocks, engine);
    clocks.landed(FULL, false);
    assert!(!knows(&clocks, 33, &next));
}

#[test]
fn a_named_barrier_tells_those_who_wait_what_all_knew_when_they_came() {
    let mut clocks = new(64);
    let before = access(&clocks, 0);
    assert_eq!(clocks.arrive_at_named((0, 1), 0), None);
    let after = access(&clocks, 0);
    assert_eq!(clocks.arrive_at_named((0, 1), 1), None);
    clocks.end_named_round((0, 1), &[0, 1], &[1]);
    assert!(
        knows(&clocks, 1, &before) && !knows(&clocks, 1, &after) && !knows(&clocks, 2, &before)
    );
    // Who comes next must know of both.
    assert_eq!(clocks.arrive_at_named((0, 1), 2), Some(0));
    assert_eq!(clocks.arrive_at_named((0, 1), 0), Some(1));
    assert_eq!(clocks.arrive_at_named((0, 1), 1), None);
    assert_eq!(clocks.arrive_at_named((0, 2), 3), None);
}

#[test]
fn a_copy_to_global_memory_is_known_to_have_read_and_to_have_written() {
    let mut clocks = new(64);
    let write = access(&clocks, 5);
    let (reads, writes, group) = clocks.begin_store(5);
    assert!(
        group == 0 && knows(&clocks, reads, &write) && !is_behind_fence(&clocks, reads, &write)
    );
    let (read, written) = (access(&clocks, reads), access(&clocks, writes));
    clocks.end_store(5);
    // One that is in no group is not waited for.
    assert_eq!(clocks.waited_for_stores(5, 0, true), 0);
    assert!(!knows(&clocks, 5, &read));
    clocks.commit_stores(5);
    assert_eq!(clocks.waited_for_stores(5, 1, true), 0);
    assert_eq!(clocks.waited_for_stores(5, 0, false), 1);
    assert!(knows(&clocks, 5, &read) && !knows(&clocks, 5, &written) && !knows(&clocks, 6, &read));
    assert_eq!(clocks.waited_for_stores(5, 0, true), 1);
    assert!(knows(&clocks, 5, &written));
    clocks.fence_proxy(5);
    let (reads, ..) = clocks.begin_store(5);
    assert!(is_behind_fence(&clocks, reads, &write) && knows(&clocks, reads, &written));
}

/// Before the first mbarrier, a barrier of the block has ordered all writes.
#[test]
fn a_fence_behind_a_barrier_is_one_for_what_was_written_before() {
    let mut clocks = VectorClocks::default();
    let write = |clocks: &VectorClocks, number: u32, clock: u32| {
        Now::new((0, number), (clock, 1), clocks, Location::caller()).record
    };
    let before = write(&clocks, 33, 1);
    clocks.barrier();
    let behind = write(&clocks, 33, 2);
    clocks.generalise(64, 2);
    let (reads, ..) = clocks.begin_store(5);
    assert!(!is_behind_fence(&clocks, reads, &before), "there is no fence yet");
    clocks.fence_proxy(5);
    let (reads, ..) = clocks.begin_store(5);
    assert!(is_behind_fence(&clocks, reads, &before) && !is_behind_fence(&clocks, reads, &behind));
    // Another thread learns of it at the next barrier.
    let (reads, ..) = clocks.begin_store(6);
    assert!(!is_behind_fence(&clocks, reads, &before));
    clocks.barrier();
    let (reads, ..) = clocks.begin_store(6);
    assert!(is_behind_fence(&clocks, reads, &before));
}

#[test]
fn what_warps_knew_before_is_kept() {
    let mut clocks = VectorClocks::default();
    assert!(clocks.is_empty());
    let old = access(&clocks, 33);
    clocks.sync(1, u32::MAX);
    assert!(knows(&clocks, 34, &old) && !knows(&clocks, 2, &old) && !clocks.is_general());
    let new = access(&clocks, 33);
    clocks.generalise(64, 0);
    assert!(knows(&clocks, 34, &old) && !knows(&clocks, 2, &old) && !knows(&clocks, 34, &new));
    // A warp that is not full, and more lanes than there are.
    let mut clocks = VectorClocks::default();
    clocks.generalise(40, 0);
    let old = access(&clocks, 39);
    clocks.sync(1, u32::MAX);
    assert!(knows(&clocks, 32, &old));
}

#[test]
fn blocks_of_a_cluster_meet_at_its_barrier_and_not_at_their_own() {
    // Two blocks of 32 threads; a barrier of the first.
    let mut clocks = new(64);
    let (one, other) = (access(&clocks, 3), access(&clocks, 40));
    clocks.join(&(0..32).collect::<Vec<_>>());
    assert!(knows(&clocks, 0, &one) && !knows(&clocks, 32, &one) && !knows(&clocks, 0, &other));
    clocks.join(&(0..64).collect::<Vec<_>>());
    assert!(knows(&clocks, 32, &one) && knows(&clocks, 0, &other));
    let after = access(&clocks, 40);
    assert!(!knows(&clocks, 0, &after));
}

#[test]
fn a_clock_at_its_end_makes_no_race_up() {
    let mut clocks = new(32);
    for _ in 0..usize::from(LAST_CLOCK) - 1 {
        clocks.arrive(FULL, 0, true);
    }
    let last_but_one = access(&clocks, 0);
    assert_eq!(last_but_one.own_clock(), LAST_CLOCK - 1);
    assert!(!knows(&clocks, 1, &last_but_one));
    clocks.arrive(FULL, 0, true);
    for phase in 0..2 * REMEMBERED_PHASES as u32 {
        clocks.waited(FULL, 1, phase);
    }
    assert!(knows(&clocks, 1, &last_but_one));
    // From here on clocks do not differ, and everything counts as known.
    let last = access(&clocks, 0);
    assert!(
        last.own_clock() == LAST_CLOCK
            && knows(&clocks, 2, &last)
            && clocks.has_learnt(2, 0, LAST_CLOCK)
    );
    for _ in 0..5 {
        clocks.arrive(FULL, 0, true);
        clocks.waited(FULL, 3, 0);
        clocks.waited(FULL, 3, 1);
    }
    let engine = clocks.engine(FULL);
    for _ in 0..=LAST_CLOCK {
        clocks.landed(FULL, true);
    }
    assert!(knows(&clocks, 2, &access(&clocks, engine)));
}
