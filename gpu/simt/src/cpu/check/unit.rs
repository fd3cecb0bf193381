//! Units that access memory by themselves, and what a thread calls to wait for them.

use super::place::Place;

/// A unit that makes an access for a thread. The thread goes on meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// `cp.async` writes shared memory.
    AsyncCopy = 1,
    /// TMA writes shared memory.
    Load,
    /// TMA reads shared memory, for a copy to global memory.
    StoreRead,
    /// TMA writes global memory.
    StoreWrite,
    /// Tensor cores read operands in shared memory.
    Product,
}

/// How many groups that are younger than an access may be in flight while its thread waits for it.
/// `Open`: the access is in no group yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Open,
    Committed(u32),
}

impl Unit {
    /// The unit with that number.
    pub(super) fn numbered(number: u32) -> Option<Unit> {
        let all = [Unit::AsyncCopy, Unit::Load, Unit::StoreRead, Unit::StoreWrite, Unit::Product];
        all.into_iter().find(|unit| *unit as u32 == number)
    }

    /// What a thread calls to wait for the unit's access.
    pub(super) fn waits(self, group: Option<Group>) -> String {
        let (commit, wait) = match self {
            Unit::AsyncCopy => ("copies::commit_group", "copies::wait_group"),
            Unit::Load => return "Mbarrier::wait (in a pipeline Consumer::wait)".to_owned(),
            Unit::StoreRead => ("bulk::commit_group", "bulk::wait_group_read"),
            Unit::StoreWrite => ("bulk::commit_group", "bulk::wait_group"),
            Unit::Product => {
                let wait =
                    |most: &str| format!("Accumulators::wait{most} (or warpgroup::wait{most})");
                return match group {
                    Some(Group::Open) => format!("warpgroup::commit and {}", wait("::<0>")),
                    Some(Group::Committed(0)) => wait("::<0>"),
                    Some(Group::Committed(most)) => {
                        format!("{}, or with a smaller number,", wait(&format!("::<{most}>")))
                    }
                    None => format!("warpgroup::commit and {}", wait("")),
                };
            }
        };
        match group {
            Some(Group::Open) => format!("{commit} and {wait}::<0>"),
            Some(Group::Committed(0)) => format!("{wait}::<0>"),
            Some(Group::Committed(most)) => format!("{wait}::<{most}> (or a smaller number)"),
            None => wait.to_owned(),
        }
    }

    /// Says of an access, begun at `place`, that it is not waited for, and what waits for it.
    pub(super) fn not_waited_for(self, place: &Place, group: Option<Group>) -> String {
        let waits = self.waits(group);
        let what = match self {
            Unit::Load => {
                return format!(
                    "the copy begun at {place} (TMA) is not waited for: no {waits} before this access tells of its end"
                );
            }
            Unit::AsyncCopy => format!("copy begun at {place} (cp.async)"),
            Unit::StoreRead => format!("copy begun at {place} (TMA), which may still read,"),
            Unit::StoreWrite => format!("copy begun at {place} (TMA), which may still write,"),
            Unit::Product => format!("product begun at {place} (wgmma), which may still read,"),
        };
        let who = if self == Unit::Product { "The warpgroup" } else { "Its thread" };
        format!(
            "the {what} is not waited for. {who} must call {waits} before this access; other threads need a barrier, or an mbarrier, after the wait"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_has_what_waits_for_it() {
        let place = Place { file: "a.rs".to_owned(), line: 3, column: 5 };
        let after =
            "before this access; other threads need a barrier, or an mbarrier, after the wait";
        for (unit, group, expected) in [
            (
                Unit::AsyncCopy,
                Some(Group::Committed(2)),
                format!(
                    "the copy begun at a.rs:3:5 (cp.async) is not waited for. Its thread must call copies::wait_group::<2> (or a smaller \
                     number) {after}"
                ),
            ),
            (
                Unit::AsyncCopy,
                Some(Group::Open),
                format!(
                    "the copy begun at a.rs:3:5 (cp.async) is not waited for. Its thread must call copies::commit_group and \
                     copies::wait_group::<0> {after}"
                ),
            ),
            (
                Unit::StoreRead,
                Some(Group::Open),
                format!(
                    "the copy begun at a.rs:3:5 (TMA), which may still read, is not waited for. Its thread must call bulk::commit_group and \
                     bulk::wait_group_read::<0> {after}"
                ),
            ),
            (
                Unit::StoreWrite,
                Some(Group::Committed(0)),
                format!(
                    "the copy begun at a.rs:3:5 (TMA), which may still write, is not waited for. Its thread must call \
                     bulk::wait_group::<0> {after}"
                ),
            ),
            (
                Unit::Product,
                None,
                format!(
                    "the product begun at a.rs:3:5 (wgmma), which may still read, is not waited for. The warpgroup must call \
                     warpgroup::commit and Accumulators::wait (or warpgroup::wait) {after}"
                ),
            ),
            (
                Unit::Product,
                Some(Group::Committed(1)),
                format!(
                    "the product begun at a.rs:3:5 (wgmma), which may still read, is not waited for. The warpgroup must call \
                     Accumulators::wait::<1> (or warpgroup::wait::<1>), or with a smaller number, {after}"
                ),
            ),
            (
                Unit::Load,
                None,
                "the copy begun at a.rs:3:5 (TMA) is not waited for: no Mbarrier::wait (in a pipeline Consumer::wait) before this access \
                 tells of its end"
                    .to_owned(),
            ),
        ] {
            assert_eq!(unit.not_waited_for(&place, group), expected);
            assert_eq!(Unit::numbered(unit as u32), Some(unit));
        }
        assert_eq!(Unit::numbered(0), None);
    }
}
