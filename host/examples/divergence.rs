//! The share of divergent warps in a tiled product, counted and derived, for growing matrices.
//!
//! ```console
//! $ cargo run --release -p host --example divergence
//! ```

use std::num::NonZeroU32;

use host::{
    Result, Shape, product,
    profile::{self, divergence::of_tiled},
};

/// Half a tile more than a multiple of the tile: an edge on every side. Each size is about twice
/// the one before.
const SIZES: [u64; 5] = [24, 56, 120, 248, 504];

fn main() -> Result<()> {
    let kernel = product::find("tiled16")?;
    println!(
        "{}: intervals between waits in which a warp's lanes take different branches\n",
        kernel.name()
    );
    println!(
        "{:>16} {:>12} {:>12} {:>9} {:>9}",
        "m = n = k", "intervals", "divergent", "counted", "derived"
    );
    for size in SIZES {
        let shape = Shape::new(size, size, size)?;
        // All blocks are counted, so nothing is estimated.
        let counted = profile::product(kernel, shape, NonZeroU32::MIN, 1)?.profile;
        println!(
            "{size:>16} {:>12} {:>12} {:>7.2} % {:>7.2} %",
            counted.warp_intervals,
            counted.divergent_intervals,
            100.0 * profile::divergent_share(&counted),
            100.0 * of_tiled(16, shape).share(),
        );
    }
    println!("\nat twice the size half the share: the last tiles of each row, column and sum");
    Ok(())
}
