//! Why a cluster cannot go on: who waits where, and for what that does not come.

use std::collections::BTreeMap;

use super::{Scheduler, location};
use crate::cpu::{
    block::{State, Thread},
    cluster::Wait,
    fault::{FaultKind, Stop},
};

impl Scheduler<'_> {
    /// A shuffle that reads a lane that takes no part in it.
    #[cold]
    pub(super) fn wrong_source(&self, thread: &Thread, source: u32) -> Stop {
        let mask = thread.run().warp_operation(thread).get().mask;
        let reason = format!("reads lane {source}, which takes no part: the mask is {mask:#010x}");
        let (operation, location) = ("shuffle", location(thread));
        self.fault(thread, FaultKind::WarpOperation { operation, reason, location })
    }

    /// No thread can go on.
    #[cold]
    pub(super) fn stuck(&self) -> Stop {
        for (run, lanes) in self.warps() {
            // Its other lanes may wait because of what one waits for.
            if lanes.iter().any(|lane| lane.state.get() == State::Waits) {
                continue;
            }
            for thread in lanes {
                if thread.state.get() != State::InWarp {
                    continue;
                }
                if let Some(reason) = self.missing_partner(lanes, thread) {
                    let kind = FaultKind::WarpOperation {
                        operation: run.warp_operation(thread).get().kind.name(),
                        reason: format!("{reason}; {}", self.who_waits_where()),
                        location: location(thread),
                    };
                    return self.fault(thread, kind);
                }
            }
        }
        // What others have not done says more than an mbarrier or a product, and these than the cluster's threads, which may wait
        // because of it.
        let waiting = || self.slot.threads.iter().filter(|t| t.state.get() == State::Waits);
        let wait_of = |thread: &&Thread| self.cluster.wait_of(thread).get();
        let for_word = waiting().find(|thread| matches!(wait_of(thread), Wait::Word(..)));
        let says_more = |thread: &&Thread| !matches!(wait_of(thread), Wait::Cluster);
        let thread = for_word.or_else(|| waiting().find(says_more)).or_else(|| waiting().next());
        let Some(thread) = thread else {
            unreachable!("a thread waits, and neither for its block nor for its warp nor for more")
        };
        let (operation, missing) = match self.cluster.wait_of(thread).get() {
            Wait::Mbarrier(_, parity) => {
                ("wait for an mbarrier", format!("for the end of a phase of parity {parity}"))
            }
            Wait::Products(key, number) => {
                ("wait for products", self.cluster.warpgroup(key).missing(number))
            }
            Wait::Named(at) => {
                let missing = self.cluster.missing_at_named(at);
                ("sync of a named barrier", format!("of id {}: {missing}", at.1))
            }
            Wait::Word(_, wanted) => {
                ("wait for a word", format!("for at least {wanted}, which no block makes it"))
            }
            Wait::Cluster => ("cluster::sync", "threads of the cluster never come".to_owned()),
        };
        let reason = format!("{missing}; {}", self.who_waits_where());
        let location = location(thread);
        self.fault(thread, FaultKind::Wait { operation, reason, location })
    }

    /// Where every thread of the cluster is.
    #[cold]
    fn who_waits_where(&self) -> String {
        let mut places = BTreeMap::<String, usize>::new();
        for thread in &self.slot.threads {
            let at = |what: &str| format!("at the {what} at {}", location(thread));
            let place = match thread.state.get() {
                State::Running => at("barrier"),
                State::InWarp => at(thread.run().warp_operation(thread).get().kind.name()),
                State::Waits => match self.cluster.wait_of(thread).get() {
                    Wait::Mbarrier(place, _) => {
                        format!("{} ({})", at("wait"), self.cluster.missing(place))
                    }
                    Wait::Products(..) => at("wait for products"),
                    Wait::Named((_, id)) => at(&format!("named barrier {id}")),
                    Wait::Word(..) => at("wait for a word"),
                    Wait::Cluster => at("cluster::sync"),
                },
                State::Released => "not waiting".to_owned(),
                State::Ended => "ended".to_owned(),
            };
            *places.entry(place).or_default() += 1;
        }
        let places = places.iter().map(|(place, threads)| format!("{threads} {place}"));
        let all = if self.runs.len() > 1 { "cluster" } else { "block" };
        format!("threads of the {all}: {}", places.collect::<Vec<_>>().join(", "))
    }

    /// Why a lane's warp operation is not complete. `None` where it is.
    pub(super) fn missing_partner(&self, lanes: &[Thread], thread: &Thread) -> Option<String> {
        let own = thread.run().warp_operation(thread).get();
        if own.mask >> thread.lane() & 1 == 0 {
            return Some(format!(
                "its mask {:#010x} does not name lane {}",
                own.mask,
                thread.lane()
            ));
        }
        // Lanes that a block's last warp does not have are not waited for.
        lanes.iter().filter(|lane| own.mask >> lane.lane() & 1 == 1).find_map(|lane| {
            let (number, at) = (lane.lane(), || location(lane));
            let other = lane.run().warp_operation(lane).get();
            match lane.state.get() {
                State::InWarp if other.kind.name() != own.kind.name() => {
                    Some(format!("lane {number} waits at the {} at {}", other.kind.name(), at()))
                }
                State::InWarp if other.mask != own.mask => Some(format!(
                    "lane {number} waits with mask {:#010x} (at {}), not {:#010x}",
                    other.mask,
                    at(),
                    own.mask
                )),
                State::InWarp => None,
                State::Running => {
                    Some(format!("lane {number} waits at the block's barrier at {}", at()))
                }
                State::Waits => Some(format!("lane {number} waits at {}", at())),
                State::Ended => Some(format!("lane {number} has ended")),
                State::Released => Some(format!("lane {number} has not come to it")),
            }
        })
    }
}
