//! Checks that have passed on the same inputs are not run again.
//!
//! Such a check is a pure function of files and of the compiler. What has passed is noted in the target folder, under a
//! hash of these. `CACHE=0` and CI run everything.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::{scratch::workspace, skip};

/// What every check on the CPU depends on: the CPU device, the host's layer, the tests' library, versions and profiles.
const COMMON: [&str; 5] = ["gpu/simt", "host/src", "tests/src", "Cargo.lock", "Cargo.toml"];

/// Runs a check, unless it has passed with these files as they are. Folders stand for the Rust files in them, and a module
/// of kernels, such as `tiled`, for its file or folder.
///
/// # Panics
/// As the check does.
pub fn once(name: &str, files: &[&str], check: impl FnOnce()) {
    let note = noted(name, files);
    if note.as_ref().is_some_and(|note| note.exists()) {
        return skip("it has passed with these sources; CACHE=0 runs it again", "CI");
    }
    check();
    // A note that cannot be written costs time alone.
    let _ = note.map(|note| fs::create_dir_all(note.parent()?).and_then(|()| fs::write(note, "")).ok());
}

/// Where it is noted that a check has passed; nowhere where everything is run.
fn noted(name: &str, files: &[&str]) -> Option<PathBuf> {
    let off = |name: &str| env::var(name).is_ok_and(|value| value == "0");
    let set = |name: &str| env::var(name).is_ok_and(|value| !["", "0", "false"].contains(&&*value));
    if off("CACHE") || ["CI", "FULL", "REQUIRE_GPU"].into_iter().any(set) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (name, common()).hash(&mut hasher);
    files.iter().for_each(|file| hash(&workspace().join(file), &mut hasher));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/passed");
    Some(folder.join(format!("{}-{:016x}", name.replace(['/', ':'], "_"), hasher.finish())))
}

/// A hash of what all checks depend on.
fn common() -> u64 {
    static COMMON_HASH: OnceLock<u64> = OnceLock::new();
    *COMMON_HASH.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        COMMON.iter().for_each(|file| hash(&workspace().join(file), &mut hasher));
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

#[cfg(test)]
mod tests {
    use super::*;

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
