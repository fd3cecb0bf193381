//! The counts of a rung, and how its blocks fit on an SM. No GPU is needed.

use std::num::NonZeroU32;

use host::{
    Device, Shape,
    gpu::registry::Entry,
    product,
    profile::{self, Counts},
    simt::{LaunchConfig, cpu::LIMITS},
};

use super::line::{Counted, FitLine, first, rounded};

/// The product that rungs are counted at. It has whole tiles of every rung, so that boundary checks
/// do not show. It is small enough to count all of it in a second.
pub(in crate::cli) const COUNTED: [u64; 3] = [256, 256, 64];

/// Runs a kernel on the CPU with every access checked, and counts.
pub(in crate::cli) fn count(entry: &'static Entry) -> host::Result<Counted> {
    let [m, n, k] = COUNTED;
    let shape = Shape::new(m, n, k)?;
    let launches = product::launches(entry, shape, &LIMITS)?;
    let profiled = profile::product(entry, shape, NonZeroU32::MIN, 1)?;
    let counts = Counts::of(&profiled.profile, &first(&launches)?.config, shape);
    Ok(Counted {
        m: shape.m(),
        n: shape.n(),
        k: shape.k(),
        counts: rounded(counts),
        clean: profiled.findings.is_empty(),
    })
}

/// How a kernel's blocks fit on this machine's GPU, or else on Hopper.
pub(in crate::cli) fn fit(entry: &'static Entry, device: &Device) -> host::Result<FitLine> {
    let [m, n, k] = COUNTED;
    let launches = product::launches(entry, Shape::new(m, n, k)?, &LIMITS);
    let config = match (launches, &entry.product) {
        // Its launches are planned by the library alone. The block is the same in each.
        (Err(_), Some(product)) => {
            let dynamic_shared = entry.declaration().dynamic_shared.unwrap_or(0);
            LaunchConfig { dynamic_shared, ..LaunchConfig::new([1, 1, 1], product.block) }
        }
        (launches, _) => first(&launches?)?.config,
    };
    let config = &config;
    let fit = match device.is_cuda() {
        true => profile::on_device(entry, config, device)?,
        false => profile::on_gpu(entry, config, profile::default_gpu()),
    };
    Ok(FitLine::new(&fit))
}

#[cfg(test)]
mod tests {
    use host::gpu::registry::ladder;

    use super::*;

    #[test]
    fn every_rung_is_counted_at_whole_tiles() {
        for (entry, _) in ladder() {
            let Some(product) = &entry.product else { continue };
            let [rows, cols] = product.tile().map(u64::from);
            let whole = COUNTED[0].is_multiple_of(rows) && COUNTED[1].is_multiple_of(cols);
            assert!(
                whole,
                "{}: COUNTED is no multiple of its tile {:?}",
                entry.name(),
                product.tile()
            );
        }
    }
}
