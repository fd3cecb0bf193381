//! Checks that have passed with the same inputs are not run again.
//!
//! Such a check is a pure function of files and of the compiler. The target folder records that it
//! has passed, under a hash of these. `CACHE=0` and CI run everything.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
    time::SystemTime,
};

use crate::{scratch::workspace, skip, skip::is_set};

/// The files on which every check depends: the CPU device, what all products share, the host's
/// layer, the tests' library, versions and profiles.
const COMMON: &str = "\
    docs/testing/gemm.md gpu/Cargo.toml gpu/simt gpu/src/collective gpu/src/kernels/gemm \
    gpu/src/kernels/mod.rs gpu/src/lib.rs gpu/src/params.rs gpu/src/registry gpu/src/registry.rs \
    gpu/specialise host/Cargo.toml host/lib/Cargo.toml host/lib/src host/src tests/src Cargo.lock \
    Cargo.toml";

/// A running check. If it ends without a panic, that is recorded.
pub struct Note(Option<PathBuf>);

/// Starts the check whose function this is in, or returns from that if it has passed with these
/// files. It ends where the function does.
#[macro_export]
macro_rules! once {
    ($files:expr) => {
        let Some(_note) = $crate::passed::once(
            {
                // The name of this function has that of the check, and its module's, before it.
                fn here() {}
                std::any::type_name_of_val(&here)
            },
            $files,
        ) else {
            return;
        };
    };
}

/// Starts a check, unless it has passed with these files. A folder stands for the Rust files in it.
pub fn once(name: &str, files: &[&str]) -> Option<Note> {
    let note = noted(name, files);
    if note.as_ref().is_some_and(|note| note.exists()) {
        skip("it has passed with these sources; CACHE=0 runs it again", "CI");
        return None;
    }
    Some(Note(note))
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(note) = self.0.take().filter(|_| !thread::panicking()) {
            // If it cannot be recorded, only time is lost.
            let folder = note.parent().unwrap_or(Path::new("."));
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&note, ""));
        }
    }
}

/// The file that records that a check has passed. `None` if everything is run.
fn noted(name: &str, files: &[&str]) -> Option<PathBuf> {
    let off = env::var("CACHE").is_ok_and(|value| value == "0");
    // On a GPU a test runs even if it has passed on the CPU.
    let gpu = host::Device::cuda_count().is_ok_and(|count| count > 0);
    if gpu || off || ["CI", "FULL", "REQUIRE_GPU"].into_iter().any(is_set) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (name, common()).hash(&mut hasher);
    files.iter().for_each(|file| hash(&workspace().join(file), &mut hasher));
    // This program does not test a file that was written after it was compiled.
    let compiled = env::current_exe().and_then(fs::metadata).and_then(|exe| exe.modified()).ok()?;
    let all = COMMON.split(' ').chain(files.iter().copied()).map(|file| workspace().join(file));
    if all.into_iter().any(|file| newest(&file).is_none_or(|written| written > compiled)) {
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/passed");
    Some(folder.join(format!("{}-{:016x}", name.replace(['/', ':'], "_"), hasher.finish())))
}

/// A hash of what all checks depend on.
fn common() -> u64 {
    static COMMON_HASH: OnceLock<u64> = OnceLock::new();
    *COMMON_HASH.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        COMMON.split(' ').for_each(|file| hash(&workspace().join(file), &mut hasher));
        (cfg!(debug_assertions), env::var_os("RUSTFLAGS")).hash(&mut hasher);
        let version = Command::new("rustc").arg("-vV").output().map(|output| output.stdout);
        version.unwrap_or_default().hash(&mut hasher);
        hasher.finish()
    })
}

/// The names and contents of a file, or of the Rust files below a folder.
fn hash(path: &Path, hasher: &mut DefaultHasher) {
    if let Ok(entries) = fs::read_dir(path) {
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>();
        paths.sort();
        paths.retain(|path| path.is_dir() || path.extension().is_some_and(|end| end == "rs"));
        paths.iter().for_each(|path| hash(path, hasher));
    } else {
        (path, fs::read(path).ok()).hash(hasher);
    }
}

/// The time of the last write to a file, or to the files below a folder.
fn newest(path: &Path) -> Option<SystemTime> {
    match fs::read_dir(path) {
        Ok(entries) => entries.filter_map(|entry| newest(&entry.ok()?.path())).max(),
        Err(_) => fs::metadata(path).and_then(|file| file.modified()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_has_not_passed() {
        let note = env::temp_dir().join(format!("note-{}", std::process::id()));
        let other = note.clone();
        let ended = thread::spawn(move || {
            let _note = Note(Some(other));
            panic!("as a check does that fails");
        });
        assert!(ended.join().is_err() && !note.exists());
        drop(Note(Some(note.clone())));
        assert!(note.exists());
        fs::remove_file(note).unwrap();
    }

    #[test]
    fn another_content_is_another_note() {
        let folder = env::temp_dir().join(format!("passed-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).unwrap();
        let file = folder.join("inner/a.rs");
        let of = |text: &str| {
            fs::write(&file, text).unwrap();
            let mut hasher = DefaultHasher::new();
            hash(&folder, &mut hasher);
            hasher.finish()
        };
        let (one, other, again) = (of("1"), of("2"), of("1"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(one != other && one == again);
    }
}
