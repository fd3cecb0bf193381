//! Replaces the build dependency of the same name of `cust` and `cust_raw`.
//!
//! They use it to find an installed CUDA toolkit and to link its `libcuda`. Without a toolkit the
//! published crate stops the build. Here the crate `cuda-dyn` defines the driver's symbols, so
//! there is nothing to find and nothing to link.
//!
//! The root `Cargo.toml` puts this crate in place with `[patch.crates-io]`. Cargo reads that table
//! in the root workspace only: a program outside it that depends on `host` repeats the line, or
//! switches off `host`'s feature `cust`.

/// Called by the build scripts of `cust` and `cust_raw`. Links nothing.
pub fn include_cuda() {
    // Without this line Cargo would run the script again whenever a file of the package changes.
    println!("cargo::rerun-if-changed=build.rs");
}
