//! Lines on standard error.

use std::io::{self, Write};

/// Writes a line to standard error. Errors of writing are ignored.
pub(super) fn note(text: std::fmt::Arguments) {
    let _ = writeln!(io::stderr(), "{text}");
}
