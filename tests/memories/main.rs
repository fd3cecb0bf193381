//! The memories: who sees a variable and how long it lives, pitched arrays, symbols. On every device.
//!
//! | module | what it holds the devices to |
//! |---|---|
//! | `lifetimes` | registers, shared, global and constant memory, each told by a kernel's result |
//! | `pitched` | arrays of two and three dimensions, their copies, and kernels that walk them by pitch |
//! | `symbols` | variables written and read by the host, and wrong uses of them |
//! | `watched` | the same kernels under `check`, and wrong ones |

mod lifetimes;
mod pitched;
mod symbols;
mod watched;

use std::sync::{Mutex, MutexGuard, PoisonError};

use simt::LaunchConfig;

/// The CPU device has one set of variables a process, and tests run side by side.
fn variables() -> MutexGuard<'static, ()> {
    static VARIABLES: Mutex<()> = Mutex::new(());
    VARIABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many blocks of one dimension.
fn line(blocks: u32, threads: usize) -> LaunchConfig {
    LaunchConfig::new([blocks, 1, 1], [threads as u32, 1, 1])
}
