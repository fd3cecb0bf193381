//! A grid and the one before it in its stream: the second may begin while the first still runs.

use core::arch::asm;

pub use crate::pace::Pace;

/// Waits until all grids before this one in its stream have ended; what they wrote is then seen. Returns at once where the
/// launch did not let this one begin before that.
#[inline(always)]
pub fn wait_for_earlier() {
    // SAFETY: waits, touches nothing. Not `nomem`: no access moves to before it.
    unsafe { asm!("griddepcontrol.wait;", options(nostack, preserves_flags)) };
}

/// Lets the next grid of the stream begin, if that declares `dependent`, as soon as every block of this one has called
/// this or ended.
#[inline(always)]
pub fn let_next_begin() {
    // SAFETY: a hint to the scheduler, touches nothing. Not `nomem`: it stays where it stands.
    unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack, preserves_flags)) };
}
