//! The candidates that are timed: rungs, and the baseline.

use host::gpu::registry::{Entry, Rung};

/// A candidate that is timed: a rung, or the baseline.
pub(super) struct Candidate {
    /// The number of a rung, from 1.
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
