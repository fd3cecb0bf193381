//! Kernels on the CPU: the threads of a block are fibers with real barriers, blocks run on all cores.
//!
//! Every thread of a block is a stackful fiber on one operating-system thread. A barrier suspends the
//! fiber; when all have arrived, they are resumed in order. A kernel without barriers never suspends, and
//! then one fiber runs thread after thread. Blocks are handed to the cores in order of their index.
//!
//! Shared memory is poisoned with NaN before every block, so that nothing leaks from block to block.
//! Accesses through views and shared arrays are bounds-checked; a panic in a kernel becomes a [`Fault`]
//! that names the kernel, the block and the thread.
//!
//! A thread's stack has 256 KiB: a kernel whose local arrays need more ends with a [`FaultKind::StackOverflow`], or declares `stack`.
//! (On a GPU such arrays would lie in local memory, which is slow.)
//!
//! Blocks run on threads of their own ([`workers`]), which wait for nobody else's: a launch may be made anywhere, but in a kernel.
//!
//! What it does not find: a missing barrier, a race, threads of a block that wait at different barriers,
//! and of unwritten memory only what NaN makes of the result. Fibers run in order, so a kernel with such an
//! error may even give the right result here. It cannot show weak memory ordering, nor time.

mod atomic;
mod block;
mod boxes;
pub mod check;
pub mod checked;
mod cluster;
pub mod device;
mod exchange;
mod fault;
mod fiber;
mod launch;
mod mbarrier;
#[doc(hidden)]
pub mod mode;
mod named_barrier;
mod order;
mod polls;
mod pool;
mod room;
mod slot;
pub mod symbol;
#[allow(dead_code, reason = "no kernel multiplies tf32 yet, and the other sums are for comparison")]
mod tensor_core;
mod trap;
mod warpgroup;
mod watchdog;
mod words;
mod worker;

pub(crate) use block::{constant, is_f16};
pub use fault::{Fault, FaultKind, Stop};
pub use launch::{LIMITS, Options, launch};
pub use pool::workers;
pub use room::{address_space_is_limited, gives_a_thread};
