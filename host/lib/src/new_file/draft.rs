//! A file that has no name yet.

use std::{
    fs::{self, File, Permissions},
    io,
    path::Path,
};

use super::unfinished::{Unfinished, new_name};

/// An unfinished file in a folder. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Draft {
    file: File,
    /// The temporary name, on a file system without nameless files.
    unfinished: Option<Unfinished>,
}

/// The mode without set-user-ID, set-group-ID and the sticky bit: these do not pass to another
/// owner.
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
    /// A new file in a folder. `None`: with the default permissions.
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

    /// Gives the file a name on its file system. It replaces a file of that name in one step.
    pub(super) fn place(&self, path: &Path) -> io::Result<()> {
        match &self.unfinished {
            Some(unfinished) => unfinished.rename(path),
            None => name(&self.file, path),
        }
    }
}

/// A file without a name. It disappears with the process. `None` if the file system has no nameless
/// files, or they cannot be named later.
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
        // The errors of file systems and kernels without nameless files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Names a nameless file. To replace another file takes two steps, because a link never replaces
/// one.
#[cfg(target_os = "linux")]
fn name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    // By its path in /proc: to name a descriptor itself (AT_EMPTY_PATH) is a privilege.
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

/// This system has no nameless files.
#[cfg(not(target_os = "linux"))]
fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The path of an open file in /proc.
#[cfg(target_os = "linux")]
fn own_path(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
