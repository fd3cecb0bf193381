//! What a process's limits leave of its address space: where that is little, fewer workers do the work.

use corosensei::stack::DefaultStack;

/// What a thread of the standard library takes: its stack, and one for its signals, for want of which it would panic.
pub(super) const THREAD_BYTES: usize = (2 << 20) + (256 << 10);

/// Would the system give so many bytes more for a stack?
pub(super) fn gives(bytes: usize) -> bool {
    !address_space_is_limited() || DefaultStack::new(bytes).is_ok()
}

/// Would the system give what one more thread takes? One that finds nothing for its signals' stack panics before it does anything.
pub fn gives_a_thread() -> bool {
    gives(THREAD_BYTES)
}

/// Of so many workers, those for which there are so many bytes each, besides those that all of them have; one at least.
pub(super) fn workers(wanted: usize, bytes: usize, have: usize) -> usize {
    if !address_space_is_limited() {
        return wanted;
    }
    let is_there = |workers: &usize| match workers.saturating_mul(bytes).saturating_sub(have) {
        0 => true,
        missing => DefaultStack::new(missing).is_ok(),
    };
    (2..=wanted).rev().find(is_there).unwrap_or(1)
}

/// Has somebody limited the process's address space (`ulimit -v`, `-d`)?
pub fn address_space_is_limited() -> bool {
    #[cfg(unix)]
    {
        let is_limited = |resource| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `limit` is valid for writing.
            let known = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
            known && limit.rlim_cur != libc::RLIM_INFINITY
        };
        is_limited(libc::RLIMIT_AS) || is_limited(libc::RLIMIT_DATA)
    }
    #[cfg(not(unix))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_limits_all_work() {
        if !address_space_is_limited() {
            assert_eq!(workers(28, usize::MAX, 0), 28);
            assert!(gives_a_thread());
        }
    }
}
