//! Input files.

use std::{fs::File, io, path::Path};

use crate::{
    error::{Error, Result},
    new_file::place::kind,
};

/// Opens a file for reading. `argument`: the name of the argument that gave the path.
///
/// # Errors
/// [`Error::Argument`] for a file that cannot be opened, and for a path that is no regular file. A
/// FIFO might never be written, and cannot be read twice.
pub fn open_input(argument: &str, path: &Path) -> Result<File> {
    let refuse = |why: String| Error::argument(argument, path.display(), why);
    let cannot = |error: io::Error| refuse(format!("cannot be read: {error}"));
    if path == Path::new("-") {
        let why = "is not standard input, from which no files come; ./- is a file of that name";
        return Err(refuse(why.to_owned()));
    }
    let is_file = |metadata: io::Result<std::fs::Metadata>| {
        let of = metadata.map_err(cannot)?.file_type();
        match of.is_file() {
            true => Ok(()),
            false => Err(refuse(format!("is no file but {}", kind(of)))),
        }
    };
    // Before opening, because opening can change a device. After it, because the path may be
    // another file by then.
    is_file(std::fs::metadata(path))?;
    let file = open(path).map_err(cannot)?;
    is_file(file.metadata())?;
    Ok(file)
}

/// Opens a file without waiting.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
