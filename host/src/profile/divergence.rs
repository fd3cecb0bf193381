//! Control divergence derived by hand, from the boundary checks of a tiled kernel.

use gpu_gemm::Shape;

/// Intervals between waits, counted for each warp, and those in which its lanes take different
/// branches. A [`Profile`](simt::check::Profile) counts the same for `tiled16` and `tiled32`. Here
/// it is derived from their boundary checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Divergence {
    /// Intervals in which a warp accesses memory.
    pub intervals: u64,
    /// Those in which its lanes take different branches.
    pub divergent: u64,
}

impl Divergence {
    /// Their share.
    pub fn share(&self) -> f64 {
        self.divergent as f64 / self.intervals.max(1) as f64
    }
}

/// Lanes of a warp.
const WARP: usize = 32;

/// The divergence of a kernel with tiles and blocks of `tile` x `tile`, where `tile` divides 32.
///
/// A warp has 32 / `tile` rows of a block. In each phase it loads, waits, multiplies and waits. At
/// the end it stores. Its lanes diverge
///
/// * at A's check, if its rows exceed the last row of A, or in the last phase, if its columns
///   exceed the last column of A and it has a row of A;
/// * at B's check, likewise with the rows of the phase and the block's columns of B;
/// * at the store, if it has some elements of C but not all.
///
/// Lanes never diverge while they multiply. So divergence occurs in the last row and column of
/// blocks, and in the last phase of the others: with t phases and t x t blocks about 1 in t. Half
/// of that remains, because only every second interval loads. The share falls with the size of the
/// matrices.
pub fn of_tiled(tile: usize, shape: Shape) -> Divergence {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let rows = WARP / tile;
    let mut counted = Divergence::default();
    for first_col in (0..n).step_by(tile) {
        let columns = Span::new(first_col, tile, n);
        for block_row in (0..m).step_by(tile) {
            for warp_row in (0..tile).step_by(rows) {
                let c_rows = Span::new(block_row + warp_row, rows, m);
                for phase in (0..k).step_by(tile) {
                    let a = c_rows.parts_with(Span::new(phase, tile, k));
                    let b = Span::new(phase + warp_row, rows, k).parts_with(columns);
                    counted.intervals += 2;
                    counted.divergent += u64::from(a || b);
                }
                // A warp without a row of C stores nothing.
                counted.intervals += u64::from(c_rows.is_any());
                counted.divergent += u64::from(c_rows.parts_with(columns));
            }
        }
    }
    counted
}

/// Some rows or columns. The first few are inside the matrix.
#[derive(Clone, Copy)]
struct Span {
    inside: usize,
    all: usize,
}

impl Span {
    fn new(first: usize, all: usize, end: usize) -> Self {
        Span { inside: end.saturating_sub(first).min(all), all }
    }

    fn is_any(self) -> bool {
        self.inside > 0
    }

    /// Whether `row inside && column inside` holds for some of these rows and columns, but not for
    /// all.
    fn parts_with(self, columns: Span) -> bool {
        let some = self.is_any() && columns.is_any();
        some && (self.inside < self.all || columns.inside < columns.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tile: usize, m: u64, n: u64, k: u64) -> (u64, u64) {
        let Divergence { intervals, divergent } = of_tiled(tile, Shape::new(m, n, k).unwrap());
        (divergent, intervals)
    }

    /// Derived on paper.
    #[test]
    fn small_cases() {
        // Whole tiles: a block's 8 warps load, multiply and store.
        assert_eq!(of(16, 16, 16, 16), (0, 24));
        assert_eq!(of(32, 64, 32, 96), (0, 2 * 32 * 7));
        // Two rows of A are exactly those of one warp. The other warps store nothing.
        assert_eq!(of(16, 2, 16, 16), (0, 17));
        // One row: that warp diverges when it loads A and when it stores.
        assert_eq!(of(16, 1, 16, 16), (2, 17));
        assert_eq!(of(32, 1, 32, 32), (0, 65));
        // A narrower C: all warps diverge when they load B and when they store.
        assert_eq!(of(16, 16, 15, 16), (16, 24));
        // A shorter sum: all warps diverge when they load A. One warp has one row of B.
        assert_eq!(of(16, 16, 16, 15), (8, 24));
        // Nothing to load: zeros are stored. No column: no block.
        assert_eq!((of(16, 16, 16, 0), of(16, 16, 0, 16)), ((0, 8), (0, 0)));
    }

    #[test]
    fn twice_the_size_half_the_share() {
        let share = |size| of_tiled(16, Shape::new(size, size, size).unwrap()).share();
        for size in [120, 248, 504] {
            let ratio = share(size) / share(2 * size + 8);
            assert!((1.8..2.2).contains(&ratio), "{size}: {ratio}");
        }
    }
}
