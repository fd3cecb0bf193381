//! Downloads that are kept: by one process at a time, complete or not at all. No program runs whose
//! bytes are not the known ones.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::environment::{note, output};

/// Returns what `there` finds in `done`. If it finds nothing, `get` creates it in an empty folder,
/// and returns what becomes `done`. That is then renamed in one step.
///
/// Other processes that want the same wait meanwhile, and find it afterwards. After an error
/// nothing is left.
pub(crate) fn once<T>(
    done: &Path,
    there: impl Fn() -> Option<T>,
    get: impl FnOnce(&Path) -> Result<PathBuf>,
) -> Result<T> {
    let _lock = lock(&beside(done, ".lock"))?;
    if let Some(found) = there() {
        return Ok(found);
    }
    // An interrupted process could not remove this.
    let partial = beside(done, ".partial");
    remove(&partial)?;
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let put = || {
        let made = get(&partial)?;
        remove(done)?;
        fs::rename(&made, done).with_context(|| format!("cannot create {}", done.display()))
    };
    let result = put();
    let removed = remove(&partial);
    result.and(removed)?;
    there().with_context(|| format!("{} is not what it must be", done.display()))
}

/// Checks that a file has that SHA-256.
pub(crate) fn verify(file: &Path, digest: &str) -> Result<()> {
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let sum = output(Command::new("sha256sum").stdin(Stdio::from(open)))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let name = file.file_name().unwrap_or_default().display();
    ensure!(
        sum == digest,
        "{name}: its SHA-256 is {sum}, and must be {digest}: nothing of it was run"
    );
    Ok(())
}

/// Locks a file, which is created if necessary, until the result is dropped or the process ends.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let folder = path.parent().unwrap_or(path);
    let file = fs::create_dir_all(folder)
        .and_then(|()| File::options().create(true).append(true).open(path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            note(&format!("waiting for another process to let go of {}\n", path.display()));
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
    .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// Removes a folder, if it exists.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The path with `more` added to its name.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(more);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        thread,
    };

    use anyhow::bail;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn two_at_once_get_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let done = folder.path().join("it");
        let content = || fs::read_to_string(done.join("content")).ok();
        let gets = AtomicUsize::new(0);
        let (getting, gets_now) = mpsc::channel();
        let (starting, starts_now) = mpsc::channel();
        let (done, gets) = (&done, &gets);
        let second_starts = move |partial: &Path| {
            gets.fetch_add(1, Ordering::Relaxed);
            fs::write(partial.join("half"), "").unwrap();
            getting.send(()).unwrap();
            // The other one starts, and must not remove what is here.
            starts_now.recv().unwrap();
            let made = partial.join("made");
            fs::create_dir(&made)?;
            fs::write(made.join("content"), "whole")?;
            fs::rename(partial.join("half"), made.join("other"))?;
            Ok(made)
        };
        thread::scope(|scope| {
            let first = scope.spawn(|| once(done, content, second_starts));
            gets_now.recv().unwrap();
            let second = scope.spawn(|| {
                starting.send(()).unwrap();
                once(done, content, |_| bail!("it was got twice"))
            });
            for result in [first, second].map(|thread| thread.join().unwrap()) {
                assert_eq!(result.unwrap(), "whole");
            }
        });
        assert_eq!(gets.load(Ordering::Relaxed), 1);
        assert_eq!(names(folder.path()), ["it", "it.lock"]);
    }

    #[test]
    fn after_an_error_nothing_is_left_and_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let done = folder.path().join("it");
        fs::create_dir_all(&done).unwrap();
        fs::write(done.join("old"), "").unwrap();
        // The remains of a process that was killed.
        fs::create_dir_all(folder.path().join("it.partial/half")).unwrap();
        let fails = |partial: &Path| -> Result<PathBuf> {
            assert_eq!(names(partial), [""; 0]);
            fs::write(partial.join("half"), "").unwrap();
            bail!("no network")
        };
        let error = once(&done, || None::<()>, fails).unwrap_err().to_string();
        assert_eq!(error, "no network");
        assert_eq!(names(folder.path()), ["it", "it.lock"]);
        assert_eq!(names(&done), ["old"]);
        // A useless result is put there, and reported as useless.
        let useless = |partial: &Path| {
            fs::create_dir(partial.join("new"))?;
            Ok(partial.join("new"))
        };
        let error = once(&done, || None::<()>, useless).unwrap_err().to_string();
        assert!(error.ends_with("it is not what it must be"), "{error}");
        assert_eq!(names(&done), [""; 0]);
    }

    #[test]
    fn a_file_is_known_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.whl");
        fs::write(&file, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        verify(&file, digest).unwrap();
        fs::write(&file, "abd").unwrap();
        let error = verify(&file, digest).unwrap_err().to_string();
        assert!(
            error.starts_with("x.whl: its SHA-256 is a52d") && error.contains(digest),
            "{error}"
        );
        let missing = folder.path().join("missing");
        assert!(verify(&file, "").is_err() && verify(&missing, digest).is_err());
    }
}
