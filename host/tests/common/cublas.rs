//! The stand-in for cuBLAS.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::common::on;

/// The command with the stand-ins for the driver, which multiplies, and for cuBLAS, which computes
/// as `computes` says.
pub fn with_cublas(computes: &str, args: &[&str]) -> Command {
    static SOURCE: &str = include_str!("../fake/cublas.rs");
    static MADE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let libraries = MADE.get_or_init(|| {
        // Test programs run in parallel.
        let name = concat!(env!("CARGO_CRATE_NAME"), "-cublas");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let source = folder.join("cublas.rs");
        fs::write(&source, SOURCE).unwrap();
        let library = folder.join("libcublas.so.13");
        let status = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=fake_cublas", "-O"])
            .args(["-Adead_code", "-o"])
            .args([&library, &source])
            .status()
            .expect("rustc compiles the library that the tests load");
        assert!(status.success(), "the tests' cuBLAS does not compile");
        fs::copy(&library, folder.join("libcublasLt.so.13")).unwrap();
        folder
    });
    let mut command = on("kernels=2", args);
    let driver = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH");
    let driver = driver.and_then(|(_, path)| path).expect("where the driver is").to_owned();
    let folders = [Path::new(&driver), libraries];
    command.env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap());
    command.env("FAKE_CUBLAS", computes).env_remove("NVIDIA_TF32_OVERRIDE");
    command
}
