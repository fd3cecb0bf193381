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

impl std::str::FromStr for Place {
    type Err = ();

    /// Reads what [`Display`](fmt::Display) writes: file, line and column.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.rsplitn(3, ':');
        let mut next = || parts.next().ok_or(());
        let column = next()?.parse().map_err(|_| ())?;
        let line = next()?.parse().map_err(|_| ())?;
        Ok(Place { file: next()?.to_owned(), line, column })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_it_is_shown() {
        let place = Place { file: "C:/a b/c.rs".to_owned(), line: 3, column: 15 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "an unknown place", "a.rs:3", "a.rs:x:1"] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }
}
