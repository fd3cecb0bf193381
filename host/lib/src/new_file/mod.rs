//! Files that are there when all of them is.
//!
//! | module | its one idea |
//! |---|---|
//! | `place` | what the path of an output names |
//! | `draft` | a file that has no name yet |
//! | `unfinished` | names that a process must not leave behind |
//! | `set` | several files that belong together, in a folder |

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

/// A file that will be there when all of it is: it is written without a name, and gets its name when it is finished.
/// Dropped before, or with the process, it leaves nothing behind.
///
/// Where the name is another file's, that one is replaced in one step. The new file has its mode; it belongs to
/// whoever replaces it, has no access control list and no attributes of the old one, and a hard link to the old one
/// stays with the old contents. A link is followed, also to what is not there.
///
/// A file system without nameless files (`O_TMPFILE` of Linux) has a file `.host-XXXXXX.tmp` meanwhile, which is left
/// if the process ends without [`without_unfinished`].
#[derive(Debug)]
pub struct NewFile {
    argument: String,
    /// As the argument has it.
    named: PathBuf,
    /// The place, past links.
    path: PathBuf,
    draft: Draft,
}

impl NewFile {
    /// Makes sure that the file can be written before anything is computed. `argument` is the name under which
    /// messages know its path.
    ///
    /// # Errors
    /// [`Error::Argument`] where it cannot: for what is there and is no file, or not to be written, for a path that
    /// names no file, and for a folder that takes no new file; [`Error::Unwritten`] where the disk is full.
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

    /// The file as it is so far.
    pub fn file(&self) -> &File {
        self.draft.file()
    }

    /// Its path as it was given.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// Its place, past links: the same for each path that leads there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error for what the system says when it writes.
    pub fn unwritten(&self, error: &dyn std::fmt::Display) -> Error {
        unwritten(&self.argument, &self.named, error)
    }

    /// Puts it in its place, where it replaces what is there in one step.
    ///
    /// # Errors
    /// [`Error::Unwritten`] where the system does not; [`Error::Interrupted`].
    pub fn finish(self) -> Result<()> {
        self.file().sync_all().map_err(|error| self.unwritten(&error))?;
        crate::check_interrupt()?;
        let NewFile { argument, named, path, draft } = self;
        let _placing = unfinished::placing();
        draft.place(&path).map_err(|error| unwritten(&argument, &named, &error))
    }
}

/// A disk that takes no new file is none of the caller's mistakes.
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
