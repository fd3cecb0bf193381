//! The built command, on a machine with the stand-in for the driver.

#[allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "the rest serves tests within a process"
)]
#[path = "../../cuda-dyn/tests/fake/mod.rs"]
mod fake;

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// The command on a machine without a driver, whatever this machine has.
pub fn host(args: &[&str]) -> Command {
    on("no driver", args)
}

/// The command on a machine with that driver (`cuda-dyn/tests/fake`).
pub fn on(driver: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
    command.args(args).env("LD_LIBRARY_PATH", fake::library_folder(driver));
    command.env("FAKE_CUDA", driver).env_remove("FAKE_CUDA_LOG");
    command
}

pub fn finish(mut command: Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(stdout), text(stderr));
    let code = status.code().unwrap_or_else(|| panic!("{command:?}: {status}: {stderr}"));
    (code, stdout, stderr)
}

/// The standard output of a command that succeeds.
#[track_caller]
pub fn succeeds(command: Command) -> String {
    let run = format!("{command:?}");
    let (code, stdout, stderr) = finish(command);
    assert_eq!(code, 0, "{run}: {stdout}{stderr}");
    stdout
}

/// The same of one whose standard output has all of these parts.
#[track_caller]
pub fn shows(command: Command, parts: &[&str]) -> String {
    let run = format!("{command:?}");
    let stdout = succeeds(command);
    for part in parts {
        assert!(stdout.contains(part), "{run}: `{part}` is missing: {stdout}");
    }
    stdout
}

/// The same of one that says nothing else.
#[track_caller]
pub fn prints(command: Command) -> String {
    let run = format!("{command:?}");
    let (code, stdout, stderr) = finish(command);
    assert_eq!((code, &*stderr), (0, ""), "{run}: {stdout}");
    stdout
}

/// The one object that a command with `--json` prints, which succeeds.
#[track_caller]
pub fn object(command: Command) -> Value {
    let stdout = succeeds(command);
    let [object] = &objects(&stdout)[..] else { panic!("{stdout}") };
    object.clone()
}

/// Checks a failure: the exit code, an empty standard output, and a message on standard error with
/// all of `words`.
#[track_caller]
pub fn fails(command: Command, code: i32, words: &[&str]) {
    let (actual, stdout, stderr) = finish(command);
    assert_eq!(actual, code, "{stderr}");
    assert_eq!(stdout, "");
    assert!(!stderr.contains("panicked"), "{stderr}");
    // A refused run would be refused again.
    assert!(code != 2 || !stderr.contains("reproduce"), "{stderr}");
    let start = stderr.find("error: ").unwrap_or_else(|| panic!("no `error: `: {stderr}"));
    // If a value must be one of a few, these are on the next line.
    let message = stderr[start..].split("\n\n").next().unwrap_or_default();
    for word in words {
        assert!(message.contains(word), "`{word}` is missing: {message}");
    }
}

/// Checks that an object has these values among others.
#[track_caller]
pub fn has(object: &Value, values: Value) {
    for (key, value) in values.as_object().unwrap() {
        assert_eq!(object[key], *value, "{key}: {object}");
    }
}

pub fn objects(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that times, speeds and shares have no more digits than are measured.
#[track_caller]
pub fn has_no_noise(object: &Value) {
    for (key, value) in object.as_object().unwrap() {
        if !value.is_f64() {
            continue;
        }
        let (error, text) = (key.starts_with("max_"), value.to_string());
        let digits = text.split('e').next().unwrap_or_default().replace('.', "");
        let digits = digits.trim_start_matches('0').trim_end_matches('0').len();
        assert!(error || digits <= 6, "{key}: {text}");
    }
}

/// Sends SIGINT when the command has announced this step, whose work takes minutes, and has
/// computed for a while. Checks how it ends. Returns standard error.
#[track_caller]
pub fn is_interrupted(mut command: Command, step: &str) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.ends_with(&format!("{step} ...\n")) {
        assert_ne!(lines.read_line(&mut stderr).unwrap(), 0, "`{step}` never begins: {stderr}");
    }
    // Processor time does not depend on the load of the machine.
    let begun = processor_ticks(id);
    while processor_ticks(id) < begun + 20 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let start = Instant::now();
    assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
    lines.read_to_string(&mut stderr).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains(&format!("\n{step}: ended early, after ")), "{stderr}");
    assert!(stderr.ends_with("error: interrupted\n") && stdout.is_empty(), "{stderr}");
    assert!(!stderr.contains("reproduce"), "{stderr}");
    // An idle machine takes a fraction of a second. The step would take minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    stderr
}

/// The processor time of a process in hundredths of a second (`proc(5)`).
fn processor_ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    // After the program's name, which may have any characters: the state, and eleven fields later
    // the two sums.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let times = fields.split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
