//! Memories: who sees a variable and how long it lives, pitched arrays, symbols. On every device.
//!
//! | module | what is tested |
//! |---|---|
//! | `lifetimes` | registers, shared, global and constant memory, each shown by a kernel's result |
//! | `pitched` | arrays of two and three dimensions, their copies, and kernels that read them by pitch |
//! | `symbols` | variables written and read by the host, and wrong uses of them |
//! | `watched` | the same kernels under `check`, and wrong ones |

mod lifetimes;
mod pitched;
mod symbols;
mod watched;

use std::sync::{Mutex, MutexGuard, PoisonError};

use simt::LaunchConfig;

/// The CPU device has one set of variables for the process, and tests run in parallel.
fn variables() -> MutexGuard<'static, ()> {
    static VARIABLES: Mutex<()> = Mutex::new(());
    VARIABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A one-dimensional grid.
fn line(blocks: u32, threads: usize) -> LaunchConfig {
    LaunchConfig::new([blocks, 1, 1], [threads as u32, 1, 1])
}
