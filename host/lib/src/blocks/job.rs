//! The input of a block plan, and the least memory that a plan needs.

use std::fmt;

use crate::{error::Error, matrix::Layout, shape::Shape};

/// Depths of blocks that are tried last. The first that fits is used.
pub(super) const LAST_DEPTHS: [usize; 4] = [128, 64, 32, 16];

/// The input of [`BlockPlan::new`](super::BlockPlan::new).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Job {
    /// m, n and k. With `k = 0` A and B are not read.
    pub shape: Shape,
    /// Bytes of an element on the device.
    pub element_bytes: usize,
    /// Rows and columns of the kernel's tile. Blocks of C are multiples of it.
    pub tile: [usize; 2],
    /// The layouts in which A and B are read and C is written.
    pub layouts: [Layout; 3],
    /// Whether C is read: `beta` is not 0.
    pub reads_c: bool,
    /// The most bytes of buffers on each device.
    pub device_limit: u64,
    /// The largest k of a block. `None`: all of k, if that fits.
    pub depth: Option<usize>,
    /// The number of devices. The bits of C do not depend on it: the depth of blocks is that of one
    /// device with this limit.
    pub devices: usize,
}

impl Job {
    /// A job of one device with row-major matrices. C is not read, and k is not split if that fits.
    pub fn new(shape: Shape, element_bytes: usize, tile: [usize; 2], device_limit: u64) -> Self {
        Job {
            shape,
            element_bytes,
            tile,
            layouts: [Layout::RowMajor; 3],
            reads_c: false,
            device_limit,
            depth: None,
            devices: 1,
        }
    }

    /// The smallest [`device_limit`](Job::device_limit) for which there is a
    /// [`BlockPlan`](super::BlockPlan), in bytes.
    pub fn least_limit(&self) -> u64 {
        u64::try_from(self.least().0).unwrap_or(u64::MAX)
    }

    /// The error for a smaller limit.
    pub(super) fn too_small(&self) -> Error {
        let (needed, block) = self.least();
        let limit = format!("must be at least {needed} bytes, for blocks of {}", Blocks(block));
        Error::argument("device_limit", self.device_limit, limit)
    }

    /// The tile, without what is more than C has: a block is at most that.
    pub(super) fn tile_of_c(&self) -> [usize; 2] {
        let [rows, cols] = self.tile;
        [rows.min(self.shape.m()).max(1), cols.min(self.shape.n()).max(1)]
    }

    /// The bytes of the smallest blocks, and their m, n and k.
    fn least(&self) -> (u128, [usize; 3]) {
        let Job { shape, element_bytes, .. } = *self;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let tile = self.tile_of_c();
        let asked = self.depth.map(|depth| depth.max(1)).filter(|&depth| depth < k);
        let block = [tile[0].min(m), tile[1].min(n), asked.unwrap_or(k.min(LAST_DEPTHS[3]))];
        let of_blocks = (bytes(block, [2, 2, 2], element_bytes), block);
        // A small product needs less memory in one piece.
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
    // Sizes are below 2^32, and an element may be of any.
    (a * rows * depth + b * depth * cols + c * rows * cols).saturating_mul(element_bytes as u128)
}

/// `m x n x k`.
struct Blocks([usize; 3]);

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [rows, cols, depth] = self.0;
        write!(f, "{rows} x {cols} x {depth}")
    }
}
