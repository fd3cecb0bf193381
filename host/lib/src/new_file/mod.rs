//! Output files that appear only when they are complete.
//!
//! | module | its one idea |
//! |---|---|
//! | `place` | what the path of an output names |
//! | `draft` | a file that has no name yet |
//! | `unfinished` | temporary names that a process must remove |
//! | `set` | several files of one folder |

mod draft;
pub(crate) mod place;
mod set;
#[cfg(test)]
mod tests;
mod unfinished;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use self::{
    draft::Draft,
    place::{Place, folder_of},
};
pub use self::{set::NewSet, unfinished::without_unfinished};
use crate::error::{Error, Result};

/// A new file that gets its name when it is complete ([`finish`](Self::finish)). Until then it has
/// no name. If it is dropped, or the process ends, nothing is left.
///
/// A file with the same name is replaced in one step. The new file gets its mode. It belongs to the
/// user of this process. Access control lists and attributes are not copied, and hard links to the
/// old file keep the old contents. A symbolic link is followed, even if its target does not exist.
///
/// On a file system without nameless files (Linux's `O_TMPFILE`) the file has a name
/// `.host-XXXXXX.tmp` until then. It is left if the process ends without [`without_unfinished`].
///
/// ```
/// use std::io::Write;
///
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("report.txt");
/// let new = gpu_gemm::NewFile::create("--out", &path)?;
/// new.file().write_all(b"all of it").unwrap();
/// assert!(!path.exists());
/// new.finish()?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"all of it");
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct NewFile {
    argument: String,
    /// The path as the user gave it.
    named: PathBuf,
    /// The path after following links.
    path: PathBuf,
    draft: Draft,
}

impl NewFile {
    /// Makes the file. An output that cannot be written is an error here, before anything is
    /// computed. `argument`: the name of the argument that gave the path.
    ///
    /// # Errors
    /// [`Error::Argument`] for a path that names no file, for a path to something that is no
    /// regular file or is read-only, and for a folder in which no file can be made;
    /// [`Error::Unwritten`] if the disk is full.
    pub fn create(argument: &str, named: &Path) -> Result<Self> {
        let refuse = |why: String| Error::argument(argument, named.display(), why);
        let Place { path, existing } = Place::of_file(named).map_err(refuse)?;
        let folder = folder_of(&path);
        let cannot = |error: io::Error| {
            if is_full(&error) {
                return unwritten(argument, named, &error);
            }
            let why = match error.kind() {
                io::ErrorKind::NotFound if !folder.exists() => {
                    format!("there is no folder {}", folder.display())
                }
                _ => error.to_string(),
            };
            refuse(format!("cannot be written: {why}"))
        };
        let canonical = fs::canonicalize(folder).map_err(cannot)?;
        let name = path.file_name().unwrap_or_default();
        let permissions = existing.map(|existing| existing.permissions());
        let draft = Draft::new(&canonical, permissions.as_ref()).map_err(cannot)?;
        let path = canonical.join(name);
        Ok(NewFile { argument: argument.to_owned(), named: named.to_owned(), path, draft })
    }

    /// The file, for writing and reading.
    pub fn file(&self) -> &File {
        self.draft.file()
    }

    /// The path as the user gave it.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// The absolute path after following links. Two paths to one file are equal here.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error for a failed write. `error`: the system's words.
    pub fn unwritten(&self, error: &dyn std::fmt::Display) -> Error {
        unwritten(&self.argument, &self.named, error)
    }

    /// Gives the file its name. It replaces a file of that name in one step.
    ///
    /// # Errors
    /// [`Error::Unwritten`] if the system does not write it; [`Error::Interrupted`].
    pub fn finish(self) -> Result<()> {
        self.file().sync_all().map_err(|error| self.unwritten(&error))?;
        crate::check_interrupt()?;
        let NewFile { argument, named, path, draft } = self;
        let _placing = unfinished::placing();
        draft.place(&path).map_err(|error| unwritten(&argument, &named, &error))
    }
}

/// Whether the disk is full: that is no mistake in an argument.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn unwritten(argument: &str, named: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Unwritten {
        argument: argument.to_owned(),
        file: named.display().to_string(),
        reason: error.to_string(),
    }
}
