//! A crate outside the workspace depends on the library as it would be published: it builds from
//! the packed crates, offline, on the oldest Rust that is supported, with neither toolkit nor
//! device compiler, and multiplies. It compiles for GPUs alone. The crate that `cargo xtask new`
//! writes builds so, too: its tests pass, and its example transposes. They and `cargo gpu-check`,
//! installed from its packed crate, find a barrier that is taken out.

use std::{
    env,
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Instant,
};

use serde_json::Value;
use tests::{
    scratch::{Scratch, rustup, text, workspace},
    skip,
};

/// What is published.
const PACKAGES: [&str; 7] = [
    "cuda-dyn",
    "gpu-gemm",
    "gpu-gemm-kernels",
    "gpu-occupancy",
    "gpu-simt",
    "gpu-simt-macros",
    "ptx-specialise",
];

/// What crates.io takes at most, in bytes.
const MOST: u64 = 10 << 20;

const VERSION: &str = env!("CARGO_PKG_VERSION");

const PROGRAM: &str = r#"
use gpu_gemm::{Device, Gemm, Matrix, Result, product};

fn main() -> Result<()> {
    let best = Device::best();
    let stream = best.device.stream()?;
    // a(i, p) = i + 1, b(p, j) = j + 1, so c(i, j) = 20 (i + 1) (j + 1).
    let matrix = |rows, cols, element: fn(usize, usize) -> usize| {
        let places = (0..rows * cols).map(|index| element(index / cols, index % cols) as f32);
        Matrix::from_row_major(&best.device, rows, cols, &places.collect::<Vec<_>>())
    };
    let (a, b) = (matrix(33, 20, |i, _| i + 1)?, matrix(20, 18, |_, j| j + 1)?);
    let mut c = matrix(33, 18, |_, _| 7)?;
    for (entry, _) in gpu_gemm::gpu::registry::products() {
        product::multiply(&stream, entry, &a, &b, &mut c)?;
        for (index, value) in c.to_row_major()?.into_iter().enumerate() {
            assert_eq!(value, (20 * (index / 18 + 1) * (index % 18 + 1)) as f32, "{}", entry.name());
        }
    }
    // `Gemm`: half of the product is added to half of C.
    Gemm::new().alpha(0.5).beta(0.5).run(&stream, a.view(), b.view(), c.view_mut())?;
    for (index, value) in c.to_row_major()?.into_iter().enumerate() {
        assert_eq!(value, (20 * (index / 18 + 1) * (index % 18 + 1)) as f32);
    }
    println!("right on {}", best.device.name());
    Ok(())
}
"#;

/// The same for GPUs alone, with a kernel of its own: of both kernels it has the declarations.
const GPU_PROGRAM: &str = r#"
use gpu_gemm::{Device, Error, Gemm, Matrix, Result};
use simt::{AnyKernel, Kernel, LaunchConfig, device::*};

/// Twice x, a thread an element. What runs on a GPU is its PTX, which is compiled elsewhere.
#[kernel(block = (32), len(x = n, y = n))]
fn twice(n: u32, x: In<f32>, mut y: Out<f32>) {
    let i = (thread::block_idx_x() * 32 + thread::thread_idx_x()) as usize;
    if i < n as usize {
        y[i] = 2.0 * x[i];
    }
}

fn run(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let a = Matrix::from_row_major(device, 1, 2, &[1.0f32, 2.0])?;
    let mut c = Matrix::zeros(device, 2, 2)?;
    Gemm::new().run(&stream, a.view().t(), a.view(), c.view_mut())?;
    let (x, mut y) = (device.upload(&[1.0; 32])?, device.zeros(32)?);
    // SAFETY: a thread writes one element, which is inside y.
    unsafe { stream.launch(&twice, &LaunchConfig::new([1; 3], [32, 1, 1]), (32, &x, &mut y)) }
}

fn main() {
    let kernel: &Kernel<(u32, In<f32>, Out<f32>)> = &twice;
    assert_eq!((kernel as &dyn AnyKernel).declaration().block, Some([32, 1, 1]));
    match Device::cuda(0) {
        Ok(device) => run(&device).unwrap(),
        Err(error) => assert!(matches!(error, Error::NoDriver { .. } | Error::NoDevice { .. })),
    }
}
"#;

/// The crate's manifest. There is no patch line and no profile.
fn manifest(dependency: &str) -> String {
    format!(
        r#"
[package]
name = "outside"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
gpu-gemm = {{ {dependency} }}
"#
    )
}

