//! Tests that cannot run here are counted and reported. They fail if the environment says so.

use std::{
    collections::BTreeMap,
    env,
    ffi::c_int,
    fs,
    io::Write,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// The number of skips, by reason, and whether the reason is that there is no GPU.
static SKIPPED: Mutex<BTreeMap<String, (usize, bool)>> = Mutex::new(BTreeMap::new());

/// The variable that forbids to skip what needs a GPU.
const REQUIRE_GPU: &str = "REQUIRE_GPU";

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
    let (count, needs_gpu) = skipped.entry(why.to_owned()).or_default();
    *count += 1;
    *needs_gpu |= forbidden_by == REQUIRE_GPU;
}

fn skips(name: &str) -> Vec<String> {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let line = |(why, (count, _)): (&String, &(usize, bool))| {
        format!("{name}: SKIPPED {count} times: {why}")
    };
    let mut lines = skipped.iter().map(line).collect::<Vec<_>>();
    let on_gpu = skipped.values().filter(|(_, needs_gpu)| *needs_gpu).map(|(count, _)| count).sum();
    if on_gpu > 0 {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/skipped");
        let all = sum_of_command(&file, &command(), on_gpu);
        lines.push(format!(
            "this command has skipped {all} runs on a GPU; {REQUIRE_GPU}=1 makes that a failure"
        ));
    }
    lines
}

/// The process that runs the test programs one after another: its number, and when it began.
fn command() -> String {
    let parent = std::os::unix::process::parent_id();
    let stat = fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    // After the program's name, which may have any characters, the start is the 20th field.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    format!("{parent}-{}", fields.split_whitespace().nth(19).unwrap_or_default())
}

/// Adds to the number that a file keeps for a command. A file of another command counts as 0.
fn sum_of_command(file: &Path, command: &str, more: usize) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    let before = text.strip_prefix(command).and_then(|count| count.trim().parse().ok());
    let sum = before.unwrap_or(0) + more;
    // If it cannot be kept, the next program's sum is its own.
    let _ = fs::write(file, format!("{command} {sum}\n"));
    sum
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_of_a_command_add_up() {
        let file = env::temp_dir().join(format!("skipped-{}", std::process::id()));
        let sums = [("7-100", 3), ("7-100", 4), ("7-101", 5)];
        let sums = sums.map(|(command, more)| sum_of_command(&file, command, more));
        fs::remove_file(&file).unwrap();
        assert_eq!(sums, [3, 7, 5]);
        assert_eq!(command(), command());
    }
}
