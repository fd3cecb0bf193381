//! Runs a test in a process of its own, in which `libcuda.so.1` is the one of `driver.rs`.
//!
//! A process of its own, because the driver is looked for once in a process, and where the loader looks
//! (`LD_LIBRARY_PATH`) is settled when the process starts. On a machine with a real driver the tests see
//! the same, and leave that one alone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The driver: the root of its crate, and the modules.
const SOURCES: [(&str, &str); 5] = [
    ("driver.rs", include_str!("driver.rs")),
    ("copies.rs", include_str!("copies.rs")),
    ("memory.rs", include_str!("memory.rs")),
    ("products.rs", include_str!("products.rs")),
    ("settings.rs", include_str!("settings.rs")),
];
/// Set in the process of its own.
const CHILD: &str = "FAKE_CUDA_CHILD";
/// Where the driver logs its calls.
const LOG: &str = "FAKE_CUDA_LOG";

/// Defines tests: a name, what the environment variable `FAKE_CUDA` says, and what to do there.
///
/// `no driver` in its place stands for a machine whose library cannot be loaded.
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

/// Defines tests that run each in a process of its own with the driver of this machine: a fault on a
/// device ends the device for the process.
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

/// The names of the functions called so far, the contexts' switching left out; forgets them.
#[allow(dead_code, reason = "not every crate that includes this file looks at calls")]
pub(crate) fn calls() -> Vec<String> {
    let path = std::env::var_os(LOG).expect("only in a test with the driver");
    let calls = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let switches = ["GetCurrent", "SetCurrent", "PushCurrent_v2", "PopCurrent_v2"];
    let is_switch =
        |name: &str| name.strip_prefix("cuCtx").is_some_and(|it| switches.contains(&it));
    calls.lines().filter(|name| !is_switch(name)).map(String::from).collect()
}

/// In the child runs `body`; elsewhere starts the child for the test `path` and passes its verdict on.
/// No `spec` stands for the machine's own driver.
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
    // What the child had to say, the harness's own lines left out.
    for line in text.lines().filter(|line| {
        let harness = ["running ", "test "].iter().any(|start| line.starts_with(start));
        !harness && !line.is_empty()
    }) {
        println!("{line}");
    }
}

/// The folder for `LD_LIBRARY_PATH` in which `libcuda.so.1` is what `spec` asks for.
pub(crate) fn library_folder(spec: &str) -> PathBuf {
    if spec == "no driver" { broken() } else { built() }
}

/// The folder with the driver of this source, compiled when it is not there yet.
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

/// A folder with a `libcuda.so.1` that no loader takes.
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

/// Puts the library in its place in one step: other test processes may be about to do the same.
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
