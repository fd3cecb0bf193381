//! Control divergence by hand: what the boundary checks of a tiled kernel must make of it.

use gpu_gemm::Shape;

/// Intervals between waits, counted for each warp, and those of them in which the lanes take different
/// branches: what a [`Profile`](simt::check::Profile) of the kernels `tiled16` and `tiled32` counts, derived
/// from their boundary checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Divergence {
    /// Intervals in which a warp accesses memory.
    pub intervals: u64,
    /// Those in which its lanes are not of one mind.
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

/// The divergence of a kernel with `tile` x `tile` threads a block and tiles as large, `tile` a divisor of 32.
///
/// A warp has 32 / `tile` rows of a block. In a phase it loads, waits, multiplies and waits; at the end it
/// stores. Its lanes part
///
/// * at A's check, where its rows reach over the last row of A, or in the last phase, where its columns reach
///   over the last one of A and it has a row of A at all;
/// * at B's check, where the same is so with the rows of the phase and the block's columns, of B;
/// * at the store, where it has some elements of C, but not all.
///
/// It never parts while it multiplies. So what diverges is the last row and column of blocks, and the last
/// phase of the others: of t phases and t x t blocks one in t or so, half of it because only every second
/// interval loads. The share falls as the matrices grow.
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
                // A warp without a row of C has nothing to store.
                counted.intervals += u64::from(c_rows.is_any());
                counted.divergent += u64::from(c_rows.parts_with(columns));
            }
        }
    }
    counted
}

/// Some rows or columns, of which the first few are inside a matrix.
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

    /// Is the check `row inside && column inside` true for some of these rows and columns, but not for all?
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

    /// By hand, on paper.
    #[test]
    fn small_cases() {
        // Whole tiles: a block's 8 warps load, multiply and store.
        assert_eq!(of(16, 16, 16, 16), (0, 24));
        assert_eq!(of(32, 64, 32, 96), (0, 2 * 32 * 7));
        // Two rows of A: they are a warp's own. The others have nothing to store.
        assert_eq!(of(16, 2, 16, 16), (0, 17));
        // One row: that warp parts when it loads A and when it stores.
        assert_eq!(of(16, 1, 16, 16), (2, 17));
        assert_eq!(of(32, 1, 32, 32), (0, 65));
        // A narrower C: all warps part when they load B and when they store.
        assert_eq!(of(16, 16, 15, 16), (16, 24));
        // A shorter sum: all part when they load A, and of B's rows one warp has one.
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
