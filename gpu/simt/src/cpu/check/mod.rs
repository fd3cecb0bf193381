//! Checked launches: they find a kernel's bugs without a GPU.
//!
//! [`launch`] runs a kernel as [`cpu::launch`](crate::cpu::launch) does, and observes what its
//! threads do to memory and at barriers. It reports these errors, and goes on:
//!
//! * **races**: two threads access the same bytes of shared or global memory, one of them writes,
//!   and nothing orders the two accesses. A barrier orders the threads of a block, `sync_warp` the
//!   lanes of its mask; an mbarrier and `cluster::sync` order the threads that wait after those
//!   that arrive. Threads of any blocks are ordered by atomic operations with release and acquire
//!   semantics or with fences ([`AtomicRef`](crate::device::AtomicRef)), and by flags
//!   (`Out::release_add`). Atomic operations do not race with each other.
//! * **uninitialised reads**: of shared memory that this block has not written, of global memory
//!   ([`Out::uninit`](crate::checked::Out)) that no thread has written.
//! * **accesses out of bounds** of a buffer or a shared array, and misaligned 128-bit accesses and
//!   TMA copies. Such a read gives NaN.
//! * **barriers** that some threads of the block skip, or at which threads wait in different
//!   places.
//! * **TMA copies** for which no thread waits, or whose mbarrier expects other bytes; blocks
//!   that may end while their shared memory is in use; waits that never end.
//! * **warp operations** that some lanes never reach, or that read a lane outside the mask.
//! * a launch that breaks the kernel's declaration, a panic in the kernel.
//! * with [`Options::complete`], elements of an `In` that no thread read, and of an `Out` that none
//!   wrote.
//!
//! The kernel is compiled a second time, against [`checked`](crate::checked) instead of
//! [`device`](crate::device), so that the fast version contains no trace of the checks:
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
//! # How it works
//! Every granule of four bytes (fewer for smaller elements) has a shadow of 80 bytes. It records
//! the last writer, two readers and two atomic additions: thread, clock and place in the source. A
//! slot's clock ticks at every barrier and at every block's start and never goes back, so nothing
//! is cleared between blocks. The lanes of a warp have vector clocks. All threads of a cluster have
//! vector clocks once an mbarrier is initialised, and then every reader of shared memory is
//! recorded. Where threads, or blocks, are ordered one by one, further readers and additions of the
//! few words that have more than two are kept in a table beside the shadows. The shadow of global
//! memory takes 20.5 bytes for each byte of `f32` (82 for `u8`), which the system provides as they
//! are touched.
//!
//! # What it cannot find
//! * Races that do not happen with the chosen sizes and inputs; weak memory ordering.
//! * Accesses through raw pointers outside the kernel's own body, through `p.read()`, and in macros
//!   ([`raw`]).
//! * A reference is an access where it is made, not where it is used. `x[i] += v` is a read and a
//!   write in the kernel's own body, where `x` is a name ([`compound`]). In a function or a macro
//!   it is a write alone.
//! * A write to global memory that an asynchronous copy still reads: a copy reads where it begins.
//!   Its destination is checked from its beginning to its wait.
//! * An element is one unit: a race on one component of a `[f32; 4]` is a race on all of it, and a
//!   write of one component writes all of it.
//! * A thread that is eight phases behind an mbarrier is assumed to know more than it may. A clock
//!   that has reached 16383 orders everything ([`Limit::Clock`]).
//! * Of an element's readers, and additions, that nothing orders, 64 beyond the first two are
//!   recorded, and 2^18 of a buffer ([`Limit::Accesses`]). Of those before the launch's first
//!   operation that orders threads one by one (an mbarrier, a named barrier, a proxy fence, a flag,
//!   `sync_warp` of a part of a warp), two, where they are in one block's warps or in different
//!   blocks.
//! * Whether a proxy fence stands before TMA copies of data that a flag has told is not checked.
//!
//! With more than one worker it depends on timing which block of a race between blocks is seen
//! first. With [`Options::workers`] 1 a launch in one order always gives the same report.
//!
//! # Files
//! From the lowest layer up:
//!
//! | files | what they are |
//! |---|---|
//! | `place`, `source` | places in a kernel's source, and their text |
//! | `unit` | units that access memory by themselves, and what waits for them |
//! | `record`, `flags`, `clocks`, `shadow`, `more` | when one access happens before another |
//! | `cells`, `shared`, `global`, `copies` | shadow memory of shared arrays, of buffers; copies in flight |
//! | `finding`, `findings`, `limits`, `profile`, `coalescing`, `profiler`, `requests`, `trace`, `report` | what a launch reports |
//! | `checked_launch`, `checker` | the launch as its workers share it; the checker of one slot |
//! | `watched`, `raw`, `compound`, `recorded`, `launch` | how a kernel's accesses come here, and how a checked launch begins |
//! | `advice`, `seen`, `diagnostic`, `case` | what to write; findings of several launches, as the compiler shows errors; what `#[check]` runs |

mod advice;
mod case;
mod cells;
mod checked_launch;
mod checker;
mod clocks;
mod coalescing;
#[doc(hidden)]
pub mod compound;
mod copies;
mod diagnostic;
mod finding;
mod findings;
mod flags;
mod global;
mod launch;
mod limits;
mod more;
mod params;
mod place;
mod profile;
mod profiler;
mod racing_write;
#[doc(hidden)]
pub mod raw;
mod record;
mod recorded;
mod report;
mod requests;
mod seen;
mod shadow;
mod shared;
mod source;
mod trace;
mod unit;
mod watched;

pub use crate::cpu::order::Order;
pub use advice::{explained, explanation};
pub use case::Outcome;
#[doc(hidden)]
pub use case::{CASE_LINE, ERROR_LINE, FILE, NAME, PREFIX, SHOWN, run_cases};
pub(super) use checked_launch::CheckedLaunch;
pub(super) use checker::Checker;
pub use finding::{Example, Finding, Kind, Untouched};
pub(super) use flags::{AtomicOrder, Effect, FenceScope};
pub use global::{Region, shadow_bytes};
pub use launch::{Memory, Options, launch};
pub use limits::Limit;
pub use params::{Checkable, CheckableParams};
pub use place::Place;
pub use profile::{Line, Operation, Profile};
pub(super) use record::MOST_SLOTS;
pub use report::Report;
pub use requests::{AsyncEvent, Asynchronous, Request, TracedMemory};
pub use seen::{Seen, merge, order_names};
pub use shared::Array;
pub use trace::{Step, Trace};
pub use watched::Watched;
pub(super) use watched::is_plain_fma;
