//! For tests: what this thread has launched, allocated and freed, and memory that runs out when they say.
//!
//! With the feature `testing` alone. Without it the functions that the library calls are empty.

#[cfg(feature = "testing")]
use std::cell::Cell;

/// What a thread has done since it began.
#[cfg(feature = "testing")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels that were given to a device.
    pub launches: u64,
    /// Memories that a device has granted.
    pub allocations: u64,
    /// Memories that were given back.
    pub frees: u64,
}

#[cfg(feature = "testing")]
thread_local! {
    static COUNTS: Cell<Counts> = Cell::default();
    /// Allocations up to the one that is refused; none is where it is 0.
    static REFUSE_IN: Cell<u64> = const { Cell::new(0) };
}

/// What this thread has done.
#[cfg(feature = "testing")]
pub fn counts() -> Counts {
    COUNTS.get()
}

/// The `nth` allocation of this thread from now on, counted from 1, finds no memory, and only that one; 0 is none.
#[cfg(feature = "testing")]
pub fn refuse_allocation(nth: u64) {
    REFUSE_IN.set(nth);
}

#[cfg(feature = "testing")]
fn note(event: impl FnOnce(&mut Counts)) {
    let mut counts = COUNTS.get();
    event(&mut counts);
    COUNTS.set(counts);
}

/// A kernel goes to a device.
pub(crate) fn launched() {
    #[cfg(feature = "testing")]
    note(|counts| counts.launches += 1);
}

/// Is this allocation to find no memory?
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

/// A device has granted memory.
pub(crate) fn allocated() {
    #[cfg(feature = "testing")]
    note(|counts| counts.allocations += 1);
}

/// Memory was given back.
pub(crate) fn freed() {
    #[cfg(feature = "testing")]
    note(|counts| counts.frees += 1);
}

/// Is a file system to have no files without a name? Told to a command by its environment.
#[cfg(all(feature = "npy", target_os = "linux"))]
pub(crate) fn has_no_nameless_files() -> bool {
    #[cfg(feature = "testing")]
    {
        std::env::var_os("HOST_TESTING_NO_NAMELESS_FILES").is_some()
    }
    #[cfg(not(feature = "testing"))]
    false
}
