//! Sizes that the CPU device fixes.

/// Shared memory of a block in bytes: 227 KiB as on an H100, the most of any device so far.
pub(super) const SHARED_BYTES: usize = 227 * 1024;

/// Lanes of a warp.
pub(super) const WARP: u32 = 32;

/// Bytes of address space for a fiber's stack, unless the kernel declares more. Only pages that are
/// touched take memory; a panic needs about 32 KiB. A thread that needs more runs into the guard
/// page below the stack ([`trap`](super::trap)).
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// The most workers of a process. Each keeps up to 1024 stacks, and their number is limited
/// ([`MOST_FIBERS`]).
pub(super) const MOST_WORKERS: usize = 28;

/// The most fibers of a process. A stack takes two memory mappings, and a Linux process has 65530
/// unless its administrator grants more.
pub(super) const MOST_FIBERS: usize = MOST_WORKERS * 1024;