/// Where everything here is built.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside")
}

/// The oldest Rust that is supported, by rustup, or the stable one. `None`, counted, where there is
/// neither: then the cargo at hand is used.
fn toolchain() -> Option<String> {
    let oldest = concat!(env!("CARGO_PKG_RUST_VERSION"), ".0");
    for name in [oldest, "stable"] {
        let version = rustup(&["run", name, "cargo", "--version"]).output();
        if version.is_ok_and(|output| output.status.success()) {
            return Some(name.to_owned());
        }
    }
    skip("no stable Rust by rustup, the cargo at hand was used", "CI");
    None
}

/// Runs the cargo at hand, which must succeed. What it printed.
fn cargo(scratch: &Scratch, arguments: &[&str]) -> String {
    let ran = scratch.cargo(None, &folder().join("target"), arguments);
    assert!(ran.status.success(), "cargo {arguments:?}: {}", text(&ran));
    String::from_utf8(ran.stdout).unwrap()
}

/// The packages of the workspace that are not kept from being published.
fn publishable(scratch: &Scratch, workspace: &str) -> Vec<String> {
    let arguments =
        ["metadata", "--no-deps", "--format-version", "1", "--manifest-path", workspace];
    let metadata: Value = serde_json::from_str(&cargo(scratch, &arguments)).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let published = packages.filter(|package| package["publish"].is_null());
    let mut names =
        published.map(|package| package["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    names.sort();
    names
}

/// Packs what is published, and unpacks it into `vendor`, in a folder each, as a source of crates.
fn pack(scratch: &Scratch, vendor: &Path) {
    let workspace = workspace().join("Cargo.toml");
    let workspace = workspace.to_str().unwrap();
    assert_eq!(publishable(scratch, workspace), PACKAGES);
    let packed = folder().join("target/package");
    let _ = fs::remove_dir_all(&packed);
    let mut arguments = vec!["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"];
    arguments.extend(["--exclude-lockfile", "--manifest-path", workspace]);
    arguments.extend(PACKAGES.iter().flat_map(|name| ["--package", name]));
    cargo(scratch, &arguments);

    let mut files = Vec::new();
    for entry in fs::read_dir(&packed).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "crate") {
            files.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    files.sort();
    let mut expected = PACKAGES.map(|name| format!("{name}-{VERSION}.crate"));
    expected.sort();
    assert_eq!(files, expected);

    for (name, file) in PACKAGES.iter().map(|name| (name, format!("{name}-{VERSION}.crate"))) {
        let path = packed.join(&file);
        let bytes = fs::metadata(&path).unwrap().len();
        assert!(bytes <= MOST, "{file}: {bytes} bytes");
        let unpacked = Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(vendor).status();
        assert!(unpacked.unwrap().success(), "tar does not unpack {file}");
        let folder = vendor.join(format!("{name}-{VERSION}"));
        for needed in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
            let text = fs::read_to_string(folder.join(needed)).unwrap_or_default();
            assert!(text.len() >= 100, "{file} has no {needed}");
        }
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for key in ["description", "license", "rust-version", "keywords", "categories", "readme"] {
            let is_there = manifest.lines().any(|line| line.starts_with(&format!("{key} = ")));
            assert!(is_there, "{file} has no {key}");
        }
        fs::write(folder.join(".cargo-checksum.json"), r#"{"files":{}}"#).unwrap();
    }
}

/// Removes what was built from other packed crates: cargo takes a crate from such a source for one
/// that never changes.
fn forget_builds_of_others(vendor: &Path) {
    let mut hash = DefaultHasher::new();
    let mut left = PACKAGES.map(|name| vendor.join(format!("{name}-{VERSION}"))).to_vec();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let mut entries =
                fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()).collect::<Vec<_>>();
            entries.sort();
            left.extend(entries);
        } else if !path.ends_with(".cargo_vcs_info.json") {
            (path.strip_prefix(vendor).unwrap(), fs::read(&path).unwrap()).hash(&mut hash);
        }
    }
    let (stamp, now) = (folder().join("packed.hash"), hash.finish().to_string());
    if fs::read_to_string(&stamp).unwrap_or_default() != now {
        let _ = fs::remove_dir_all(folder().join("target/debug"));
        fs::write(stamp, now).unwrap();
    }
}

