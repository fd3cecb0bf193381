//! What the path of an output names.

use std::{
    fs::{self, FileType, Metadata},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// The most links that are followed. The system follows no more.
const MOST_LINKS: usize = 40;

/// The path of a file or a folder after following links.
pub(super) struct Place {
    /// The path. It has no links, except to what does not exist.
    pub(super) path: PathBuf,
    pub(super) existing: Option<Metadata>,
}

/// Why a path is refused.
pub(super) type Refusal = String;

impl Place {
    /// The place of a path. Of a symbolic link it is the place of its target.
    pub(super) fn of(named: &Path) -> Result<Self, Refusal> {
        if named == Path::new("-") {
            let why = "is not standard output, to which no files go; ./- is a file of that name";
            return Err(why.to_owned());
        }
        let cannot = |error: io::Error| format!("cannot be written: {error}");
        match fs::metadata(named) {
            Ok(existing) => {
                let path = fs::canonicalize(named).map_err(cannot)?;
                Ok(Place { path, existing: Some(existing) })
            }
            // This includes a link whose target does not exist.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(Place { path: past_links(named).map_err(cannot)?, existing: None })
            }
            // For example too many links, a file in place of a folder, or a name that is too long.
            Err(error) => Err(cannot(error)),
        }
    }

    /// The place of a file.
    pub(super) fn of_file(named: &Path) -> Result<Self, Refusal> {
        if !names_a_file(named) {
            return Err("names no file".to_owned());
        }
        let place = Place::of(named)?;
        match &place.existing {
            Some(existing) if !existing.is_file() => {
                let kind = kind(existing.file_type());
                Err(format!("is there, and no file but {kind}: it is not replaced"))
            }
            Some(existing) if existing.permissions().readonly() => {
                Err("cannot be written: it is read-only".to_owned())
            }
            Some(_) => match may_write(&place.path) {
                Ok(()) => Ok(place),
                Err(error) => Err(format!("cannot be written: {error}")),
            },
            None if !names_a_file(&place.path) => {
                Err(format!("is a link to {}, which names no file", place.path.display()))
            }
            None => Ok(place),
        }
    }
}

/// Follows links whose target does not exist.
fn past_links(named: &Path) -> io::Result<PathBuf> {
    let mut path = named.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => {
                // A name that no file can have is an error here.
                return match fs::symlink_metadata(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                    _ => Ok(path),
                };
            }
        }
    }
    Err(io::Error::other("too many links, one to the next"))
}

/// The folder of a path's last name.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Whether the last part of a path is a name. `x/`, `x/.` and `..` are folders.
fn names_a_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let last = bytes.rsplit(|&byte| std::path::is_separator(byte.into())).next();
    !matches!(last, None | Some(b"" | b"." | b".."))
}

/// The kind of something that is no regular file.
pub(crate) fn kind(of: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if of.is_fifo() {
            return "a FIFO";
        }
        if of.is_socket() {
            return "a socket";
        }
        if of.is_block_device() || of.is_char_device() {
            return "a device";
        }
    }
    if of.is_dir() { "a folder" } else { "something else" }
}

/// Checks that this user may write a file. Only the folder's permissions would matter for replacing
/// it, but users expect the file's to.
#[cfg(unix)]
fn may_write(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}

#[cfg(not(unix))]
fn may_write(_: &Path) -> io::Result<()> {
    Ok(())
}
