//! Standard output that nobody reads, or that cannot be written: the program does not panic.

use std::{fs::File, io, process::Command};

/// What prints without running a mutant.
const TASKS: [&[&str]; 2] = [&["--help"], &["--list", "--file", "lessons/basic"]];

fn mutants(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mutants"));
    command.args(args);
    command
}

#[test]
fn a_closed_standard_output_is_no_error() {
    for task in TASKS {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let done = mutants(task).stdout(writer).output().unwrap();
        assert_eq!(
            done.status.code(),
            Some(0),
            "{task:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

#[test]
fn a_full_standard_output_is_told() {
    for task in TASKS {
        let disk = File::options().write(true).open("/dev/full").unwrap();
        let done = mutants(task).stdout(disk).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{task:?}: {stderr}");
        assert!(
            stderr.contains("error: standard output cannot be written: "),
            "{task:?}: {stderr}"
        );
    }
}
