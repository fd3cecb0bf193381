//! Tests that cannot run here are counted and reported. They fail if the environment says so.

use std::{
    collections::BTreeMap,
    env,
    ffi::c_int,
    io::Write,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// The number of skips, by reason.
static SKIPPED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Makes some lines. The argument is the program's name.
type Lines = fn(&str) -> Vec<String>;

/// The lines to print when the program ends.
static AT_END: Mutex<Vec<Lines>> = Mutex::new(Vec::new());

unsafe extern "C" {
    // SAFETY: the C function. Any function may be registered.
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Whether an environment variable is set, and neither `0` nor `false`.
pub(crate) fn is_set(variable: &str) -> bool {
    !["", "0", "false"].contains(&&*env::var(variable).unwrap_or_default())
}

/// Counts a skip because of `why`. When the program ends, one line for each reason reports the
/// number, even if the test harness captures output.
///
/// # Panics
/// If the environment variable `forbidden_by` is set, and neither `0` nor `false`.
pub fn skip(why: &str, forbidden_by: &str) {
    let value = env::var(forbidden_by).unwrap_or_default();
    assert!(!is_set(forbidden_by), "{forbidden_by}={value} forbids to skip this: {why}");
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if skipped.is_empty() {
        at_end(skips);
    }
    *skipped.entry(why.to_owned()).or_default() += 1;
}

fn skips(name: &str) -> Vec<String> {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    skipped.iter().map(|(why, count)| format!("{name}: SKIPPED {count} times: {why}")).collect()
}

/// Prints `lines` when the program ends.
pub(crate) fn at_end(lines: Lines) {
    let mut all = AT_END.lock().unwrap_or_else(PoisonError::into_inner);
    if all.is_empty() {
        atexit(tell);
    }
    all.push(lines);
}

extern "C" fn tell() {
    let program = env::args().next().unwrap_or_default();
    let stem = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a hash to the test's name.
    let name = stem.rsplit_once('-').map_or(&*stem, |(name, _hash)| name);
    for lines in &*AT_END.lock().unwrap_or_else(PoisonError::into_inner) {
        for line in lines(name) {
            // A closed stderr is no reason to fail.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}
