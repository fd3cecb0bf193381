//! A file that has no name yet.

use std::{
    fs::{self, File, Permissions},
    io,
    path::Path,
};

use super::unfinished::{Unfinished, new_name};

/// A file in a folder that is being written. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct Draft {
    file: File,
    /// Where the file system has no files without a name.
    unfinished: Option<Unfinished>,
}

/// What its owner, its group and others may do. That it runs as its owner does not pass to another owner.
fn of_a_new_owner(permissions: &Permissions) -> Permissions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        Permissions::from_mode(permissions.mode() & 0o777)
    }
    #[cfg(not(unix))]
    permissions.clone()
}

impl Draft {
    /// A new file in a folder, of those permissions or of those that a new file has.
    pub(super) fn new(folder: &Path, permissions: Option<&Permissions>) -> io::Result<Self> {
        let draft = match nameless(folder)? {
            Some(file) => Draft { file, unfinished: None },
            None => {
                let make = |path: &Path| {
                    File::options().read(true).write(true).create_new(true).open(path)
                };
                let (file, unfinished) = Unfinished::new(folder, make)?;
                Draft { file, unfinished: Some(unfinished) }
            }
        };
        if let Some(permissions) = permissions {
            draft.file.set_permissions(of_a_new_owner(permissions))?;
        }
        Ok(draft)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives it a name in a folder of its file system, where it replaces what is there in one step.
    pub(super) fn place(&self, path: &Path) -> io::Result<()> {
        match &self.unfinished {
            Some(unfinished) => unfinished.rename(path),
            None => name(&self.file, path),
        }
    }
}

/// A file without a name, which goes with the process, however that ends. `None` where the file system has none, or where
/// none could be named later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> io::Result<Option<File>> {
    use rustix::{
        fs::{Mode, OFlags, open},
        io::Errno,
    };
    if crate::testing::has_no_nameless_files() {
        return Ok(None);
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => Ok(Some(File::from(file)).filter(|file| fs::metadata(own_path(file)).is_ok())),
        // What file systems and kernels say that have none.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Names a file that has no name. Two steps where there is another: a link is never put in the place of something.
#[cfg(target_os = "linux")]
fn name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    // A name given to the file's descriptor itself (AT_EMPTY_PATH) is a privilege.
    let link = |to: &Path| {
        linkat(CWD, own_path(file), CWD, to, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    };
    match link(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let folder = path.parent().unwrap_or(Path::new("."));
            let ((), new) = new_name(folder, link)?;
            fs::rename(&new, path).inspect_err(|_| {
                let _ = fs::remove_file(&new);
            })
        }
        outcome => outcome,
    }
}

/// There are none.
#[cfg(not(target_os = "linux"))]
fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The path under which this process finds an open file.
#[cfg(target_os = "linux")]
fn own_path(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
