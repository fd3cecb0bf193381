//! Names that a process must not leave behind.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Files that have a name and are not finished: there are some only where a file system has no files without a name.
static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Held while finished files get their names, which takes several calls.
static PLACING: Mutex<()> = Mutex::new(());

/// Nobody leaves a half-changed list: a panic elsewhere changes nothing about it.
fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Held while finished files get their names: [`without_unfinished`] waits for it.
pub(super) fn placing() -> MutexGuard<'static, ()> {
    lock(&PLACING)
}

/// Removes all files of this process that are not finished, and then ends it by `end`. Nothing begins or gets a name
/// meanwhile. For handlers of signals that end a process at once, in a thread (not in the handler itself: this waits).
pub fn without_unfinished<R>(end: impl FnOnce() -> R) -> R {
    let _placed = placing();
    let mut names = lock(&NAMES);
    for name in names.drain(..) {
        // Whatever is not removed cannot be helped.
        let _ = fs::remove_file(name);
    }
    end()
}

/// The name of a file that is not finished. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes something under a new name in a folder.
    pub(super) fn new<T>(
        folder: &Path,
        make: impl FnMut(&Path) -> io::Result<T>,
    ) -> io::Result<(T, Self)> {
        let mut names = lock(&NAMES);
        let (made, path) = new_name(folder, make)?;
        names.push(path.clone());
        Ok((made, Unfinished(path)))
    }

    /// Gives it its name, where it replaces what is there.
    pub(super) fn rename(&self, to: &Path) -> io::Result<()> {
        // There is nothing under the old name then, when that is removed.
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

/// Makes something under a name that nothing in a folder has. It does not depend on the name that the file gets: that one
/// may be as long as a name can be.
pub(super) fn new_name<T>(
    folder: &Path,
    make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let made = tempfile::Builder::new().prefix(".host-").suffix(".tmp").make_in(folder, make)?;
    made.keep().map_err(|error| error.error)
}
