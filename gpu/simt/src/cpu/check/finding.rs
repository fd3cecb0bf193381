//! What a checked launch found.

use std::{borrow::Cow, collections::HashMap, fmt, panic::Location};

use super::{
    profile::Profile,
    record::{Hazard, Record},
    source,
    trace::Trace,
};
use crate::Order;

/// What a checked launch found, and in which order it ran.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The order of blocks, warps and lanes: with it the launch can be repeated.
    pub order: Order,
    /// What is wrong. Empty: nothing was found.
    pub findings: Vec<Finding>,
    /// What was counted, if that was asked for.
    pub profile: Option<Profile>,
    /// What the block did that was to be traced; `None` where none was, or the grid does not have it.
    pub trace: Option<Trace>,
}

impl Report {
    /// Was nothing found?
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Report { kernel, order, findings, .. } = self;
        match findings.len() {
            0 => return write!(f, "{kernel}: nothing found (order: {order})"),
            1 => write!(f, "{kernel}: 1 finding (order: {order})")?,
            count => write!(f, "{kernel}: {count} findings (order: {order})")?,
        }
        findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

/// One thing that is wrong, however often it happened: a pair of source lines and the memory they met in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// The kernel's name.
    pub kernel: &'static str,
    /// The buffer or shared array.
    pub memory: Option<String>,
    /// Of a shared array with rows and columns, how many columns.
    pub columns: Option<usize>,
    /// Where it happened.
    pub place: Option<Place>,
    /// Where the other thread was, or is, that this one conflicts with.
    pub other_place: Option<Place>,
    /// What else is to be said.
    pub detail: String,
    /// How often it was seen.
    pub count: u64,
    /// A few of these times.
    pub examples: Vec<Example>,
}

/// One time that it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Example {
    /// The block's index along x, y, z.
    pub block: [u32; 3],
    /// The thread's index along x, y, z.
    pub thread: [u32; 3],
    /// The element of the buffer or shared array.
    pub element: Option<usize>,
    /// The other thread's block and its index there.
    pub other: Option<([u32; 3], [u32; 3])>,
}

/// A place in a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1.
    pub column: u32,
}

impl Place {
    pub(super) fn new(location: &Location) -> Self {
        // A module tree that is compiled a second time stands below `#[path = "."]`.
        let file = location.file().replace("/./", "/");
        Place { file, line: location.line(), column: location.column() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A thread read what another wrote, and nothing orders the two.
    ReadAfterWrite,
    /// A thread wrote what another had read, and nothing orders the two.
    WriteAfterRead,
    /// Two threads wrote one element, and nothing orders them.
    WriteAfterWrite,
    /// A read of memory that nobody has written.
    Uninitialised,
    /// An access outside a buffer or a shared array.
    OutOfBounds,
    /// A 128-bit access at an address that is no multiple of sixteen, or a copy of a box that begins at none.
    Misaligned,
    /// A barrier that threads of the block never come to.
    BarrierSkipped,
    /// Threads of a block that wait at different barriers, or come to a named one that may still be at its round before.
    BarrierMismatch,
    /// Threads that wait for each other, or a warp operation whose lanes do not come together.
    Deadlock,
    /// Tensor cores, or a tensor copy, read what a thread wrote, and no `fence_proxy_async` stands between.
    ProxyFence,
    /// Copies whose bytes are not those that their mbarrier was told to expect.
    Transaction,
    /// A block that may end before its shared memory is used for the last time: by another block of its cluster, or by
    /// a copy.
    EndedBlock,
    /// A use of another block's shared memory by a thread that does not know that the block has begun.
    UnbegunBlock,
    /// An access to global memory in a block of a `dependent` kernel that has not waited for the kernels before.
    BeforeWait,
    /// A panic in the kernel.
    Panic,
    /// A thread that needs more stack than it has.
    StackOverflow,
    /// A thread that goes on and on without a wait.
    Endless,
    /// Shared arrays of another size than the kernel declares.
    SharedSize,
    /// A launch that breaks what the kernel declares, or a limit.
    Launch,
    /// Elements of an input that no thread has read.
    NeverRead,
    /// Elements of an output that no thread has written.
    NeverWritten,
}

impl Kind {
    /// A short name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ReadAfterWrite => "read-after-write",
            Kind::WriteAfterRead => "write-after-read",
            Kind::WriteAfterWrite => "write-after-write",
            Kind::Uninitialised => "uninitialised",
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::BarrierSkipped => "barrier-skipped",
            Kind::BarrierMismatch => "barrier-mismatch",
            Kind::Deadlock => "deadlock",
            Kind::ProxyFence => "proxy-fence",
            Kind::Transaction => "transaction",
            Kind::EndedBlock => "ended-block",
            Kind::UnbegunBlock => "unbegun-block",
            Kind::BeforeWait => "before-wait",
            Kind::Panic => "panic",
            Kind::StackOverflow => "stack-overflow",
            Kind::Endless => "endless",
            Kind::SharedSize => "shared-size",
            Kind::Launch => "launch",
            Kind::NeverRead => "never-read",
            Kind::NeverWritten => "never-written",
        }
    }

