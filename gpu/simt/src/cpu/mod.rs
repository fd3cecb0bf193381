//! The CPU device: kernels run on the CPU, and are checked there.
//!
//! Every thread of a block is a fiber (a stackful coroutine) on one operating-system thread, a
//! *worker*. A barrier suspends the fiber. When all threads of the block wait, the scheduler
//! resumes them in order. A kernel without barriers never suspends, and then one fiber runs thread
//! after thread. Workers take blocks in the order of their index.
//!
//! Shared memory is filled with NaN before every block, so that no values leak from block to block.
//! Accesses through views and shared arrays are bounds-checked. A panic in a kernel becomes a
//! [`Fault`] that names the kernel, the block and the thread.
//!
//! A thread's stack has 256 KiB. A kernel whose local arrays need more ends with a
//! [`FaultKind::StackOverflow`], or declares `stack`. (On a GPU such arrays would be in local
//! memory, which is slow.)
//!
//! Workers are threads of their own ([`workers`]) and wait for no other thread of the program. So a
//! launch may be made anywhere but in a kernel.
//!
//! What a fast launch does not find: a missing barrier, a race, threads of a block that wait at
//! different barriers; and reads of unwritten memory only by the NaN in the result. Fibers run in
//! order, so a kernel with such a bug may even give the right result here. A checked launch
//! ([`check`]) finds these. Neither shows weak memory ordering, or timing.
//!
//! # Files
//! From the lowest layer up; each file uses only files above it in this table.
//!
//! | files | what they are |
//! |---|---|
//! | `limits`, `access`, `constant`, `fault`, `panics`, `exit`, `launches`, `order`, `address_space` | sizes, kinds of accesses, faults, settings of a launch |
//! | `fiber`, `watchdog`, `process` | coroutines; heartbeats; what the launches of a process share |
//! | `boxes`, `exchange`, `flag`, `mbarrier`, `named_barrier`, `tensor_core`, `warpgroup`, `cluster` | the hardware units of a cluster and their state |
//! | `check` | the checker's shadow memory, vector clocks and findings |
//! | `block`, `poll` | the running block and thread |
//! | `mode`, `fast`, `device`, `checked`, `atomic` | what a kernel calls |
//! | `quiescence`, `launch_state`, `slot`, `scheduler`, `trap`, `worker`, `pool`, `launch`, `symbol` | how a launch is carried out |

#[cfg(feature = "cpu")]
mod access;
#[cfg(feature = "cpu")]
mod address_space;
mod atomic;
#[cfg(feature = "cpu")]
pub(crate) mod block;
#[cfg(feature = "cpu")]
mod boxes;
#[cfg(feature = "cpu")]
pub mod check;
#[cfg(feature = "cpu")]
pub mod checked;
#[cfg(feature = "cpu")]
mod cluster;
mod constant;
pub mod device;
#[cfg(feature = "cpu")]
mod exchange;
#[cfg(feature = "cpu")]
mod exit;
mod fast;
#[cfg(feature = "cpu")]
mod fault;
#[cfg(feature = "cpu")]
mod fiber;
#[cfg(feature = "cpu")]
mod flag;
#[cfg(feature = "cpu")]
mod launch;
#[cfg(feature = "cpu")]
mod launch_state;
#[cfg(feature = "cpu")]
mod launches;
#[cfg(feature = "cpu")]
mod limits;
#[cfg(feature = "cpu")]
mod mbarrier;
#[doc(hidden)]
pub mod mode;
#[cfg(feature = "cpu")]
mod named_barrier;
#[cfg(feature = "cpu")]
mod order;
#[cfg(feature = "cpu")]
mod panics;
#[cfg(feature = "cpu")]
mod poll;
#[cfg(feature = "cpu")]
mod pool;
#[cfg(feature = "cpu")]
mod process;
#[cfg(feature = "cpu")]
mod quiescence;
#[cfg(feature = "cpu")]
mod scheduler;
#[cfg(feature = "cpu")]
mod slot;
pub mod symbol;
#[cfg(feature = "cpu")]
#[allow(dead_code, reason = "other ways to round sums are for comparison")]
pub(crate) mod tensor_core;
#[cfg(feature = "cpu")]
mod trap;
#[cfg(feature = "cpu")]
mod warp_operation;
#[cfg(feature = "cpu")]
mod warpgroup;
#[cfg(feature = "cpu")]
mod watchdog;
#[cfg(feature = "cpu")]
mod worker;

#[cfg(feature = "cpu")]
pub use address_space::{address_space_is_limited, gives_a_thread};
pub(crate) use constant::{constant, is_e5m2, is_f16};
#[cfg(feature = "cpu")]
pub use fault::{Fault, FaultKind, Stop};
#[cfg(feature = "cpu")]
pub use launch::{LIMITS, Options, launch};
#[cfg(feature = "cpu")]
pub use pool::workers;

/// Where a build without the CPU device has what a thread executes.
#[cfg(not(feature = "cpu"))]
#[cold]
pub(crate) fn absent() -> ! {
    panic!("only a kernel on a GPU comes here: gpu-simt was built without its feature `cpu`")
}
