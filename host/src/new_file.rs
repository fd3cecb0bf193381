//! Files that are there when all of them is.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// A file that will be there when all of it is: it is written beside its place and then renamed. Dropped before,
/// it leaves nothing behind.
#[derive(Debug)]
pub struct NewFile {
    argument: String,
    /// As the argument has it.
    named: PathBuf,
    /// The place, past links.
    path: PathBuf,
    /// Removed when it is dropped.
    file: NamedTempFile,
}

impl NewFile {
    /// Makes sure that the file can be written before anything is computed. `argument` is the name under which
    /// messages know its path.
    ///
    /// # Errors
    /// [`Error::Argument`] where it cannot: for what is there and is no file, or read-only, and for a folder
    /// that takes no new file.
    pub fn create(argument: &str, named: &Path) -> Result<Self> {
        let refuse = |why: String| Error::argument(argument, named.display(), why);
        let Some(name) = named.file_name() else {
            return Err(refuse("names no file".to_owned()));
        };
        let existing = fs::metadata(named).ok();
        if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
            return Err(refuse("is there, and no file: it is not replaced".to_owned()));
        }
        // What a link leads to is replaced, not the link.
        let path = match existing {
            Some(_) => fs::canonicalize(named).map_err(|error| refuse(error.to_string()))?,
            None => named.to_owned(),
        };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let permissions = existing.map(|existing| existing.permissions());
        if permissions.as_ref().is_some_and(Permissions::readonly) {
            return Err(refuse("cannot be written: it is read-only".to_owned()));
        }
        let file = beside(folder, name, permissions).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::NotFound if !folder.exists() => {
                    format!("there is no folder {}", folder.display())
                }
                _ => error.to_string(),
            };
            refuse(format!("cannot be written: {why}"))
        })?;
        Ok(NewFile { argument: argument.to_owned(), named: named.to_owned(), path, file })
    }

    /// The file as it is so far.
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Its path as it was given.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// The error for what the system says.
    pub fn cannot_be_written(&self, error: &dyn std::fmt::Display) -> Error {
        let why = format!("cannot be written: {error}");
        Error::argument(&self.argument, self.named.display(), why)
    }

    /// Puts it in its place, where it replaces what is there in one step.
    ///
    /// # Errors
    /// [`Error::Argument`] where the system does not.
    pub fn finish(self) -> Result<()> {
        self.file().sync_all().map_err(|error| self.cannot_be_written(&error))?;
        let (argument, named) = (self.argument, self.named);
        self.file.persist(&self.path).map_err(|error| {
            let why = format!("cannot be written: {}", error.error);
            Error::argument(argument, named.display(), why)
        })?;
        Ok(())
    }
}

/// A new file in a folder, of those permissions or of those that a new file has.
fn beside(
    folder: &Path,
    name: &OsStr,
    permissions: Option<Permissions>,
) -> io::Result<NamedTempFile> {
    let mut prefix = OsStr::new(".").to_owned();
    prefix.push(name);
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    // Opened here: tempfile's own would be the user's alone, and its errors name it, which is of no use to anybody.
    let file = builder.make_in(folder, |path| {
        File::options().read(true).write(true).create_new(true).open(path)
    })?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(file)
}
