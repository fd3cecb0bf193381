//! Runs a test in a process of its own, in which `libcuda.so.1` is the stand-in.
//!
//! A process looks for the driver once, and the loader's search path (`LD_LIBRARY_PATH`) is fixed
//! when the process starts. So each test needs its own process. On a machine with a real driver the
//! tests do the same, and do not use that driver.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The driver: the root of its crate, and the modules.
const SOURCES: [(&str, &str); 10] = [
    ("driver.rs", include_str!("driver.rs")),
    ("copies.rs", include_str!("copies.rs")),
    ("graphs.rs", include_str!("graphs.rs")),
    ("hangs.rs", include_str!("hangs.rs")),
    ("launches.rs", include_str!("launches.rs")),
    ("memory.rs", include_str!("memory.rs")),
    ("others.rs", include_str!("others.rs")),
    ("peers.rs", include_str!("peers.rs")),
    ("products.rs", include_str!("products.rs")),
    ("settings.rs", include_str!("settings.rs")),
];
/// Set in the test's own process.
const CHILD: &str = "FAKE_CUDA_CHILD";
/// The file in which the stand-in logs its calls.
const LOG: &str = "FAKE_CUDA_LOG";

/// Defines tests: a name, the value of the environment variable `FAKE_CUDA`, and the body.
///
/// The value `no driver` stands for a machine whose library cannot be loaded.
macro_rules! with_driver {
    ($($(#[$attribute:meta])* fn $name:ident($spec:expr) $body:block)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            fake::run(concat!(module_path!(), "::", stringify!($name)), Some($spec), || $body);
        }
    )*};
}
pub(crate) use with_driver;

/// Defines tests that each run in a process of their own, with this machine's driver: after a
/// fault, a device is unusable for the process.
#[allow(unused_macros, reason = "not every crate that includes this file has such tests")]
macro_rules! on_machine {
    ($($(#[$attribute:meta])* fn $name:ident() $body:block)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            fake::run(concat!(module_path!(), "::", stringify!($name)), None, || $body);
        }
    )*};
}
#[allow(unused_imports, reason = "as above")]
pub(crate) use on_machine;

/// The names of the functions called so far; forgets them. Left out are the contexts' switching,
/// and the question whether a stream is captured.
#[allow(dead_code, reason = "not every crate that includes this file looks at calls")]
pub(crate) fn calls() -> Vec<String> {
    let switches = ["GetCurrent", "SetCurrent", "PushCurrent_v2", "PopCurrent_v2"];
    let is_switch =
        |name: &str| name.strip_prefix("cuCtx").is_some_and(|it| switches.contains(&it));
    let is_question = |name: &str| name == "cuStreamIsCapturing";
    all_calls().into_iter().filter(|name| !is_switch(name) && !is_question(name)).collect()
}

/// As [`calls`], with none left out.
#[allow(dead_code, reason = "as above")]
pub(crate) fn all_calls() -> Vec<String> {
    let path = std::env::var_os(LOG).expect("only in a test with the driver");
    let calls = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    calls.lines().map(String::from).collect()
}

/// In the child process runs `body`. Otherwise starts the child for the test `path` and passes on
/// its result. Without `spec` the child uses this machine's driver.
pub(crate) fn run(path: &str, spec: Option<&str>, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let (_, test) = path.split_once("::").expect("a path in a crate");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    let mut log = None;
    if let Some(spec) = spec {
        let directory = library_folder(spec);
        let file =
            directory.join(format!("{}.{}.log", test.replace("::", "."), std::process::id()));
        child.env("LD_LIBRARY_PATH", &directory).env("FAKE_CUDA", spec).env(LOG, &file);
        log = Some(file);
    }
    let output = child.output().unwrap();
    if let Some(log) = log {
        let _ = std::fs::remove_file(log);
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
    // The child's output, without the test harness's lines.
    for line in text.lines().filter(|line| {
        let harness = ["running ", "test "].iter().any(|start| line.starts_with(start));
        !harness && !line.is_empty()
    }) {
        println!("{line}");
    }
}

/// The folder for `LD_LIBRARY_PATH` whose `libcuda.so.1` is the one that `spec` asks for.
pub(crate) fn library_folder(spec: &str) -> PathBuf {
    if spec == "no driver" { broken() } else { built() }
}

/// The folder with the compiled stand-in. It is compiled if it is not there yet.
fn built() -> PathBuf {
    let mut hash = DefaultHasher::new();
    SOURCES.hash(&mut hash);
    let directory = folder(&format!("{:016x}", hash.finish()));
    install(&directory, |library| {
        let sources = library.with_extension("sources");
        std::fs::create_dir_all(&sources).unwrap();
        for (name, source) in SOURCES {
            std::fs::write(sources.join(name), source).unwrap();
        }
        let status = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=fake_cuda"])
            .args(["-Copt-level=1", "-Cdebug-assertions"])
            .arg("-Clink-arg=-Wl,-soname,libcuda.so.1")
            .arg("-o")
            .args([library, &sources.join("driver.rs")])
            .status()
            .expect("rustc compiles the driver that the tests load");
        assert!(status.success(), "the tests' driver does not compile");
        std::fs::remove_dir_all(sources).unwrap();
    });
    directory
}

/// A folder with a `libcuda.so.1` that cannot be loaded.
fn broken() -> PathBuf {
    let directory = folder("broken");
    install(&directory, |library| std::fs::write(library, "not a library").unwrap());
    directory
}

/// Next to the running test, in Cargo's target folder.
fn folder(name: &str) -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().unwrap().join("fake-cuda").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Creates the library in one step, because other test processes may do the same.
fn install(directory: &Path, make: impl FnOnce(&Path)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let library = directory.join("libcuda.so.1");
    if !library.exists() {
        let new = directory.join(format!("new-{}", std::process::id()));
        make(&new);
        std::fs::rename(new, library).unwrap();
    }
}
