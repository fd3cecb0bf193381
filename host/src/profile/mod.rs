//! The memory accesses of a kernel, counted on the CPU for each line, as a GPU's counters would.
//!
//! A warp's accesses are combined into requests as in the hardware. So the totals can be compared
//! with Nsight Compute's; see [`simt::check::Profile`]. The report also says how many of the
//! kernel's blocks an SM holds.
//!
//! ```
//! use host::{Shape, product, profile, simt::check::Operation};
//!
//! let (kernel, shape) = (product::find("tiled16")?, Shape::new(64, 64, 32)?);
//! let every = profile::default_every(kernel, shape)?;
//! let profiled = profile::product(kernel, shape, every, 1)?;
//! assert!(profiled.findings.is_empty());
//! // 16 blocks of 8 warps load twice in each of 2 phases, each time two rows of two sectors.
//! assert_eq!(profiled.profile.total(Operation::GlobalLoad, |line| line.units), 2048.0);
//! # Ok::<(), host::Error>(())
//! ```

mod counts;
pub mod divergence;
mod fit;
mod totals;

use std::num::NonZeroU32;

use gpu::registry::Entry;
use simt::check::{Finding, Profile};

pub use self::{
    counts::Counts,
    fit::{Fit, Gpu, default_gpu, gpu, gpu_names, on_device, on_gpu},
    totals::{Total, divergent_share, flop_per_byte, totals},
};
use crate::check::{self, Options};
use gpu_gemm::{Device, Result, Shape, product::launches};

/// A product that was counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Profiled {
    /// The kernel's errors, as [`check::multiply`] finds them. With errors the counts may be wrong.
    pub findings: Vec<Finding>,
    /// The counts of all launches together. Empty for an empty C.
    pub profile: Profile,
}

/// Multiplies uniform operands with every access checked, and counts the accesses of one block in
/// `every`. `seed` is that of the operands.
///
/// # Errors
/// [`Error::OutOfMemory`](gpu_gemm::Error::OutOfMemory) before anything is drawn, and
/// [`Error::Interrupted`](gpu_gemm::Error::Interrupted).
pub fn product(
    entry: &'static Entry,
    shape: Shape,
    every: NonZeroU32,
    seed: u64,
) -> Result<Profiled> {
    Device::cpu().require_memory(bytes(entry, shape))?;
    let options = Options { profile: Some(every), ..Options::default() };
    let watched = check::drawn(entry, shape, seed, options)?;
    let mut profile = Profile::default();
    watched.profiles.into_iter().for_each(|launch| profile.add(launch));
    Ok(Profiled { findings: watched.findings, profile })
}

/// Threads that are counted by default. 256 blocks of 256 threads give figures within about a
/// percent.
const ENOUGH_THREADS: u64 = 1 << 16;

/// Which fraction of the blocks to count by default: all blocks of a small grid, a few hundred of a
/// large one. So counting costs little compared with the product.
///
/// # Errors
/// [`Error::Argument`](gpu_gemm::Error::Argument) for a kernel that computes no product.
pub fn default_every(entry: &'static Entry, shape: Shape) -> Result<NonZeroU32> {
    let launches = launches(entry, shape, &simt::cpu::LIMITS)?;
    let threads = launches.iter().map(|launch| {
        let [x, y, z] = launch.config.block.map(u64::from);
        launch.config.blocks() * (x * y * z)
    });
    let every = u32::try_from(threads.sum::<u64>() / ENOUGH_THREADS).unwrap_or(u32::MAX);
    Ok(NonZeroU32::new(every).unwrap_or(NonZeroU32::MIN))
}

/// Bytes that [`product`] needs besides A and B, which it draws first: those of
/// [`check::multiply`], and the accesses between two barriers. These are kept until all threads of
/// the block have made theirs.
pub fn bytes(entry: &Entry, shape: Shape) -> u64 {
    check::bytes(shape).saturating_add(accesses(entry, shape))
}

/// Accesses that are kept. Without a barrier they are kept to the end of a block: an element of A
/// and one of B in every step. Between barriers there are too few to matter.
fn accesses(entry: &Entry, shape: Shape) -> u64 {
    /// Bytes of an access in a growing list. A full list is copied to one of twice the length.
    const BYTES: u64 = 2 * 24;
    let declaration = entry.declaration();
    if declaration.barriers != Some(0) {
        return 0;
    }
    let threads: u32 = declaration.block.unwrap_or([1024, 1, 1]).iter().product();
    let blocks_at_once = u64::from(Device::cpu().sms());
    let steps = 2 * shape.k() as u64;
    steps.saturating_mul(BYTES * u64::from(threads) * blocks_at_once)
}

#[cfg(test)]
mod tests;