/// A source of crates with the packed ones and all that they depend on, in the versions of the
/// workspace.
fn source() -> PathBuf {
    let vendor = folder().join("vendor");
    let _ = fs::remove_dir_all(&vendor);
    // A string of JSON is one of TOML. One of `{:?}` is not, where a path has letters with marks of
    // their own.
    let library = format!("path = {}", serde_json::json!(workspace().join("host/lib")));
    let files = [("Cargo.toml", &*manifest(&library)), ("src/main.rs", "fn main() {}")];
    let scratch = Scratch::new(folder().join("by-path"), &files);
    cargo(&scratch, &["vendor", "--quiet", "--versioned-dirs", vendor.to_str().unwrap()]);
    pack(&scratch, &vendor);
    forget_builds_of_others(&vendor);
    vendor
}

/// Cargo's setting that crates are taken from that folder.
fn replaced_by(source: &Path) -> String {
    format!(
        "[source.crates-io]\nreplace-with = \"packed\"\n[source.packed]\ndirectory = {}\n",
        serde_json::json!(source)
    )
}

/// Builds the crate and runs it.
fn builds_and_multiplies(source: &Path, cuda: bool) {
    let name = if cuda { "cuda" } else { "cpu" };
    let target = folder().join("target");
    let features = if cuda { "" } else { ", default-features = false, features = [\"cpu\"]" };
    let dependency = format!("version = \"{VERSION}\"{features}");
    let config = replaced_by(source);
    let files = [
        ("Cargo.toml", &*manifest(&dependency)),
        ("src/main.rs", PROGRAM),
        (".cargo/config.toml", &config),
    ];
    let scratch = Scratch::new(folder().join(name), &files);
    // The workspace's lock file has the packed crates by their paths.
    let lock_file = folder().join(name).join("Cargo.lock");
    fs::remove_file(&lock_file).unwrap();
    let ran = scratch.cargo(toolchain().as_deref(), &target, &["run", "--quiet", "--offline"]);
    let text = text(&ran);
    assert!(ran.status.success() && text.contains("right on "), "{text}");
    assert!(cuda || text.contains("right on cpu"), "{text}");
    // Of the command and its laboratory it compiles nothing.
    let lock = fs::read_to_string(lock_file).unwrap();
    let has = |name: &str| lock.contains(&format!("name = \"{name}\"\n"));
    assert!(has("gpu-gemm") && has("cuda-dyn") == cuda, "{lock}");
    let of_cust = ["cust", "cust_raw", "find_cuda_helper"];
    let of_the_command =
        ["host", "clap", "indicatif", "matrixmultiply", "nvml-wrapper", "plotters", "rand"];
    for other in of_cust.iter().chain(&of_the_command) {
        assert!(!has(other), "{other}");
    }
    defines_no_symbol_of_the_driver(&target.join("debug/outside"));
}

/// Compiles the crate for GPUs alone. Of the CPU device nothing comes with it.
fn compiles_without_the_cpu_device(source: &Path) {
    let features = "default-features = false, features = [\"cuda\"]";
    let dependency = format!("version = \"{VERSION}\", {features}");
    let of_kernels =
        format!("gpu-simt = {{ version = \"{VERSION}\", default-features = false }}\n");
    let files = [
        ("Cargo.toml", &*(manifest(&dependency) + &of_kernels)),
        ("src/main.rs", GPU_PROGRAM),
        (".cargo/config.toml", &replaced_by(source)),
    ];
    let scratch = Scratch::new(folder().join("gpu"), &files);
    let lock_file = folder().join("gpu/Cargo.lock");
    fs::remove_file(&lock_file).unwrap();
    let target = folder().join("target");
    let ran = scratch.cargo(toolchain().as_deref(), &target, &["check", "--offline"]);
    let text = text(&ran);
    assert!(ran.status.success(), "{text}");
    let lock = fs::read_to_string(lock_file).unwrap();
    assert!(lock.contains("name = \"gpu-simt\"") && lock.contains("name = \"cuda-dyn\""), "{lock}");
    for other in ["corosensei", "libc"] {
        assert!(!lock.contains(&format!("name = \"{other}\"\n")), "{other}: {lock}");
    }
}

