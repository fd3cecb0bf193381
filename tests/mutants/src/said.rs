//! What the program prints. (`println!` panics where nobody reads any more, or a disk is full.)

use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes to standard output. A closed pipe is no error: somebody has read enough.
///
/// # Errors
/// Of any other kind.
pub fn say(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.context("standard output cannot be written"),
    }
}

/// Writes to standard error, as far as it can be written.
pub fn note(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
