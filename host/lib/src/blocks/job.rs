//! What a plan is made for, and the least memory that one takes.

use std::fmt;

use crate::{error::Error, matrix::Layout, shape::Shape};

/// Depths of blocks that are tried last, the first that fits: k is cut where nothing else fits.
pub(super) const LAST_DEPTHS: [usize; 4] = [128, 64, 32, 16];

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Job {
    /// m, n, k. With `k = 0` neither A nor B is read.
    pub shape: Shape,
    /// Bytes of an element on the device.
    pub element_bytes: usize,
    /// Rows and columns of C that the kernel's block computes: tiles of C are multiples of them.
    pub tile: [usize; 2],
    /// Which elements of A, B and C lie side by side where they are read and written.
    pub layouts: [Layout; 3],
    /// Is C read (`beta` is not 0)?
    pub reads_c: bool,
    /// Bytes of all buffers on the device, at most.
    pub device_limit: u64,
    /// K-steps in a block, at most; `None` for all of k, where that can be.
    pub depth: Option<usize>,
}

impl Job {
    /// Row-major matrices, C not read, k in one piece where that can be.
    pub fn new(shape: Shape, element_bytes: usize, tile: [usize; 2], device_limit: u64) -> Self {
        Job {
            shape,
            element_bytes,
            tile,
            layouts: [Layout::RowMajor; 3],
            reads_c: false,
            device_limit,
            depth: None,
        }
    }

    /// The [`device_limit`](Job::device_limit) from which on there is a [`BlockPlan`](super::BlockPlan).
    pub fn least_limit(&self) -> u64 {
        u64::try_from(self.least().0).unwrap_or(u64::MAX)
    }

    /// The error for a limit below that.
    pub(super) fn too_small(&self) -> Error {
        let (needed, block) = self.least();
        let limit = format!("must be at least {needed} bytes, for blocks of {}", Blocks(block));
        Error::argument("device_limit", self.device_limit, limit)
    }

    /// Bytes of the smallest blocks, and those: of one tile.
    fn least(&self) -> (u128, [usize; 3]) {
        let Job { shape, element_bytes, .. } = *self;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let tile = self.tile.map(|tile| tile.max(1));
        let asked = self.depth.map(|depth| depth.max(1)).filter(|&depth| depth < k);
        let block = [tile[0].min(m), tile[1].min(n), asked.unwrap_or(k.min(LAST_DEPTHS[3]))];
        let of_blocks = (bytes(block, [2, 2, 2], element_bytes), block);
        // A small product needs less in one piece.
        let whole = [m, n, k];
        let of_whole = (bytes(whole, [1, 1, 1], element_bytes), whole);
        if asked.is_some() { of_blocks } else { of_blocks.min(of_whole) }
    }
}

/// Bytes of blocks of A, B and C: `places` says how many of each.
pub(super) fn bytes(
    [rows, cols, depth]: [usize; 3],
    places: [usize; 3],
    element_bytes: usize,
) -> u128 {
    let [rows, cols, depth] = [rows, cols, depth].map(|size| size as u128);
    let [a, b, c] = places.map(|places| places as u128);
    (a * rows * depth + b * depth * cols + c * rows * cols) * element_bytes as u128
}

/// `m x n x k`.
struct Blocks([usize; 3]);

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [rows, cols, depth] = self.0;
        write!(f, "{rows} x {cols} x {depth}")
    }
}
