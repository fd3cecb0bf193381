//! What is timed beside a rung: rungs, and the baseline.

use host::gpu::registry::{Entry, Rung};

/// Something that is timed: a rung, or the baseline.
pub(super) struct Candidate {
    /// A rung's place, from 1.
    pub(super) number: Option<usize>,
    pub(super) rung: Option<&'static Rung>,
    /// `None`: cuBLAS.
    pub(super) entry: Option<&'static Entry>,
}

impl Candidate {
    pub(super) fn name(&self) -> &'static str {
        self.entry.map_or("cuBLAS", |entry| entry.name())
    }
}
