//! A grid and the one before it in its stream: the second may begin while the first still runs.
//!
//! A kernel that declares [`dependent`](crate::device::kernel) is launched before the one before it has ended (NVIDIA,
//! *CUDA C++ Programming Guide*, "Programmatic Dependent Launch and Synchronization"), on a GPU of compute capability 9.0
//! or later. What it does before [`wait_for_earlier`] overlaps with that one's end: indices, barriers, its shared memory.
//! It keeps to two rules, for what follows it in the stream counts on them:
//!
//! 1. No thread touches global memory, nor begins a copy of it, before it has waited, or knows by a barrier that another
//!    of its block has.
//! 2. At least one thread of the grid waits. What waits for this grid's end has then waited for the end of those before
//!    it, too.
//!
//! On the CPU device kernels run one after another, and both functions do nothing but tell a
//! checked launch, which reports what is done in a block before any of its threads has waited.

use crate::cpu::block;
pub use crate::pace::Pace;

/// Waits until all grids before this one in its stream have ended; what they wrote is then seen (PTX
/// `griddepcontrol.wait`). Returns at once where the launch did not let this one begin before that.
#[track_caller]
pub fn wait_for_earlier() {
    if let Some(checker) = block::checker() {
        checker.waited_for_earlier();
    }
}

/// Lets the next grid of the stream begin, if that declares `dependent`, as soon as every block of this one has called
/// this or ended (PTX `griddepcontrol.launch_dependents`). What this one writes later, too, is seen by the next
/// after its [`wait_for_earlier`].
#[track_caller]
pub fn let_next_begin() {
    block::current();
}
