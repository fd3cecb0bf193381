//! A kernel's bugs, found without a GPU: the checked launch.
//!
//! [`launch`] runs a kernel as [`cpu::launch`](crate::cpu::launch) does and watches what its threads do to
//! memory and at barriers. What it finds, and goes on after:
//!
//! * **races**: two threads that access the same bytes of shared or global memory, one of them writing,
//!   with nothing to order them. A barrier orders the threads of a block, `sync_warp` the lanes of its
//!   mask, an mbarrier and `cluster::sync` those that wait for those that come; nothing orders the blocks of a
//!   launch, but for a cluster's, and those that wait for a word to which others add (`Out::release_add`).
//!   Atomic additions are no race with each other.
//! * **reads of memory that nobody has written**, in shared memory by this block, in global memory at all
//!   ([`Out::uninit`](crate::checked::Out)).
//! * **accesses outside** a buffer or a shared array, and misaligned ones of 128 bits or of boxes. A read gives NaN.
//! * **barriers** that some threads of the block skip, or that they wait at in different places.
//! * **copies by the tensor memory accelerator** that are not waited for, or whose mbarrier expects other bytes; blocks
//!   that may end while their shared memory is in use; waits that never end.
//! * **warp operations** whose lanes do not come together, or that name a lane that takes no part.
//! * a launch that breaks what the kernel declares, a panic in the kernel.
//! * with [`Options::complete`], elements of an `In` that no thread read and of an `Out` that none wrote.
//!
//! A kernel is compiled a second time for it, against [`checked`](crate::checked) instead of
//! [`device`](crate::device), so the fast version holds no trace of the checks:
//!
//! ```ignore
//! // lib.rs
//! #![allow(clippy::duplicate_mod)]
//!
//! use simt::device;
//! pub mod kernels; // says `use super::device::*;`
//!
//! /// The same kernels, to be checked.
//! #[cfg(not(target_arch = "nvptx64"))]
//! #[path = "."]
//! pub mod checked {
//!     use simt::checked as device;
//!     pub mod kernels;
//! }
//! ```
//!
//! # How
//! Every four bytes (fewer where elements are smaller) have a shadow of 80 that remembers the last writer,
//! two readers and two atomic additions: thread, clock and place in the source. A worker's clock ticks at every
//! barrier and every block's start and never goes back, so nothing is cleared. Lanes of a warp have vector
//! clocks; all threads of a cluster have, once an mbarrier is initialised, and then each reader of shared memory is
//! remembered. Global memory's shadow is 20.25 bytes a byte of `f32` (81 of `u8`), taken from the system as it is
//! touched.
//!
//! # What it cannot find
//! * Races that the chosen sizes and inputs do not bring about; weak memory ordering.
//! * Accesses through raw pointers outside the kernel's own body, through `p.read()` and in macros ([`raw`]).
//! * A reference is an access where it is made, not where it is used; `x[i] += v` through a view is a write,
//!   not a read.
//! * A write to global memory that an asynchronous copy still reads: a copy reads where it begins. What it
//!   brings is watched from its beginning to its wait.
//! * An element is one thing: a race on one component of a `[f32; 4]` is one on all of it, and a write of one
//!   component writes all of it.
//! * Where threads wait at mbarriers: of more than two readers of an element of global memory, two. A thread that is
//!   eight phases behind is taken to know more than it may; a clock that has counted to 16383 tells nothing.
//! * Of a cluster of which one thread has waited for a word, all are taken to know what that tells; whether a proxy fence stands
//!   before the copies of what it tells of is not looked at; and of more than two blocks that have read an element, two.
//!   (What a copy has written to global memory no word tells of: that is reported, though its thread has waited for it.)
//! * Of more than two lanes of one warp that read an element between two `sync_warp`s of parts of the warp, one.
//!
//! With more than one worker, of a race between blocks it depends on timing which block is seen as the first; with
//! [`Options::workers`] 1 a launch in one order always gives the same report.

mod checker;
mod copies;
mod finding;
mod global;
mod launch;
mod order;
mod profile;
#[doc(hidden)]
pub mod raw;
mod record;
mod shared;
mod source;
mod trace;
mod watched;
mod words;

pub use crate::cpu::order::Order;
pub(super) use checker::{Checker, Watch};
pub use finding::{Example, Finding, Kind, Place, Report};
pub use global::{Region, shadow_bytes};
pub use launch::{Checkable, CheckableParams, Memory, Options, launch};
pub use profile::{Line, Operation, Profile};
pub(super) use record::MOST_SLOTS;
pub use shared::Array;
pub use trace::{Step, Trace};
pub use watched::Watched;
