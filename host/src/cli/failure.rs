//! How the command ends when it does not end well.

use std::io;

/// How the command ends when it does not end well.
#[derive(Debug)]
pub(super) enum Failure {
    /// C is wrong, or a kernel: exit 1.
    Wrong,
    /// Something that `doctor` has told is broken: exit 3.
    Environment,
    /// The library's error, which knows its exit code; and the command that shows it again, if that is
    /// worth saying.
    Error(host::Error, Option<String>),
    /// Standard output cannot be written to.
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
