//! What to write against a finding, and the page about its kind.

use super::{
    finding::{Finding, Kind},
    place::Place,
};

/// The page about the kinds, with a part for each.
const PAGE: &str = include_str!("../../../FINDINGS.md");

impl Kind {
    /// The heading of its part of the page FINDINGS.md.
    pub fn heading(self) -> &'static str {
        match self {
            Kind::ReadAfterWrite | Kind::WriteAfterRead | Kind::WriteAfterWrite => "race",
            kind => kind.name(),
        }
    }

    /// Where that part is.
    pub fn page(self) -> String {
        format!("gpu/simt/FINDINGS.md#{}", self.heading())
    }

    /// Its part of the page FINDINGS.md: what the mistake is, and what to write.
    pub fn explanation(self) -> &'static str {
        explanation(self.heading()).unwrap_or_default()
    }
}

/// The part of the page FINDINGS.md about the kind of this name, such as `read-after-write`.
pub fn explanation(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace("ized", "ised");
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let name = match kind {
        Some(kind) => kind.heading(),
        None => &*name,
    };
    let parts = PAGE.split("\n## ").skip(1);
    parts.map(|part| part.trim_end()).find(|part| part.lines().next() == Some(name))
}

/// The names that [`explanation`] knows, in the page's order.
pub fn explained() -> impl Iterator<Item = &'static str> {
    PAGE.lines().filter_map(|line| line.strip_prefix("## "))
}

impl Finding {
    /// What to write, where that is known. It may be the [detail](Self::detail).
    pub fn advice(&self) -> Option<&str> {
        let Finding { kind, memory, place, other_place, same_value, detail, examples, .. } = self;
        let is_shared =
            memory.as_ref().is_some_and(|memory| memory.starts_with("the shared array"));
        let between_blocks = examples
            .iter()
            .any(|example| example.other.is_some_and(|(block, _)| block != example.block));
        let line = |place: &Option<Place>| place.as_ref().map(|it| (it.file.clone(), it.line));
        let is_one_line = place.is_some() && line(place) == line(other_place);
        let advice = match kind {
            // The detail says it.
            Kind::ProxyFence | Kind::BeforeWait | Kind::UnbegunBlock | Kind::EndedBlock => detail,
            Kind::ReadAfterWrite | Kind::WriteAfterRead | Kind::WriteAfterWrite
                if !detail.is_empty() && !same_value =>
            {
                detail
            }
            Kind::ReadAfterWrite | Kind::WriteAfterRead | Kind::WriteAfterWrite
                if between_blocks =>
            {
                "no barrier orders the blocks of a launch: let one block make both accesses, add by `atomic_add`, make two \
                 launches, or tell by `atomic(i)` behind `thread::fence_device()`"
            }
            Kind::WriteAfterWrite if place == other_place => {
                "let one thread write each element; for a sum there is `atomic_add`"
            }
            Kind::ReadAfterWrite | Kind::WriteAfterRead if is_one_line => {
                "keep what is read in a variable, with `thread::sync_threads();` before the write; in a loop, another at the \
                 end of each trip"
            }
            Kind::ReadAfterWrite | Kind::WriteAfterRead | Kind::WriteAfterWrite => {
                "write `thread::sync_threads();` between the two accesses, where every thread of the block reaches it"
            }
            Kind::Uninitialised if is_shared => {
                "let a thread of the block write it first, with `thread::sync_threads();` between the write and this read"
            }
            Kind::Uninitialised => {
                "write it first; a buffer that holds values at the launch is passed by `Out::new`"
            }
            Kind::OutOfBounds if is_shared => "the index, or the length of the array, is wrong",
            Kind::OutOfBounds => {
                "put the access into an `if`: threads of the last block may be beyond the end"
            }
            Kind::Misaligned => "ask `is_aligned128` first, or access single elements",
            Kind::BarrierSkipped => {
                "move the barrier out of the branch or the loop that some threads leave out; no thread may return before it"
            }
            Kind::BarrierMismatch => "let all threads wait at one barrier, outside of the branches",
            Kind::BarrierMisuse => {
                "let `init` count the arrivals of one phase, and one thread initialise, before a barrier"
            }
            Kind::Deadlock => {
                "let all threads that it waits for come, outside of branches that some of them do not take"
            }
            Kind::Transaction => "announce the bytes of all copies of the phase, and no others",
            Kind::StackOverflow => {
                "make the stack larger, `#[kernel(stack = BYTES)]`, or the arrays smaller"
            }
            Kind::Endless => {
                "let a thread make the loop's condition true; `Options::patience`, `most_waits` and `most_accesses` \
                 are the limits for a kernel that takes long"
            }
            Kind::SharedSize => "let `#[kernel(shared = ..)]` be the bytes of all shared arrays",
            Kind::NeverRead | Kind::NeverWritten => {
                "launch more blocks, or let a thread take more elements (`options.complete` asks for all)"
            }
            // The detail is a sentence of its own.
            Kind::Panic | Kind::Launch => return None,
        };
        Some(advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_part_for_each_kind_and_no_other() {
        let headings = explained().collect::<Vec<_>>();
        let mut of_kinds = Kind::ALL.map(Kind::heading).to_vec();
        of_kinds.dedup();
        of_kinds.sort_unstable();
        let mut sorted = headings.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, of_kinds);
        for kind in Kind::ALL {
            let loud = kind.name().to_uppercase().replace("ISED", "IZED");
            assert_eq!(explanation(&loud), Some(kind.explanation()));
            assert!(kind.explanation().lines().count() > 2, "{kind:?}");
        }
        assert_eq!(explanation("nonsense"), None);
    }
}
