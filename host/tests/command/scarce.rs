//! The command with little memory or few threads: it succeeds, or reports the reason in one line.

use std::{fs, path::Path};

use host::{Layout, Type, npy::Writer, operands};
use tempfile::TempDir;

use crate::{
    common::{finish, host, on, shows},
    shell::under,
};

/// The number of bytes in a message before these words.
fn bytes(message: &str, words: &str) -> Option<u64> {
    message
        .split(words)
        .next()
        .filter(|before| *before != message)?
        .rsplit(' ')
        .next()?
        .parse()
        .ok()
}

fn writer(folder: &TempDir, name: &str, rows: usize, cols: usize) -> Writer {
    let path = folder.path().join(name);
    Writer::create("--out", &path, rows, cols, Type::F32, Layout::RowMajor).unwrap()
}

/// A folder with A, 300 x 200, and B, 200 x 250.
fn files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows, cols) in [("a.npy", 300, 200), ("b.npy", 200, 250)] {
        let values = operands::uniform::<f32>(7, rows * cols).unwrap();
        let (mut writer, layout) = (writer(&folder, name, rows, cols), Layout::RowMajor);
        writer.write(0..rows, 0..cols, layout, &values).unwrap();
        writer.finish().unwrap();
    }
    folder
}

fn path(folder: &TempDir, name: &str) -> String {
    let path: &Path = folder.path();
    path.join(name).into_os_string().into_string().unwrap()
}

/// Checks that the line says how many bytes were needed, and that fewer were free or they
/// were refused.
#[track_caller]
fn is_true(stderr: &str) {
    let line = stderr.lines().find(|line| line.starts_with("error: ")).expect("an error");
    assert!(line.starts_with("error: out of memory"), "{line}");
    match (bytes(line, " bytes needed"), bytes(line, " free")) {
        (Some(needed), Some(free)) => {
            let words = ", which were refused, or too little would have been left: ";
            assert_eq!(free >= needed, line.contains(words), "{line}");
            // The CPU device's fixed reserve is not part of the needed bytes.
            assert_ne!(needed, (256 << 10) + (4 << 20), "{line}");
            // Nor is it the last of many stacks.
            assert_ne!(needed, 256 << 10, "{line}");
        }
        // Not even the line could be allocated.
        _ => assert!(line.contains(" bytes more") || line.contains(" bytes are left"), "{line}"),
    }
}

#[test]
fn too_little_memory_is_one_line_and_the_exit_code_4() {
    let folder = files();
    let path = |name: &str| path(&folder, name);
    let files = format!("--a {} --b {} --out {}", path("a.npy"), path("b.npy"), path("c.npy"));
    let commands = [
        "--m 700 --n 300 --k 400".to_owned(),
        "--m 200 --n 200 --k 200 --type bf16".to_owned(),
        "check --m 100 --n 90 --k 40".to_owned(),
        "profile --m 64 --n 64 --k 64".to_owned(),
        "ladder --size 64 --device cpu".to_owned(),
        format!("gemm --device cpu {files}"),
    ];
    let (mut refused, mut done) = (0, 0);
    for command in commands {
        let command = host(&command.split(' ').collect::<Vec<_>>());
        for mib in (56..=600).step_by(136) {
            let (code, _, stderr) = finish(under(&format!("ulimit -v {}", mib * 1024), &command));
            match code {
                0 => done += 1,
                4 => {
                    is_true(&stderr);
                    refused += 1;
                }
                _ => panic!("{command:?} in {mib} MiB: exit code {code}: {stderr}"),
            }
            let names =
                fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".tmp")));
        }
    }
    assert!(refused >= 6 && done >= 12, "{refused} refused, {done} done");
}

/// Two workers need more stacks than one. If there is memory for one only, one does the work.
#[test]
fn more_memory_does_not_fail_where_less_works() {
    let folder = files();
    let path = |name: &str| path(&folder, name);
    let files = format!("--a {} --b {} --out {}", path("a.npy"), path("b.npy"), path("c.npy"));
    for command in
        ["--m 300 --n 250 --k 200".to_owned(), format!("gemm --device cpu {files} --force")]
    {
        let command = host(&command.split(' ').collect::<Vec<_>>());
        let mut least = None;
        for mib in (64..=512).step_by(32) {
            let (code, _, stderr) = finish(under(&format!("ulimit -v {}", mib * 1024), &command));
            match (code, least) {
                (0, _) => least = least.or(Some(mib)),
                (4, None) => {}
                _ => panic!("{command:?} in {mib} MiB, {least:?} was enough: {code}: {stderr}"),
            }
        }
        assert!(least.is_some_and(|least| least > 64), "{command:?}: {least:?}");
    }
}

#[test]
fn without_threads_the_first_one_does_it_all() {
    let folder = files();
    let path = |name: &str| path(&folder, name);
    let [a, b, c, d] = ["a.npy", "b.npy", "c.npy", "d.npy"].map(path);
    let alone = |args: &[&str]| {
        let mut command = host(args);
        // No system has this much memory for a thread's stack.
        command.env("RUST_MIN_STACK", (1u64 << 50).to_string());
        command
    };
    shows(alone(&["--m", "200", "--n", "300", "--k", "100"]), &["verified"]);
    shows(alone(&["check", "--m", "40", "--n", "33", "--k", "17"]), &["clean"]);
    let args =
        ["gemm", "--device", "cpu", "--device-memory-limit", "200K", "--a", &a, "--b", &b, "--out"];
    for (mut command, file) in [(host(&args), &c), (alone(&args), &d)] {
        command.arg(file);
        shows(command, &["verified"]);
    }
    assert_eq!(fs::read(c).unwrap(), fs::read(d).unwrap());
}

/// If blocks need more than is free, the error names no flag that was not given.
#[test]
fn blocks_that_do_not_fit_into_what_is_free_are_memory_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    // Sparse files of zeros take no room on a disk.
    let k = 1 << 30;
    writer(&folder, "a.npy", 1, k).finish().unwrap();
    writer(&folder, "b.npy", k, 1).finish().unwrap();
    let [a, b, out] = ["a.npy", "b.npy", "c.npy"].map(|name| path(&folder, name));
    let args = ["gemm", "--a", &a, "--b", &b, "--out", &out, "--block-k", "536870912", "--device"];
    // Two blocks of A and of B, and one of C. On the CPU the chunks count, too.
    let on_device = 4 * (4 * 536_870_912u64 + 1);
    for (device, more) in [("cpu", 5 * 2 * (8 << 20)), ("cuda:0", 0)] {
        let command = on("", &[&args[..], &[device]].concat());
        let (code, _, stderr) = finish(under("ulimit -v 4194304", &command));
        assert_eq!(code, 4, "{stderr}");
        let line = format!("error: out of memory on {device}: {} bytes needed (", on_device + more);
        assert!(stderr.contains(&line) && !stderr.contains("--device-memory-limit"), "{stderr}");
        is_true(&stderr);
    }
    // A limit that was given is named.
    let limit = ["cpu", "--device-memory-limit", "1M"];
    let (code, _, stderr) = finish(host(&[&args[..], &limit].concat()));
    let line =
        format!("error: --device-memory-limit = 1048576: must be at least {} bytes", on_device + 4);
    assert!(code == 2 && stderr.contains(&line), "{stderr}");
}
