//! Places in a kernel's source.

use std::{fmt, panic::Location};

/// A place in a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file's path, as the compiler was given it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl Place {
    pub(super) fn new(location: &Location) -> Self {
        // A module tree that is compiled a second time has `#[path = "."]`, and so `/./` in its
        // files' paths.
        let file = location.file().replace("/./", "/");
        Place { file, line: location.line(), column: location.column() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
