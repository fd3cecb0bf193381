//! The active mutation, and the sites that were reached. The source of crate `gpu` refers to both
//! by their linker names.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The active mutation. 0: none. `u32::MAX`: none, and reached sites are reported.
#[unsafe(no_mangle)]
pub static MUTATION: AtomicU32 = AtomicU32::new(0);

/// A bit for each site.
pub static REACHED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// Records that a site was reached. Many threads call it at the same time.
#[unsafe(no_mangle)]
pub extern "Rust" fn mutation_reached(site: u32) {
    let (word, bit) = (&REACHED[site as usize / 64], 1 << (site % 64));
    if word.load(Relaxed) & bit == 0 {
        word.fetch_or(bit, Relaxed);
    }
}
