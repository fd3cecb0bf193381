//! Operations of the lanes of a warp.

/// A thread's part in a warp operation.
#[derive(Clone, Copy)]
pub(super) struct WarpOperation {
    pub(super) kind: WarpKind,
    /// The participating lanes.
    pub(super) mask: u32,
    /// The lane's input; after the wait, its result.
    pub(super) value: u32,
}

/// The kinds of warp operations.
#[derive(Clone, Copy)]
pub(super) enum WarpKind {
    /// `sync_warp`.
    Sync,
    /// A vote: a bit for each lane.
    Ballot,
    /// A vote: whether all lanes agree.
    All,
    /// A vote: whether any lane agrees.
    Any,
    /// Whether this lane is the elected one.
    Elect,
    /// The lanes that have the same value, a bit for each.
    Match,
    /// A reduction of all values by this operation.
    Reduce(fn(u32, u32) -> u32),
    /// A shuffle that reads the given lane. Reading a lane outside the mask is a fault.
    Shuffle(u32),
    /// All lanes exchange words ([`Exchange`](super::exchange::Exchange)), for the operation of
    /// this name.
    Exchange(&'static str),
    /// A shuffle whose source lane is computed from the own one. At the edge of the warp or of the
    /// mask the source does not take part; that is usual, and the kernel does not use the value.
    Relative(u32),
}

impl WarpKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            WarpKind::Sync => "sync_warp",
            WarpKind::Ballot => "ballot",
            WarpKind::All => "vote of all",
            WarpKind::Any => "vote of any",
            WarpKind::Elect => "elect",
            WarpKind::Match => "match",
            WarpKind::Reduce(_) => "reduction",
            WarpKind::Exchange(name) => name,
            WarpKind::Shuffle(_) | WarpKind::Relative(_) => "shuffle",
        }
    }
}
