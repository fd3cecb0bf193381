//! Standard output that nobody reads, or that cannot be written: the tasks do not panic.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

/// A task of this workspace.
fn xtask(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let package = env!("CARGO_MANIFEST_DIR");
    command
        .args(args)
        .env("CARGO_MANIFEST_DIR", package)
        .current_dir(Path::new(package).join(".."));
    command.stderr(Stdio::piped());
    command
}

/// Runs a task while nobody reads.
fn closed(mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).output().unwrap()
}

/// Runs a task on a full disk.
fn full(mut command: Command) -> Output {
    let disk = fs::File::options().write(true).open("/dev/full").unwrap();
    command.stdout(disk).output().unwrap()
}

/// The tasks that print and neither compile nor take long. Each has a folder of its own.
fn tasks(folder: &str) -> [Vec<&str>; 5] {
    [
        vec!["--help"],
        vec!["ci", "--help"],
        vec!["new", folder, "--name", "blur"],
        vec!["tidy"],
        vec!["inspect", "basic", "--ptx"],
    ]
}

#[test]
fn a_closed_standard_output_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    for task in tasks(folder.path().to_str().unwrap()) {
        let done = closed(xtask(&task));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{task:?}: {stderr}");
    }
    assert!(folder.path().join("Cargo.toml").is_file());
}

#[test]
fn a_full_standard_output_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for task in tasks(folder.path().to_str().unwrap()) {
        let done = full(xtask(&task));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{task:?}: {stderr}");
        assert!(
            stderr.contains("error: standard output cannot be written: "),
            "{task:?}: {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{task:?}: {stderr}");
    }
    // What was asked for is there all the same.
    assert!(folder.path().join("Cargo.toml").is_file());
}

#[test]
fn a_full_standard_error_changes_no_exit_code() {
    let disk = fs::File::options().write(true).open("/dev/full").unwrap();
    let done = xtask(&["no-such-task"]).stderr(disk).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
}