/// A program that links NVIDIA's library itself must find that one's functions, not ours.
fn defines_no_symbol_of_the_driver(program: &Path) {
    let Ok(listed) = Command::new("nm").arg(program).output() else {
        return skip("no nm: the program's symbols were not looked at", "CI");
    };
    let symbols = String::from_utf8(listed.stdout).unwrap();
    let names = symbols.lines().filter_map(|line| line.rsplit(' ').next()).collect::<Vec<_>>();
    assert!(names.contains(&"main"), "{} symbols", names.len());
    let is_the_drivers = |name: &&str| {
        name.strip_prefix("cu")
            .is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_uppercase()))
    };
    let of_the_driver = names.iter().filter(|name| is_the_drivers(name)).collect::<Vec<_>>();
    assert!(of_the_driver.is_empty(), "{of_the_driver:?}");
}

/// What stands between writing and reading a tile in the new crate's kernel.
const BARRIER: &str = "    thread::sync_threads();\n";

/// The guide's page on it.
const PAGE: &str = include_str!("../docs/guide/your-kernel.md");

/// Looks for the lines of the page's `number`th block of output, but for those that end in dots.
fn prints_what_the_page_shows(number: usize, printed: &str) {
    let block = PAGE.split("```text\n").nth(number).unwrap().split("```").next().unwrap();
    let mut shown = block.lines().filter(|line| !line.ends_with("...")).peekable();
    assert!(shown.peek().is_some(), "block {number}");
    for line in shown {
        assert!(printed.lines().any(|it| it == line), "block {number}: {line}\n{printed}");
    }
}

/// Compiles new crates with names that their own files import from elsewhere.
fn a_new_crate_may_have_an_imported_name(source: &Path) {
    let target = folder().join("target");
    for name in ["check", "In", "Order", "device", "Stream"] {
        let scratch =
            Scratch::new(folder().join("named"), &[("../new.toml", &replaced_by(source))]);
        let folder = folder().join("named");
        fs::remove_file(folder.join("Cargo.lock")).unwrap();
        let options = xtask::new::Options { folder, name: Some(name.to_owned()), published: true };
        xtask::new::run(workspace(), &options).unwrap();
        let arguments =
            "test --no-run --features gpu --examples --tests --quiet --offline --config";
        let arguments = arguments.split(' ').chain(["../new.toml"]).collect::<Vec<_>>();
        let ran = scratch.cargo(toolchain().as_deref(), &target, &arguments);
        assert!(ran.status.success(), "{name}: {}", text(&ran));
    }
}

/// Installs `cargo gpu-check` from its packed crate. Returns a `PATH` with it.
fn installed(scratch: &Scratch, target: &Path, toolchain: Option<&str>) -> OsString {
    let root = folder().join("installed");
    let root_text = root.to_str().unwrap();
    let package = format!("gpu-simt@{VERSION}");
    let arguments = ["install", "--debug", "--offline", "--quiet", "--force", "--config"];
    let of_this = ["../new.toml", "--root", root_text, &package];
    let ran = scratch.cargo(toolchain, target, &[&arguments[..], &of_this].concat());
    assert!(ran.status.success(), "{}", text(&ran));
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([root.join("bin")].into_iter().chain(env::split_paths(&others))).unwrap()
}

