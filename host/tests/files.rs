//! The files that the command reads and writes. However it ends, no incomplete file is left, and no
//! file is replaced without a request.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "not every file of tests needs all of it")]
mod common;
#[path = "common/folder.rs"]
mod folder;
#[path = "common/shell.rs"]
mod shell;

use std::{
    fs::{self, File, Permissions},
    io::{BufRead, BufReader, Read},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
};

use self::common::{fails, finish, host, succeeds};
use self::folder::Folder;
use self::shell::under;
use host::{Layout, Type, npy::Writer};

/// Tells the command that the file system has no unnamed files (`host::testing`).
const NO_NAMELESS_FILES: &str = "HOST_TESTING_NO_NAMELESS_FILES";

/// A recorded ladder. Its pictures are drawn without measuring.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/ladder-h200.json");
/// Recorded results of `bench`.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/bench-h100-f32");

impl Folder {
    /// A square matrix of zeros, as a sparse file.
    fn zeros(&self, name: &str, size: usize) -> String {
        let (path, layout) = (self.path(name), Layout::RowMajor);
        Writer::create("--out", &path, size, size, Type::F32, layout).unwrap().finish().unwrap();
        self.text(name)
    }

    /// A FIFO without a writer.
    fn fifo(&self, name: &str) -> String {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().unwrap().success());
        self.text(name)
    }

    /// An image of a few pixels.
    fn picture(&self, name: &str) -> String {
        let mut encoder = png::Encoder::new(File::create(self.path(name)).unwrap(), 5, 4);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&[7; 20]).unwrap();
        self.text(name)
    }
}

/// `gemm` of a file with itself, on the CPU.
fn gemm(a: &str, out: &str, more: &[&str]) -> Command {
    let args = ["gemm", "--a", a, "--b", a, "--out", out, "--device", "cpu"];
    host(&[&args[..], more].concat())
}

/// Starts a product, and waits until it has begun. Returns its standard error.
fn begun(mut command: Command) -> (Child, BufReader<ChildStderr>) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while line != "kernel basic ...\n" {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended before");
    }
    (child, stderr)
}

#[track_caller]
fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
}

/// How a product that takes minutes ends if it gets these signals after it has begun.
#[track_caller]
fn ended_by(signals: &[&str], nameless: bool) -> ExitStatus {
    let folder = Folder::new();
    let a = folder.zeros("a.npy", 3000);
    let mut command = gemm(&a, &folder.text("c.npy"), &["--kernel", "basic", "-v"]);
    if !nameless {
        command.env(NO_NAMELESS_FILES, "1");
    }
    // No core dump, and no signal is ignored because the tests run under `nohup`.
    let settings = r#"ulimit -c 0 && set -- "$0" "$@" && exec env --default-signal "$@""#;
    let (mut child, mut stderr) = begun(under(settings, &command));
    // The output file has its full length, with a name or without.
    let open = format!("/proc/{}/fd", child.id());
    let lens = fs::read_dir(open).unwrap().map(|file| {
        let metadata = fs::metadata(file.unwrap().path());
        metadata.map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 })
    });
    let len = fs::metadata(&a).unwrap().len();
    assert_eq!(lens.filter(|&there| there == len).count(), 3, "A, B and C");
    let named = folder.files().iter().filter(|name| name.starts_with(".host-")).count();
    assert_eq!(named, usize::from(!nameless));
    for signal in signals {
        send(signal, &child);
    }
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert!(!rest.contains("panicked"), "{rest}");
    assert_eq!(folder.files(), ["a.npy"], "{signals:?}");
    status
}

#[test]
fn what_dies_leaves_nothing() {
    for nameless in [true, false] {
        assert_eq!(ended_by(&["INT"], nameless).code(), Some(130));
        // The first signal ends the command in order, which takes time. The result is the same.
        assert_eq!(ended_by(&["INT", "INT"], nameless).code(), Some(130));
        for (signal, number) in [("TERM", 15), ("HUP", 1), ("XCPU", 24)] {
            assert_eq!(ended_by(&[signal], nameless).signal(), Some(number), "{signal}");
        }
        for (signal, number) in [("QUIT", 3), ("USR1", 10), ("ALRM", 14), ("ABRT", 6)] {
            assert_eq!(ended_by(&[signal], nameless).signal(), Some(number), "{signal}");
        }
    }
    assert_eq!(ended_by(&["KILL"], true).signal(), Some(9));
}

