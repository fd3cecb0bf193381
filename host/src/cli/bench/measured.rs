//! What a run has measured.

use std::fmt;

use super::{machine::Machine, row::Row};
use crate::cli::Failure;

/// The rows of a run, and what they are of.
pub(super) struct Measured {
    pub(super) rows: Vec<Row>,
    pub(super) machine: Option<Machine>,
    /// What ended it early.
    pub(super) cut: Option<Cut>,
}

/// A run of random shapes of which some did not run.
#[derive(Debug)]
pub(super) struct Cut {
    /// Shapes that have run, of the shapes that were to.
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
