//! Programmatic dependent launch: a grid may begin while the one before it in its stream still
//! runs.
//!
//! A kernel that declares [`dependent`](crate::device::kernel) is launched before the one before it
//! has ended (NVIDIA, *CUDA C++ Programming Guide*, "Programmatic Dependent Launch and
//! Synchronization"), on a GPU of compute capability 9.0 or later. What it does before
//! [`wait_for_earlier`] overlaps with that one's end: indices, barriers, its shared memory. It
//! follows two rules, on which later grids of the stream rely:
//!
//! 1. No thread accesses global memory, or begins a copy of it, before it has waited, or knows by a
//!    barrier that another thread of its block has waited.
//! 2. At least one thread of the grid waits. A grid that waits for the end of this one has then
//!    also waited for the earlier ones.
//!
//! On the CPU device kernels run one after another. A checked launch reports accesses in a block
//! before any of its threads has waited.

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use crate::cpu::block;
pub use crate::pace::Pace;

/// Waits until all earlier grids of the stream have ended; what they wrote is then visible (PTX
/// `griddepcontrol.wait`). Returns at once if this grid began after them, as each does
/// whose PTX is for a target before Hopper.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn wait_for_earlier() {
    if let Some(checker) = block::checker() {
        checker.waited_for_earlier();
    }
}

/// Lets the next grid of the stream begin, if it declares `dependent`, as soon as every block of
/// this one has called this or ended (PTX `griddepcontrol.launch_dependents`). After its
/// [`wait_for_earlier`] the next grid sees all that this one has written, also after this call.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[track_caller]
pub fn let_next_begin() {
    block::current();
}
