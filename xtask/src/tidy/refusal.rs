//! What is refused.

use std::fmt;

/// The words and paths here, and in the tests of this folder, are examples.
pub(super) const OWN: &str = "xtask/src/tidy";

/// A refusal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Refusal {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) what: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}
