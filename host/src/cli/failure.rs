//! How the command ends if it fails.

use std::{fmt, io};

/// How the command ends if it fails.
#[derive(Debug)]
pub(super) enum Failure {
    /// C or a kernel is wrong: exit code 1.
    Wrong,
    /// `doctor` has reported that something is broken: exit code 3.
    Environment,
    /// An error of the library, which has its exit code. And the command that reproduces it, if
    /// that helps.
    Error(host::Error, Option<String>),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Error(error, _) => error.fmt(f),
            Failure::Output(error) => write!(f, "standard output: {error}"),
            Failure::Wrong | Failure::Environment => f.write_str("something was wrong"),
        }
    }
}

impl From<host::Error> for Failure {
    fn from(error: host::Error) -> Self {
        Failure::Error(error, None)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}
