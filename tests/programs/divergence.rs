//! Control divergence at the edges: counted on the CPU, and derived from the boundary checks.

use std::num::NonZeroU32;

use host::{
    Shape, product,
    profile::{
        self,
        divergence::{Divergence, of_tiled},
    },
};

/// The counts of a profile of all blocks.
fn counted(kernel: &str, shape: Shape) -> Divergence {
    let entry = product::find(kernel).unwrap();
    let profile = profile::product(entry, shape, NonZeroU32::MIN, 1).unwrap().profile;
    assert_eq!(profile.sampled, profile.blocks);
    Divergence { intervals: profile.warp_intervals, divergent: profile.divergent_intervals }
}

#[test]
fn what_is_counted_is_what_the_boundary_checks_make_it() {
    for [m, n, k] in [
        [32, 32, 32],
        [64, 32, 96],
        [17, 16, 16],
        [16, 17, 16],
        [16, 16, 17],
        [33, 50, 71],
        [1, 1, 1],
        [2, 40, 3],
        [31, 15, 47],
        [40, 24, 0],
    ] {
        let shape = Shape::new(m, n, k).unwrap();
        assert_eq!(counted("tiled16", shape), of_tiled(16, shape), "tiled16, {shape}");
        assert_eq!(counted("tiled32", shape), of_tiled(32, shape), "tiled32, {shape}");
    }
}

/// The course's "small for large matrices": at twice the size the share is half, or nearly half
/// where the matrix is all edge.
#[test]
fn the_share_shrinks_as_the_matrices_grow() {
    let share = |size| {
        let shape = Shape::new(size, size, size).unwrap();
        let counted = counted("tiled16", shape);
        assert_eq!(counted, of_tiled(16, shape), "{shape}");
        counted.share()
    };
    let shares = [24, 56, 120, 248].map(share);
    assert!(shares[0] > 0.25, "a small matrix is mostly edge: {shares:?}");
    for pair in shares.windows(2) {
        assert!(pair[1] < 0.65 * pair[0], "{shares:?}");
    }
    // Multiples of the tile have no edge at all.
    assert_eq!(share(48), 0.0);
}
