//! A crate outside the workspace depends on the library, builds on stable Rust with neither toolkit nor device
//! compiler, and multiplies.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{
    scratch::{Scratch, rustup, text, workspace},
    skip,
};

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
    // The general product: half of it onto what C holds.
    Gemm::new().alpha(0.5).beta(0.5).run(&stream, a.view(), b.view(), c.view_mut())?;
    for (index, value) in c.to_row_major()?.into_iter().enumerate() {
        assert_eq!(value, (20 * (index / 18 + 1) * (index % 18 + 1)) as f32);
    }
    println!("right on {}", best.device.name());
    Ok(())
}
"#;

/// The crate's manifest: with the CUDA device, or without. There is no patch line and no profile.
fn manifest(cuda: bool) -> String {
    let library = workspace().join("host/lib");
    format!(
        r#"
[package]
name = "outside"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
gpu-gemm = {{ path = {library:?}, default-features = {cuda} }}
"#
    )
}

/// Stable Rust by rustup. `None`, counted, where there is none: then the cargo at hand is used.
fn stable() -> Option<&'static str> {
    let version = rustup(&["run", "stable", "cargo", "--version"]).output();
    if version.is_ok_and(|output| output.status.success()) {
        return Some("stable");
    }
    skip("no stable Rust by rustup, the cargo at hand was used", "CI");
    None
}

/// Builds the crate and runs it.
fn builds_and_multiplies(cuda: bool) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let (name, target): (_, PathBuf) = (if cuda { "cuda" } else { "cpu" }, folder.join("target"));
    let files = [("Cargo.toml", &*manifest(cuda)), ("src/main.rs", PROGRAM)];
    let scratch = Scratch::new(folder.join(name), &files);
    let ran = scratch.cargo(stable(), &target, &["run", "--quiet"]);
    let text = text(&ran);
    assert!(ran.status.success() && text.contains("right on "), "{text}");
    assert!(cuda || text.contains("right on cpu"), "{text}");
    // Of the command and its laboratory it compiles nothing.
    let lock = fs::read_to_string(folder.join(name).join("Cargo.lock")).unwrap();
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

#[test]
fn a_crate_on_stable_rust() {
    // One after the other: they share a target folder, and so what they have in common.
    builds_and_multiplies(true);
    builds_and_multiplies(false);
}
