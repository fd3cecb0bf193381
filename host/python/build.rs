//! Links GCC's unwinder, which CPython itself unwinds by.
//!
//! Python before 3.14 ends a daemon thread by `pthread_exit` when it comes back from a product
//! after the interpreter's end. That unwinds the thread's frames, this library's among them, by
//! libgcc_s. If the library had an unwinder of its own, libgcc_s would call that one's functions
//! with its own state, and the program would crash. `maturin build --zig` links LLVM's libunwind in
//! place of libgcc_s. So libgcc_s is linked under another name, before it. In the finished library
//! it has its own name, `libgcc_s.so.1`, which every Linux with glibc has, and of which manylinux
//! wheels may ask for.

use std::{env, fs, io, os::unix::fs::symlink, path::Path};

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    // Another target's library would not be this machine's.
    let (host, target) = (env::var("HOST").ok(), env::var("TARGET").ok());
    if host != target || !target.is_some_and(|target| target.ends_with("-linux-gnu")) {
        return Ok(());
    }
    // This program has it, too.
    let maps = fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
    let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let library = paths
        .find(|path| path.ends_with("/libgcc_s.so.1"))
        .ok_or("this build script was not linked with libgcc_s.so.1, which the library needs")?;
    let folder = env::var("OUT_DIR").map_err(|error| error.to_string())?;
    let link = Path::new(&folder).join("libunwinder.so");
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
        _ => symlink(library, &link).map_err(|error| error.to_string())?,
    }
    println!("cargo::rustc-cdylib-link-arg={}", link.display());
    Ok(())
}
