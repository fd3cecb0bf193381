//! A write that is in a race, and the value that it replaces.

use std::sync::atomic::{AtomicU8, Ordering};

use super::findings::Key;

/// The most bytes of a write that are compared: those of one access.
const MOST: usize = 16;

/// A write of which a race has been reported, and what was there before.
pub(super) struct RacingWrite {
    pub(super) key: Key,
    address: usize,
    bytes: usize,
    before: [u8; MOST],
}

impl RacingWrite {
    /// A write that is about to be made. `None`: it has more bytes than are compared.
    pub(super) fn new(key: Key, address: usize, bytes: usize) -> Option<Self> {
        (bytes <= MOST).then(|| RacingWrite { key, address, bytes, before: read(address, bytes) })
    }

    /// Whether the write, which has been made, wrote what was there before.
    pub(super) fn is_same(&self) -> bool {
        read(self.address, self.bytes) == self.before
    }
}

/// The bytes of memory that a thread of the kernel has been allowed to write.
fn read(address: usize, bytes: usize) -> [u8; MOST] {
    let mut all = [0; MOST];
    for (at, byte) in all.iter_mut().take(bytes).enumerate() {
        // SAFETY: inside a buffer, or the shared memory of a block of this worker: the access has
        // been checked. Both live as long as the launch. Bytes beside those of the race may hold
        // nothing yet; they are read as they are, like elements that a kernel reads before it
        // writes them, which is a finding. Other workers may write there, as in every race of the
        // kernel.
        let place = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU8>(address + at) };
        *byte = place.load(Ordering::Relaxed);
    }
    all
}
