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

mod access;
mod address_space;
mod atomic;
pub(crate) mod block;
mod boxes;
pub mod check;
pub mod checked;
mod cluster;
mod constant;
pub mod device;
mod exchange;
mod exit;
mod fast;
mod fault;
mod fiber;
mod flag;
mod launch;
mod launch_state;
mod launches;
mod limits;
mod mbarrier;
#[doc(hidden)]
pub mod mode;
mod named_barrier;
mod order;
mod panics;
mod poll;
mod pool;
mod process;
mod quiescence;
mod scheduler;
mod slot;
pub mod symbol;
#[allow(dead_code, reason = "other ways to round sums are for comparison")]
pub(crate) mod tensor_core;
mod trap;
mod warpgroup;
mod watchdog;
mod worker;

pub use address_space::{address_space_is_limited, gives_a_thread};
pub(crate) use constant::{constant, is_f16};
pub use fault::{Fault, FaultKind, Stop};
pub use launch::{LIMITS, Options, launch};
pub use pool::workers;
