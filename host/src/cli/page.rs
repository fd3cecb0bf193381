//! The file of `--html`.

use std::{io::Write, path::Path};

use host::{NewFile, picture::page};

use super::{Failure, note};

/// Opens the file. An output that cannot be written is an error before anything is computed.
pub(super) fn create(path: &Path) -> host::Result<NewFile> {
    NewFile::create("--html", path)
}

/// Writes a page with that title and these parts of HTML.
pub(super) fn write(file: NewFile, title: &str, parts: &[String]) -> Result<(), Failure> {
    let page = page::html(title, parts);
    file.file().write_all(page.as_bytes()).map_err(|error| file.unwritten(&error))?;
    let written = format!("written: {}", file.named().display());
    file.finish()?;
    note(format_args!("{written}"));
    Ok(())
}
