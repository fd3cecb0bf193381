//! Rust-CUDA's own `cuda_std` compiles the file in its idiom without changes.

use std::path::{Path, PathBuf};

use tests::{
    scratch::{Scratch, text, workspace},
    skip,
};

const MANIFEST: &str = r#"
[package]
name = "rust-cuda-idiom"
version = "0.0.0"
edition = "2021"

[workspace]

[dependencies]
cuda_std = "=0.2.2"
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust_cuda")
}

/// A crate with that kernel file and the real `cuda_std`. `None`, counted, if crates.io cannot be
/// reached.
fn kernel_crate(name: &str, kernel_file: &Path) -> Option<Scratch> {
    let library = format!("#[path = {kernel_file:?}]\npub mod rust_cuda;\n");
    let files = [("Cargo.toml", MANIFEST), ("src/lib.rs", &*library)];
    let scratch = Scratch::new(folder().join(name), &files);
    let fetched = scratch.cargo(None, &folder().join("target"), &["fetch"]);
    if !fetched.status.success() {
        skip(&format!("cargo cannot fetch cuda_std 0.2.2: {}", text(&fetched)), "CI");
        return None;
    }
    Some(scratch)
}

#[test]
fn the_kernel_compiles_against_cuda_std() {
    let source = workspace().join("gpu/src/lessons/rust_cuda.rs");
    let target = folder().join("target");
    let Some(scratch) = kernel_crate("unchanged", &source) else { return };
    let checked = scratch.cargo(None, &target, &["check", "--offline"]);
    assert!(checked.status.success(), "{}", text(&checked));

    // The file with a word that `cuda_std` does not have is refused. So the file is what was
    // compiled.
    let changed = folder().join("changed.rs");
    let kernel = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&changed, kernel.replace("sync_threads", "sync_thread")).unwrap();
    let Some(scratch) = kernel_crate("changed", &changed) else { return };
    let checked = scratch.cargo(None, &target, &["check", "--offline"]);
    assert!(
        !checked.status.success() && text(&checked).contains("sync_thread`"),
        "{}",
        text(&checked)
    );
}
