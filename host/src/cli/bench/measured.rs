//! What a run has measured.

use std::fmt;

use super::{machine::Machine, row::Row};
use crate::cli::Failure;

/// The rows of a run, and its machine.
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) machine: Option<Machine>,
    /// Why it ended early, if it did.
    pub(super) cut: Option<Cut>,
}

/// A run that ended early.
#[derive(Debug)]
pub(super) struct Cut {
    /// Shapes or sizes that have run, of all of them.
    pub(super) ran: usize,
    pub(super) of: usize,
    pub(super) what: &'static str,
    pub(super) why: Failure,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Cut { ran, of, what, why } = self;
        write!(f, "cut short: {ran} of {of} {what} ran; {why}")
    }
}
