//! A finding: one thing that is wrong with a kernel, and how it is shown.

use std::{borrow::Cow, fmt};

use super::{place::Place, shadow::Hazard, source};

/// One thing that is wrong, however often it happened. A race is identified by its two source lines
/// and the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// The kernel's name.
    pub kernel: &'static str,
    /// The buffer or shared array.
    pub memory: Option<String>,
    /// The number of columns of a shared array with rows and columns.
    pub columns: Option<usize>,
    /// Where it happened.
    pub place: Option<Place>,
    /// The place of the other thread's conflicting access, or of its wait.
    pub other_place: Option<Place>,
    /// Of [`Kind::NeverRead`] and [`Kind::NeverWritten`]: which elements.
    pub untouched: Option<Untouched>,
    /// Of [`Kind::WriteAfterWrite`]: whether all these writes seem to have written the value that
    /// was there already. It may be wrong: for a value that another worker's thread wrote
    /// meanwhile, and where a thread holds a reference to the element and reads before it writes.
    pub same_value: bool,
    /// Further details as text; may be empty.
    pub detail: String,
    /// The number of times that it was seen.
    pub count: u64,
    /// A few of the times that it was seen.
    pub examples: Vec<Example>,
}

/// Elements of a buffer that no thread has read, or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untouched {
    /// How many.
    pub count: usize,
    /// The index of the first.
    pub first: usize,
}

/// One time that a finding was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Example {
    /// The block's index along x, y, z.
    pub block: [u32; 3],
    /// The thread's index along x, y, z.
    pub thread: [u32; 3],
    /// The index of the element in the buffer or shared array.
    pub element: Option<usize>,
    /// The other thread: its block's index and its own. It is the same thread where a copy or
    /// tensor cores made one of the two accesses for it.
    pub other: Option<([u32; 3], [u32; 3])>,
    /// Whether the other access is a copy that the other thread has begun and that is still in
    /// flight.
    pub in_flight: bool,
}

/// Defines [`Kind`] by a row for each kind: its name for programs, and what is wrong.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $name:literal, $wrong:literal;)*) => {
        /// The kinds of findings, in the order in which they are reported: what may be the cause of
        /// others comes first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind),*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: [Kind; [$($name),*].len()] = [$(Kind::$kind),*];

            /// A short name for programs, such as `read-after-write`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name),*
                }
            }
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(match self {
                    $(Kind::$kind => $wrong),*
                })
            }
        }
    };
}

kinds! {
    /// A launch that breaks the kernel's declaration or a limit of the device.
    Launch: "launch", "a launch that the kernel or the device does not allow";
    /// Shared arrays whose size differs from the kernel's declaration.
    SharedSize: "shared-size", "shared arrays whose size differs from the declaration";
    /// A thread that overflows its stack.
    StackOverflow: "stack-overflow", "a stack that is too small";
    /// A panic in the kernel.
    Panic: "panic", "a panic";
    /// A barrier, or an mbarrier, that is used as it must not be: more arrivals than a phase waits
    /// for, no initialisation, a second one, a barrier within another.
    BarrierMisuse: "barrier-misuse", "a barrier that is used as it must not be";
    /// A barrier at which some threads of the block wait, and that others never reach.
    BarrierSkipped: "barrier-skipped", "a barrier that not all threads of the block reach";
    /// Threads of a block that wait at different barriers, or arrive at a named barrier whose
    /// previous round may not have ended.
    BarrierMismatch: "barrier-mismatch", "threads of a block at different barriers";
    /// Threads that wait for what never comes: a deadlock, or a warp operation that some of its
    /// lanes never reach.
    Deadlock: "deadlock", "threads that wait for what never comes";
    /// A thread that does not end.
    Endless: "endless", "a thread that does not end";
    /// A race: a thread read what another wrote, and nothing orders the two.
    ReadAfterWrite: "read-after-write", "race: a read after a write";
    /// A race: a thread wrote what another had read, and nothing orders the two.
    WriteAfterRead: "write-after-read", "race: a write after a read";
    /// A race: two threads wrote one element, and nothing orders them.
    WriteAfterWrite: "write-after-write", "race: a write after a write";
    /// A read of memory that no thread has written.
    Uninitialised: "uninitialised", "a read of memory that no thread has written";
    /// An access outside a buffer or a shared array.
    OutOfBounds: "out-of-bounds", "an access out of bounds";
    /// A 128-bit access, or a TMA copy of a box, at an address that is no multiple of 16 bytes.
    Misaligned: "misaligned", "a misaligned access";
    /// Tensor cores or a TMA copy read what a thread wrote, without a `fence_proxy_async` between.
    ProxyFence: "proxy-fence", "a read by tensor cores or TMA of what a thread wrote without a proxy fence";
    /// Copies with other bytes than their mbarrier expects.
    Transaction: "transaction", "copies of other bytes than were announced to their mbarrier";
    /// A block that may end before the last use of its shared memory by another block of its
    /// cluster, or by a copy.
    EndedBlock: "ended-block", "a use of shared memory of a block that may have ended";
    /// A use of another block's shared memory without a barrier that tells that the block has
    /// begun.
    UnbegunBlock: "unbegun-block", "a use of shared memory of a block that may not have begun";
    /// An access to global memory in a `dependent` kernel before the wait for earlier kernels.
    BeforeWait: "before-wait", "an access before the wait for earlier kernels";
    /// Elements of an input that no thread has read.
    NeverRead: "never-read", "input elements that no thread read";
    /// Elements of an output that no thread has written.
    NeverWritten: "never-written", "output elements that no thread wrote";
}