    /// What the two threads of a race do, the later first.
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Kind::ReadAfterWrite => "race: a read after a write",
            Kind::WriteAfterRead => "race: a write after a read",
            Kind::WriteAfterWrite => "race: a write after a write",
            Kind::Uninitialised => "a read of memory that nobody has written",
            Kind::OutOfBounds => "an access outside",
            Kind::Misaligned => "a misaligned access",
            Kind::BarrierSkipped => "a barrier that not all threads of the block come to",
            Kind::BarrierMismatch => "threads of a block at different barriers",
            Kind::Deadlock => "threads that wait in vain",
            Kind::ProxyFence => {
                "a read by tensor cores or a copy of what no proxy fence has made seen"
            }
            Kind::Transaction => "copies of other bytes than announced",
            Kind::EndedBlock => "a use of shared memory of a block that may have ended",
            Kind::UnbegunBlock => "a use of shared memory of a block that may not have begun",
            Kind::BeforeWait => "an access before the wait for earlier kernels",
            Kind::Panic => "a panic",
            Kind::StackOverflow => "a stack that is too small",
            Kind::Endless => "a thread that does not end",
            Kind::SharedSize => "shared arrays of another size than declared",
            Kind::Launch => "a launch that the kernel or the device does not allow",
            Kind::NeverRead => "input elements that no thread read",
            Kind::NeverWritten => "output elements that no thread wrote",
        })
    }
}

impl Finding {
    /// What `Display` shows, and below each place the text of its line, where `source` knows it. (`Display` itself reads the
    /// line from the file, where that is at hand and as it was when the program was built.)
    pub fn with_source<'text>(
        &self,
        source: impl Fn(&Place) -> Option<&'text str>,
    ) -> impl fmt::Display {
        fmt::from_fn(move |f| self.write(f, &|place| source(place).map(Cow::Borrowed)))
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
        write!(f, "{}", self.kind)?;
        if let Some(memory) = &self.memory {
            write!(f, ", in {memory}")?;
        }
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        let race = self.kind.race();
        if let Some(place) = &self.place {
            let does = race.map_or("at", |(does, _)| does);
            write_place(f, does, place)?;
        }
        if let Some(place) = &self.other_place {
            let did = race.map_or("and at", |(_, did)| did);
            write_place(f, did, place)?;
        }
        if !self.detail.is_empty() {
            write!(f, "\n    {}", self.detail)?;
        }
        for example in &self.examples {
            let Example { block, thread, element, other } = example;
            write!(f, "\n    block {block:?} thread {thread:?}")?;
            match (element, self.columns) {
                (Some(element), Some(columns)) => {
                    write!(f, ", element ({}, {})", element / columns, element % columns)?;
                }
                (Some(element), None) => write!(f, ", element {element}")?,
                (None, _) => {}
            }
            match other {
                Some((other_block, other)) if other_block == block => {
                    write!(f, ", against thread {other:?}")?;
                }
                Some((block, other)) => write!(f, ", against block {block:?} thread {other:?}")?,
                None => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.write(f, &|place| source::line(place).map(Cow::Owned))
    }
}

/// How many examples of one finding are kept.
const EXAMPLES: usize = 3;
/// How many findings a launch reports at most: a kernel that is wrong everywhere is wrong in few lines.
const MOST_FINDINGS: usize = 200;

/// What makes two findings one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) memory: Option<MemoryId>,
    pub(super) place: Option<&'static Location<'static>>,
    pub(super) other_place: Option<&'static Location<'static>>,
    /// Where a fault happened of which no more than that is known.
    pub(super) fault_place: String,
}

/// A buffer or a shared array, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum MemoryId {
    /// Of the launch's buffers.
    Global(usize),
    /// By the place of its declaration, of so many bytes an element, rows and columns.
    Shared(&'static Location<'static>, usize, (usize, usize)),
}

/// The findings of one worker.
#[derive(Default)]
pub(super) struct Findings(pub(super) HashMap<Key, Group>);

/// What is known of a key.
pub(super) struct Group {
    pub(super) count: u64,
    pub(super) detail: String,
    pub(super) examples: Vec<Seen>,
}

/// An example whose other thread is still a record: which block that was is known when all have ended.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    pub(super) element: Option<usize>,
    pub(super) other: Option<Record>,
}

impl Findings {
    pub(super) fn add(&mut self, key: Key, seen: Seen, detail: impl FnOnce() -> String) {
        let full = self.0.len() >= MOST_FINDINGS;
        if let Some(group) = self.0.get_mut(&key) {
            group.count += 1;
            group.examples.push(seen);
            keep_first(&mut group.examples);
        } else if !full {
            let group = Group { count: 1, detail: detail(), examples: vec![seen] };
            self.0.insert(key, group);
        }
    }

    pub(super) fn merge(&mut self, other: Findings) {
        for (key, group) in other.0 {
            match self.0.get_mut(&key) {
                Some(known) => {
                    known.count += group.count;
                    known.examples.extend(group.examples);
                    keep_first(&mut known.examples);
                }
                None => {
                    self.0.insert(key, group);
                }
            }
        }
    }
}

/// Keeps the first by block and thread, so that it does not matter which worker ran which blocks when. What
/// happens again and again to one thread and element is one example.
fn keep_first(examples: &mut Vec<Seen>) {
    let key = |seen: &Seen| (seen.block, seen.thread, seen.element);
    examples.sort_by_key(key);
    examples.dedup_by_key(|seen| key(seen));
    examples.truncate(EXAMPLES);
}
