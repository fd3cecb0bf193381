//! What becomes of the launches on a stream: they are launched, prepared, or captured for a graph.

#[cfg(feature = "cuda")]
use std::sync::Mutex;

#[cfg(feature = "cuda")]
use crate::{buffer::UsedRange, cuda};

/// What becomes of launches.
#[derive(Debug)]
pub(crate) enum Mode {
    /// They are launched.
    Launching,
    /// What they need is loaded and allocated, and nothing is launched.
    Preparing,
    /// The driver captures them.
    #[cfg(feature = "cuda")]
    Capturing(Mutex<Recorded>),
}

/// What captured launches use.
#[cfg(feature = "cuda")]
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Memory that they read or write.
    pub(crate) ranges: Vec<UsedRange>,
    /// Kernels. Their modules stay loaded with them.
    pub(crate) functions: Vec<cuda::Function>,
}

#[cfg(feature = "cuda")]
impl Recorded {
    /// Notes a range.
    pub(super) fn uses(&mut self, range: UsedRange) {
        let is_noted = |known: &UsedRange| known.covers(&range) && known.element == range.element;
        if range.start < range.end && !self.ranges.iter().any(is_noted) {
            self.ranges.push(range);
        }
    }
}
