//! Programmatic dependent launch: a grid may begin while the one before it in its stream still
//! runs.

#[cfg(target_feature = "sm_90a")]
use core::arch::asm;

pub use crate::pace::Pace;

/// In PTX for a target before Hopper it is nothing: such a grid begins when those before it have
/// ended.
#[inline(always)]
pub fn wait_for_earlier() {
    #[cfg(target_feature = "sm_90a")]
    // SAFETY: waits, touches nothing. Not `nomem`: no access is moved before it.
    unsafe {
        asm!("griddepcontrol.wait;", options(nostack, preserves_flags))
    };
}

#[inline(always)]
pub fn let_next_begin() {
    #[cfg(target_feature = "sm_90a")]
    // SAFETY: a hint to the scheduler, touches nothing. Not `nomem`: the compiler does not move it.
    unsafe {
        asm!("griddepcontrol.launch_dependents;", options(nostack, preserves_flags))
    };
}
