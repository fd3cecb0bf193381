//! Programmatic dependent launch: a grid may begin while the one before it in its stream still
//! runs.

use core::arch::asm;

pub use crate::pace::Pace;

#[inline(always)]
pub fn wait_for_earlier() {
    // SAFETY: waits, touches nothing. Not `nomem`: no access is moved before it.
    unsafe { asm!("griddepcontrol.wait;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn let_next_begin() {
    // SAFETY: a hint to the scheduler, touches nothing. Not `nomem`: the compiler does not move it.
    unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack, preserves_flags)) };
}