impl Kind {
    /// The verbs for the two accesses of a race, the later access first.
    fn race(self) -> Option<(&'static str, &'static str)> {
        match self {
            Kind::ReadAfterWrite | Kind::ProxyFence => Some(("reads", "wrote")),
            Kind::WriteAfterRead => Some(("writes", "read")),
            Kind::WriteAfterWrite => Some(("writes", "wrote")),
            _ => None,
        }
    }
}

impl From<Hazard> for Kind {
    fn from(hazard: Hazard) -> Self {
        match hazard {
            Hazard::ReadAfterWrite => Kind::ReadAfterWrite,
            Hazard::WriteAfterRead => Kind::WriteAfterRead,
            Hazard::WriteAfterWrite => Kind::WriteAfterWrite,
        }
    }
}

impl Finding {
    /// A finding that concerns no particular thread.
    pub(super) fn general(
        kind: Kind,
        kernel: &'static str,
        memory: Option<String>,
        detail: String,
    ) -> Self {
        Finding {
            kind,
            kernel,
            memory,
            columns: None,
            place: None,
            other_place: None,
            untouched: None,
            same_value: false,
            detail,
            count: 1,
            examples: Vec::new(),
        }
    }

    /// The same text as `Display`, with the source lines that `source` gives. (`Display` reads each
    /// line from its file, if the file exists and is older than the program.)
    pub fn with_source<'text>(
        &self,
        source: impl Fn(&Place) -> Option<&'text str>,
    ) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(f, &|place| source(place).map(Cow::Borrowed)))
    }

    /// What is wrong, where in memory, and how often: the first line of the text.
    pub(super) fn title(&self) -> String {
        let mut title = match self.kind {
            // One barrier, and two of its rounds.
            Kind::BarrierMismatch if self.other_place.is_none() => {
                "an arrival that may be counted in a barrier's previous round".to_owned()
            }
            kind => kind.to_string(),
        };
        if let Some(memory) = &self.memory {
            title += &format!(", in {memory}");
        }
        if self.count > 1 {
            title += &format!(" ({} times)", self.count);
        }
        title
    }

    /// What the two accesses of a race do, the later first.
    pub(super) fn verbs(&self) -> Option<(&'static str, &'static str)> {
        self.kind.race()
    }

    /// Whether both are one finding of different launches.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.kernel, self.kind, &self.memory) == (other.kernel, other.kind, &other.memory)
            && (&self.place, &self.other_place) == (&other.place, &other.other_place)
    }

    fn write_example(&self, f: &mut fmt::Formatter, example: &Example) -> fmt::Result {
        let Example { block, thread, element, other, in_flight } = example;
        write!(f, "block {block:?} thread {thread:?}")?;
        match (element, self.columns) {
            (Some(element), Some(columns)) => {
                write!(f, ", element ({}, {})", element / columns, element % columns)?;
            }
            (Some(element), None) => write!(f, ", element {element}")?,
            (None, _) => {}
        }
        match other {
            // A unit acts for a thread: one of the two accesses is the unit's.
            Some(other) if *other == (*block, *thread) => {
                let what = if *in_flight { "copy" } else { "access" };
                write!(f, ", against its own {what}")
            }
            Some((other_block, other)) => {
                let copy = if *in_flight { "a copy of " } else { "" };
                write!(f, ", against {copy}")?;
                if other_block != block {
                    write!(f, "block {other_block:?} ")?;
                }
                write!(f, "thread {other:?}")
            }
            None => Ok(()),
        }
    }

    /// The examples, a line each.
    pub(super) fn examples(&self) -> impl Iterator<Item = String> {
        self.examples
            .iter()
            .map(|example| fmt::from_fn(|f| self.write_example(f, example)).to_string())
    }

    fn write<'text>(
        &self,
        f: &mut fmt::Formatter,
        source: &dyn Fn(&Place) -> Option<Cow<'text, str>>,
    ) -> fmt::Result {
        let write_place = |f: &mut fmt::Formatter, does: &str, place: &Place| {
            write!(f, "\n    {does:<6} {place}")?;
            let Some(line) = source(place) else { return Ok(()) };
            let text = line.trim_start();
            let indent = line.chars().count() - text.chars().count();
            let column = (place.column as usize).saturating_sub(1 + indent);
            write!(f, "\n           {}\n           {:column$}^", text.trim_end(), "")
        };
        write!(f, "{}", self.title())?;
        let race = self.kind.race();
        let (does, did) = race.unwrap_or(("at", "and at"));
        // Where threads wait in vain, the detail says what waits at that place.
        let is_told = |place: &&Place| {
            let place = place.to_string();
            let mut words = self.detail.split([' ', '\n', ',', ';']);
            race.is_some() || !words.any(|word| word.trim_end_matches([':', '.']) == place)
        };
        if let Some(place) = self.place.as_ref().filter(is_told) {
            write_place(f, does, place)?;
        }
        if let Some(place) = &self.other_place {
            write_place(f, did, place)?;
        }
        if !self.detail.is_empty() {
            write!(f, "\n    {}", self.detail)?;
        }
        self.examples.iter().try_for_each(|example| {
            write!(f, "\n    ")?;
            self.write_example(f, example)
        })?;
        let advice = self.advice().filter(|advice| *advice != self.detail);
        advice.map_or(Ok(()), |advice| write!(f, "\n    help: {advice}"))?;
        write!(f, "\n    page: {}", self.kind.page())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.write(f, &|place| source::line(place).map(Cow::Owned))
    }
}
