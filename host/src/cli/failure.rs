//! How the command ends if it fails.

use std::io;

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
