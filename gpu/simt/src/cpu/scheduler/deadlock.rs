//! The fault of a cluster in which no thread can go on: which thread waits in vain, and where the
//! others are.

use std::collections::BTreeMap;

use super::{Scheduler, location};
use crate::cpu::{
    block::{State, Thread},
    cluster::Wait,
    fault::{FaultKind, Stop},
};

impl Scheduler<'_> {
    /// The fault of a shuffle that reads a lane outside its mask.
    #[cold]
    pub(super) fn wrong_source(&self, thread: &Thread, source: u32) -> Stop {
        let mask = thread.run().warp_operation(thread).get().mask;
        let reason = format!("reads lane {source}, which takes no part: the mask is {mask:#010x}");
        let (operation, location) = ("shuffle", location(thread));
        self.fault(thread, FaultKind::WarpOperation { operation, reason, location })
    }

    /// The fault of a cluster in which no thread can go on.
    #[cold]
    pub(super) fn deadlock(&self) -> Stop {
        for (run, lanes) in self.warps() {
            // A lane that waits for something else may keep the others waiting: that lane is
            // reported.
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
                        reason: format!("{reason}; {}", self.where_threads_are()),
                        location: location(thread),
                    };
                    return self.fault(thread, kind);
                }
            }
        }
        // A flag says more than an mbarrier or a product, and these more than a barrier of the
        // cluster, whose threads may wait because of the others.
        let waiting = || self.slot.threads.iter().filter(|t| t.state.get() == State::Waits);
        let wait_of = |thread: &&Thread| self.cluster.wait_of(thread.number).get();
        let for_flag = waiting().find(|thread| matches!(wait_of(thread), Wait::Flag(_)));
        let says_more = |thread: &&Thread| !matches!(wait_of(thread), Wait::Cluster(_));
        let thread = for_flag.or_else(|| waiting().find(says_more)).or_else(|| waiting().next());
        let Some(thread) = thread else {
            unreachable!("a thread waits that is neither at a barrier nor in a warp operation")
        };
        let (operation, missing) = match self.cluster.wait_of(thread.number).get() {
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
            Wait::Flag(flag) => {
                let at_least = flag.at_least;
                ("wait for a flag", format!("for at least {at_least}, which it never reaches"))
            }
            Wait::Cluster(_) => ("cluster::sync", "threads of the cluster never come".to_owned()),
        };
        let reason = format!("{missing}; {}", self.where_threads_are());
        let location = location(thread);
        self.fault(thread, FaultKind::Wait { operation, reason, location })
    }

    /// Where the threads of the cluster are, as text.
    #[cold]
    fn where_threads_are(&self) -> String {
        let mut places = BTreeMap::<String, usize>::new();
        for thread in &self.slot.threads {
            let at = |what: &str| format!("at the {what} at {}", location(thread));
            let place = match thread.state.get() {
                State::Running => at("barrier"),
                State::InWarp => at(thread.run().warp_operation(thread).get().kind.name()),
                State::Waits => match self.cluster.wait_of(thread.number).get() {
                    Wait::Mbarrier(place, _) => {
                        format!("{} ({})", at("wait"), self.cluster.missing(place))
                    }
                    Wait::Products(..) => at("wait for products"),
                    Wait::Named((_, id)) => at(&format!("named barrier {id}")),
                    Wait::Flag(_) => at("wait for a flag"),
                    Wait::Cluster(_) => at("cluster::sync"),
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

    /// Why a lane's warp operation cannot be completed; `None` where it can.
    pub(super) fn missing_partner(&self, lanes: &[Thread], thread: &Thread) -> Option<String> {
        let own = thread.run().warp_operation(thread).get();
        if own.mask >> thread.lane() & 1 == 0 {
            return Some(format!(
                "its mask {:#010x} does not name lane {}",
                own.mask,
                thread.lane()
            ));
        }
        // A block's last warp may have fewer lanes. The missing ones are not waited for.
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
