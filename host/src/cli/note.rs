//! Lines on standard error.

use std::io::{self, Write};

/// A line on standard error; whether it can be written changes nothing.
pub(super) fn note(text: std::fmt::Arguments) {
    let _ = writeln!(io::stderr(), "{text}");
}
