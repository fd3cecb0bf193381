//! Temporary names that a process must remove.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The temporary names of unfinished files, on file systems without nameless files.
static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Locked while finished files get their names, which takes several calls.
static PLACING: Mutex<()> = Mutex::new(());

/// Locks a mutex, also after a panic: the data is never half changed.
fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks [`PLACING`]. [`without_unfinished`] waits for it.
pub(super) fn placing() -> MutexGuard<'static, ()> {
    lock(&PLACING)
}

/// Removes all unfinished files of this process, and then calls `end`, which ends the process. No
/// file is begun or named meanwhile. This is for signals that end a process at once. Call it in a
/// thread, not in a signal handler: it waits.
pub fn without_unfinished<R>(end: impl FnOnce() -> R) -> R {
    let _placed = placing();
    let mut names = lock(&NAMES);
    for name in names.drain(..) {
        // A failure cannot be handled here.
        let _ = fs::remove_file(name);
    }
    end()
}

/// The temporary name of an unfinished file. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes something with a new temporary name in a folder.
    pub(super) fn new<T>(
        folder: &Path,
        make: impl FnMut(&Path) -> io::Result<T>,
    ) -> io::Result<(T, Self)> {
        let mut names = lock(&NAMES);
        let (made, path) = new_name(folder, make)?;
        names.push(path.clone());
        Ok((made, Unfinished(path)))
    }

    /// Gives the file its final name. It replaces a file of that name.
    pub(super) fn rename(&self, to: &Path) -> io::Result<()> {
        // Dropping removes the old name, which is gone by then.
        fs::rename(&self.0, to)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut names = lock(&NAMES);
        let _ = fs::remove_file(&self.0);
        names.retain(|name| *name != self.0);
    }
}

/// Makes something with an unused name in a folder. The name is short: the final name may have the
/// largest length.
pub(super) fn new_name<T>(
    folder: &Path,
    make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let made = tempfile::Builder::new().prefix(".host-").suffix(".tmp").make_in(folder, make)?;
    made.keep().map_err(|error| error.error)
}