/// The system cannot start a thread that waits for signals.
#[test]
fn without_threads_a_signal_ends_the_command() {
    let folder = Folder::new();
    let a = folder.zeros("a.npy", 3000);
    let mut command = gemm(&a, &folder.text("c.npy"), &["--kernel", "basic", "-v"]);
    command.env("RUST_MIN_STACK", (1u64 << 50).to_string());
    let (mut child, _stderr) = begun(command);
    send("TERM", &child);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(folder.files(), ["a.npy"]);
}

#[test]
fn a_replaced_file_does_not_run_as_a_new_owner() {
    let folder = Folder::new();
    let (a, out) = (folder.zeros("a.npy", 3), folder.text("c.npy"));
    fs::write(&out, "").unwrap();
    fs::set_permissions(&out, Permissions::from_mode(0o6750)).unwrap();
    succeeds(gemm(&a, &out, &[]));
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o7777, 0o750);
}

/// SIGHUP is ignored, as under `nohup`.
#[test]
fn a_signal_that_is_to_be_ignored_is() {
    let folder = Folder::new();
    let (a, out) = (folder.zeros("a.npy", 300), folder.text("c.npy"));
    let command = gemm(&a, &out, &["--kernel", "basic", "-v"]);
    let (mut child, mut stderr) = begun(under(r#"trap "" HUP"#, &command));
    send("HUP", &child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    assert_eq!(folder.files(), ["a.npy", "c.npy"]);
}

/// A command whose files may have at most this many of the shell's blocks.
fn limited(command: &Command, blocks: u32) -> Command {
    under(&format!("ulimit -f {blocks}"), command)
}

#[test]
fn a_file_that_gets_too_long_is_exit_code_4_and_leaves_what_was_there() {
    let folder = Folder::new();
    let (a, out) = (folder.zeros("a.npy", 300), folder.text("c.npy"));
    fs::write(&out, "what was there").unwrap();
    let words = ["--out = ", "c.npy: cannot be written: File too large"];
    fails(limited(&gemm(&a, &out, &[]), 8), 4, &words);
    assert_eq!(fs::read(&out).unwrap(), b"what was there");
    // Also pictures.
    let svg = folder.text("a.svg");
    fs::write(&svg, "a picture").unwrap();
    let ladder = host(&["ladder", "--from", RECORD, "--plot", &svg]);
    let (code, _, stderr) = finish(limited(&ladder, 2));
    assert!(code == 4 && stderr.contains("--plot = ") && stderr.contains("too large"), "{stderr}");
    assert_eq!(fs::read(&svg).unwrap(), b"a picture");
    // And all files of a set.
    let results = folder.text("results");
    let bench = |out: &str| host(&["bench", "--from", RESULTS, "--out", out]);
    let (code, _, stderr) = finish(limited(&bench(&results), 16));
    assert!(code == 4 && stderr.contains("--out = ") && stderr.contains("too large"), "{stderr}");
    assert_eq!(folder.files(), ["a.npy", "a.svg", "c.npy"]);
    succeeds(bench(&results));
    let before = fs::metadata(&results).unwrap().ino();
    finish(limited(&bench(&results), 16));
    assert_eq!(fs::metadata(&results).unwrap().ino(), before);
    assert_eq!(fs::read_dir(&results).unwrap().count(), 9);
}

#[test]
fn a_set_is_replaced_as_a_whole_also_where_files_have_names() {
    for nameless in [true, false] {
        let folder = Folder::new();
        let results = folder.text("results");
        let mut numbers = Vec::new();
        for _ in 0..2 {
            let mut bench = host(&["bench", "--from", RESULTS, "--out", &results]);
            if !nameless {
                bench.env(NO_NAMELESS_FILES, "1");
            }
            succeeds(bench);
            assert_eq!(fs::read_dir(&results).unwrap().count(), 9);
            numbers.push(fs::metadata(&results).unwrap().ino());
        }
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(folder.files(), ["results"]);
        // A shell's current folder is not replaced.
        let mut bench = host(&["bench", "--from", RESULTS, "--out", "."]);
        bench.current_dir(&results);
        succeeds(bench);
        assert_eq!(fs::metadata(&results).unwrap().ino(), numbers[1]);
    }
}

#[test]
fn inputs_that_are_no_files_are_refused_at_once() {
    let folder = Folder::new();
    let (a, fifo) = (folder.zeros("a.npy", 3), folder.fifo("fifo"));
    let (out, picture) = (folder.text("o.npy"), folder.text("o.png"));
    let is_fifo = ["fifo: is no file but a FIFO"];
    let one = ["gemm", "--out", &out, "--device", "cpu"];
    let operands = |files: [&str; 3]| {
        let [a, b, c] = files;
        host(&[&one[..], &["--a", a, "--b", b, "--c", c]].concat())
    };
    fails(operands([&fifo, &a, &a]), 2, &["--a = ", is_fifo[0]]);
    fails(operands([&a, &fifo, &a]), 2, &["--b = ", is_fifo[0]]);
    fails(operands([&a, &a, &fifo]), 2, &["--c = ", is_fifo[0]]);
    let blur = |input: &str| host(&["blur", "--in", input, "--out", &picture, "--radius", "1"]);
    fails(blur(&fifo), 2, &["--in = ", is_fifo[0]]);
    for command in ["ladder", "bench"] {
        fails(host(&[command, "--from", &fifo]), 2, &["--from = ", is_fifo[0]]);
    }
    fails(host(&["bench", "--compare", &fifo]), 2, &["--compare = ", is_fifo[0]]);
    fs::create_dir(folder.path("results")).unwrap();
    folder.fifo("results/results.jsonl");
    let results = folder.text("results");
    fails(host(&["bench", "--from", &results]), 2, &["--from = ", "jsonl: is no file but a FIFO"]);
    // Then the machine is not known.
    fs::remove_file(folder.path("results/results.jsonl")).unwrap();
    let rows = format!("{RESULTS}/results.jsonl");
    fs::copy(rows, folder.path("results/results.jsonl")).unwrap();
    folder.fifo("results/machine.json");
    succeeds(host(&["bench", "--from", &results]));
    for (path, kind) in [("/dev/zero", "a device"), (&*results, "a folder")] {
        fails(operands([path, &a, &a]), 2, &["--a = ", "is no file but", kind]);
        fails(blur(path), 2, &["--in = ", "is no file but", kind]);
    }
    fails(operands(["-", &a, &a]), 2, &["--a = -: is not standard input"]);
    assert_eq!(folder.files(), ["a.npy", "fifo", "results"]);
}

#[test]
fn outputs_are_what_their_paths_say() {
    let folder = Folder::new();
    let a = folder.zeros("a.npy", 3);
    let to = |out: &str| gemm(&a, out, &[]);
    // Through a dangling link, the file that it names is created.
    symlink("made.npy", folder.path("link.npy")).unwrap();
    succeeds(to(&folder.text("link.npy")));
    assert!(fs::symlink_metadata(folder.path("made.npy")).unwrap().is_file());
    symlink("circle.npy", folder.path("circle.npy")).unwrap();
    let long = "n".repeat(255);
    for _ in 0..2 {
        succeeds(to(&folder.text(&long)));
    }
    folder.fifo("fifo.npy");
    let before = folder.files();
    for (out, why) in [
        (folder.text("circle.npy"), "symbolic links"),
        (folder.text("x/"), "names no file"),
        (folder.text(""), "names no file"),
        (folder.text("."), "names no file"),
        (folder.text("fifo.npy"), "is there, and no file but a FIFO"),
        (folder.text(&"n".repeat(256)), "name too long"),
        ("-".to_owned(), "is not standard output"),
    ] {
        fails(to(&out), 2, &["--out = ", why]);
    }
    let [svg, png] = ["x.svg", "x.png"].map(|name| folder.text(name));
    fs::create_dir(&svg).unwrap();
    let ladder = |flags: &[&str]| host(&[&["ladder", "--size", "32"], flags].concat());
    fails(ladder(&["--plot", &svg]), 2, &["--plot = ", "is there, and no file but a folder"]);
    fs::remove_dir(&svg).unwrap();
    fails(ladder(&["--plot", "-"]), 2, &["--plot", "is not standard output"]);
    symlink("x.png", folder.path("y.png")).unwrap();
    let both = ["--plot", &png, "--roofline", &folder.text("y.png")];
    fails(ladder(&both), 2, &["--roofline = ", "y.png: is the file of --plot too"]);
    fs::remove_file(folder.path("y.png")).unwrap();
    fails(host(&["bench", "--sizes", "8", "--out", "-"]), 2, &["--out = -: is not standard"]);
    assert_eq!(folder.files(), before);
}

/// Such a command with an output that is also an input: refused, and done with `--force`.
#[track_caller]
fn wants_force(args: &[&str], of: &str) {
    fails(host(args), 2, &[&format!("is the file of {of} "), "too: --force replaces it"]);
    succeeds(host(&[args, &["--force"]].concat()));
}

#[test]
fn inputs_are_replaced_by_force_alone() {
    let folder = Folder::new();
    let [a, b, c] = ["a.npy", "b.npy", "c.npy"].map(|name| folder.zeros(name, 3));
    symlink("a.npy", folder.path("link.npy")).unwrap();
    for (out, of) in [(&a, "--a"), (&b, "--b"), (&c, "--c"), (&folder.text("link.npy"), "--a")] {
        let args = ["gemm", "--a", &a, "--b", &b, "--c", &c, "--out", out, "--device", "cpu"];
        wants_force(&args, of);
    }
    fs::hard_link(&b, folder.path("hard.npy")).unwrap();
    let hard = folder.text("hard.npy");
    wants_force(&["gemm", "--a", &a, "--b", &b, "--out", &hard, "--device", "cpu"], "--b");
    let picture = folder.picture("p.png");
    wants_force(&["blur", "--in", &picture, "--out", &picture, "--radius", "1"], "--in");
    let record = folder.text("record.svg");
    fs::copy(RECORD, &record).unwrap();
    wants_force(&["ladder", "--from", &record, "--roofline", &record], "--from");
    let results = folder.text("results");
    let bench = |more: &[&str]| finish(host(&[&["bench", "--from", RESULTS], more].concat())).0;
    assert_eq!(bench(&["--out", &results]), 0);
    let rows = folder.text("results/results.jsonl");
    for from in [&results, &rows] {
        wants_force(&["bench", "--from", from, "--out", &results], "--from");
        assert_eq!(fs::read_dir(&results).unwrap().count(), 9, "with its machine");
    }
    let compare = ["bench", "--from", RESULTS, "--compare", &results, "--out", &results];
    wants_force(&compare, "--compare");
}

/// `/dev/full` behaves like a full disk.
#[test]
fn nothing_is_printed_in_vain() {
    let kinds: [&[&str]; 9] = [
        &["--help"],
        &["--version"],
        &["gemm", "--help"],
        &["help", "bench"],
        &["kernels"],
        &["kernels", "--json"],
        &["devices"],
        &["completions", "bash"],
        &["--m", "1", "--n", "1", "--k", "1"],
    ];
    for args in kinds {
        let mut command = host(args);
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
        let (code, _, stderr) = finish(command);
        assert_eq!(code, 4, "{args:?}: {stderr}");
        assert!(stderr.contains("error: standard output: No space left"), "{args:?}: {stderr}");
        // The reader of the pipe has closed it.
        let mut command = host(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
    }
}