/// Each finding is a line, as those of the compiler. The first is the read that a write is not
/// ordered with.
fn finds_the_race_in_json(kernels: &str, ran: Output) {
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let lines = String::from_utf8(ran.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines = lines.filter(|line| line["$message_type"].is_string()).collect::<Vec<_>>();
    let of_type = |what: &str| lines.iter().filter(|it| it["$message_type"] == what).count();
    assert_eq!((of_type("diagnostic"), of_type("case"), lines.len()), (3, 5, 8));
    let finding = &lines[0];
    assert_eq!(
        (&finding["level"], &finding["code"]["code"]),
        (&"error".into(), &"read-after-write".into())
    );
    let span = &finding["spans"][0];
    let read = "tile[(tx, ty)]";
    // The index is the place of the access.
    let start = kernels.find(read).unwrap() + "tile".len();
    assert_eq!(
        (&span["file_name"], &span["byte_start"]),
        (&"src/kernels.rs".into(), &start.into())
    );
    assert!(span["text"][0]["text"].as_str().unwrap().contains(read), "{span}");
    let rendered = finding["rendered"].as_str().unwrap();
    assert!(rendered.starts_with("error[read-after-write]: race"), "{rendered}");
}

/// Builds the crate that `cargo xtask new` writes, and does with it what the page says.
fn a_new_crate_is_checked_and_runs(source: &Path) {
    let target = folder().join("target");
    // An empty folder. The file says where crates are taken from.
    let scratch = Scratch::new(folder().join("new"), &[("../new.toml", &replaced_by(source))]);
    let folder = folder().join("new");
    fs::remove_file(folder.join("Cargo.lock")).unwrap();
    let name = Some("blur-2".to_owned());
    let options = xtask::new::Options { folder: folder.clone(), name, published: true };
    xtask::new::run(workspace(), &options).unwrap();
    let toolchain = toolchain();
    let run = |succeeds: bool, arguments: &[&str]| {
        let (options, test) = match arguments.iter().position(|it| *it == "--") {
            Some(at) => arguments.split_at(at),
            None => (arguments, &[][..]),
        };
        let of_all = ["--quiet", "--offline", "--config", "../new.toml"];
        let ran = scratch.cargo(toolchain.as_deref(), &target, &[options, &of_all, test].concat());
        assert_eq!(ran.status.success(), succeeds, "{arguments:?}: {}", text(&ran));
        text(&ran)
    };

    let tested = run(true, &["test"]);
    assert!(tested.contains("2 passed"), "{tested}");
    // The library that launches is compiled for the example alone.
    let ran = run(true, &["run", "--example", "transpose", "--features", "gpu"]);
    assert!(ran.contains("right on ") && ran.contains("refused: "), "{ran}");
    prints_what_the_page_shows(2, &run(true, &["test", "memory", "--", "--nocapture"]));

    let kernels = folder.join("src/kernels.rs");
    let source = fs::read_to_string(&kernels).unwrap();
    let with = |changes: [[&str; 2]; 2]| {
        let changed = |text: String, [from, to]: [&str; 2]| {
            assert!(text.contains(from), "{from}: {text}");
            text.replace(from, to)
        };
        fs::write(&kernels, changes.into_iter().fold(source.clone(), changed)).unwrap();
    };
    let path = installed(&scratch, &target, toolchain.as_deref());
    let gpu_check = |arguments: &[&str]| {
        let of_all = ["gpu-check", "--offline", "--config", "../new.toml"];
        let of_all = [&of_all[..], arguments].concat();
        let mut command = scratch.command(toolchain.as_deref(), &target, &of_all);
        command.env("PATH", &path).output().unwrap()
    };
    let checked = gpu_check(&[]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
    assert!(text(&checked).contains("Checked 5 cases in ten orders: nothing found"));
    let checked = gpu_check(&["multiplies"]);
    assert_eq!(checked.status.code(), Some(2), "{}", text(&checked));
    assert!(text(&checked).contains("NAME = multiplies: no `#[check]` case"), "{}", text(&checked));

    with([[BARRIER, ""], ["transposed", "not transposed"]]);
    run(false, &["test"]);
    let checked = gpu_check(&[]);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
    prints_what_the_page_shows(1, &text(&checked));
    let changed = fs::read_to_string(&kernels).unwrap();
    finds_the_race_in_json(&changed, gpu_check(&["--message-format", "json"]));

    // A result that is wrong, of a kernel that is clean; and what is no Rust.
    with([["= tile[(tx, ty)]", "= 2.0 * tile[(tx, ty)]"], ["transposed", "not transposed"]]);
    let checked = gpu_check(&["transposes"]);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
    let said = "this was in transposes(31), order forward";
    assert!(text(&checked).contains(said), "{}", text(&checked));
    with([["= tile[(tx, ty)]", "= missing"], ["transposed", "not transposed"]]);
    let checked = gpu_check(&[]);
    assert_eq!(checked.status.code(), Some(101), "{}", text(&checked));
    assert!(text(&checked).contains("error[E0425]"), "{}", text(&checked));

    with([["32 * 33 * 4", "32 * 32 * 4"], ["f32; 32, 33", "f32; 32, 32"]]);
    prints_what_the_page_shows(3, &run(false, &["test", "memory", "--", "--nocapture"]));
}

#[test]
fn a_crate_from_the_packed_crates() {
    let source = source();
    // One after the other: they share a target folder, and so what they have in common.
    builds_and_multiplies(&source, true);
    builds_and_multiplies(&source, false);
    compiles_without_the_cpu_device(&source);
    let start = Instant::now();
    a_new_crate_is_checked_and_runs(&source);
    a_new_crate_may_have_an_imported_name(&source);
    println!("the new crates took {:.1} s", start.elapsed().as_secs_f64());
}
