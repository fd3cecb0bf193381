//! A grid has at most 65535 rows of blocks. A taller product takes several launches, each with its
//! own rows of A and C.

use gpu::registry::{Entry, Product};
use tests::{devices, products};

use crate::check::{Data, check, shape};

/// Whether a kernel waits at barriers.
fn has_barriers(entry: &Entry) -> bool {
    entry.declaration().barriers != Some(0)
}

/// The kernels for the CPU, where 65535 rows of blocks are up to 67 million threads: the host
/// divides the rows by a tile's height, for all kernels alike. So of each height one kernel is
/// enough, the one with the fewest threads. Kernels whose threads split k are left out: their lanes
/// exchange sums even if k is 0, which takes 22 seconds.
fn smallest() -> Vec<(&'static Entry, &'static Product)> {
    let threads = |entry: &Entry| {
        let block = entry.declaration().block;
        block.map_or(u32::MAX, |block| block.iter().product())
    };
    let mut found = Vec::<(&'static Entry, &'static Product)>::new();
    for (entry, product) in products().into_iter().filter(|(_, product)| !product.is_dot()) {
        match found.iter_mut().find(|(_, other)| other.tile()[0] == product.tile()[0]) {
            Some(other) if threads(entry) < threads(other.0) => *other = (entry, product),
            Some(_) => {}
            None => found.push((entry, product)),
        }
    }
    found
}

#[test]
fn more_rows_than_a_launch_has() {
    let (mut multiplied, mut heights) = (0, 0);
    for device in devices() {
        let kernels = if device.is_cuda() { products() } else { smallest() };
        heights += kernels.len();
        for (entry, product) in kernels {
            let rows = device.limits().grid[1] as usize * product.tile()[0] as usize;
            // Two barriers for each of these threads take seconds on the CPU. So on the CPU k is 0
            // for a kernel with barriers: it has no phases, and the panels show in C only, which
            // becomes zero.
            let k = if has_barriers(entry) && !device.is_cuda() { 0 } else { 3 };
            multiplied += k;
            // n and k differ, so that an offset by the wrong one shows.
            check(&device, &[entry], shape(rows + 5, 2, k), Data::Integers, 1)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(multiplied > 0, "no product has seen A in several panels");
    assert!(heights >= 4, "tiles of {heights} heights");
}
