//! For tests: counts of this thread's launches and allocations, and allocations that fail on
//! request.
//!
//! These need the feature `testing`. Without it the functions that the library calls are empty.

#[cfg(feature = "testing")]
use std::cell::Cell;

/// Counts of a thread since it began.
#[cfg(feature = "testing")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Launches of kernels.
    pub launches: u64,
    /// Allocations of device memory.
    pub allocations: u64,
    /// Frees of device memory.
    pub frees: u64,
}

#[cfg(feature = "testing")]
thread_local! {
    static COUNTS: Cell<Counts> = Cell::default();
    /// The number of the allocation that fails, counted from here. 0: none fails.
    static REFUSE_IN: Cell<u64> = const { Cell::new(0) };
    /// The same, of vectors in host memory.
    static REFUSE_VECTOR_IN: Cell<u64> = const { Cell::new(0) };
}

/// The counts of this thread.
#[cfg(feature = "testing")]
pub fn counts() -> Counts {
    COUNTS.get()
}

/// Lets the `nth` allocation of this thread fail, counted from 1 from now on. The others succeed.
/// 0: none fails.
#[cfg(feature = "testing")]
pub fn refuse_allocation(nth: u64) {
    REFUSE_IN.set(nth);
}

/// As [`refuse_allocation`], for vectors in host memory, which [`counts`] does not count.
#[cfg(feature = "testing")]
pub fn refuse_vector(nth: u64) {
    REFUSE_VECTOR_IN.set(nth);
}

#[cfg(feature = "testing")]
fn note(event: impl FnOnce(&mut Counts)) {
    let mut counts = COUNTS.get();
    event(&mut counts);
    COUNTS.set(counts);
}

/// Counts a launch.
pub(crate) fn launched() {
    #[cfg(feature = "testing")]
    note(|counts| counts.launches += 1);
}

/// Whether this allocation is to fail.
pub(crate) fn refuses() -> bool {
    #[cfg(feature = "testing")]
    {
        let left = REFUSE_IN.get();
        REFUSE_IN.set(left.saturating_sub(1));
        left == 1
    }
    #[cfg(not(feature = "testing"))]
    false
}

/// Whether this allocation of a vector is to fail.
pub(crate) fn refuses_vector() -> bool {
    #[cfg(feature = "testing")]
    {
        let left = REFUSE_VECTOR_IN.get();
        REFUSE_VECTOR_IN.set(left.saturating_sub(1));
        left == 1
    }
    #[cfg(not(feature = "testing"))]
    false
}

/// Counts an allocation.
pub(crate) fn allocated() {
    #[cfg(feature = "testing")]
    note(|counts| counts.allocations += 1);
}

/// Counts a free.
pub(crate) fn freed() {
    #[cfg(feature = "testing")]
    note(|counts| counts.frees += 1);
}

/// Whether file systems are to have no files without a name. A test sets a variable of the
/// command's environment for it.
#[cfg(all(feature = "npy", target_os = "linux"))]
pub(crate) fn has_no_nameless_files() -> bool {
    #[cfg(feature = "testing")]
    {
        std::env::var_os("HOST_TESTING_NO_NAMELESS_FILES").is_some()
    }
    #[cfg(not(feature = "testing"))]
    false
}
