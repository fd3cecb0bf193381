//! Limits on the process's address space (`ulimit -v`, `-d`): under such a limit fewer workers run.

use corosensei::stack::DefaultStack;

/// Bytes that a thread of the standard library takes: its stack, and a stack for signal handlers,
/// without which it panics.
pub(super) const THREAD_BYTES: usize = (2 << 20) + (256 << 10);

/// Whether the system would give that number of bytes for stacks.
pub(super) fn can_allocate(bytes: usize) -> bool {
    !address_space_is_limited() || DefaultStack::new(bytes).is_ok()
}

/// Whether the system has memory for one more thread. A thread that gets no stack for its signal
/// handlers panics at once.
pub fn gives_a_thread() -> bool {
    can_allocate(THREAD_BYTES)
}

/// The workers, of those `wanted`, for which there is memory: each needs `bytes`, and all together
/// `have` some already. At least one.
pub(super) fn workers_that_fit(wanted: usize, bytes: usize, have: usize) -> usize {
    if !address_space_is_limited() {
        return wanted;
    }
    let is_there = |workers: &usize| match workers.saturating_mul(bytes).saturating_sub(have) {
        0 => true,
        missing => DefaultStack::new(missing).is_ok(),
    };
    (2..=wanted).rev().find(is_there).unwrap_or(1)
}

/// Whether the process's address space is limited (`ulimit -v`, `-d`).
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
            assert_eq!(workers_that_fit(28, usize::MAX, 0), 28);
            assert!(gives_a_thread());
        }
    }
}
