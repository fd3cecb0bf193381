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

/// A run of random shapes that ended early.
#[derive(Debug)]
pub(super) struct Cut {
    /// Shapes that have run, of all shapes.
    pub(super) ran: usize,
    pub(super) of: usize,
    pub(super) why: Failure,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Cut { ran, of, why } = self;
        write!(f, "cut short: {ran} of {of} shapes ran; ")?;
        match why {
            Failure::Error(error, _) => write!(f, "{error}"),
            _ => write!(f, "something was wrong"),
        }
    }
}
