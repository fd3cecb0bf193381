//! How a product is split into blocks. The plan is a pure function of sizes and limits, so it can
//! be printed without a device.
//!
//! C is split into blocks of `rows x cols`. If a panel of A (`rows x k`) and a panel of B fit in
//! the device's memory, k is not split. Then C has the same bits as without blocks. One operand
//! stays: its panel is kept while all panels of the other are loaded, and it is read once. The plan
//! takes the operand that makes reading cheaper. Short runs of contiguous elements cost more: a
//! panel of rows is one run in a row-major file, and one run for each column in a column-major
//! file.
//!
//! If no panel fits, or if asked, k is split, too. Then A and B are read again for each block of C,
//! and C is rounded after each block of k.
//!
//! The operand that is loaded again and again has two buffers: the next block is copied while the
//! GPU multiplies with this one. C has two, too. The operand that stays has one, and the GPU waits
//! while it is replaced.
//!
//! Several devices have panels of the operand that stays, as many each, and its part of C. All read
//! the other operand. If k is split, each has blocks of C. Whether and where it is split does not
//! depend on the number of devices.

mod steps;

use std::fmt;

#[cfg(feature = "serde")]
use serde::Serialize;

use super::job::{Job, LAST_DEPTHS, bytes};
use crate::{
    devices::check_places,
    error::{Error, Result},
    matrix::Layout,
    shape::Shape,
};

/// The least rows or columns of a panel of the operand that does not stay, if there is memory. A
/// smaller product does not keep a GPU busy.
const PASSING: usize = 256;
/// A product with that many bytes or more is split into that many parts even if it fits. Then
/// reading, multiplication and writing overlap, and nothing is read twice.
const OVERLAPS: (u64, usize) = (64 << 20, 8);
/// Depths of blocks that are tried if k must be split. With a smaller one the GPU would spend its
/// time on C.
const DEPTHS: [usize; 5] = [4096, 2048, 1024, 512, 256];
/// The fixed cost of a read from a file, in bytes that could be read in that time.
const RUN: u128 = 4096;
/// The most bytes of a chunk, the unit of copies between files and the device.
const CHUNK_BYTES: usize = 8 << 20;
/// Threads that read. One thread reads a file from the system's cache more slowly than a GPU
/// multiplies.
pub(super) const READERS: usize = 4;
/// Chunks of each reader, and of the writer.
pub(super) const CHUNKS: usize = 2;

/// The operand that stays on the device, and is read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Stays {
    /// A. For each panel of A all panels of B are loaded.
    A,
    /// B. For each panel of B all panels of A are loaded.
    B,
    /// Neither: k is split.
    Neither,
}

/// The reason for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Why {
    /// A, B and C fit.
    Fits,
    /// A, B and C fit. The product is split so that reading, multiplication and writing overlap.
    Overlaps,
    /// A, B and C fit. The product is split so that each device has a part.
    Devices,
    /// Reading costs least if this operand stays.
    ReadsLess,
    /// k is split as asked.
    DepthAsked,
    /// k is split because all of it does not fit, even for one tile of C.
    DepthCut,
}

/// The blocks of a product, made by [`BlockPlan::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
pub struct BlockPlan {
    block: [usize; 3],
    blocks: [usize; 3],
    stays: Stays,
    why: Why,
    places: [usize; 3],
    device_bytes: u64,
    chunk: usize,
    host_bytes: u64,
    reads: [u64; 3],
    devices: usize,
    #[cfg_attr(feature = "serde", serde(skip))]
    shape: Shape,
}

/// The position of a block of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The index along m.
    pub row: usize,
    /// The index along n.
    pub col: usize,
    /// The index along k.
    pub depth: usize,
}

impl BlockPlan {
    /// The plan with the cheapest reads and writes that fits.
    ///
    /// # Errors
    /// [`Error::Argument`] for a limit that is too small for a block of one tile, for elements of
    /// no bytes, and for no device or more than 256.
    pub fn new(job: &Job) -> Result<Self> {
        let Job { shape, depth, element_bytes, .. } = *job;
        if element_bytes == 0 {
            return Err(Error::argument("element_bytes", 0, "must be at least 1"));
        }
        check_places("devices", job.devices)?;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let tile = job.tile_of_c();
        let plan = |block: [usize; 3], stays, why| BlockPlan::cut(job, block, stays, why);
        let asked = depth.map(|depth| depth.max(1)).filter(|&depth| depth < k);
        let cut = |depth: usize, why| {
            let [rows, cols] = cut_both(job, tile, depth)?;
            Some(plan([rows, cols, depth], Stays::Neither, why))
        };
        // One device decides on the depth: the bits of C depend on it.
        let known = match job.devices {
            1 => asked.map(|depth| (depth, Why::DepthAsked)),
            _ => {
                let alone = BlockPlan::new(&Job { devices: 1, ..*job })?;
                (alone.block[2] < k).then_some((alone.block[2], alone.why))
            }
        };
        if let Some((depth, why)) = known {
            return cut(depth, why).ok_or_else(|| job.too_small());
        }
        let cost = |plan: &BlockPlan| (plan.idle(), plan.cost(job));
        let mut whole = plan([m, n, k], Stays::A, Why::Fits);
        if job.devices > 1 {
            let other = plan([m, n, k], Stays::B, Why::Fits);
            whole = if cost(&other) < cost(&whole) { other } else { whole };
            whole.why = if whole.is_one_piece() { Why::Fits } else { Why::Devices };
        }
        // `device_bytes` are at most those of the largest limit.
        let needed = bytes(whole.block, whole.places, element_bytes);
        if needed <= u128::from(job.device_limit) {
            let parts = [Stays::A, Stays::B].map(|stays| {
                let [mut rows, mut cols] = [m, n];
                let (size, tile) = match stays {
                    Stays::B => (&mut rows, tile[0]),
                    _ => (&mut cols, tile[1]),
                };
                *size = size.div_ceil(OVERLAPS.1).max(PASSING).next_multiple_of(tile).min(*size);
                plan([rows, cols, k], stays, Why::Overlaps)
            });
            // Two blocks, which are whole tiles, may need more than one piece.
            let fits = |parts: &BlockPlan| parts.device_bytes <= job.device_limit;
            let parts = parts.into_iter().filter(|parts| !parts.is_one_piece() && fits(parts));
            let parts = parts.min_by_key(cost);
            return Ok(parts.filter(|_| whole.device_bytes >= OVERLAPS.0).unwrap_or(whole));
        }
        let [a, b] = [Stays::A, Stays::B].map(|stays| {
            let [rows, cols] = keep(job, tile, stays)?;
            Some(plan([rows, cols, k], stays, Why::ReadsLess))
        });
        // Among equals: the plan that replaces the operand that stays less often.
        let replaced = |plan: &BlockPlan| plan.blocks[usize::from(plan.stays == Stays::B)];
        if let Some(best) = a.into_iter().chain(b).min_by_key(|plan| (cost(plan), replaced(plan))) {
            return Ok(best);
        }
        let cut = |depth: usize| cut(depth, Why::DepthCut);
        let best = DEPTHS.into_iter().filter(|&depth| depth < k).filter_map(cut).min_by_key(cost);
        let last = || LAST_DEPTHS.into_iter().filter(|&depth| depth < k).find_map(cut);
        best.or_else(last).ok_or_else(|| job.too_small())
    }

    /// The plan with blocks of at most that size, all of nearly the same size along m and n.
    fn cut(job: &Job, [rows, cols, depth]: [usize; 3], stays: Stays, why: Why) -> Self {
        let Job { shape, element_bytes, reads_c, .. } = *job;
        let (m, n, k, tile) = (shape.m(), shape.n(), shape.k(), job.tile_of_c());
        // The side of C that devices share.
        let shared = usize::from(if stays == Stays::Neither { n > m } else { stays == Stays::B });
        let devices = |side: usize| if side == shared { job.devices } else { 1 };
        let rows = even(m, rows, tile[0], devices(0));
        let cols = even(n, cols, tile[1], devices(1));
        let mut blocks = [blocks_of(m, rows), blocks_of(n, cols), blocks_of(k, depth)];
        if blocks[0] == 0 || blocks[1] == 0 {
            blocks = [0; 3];
        }
        let mut own = blocks;
        own[shared] = own[shared].div_ceil(job.devices);
        let places = places(own, stays);
        let device_bytes = bytes([rows, cols, depth], places, element_bytes);
        let largest = (rows * depth).max(depth * cols).max(rows * cols);
        let chunk = (CHUNK_BYTES / element_bytes).clamp(1, largest.max(1));
        let chunks = (CHUNKS * (READERS + 1)) as u64;
        let chunks = chunks * job.devices as u64;
        let host_bytes = chunks.saturating_mul(chunk as u64).saturating_mul(element_bytes as u64);
        let mut plan = BlockPlan {
            block: [rows, cols, depth],
            blocks,
            stays,
            why,
            places,
            device_bytes: u64::try_from(device_bytes).unwrap_or(u64::MAX),
            chunk,
            host_bytes,
            reads: [0; 3],
            devices: job.devices,
            shape,
        };
        plan.reads = plan.count_reads(reads_c);
        plan
    }

    /// The cost of reads and writes: their bytes, and [`RUN`] for each run.
    fn cost(&self, job: &Job) -> u128 {
        let [rows, cols, depth] = self.block;
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let run = |layout, size: (usize, usize), block: (usize, usize)| {
            let (side, whole) = match layout {
                Layout::RowMajor => (block.1, size.1),
                Layout::ColMajor => (block.0, size.0),
            };
            // Whole runs are contiguous.
            if side == whole { size.0 * size.1 } else { side }
        };
        let runs = [
            run(job.layouts[0], (m, k), (rows, depth)),
            run(job.layouts[1], (k, n), (depth, cols)),
            run(job.layouts[2], (m, n), (rows, cols)),
        ];
        let [a, b, c] = self.reads.map(u128::from);
        let moved = [a, b, c + m as u128 * n as u128];
        let bytes = job.element_bytes as u128;
        let cost = |(moved, run): (u128, usize)| {
            moved.saturating_mul(bytes).saturating_add(moved * RUN / (run.max(1) as u128))
        };
        moved.into_iter().zip(runs).map(cost).fold(0, u128::saturating_add)
    }

    /// The product's shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// m, n and k of a block. The last ones may be smaller.
    pub fn block(&self) -> [usize; 3] {
        self.block
    }

    /// The number of blocks along m, n and k. 0 along a size of 0.
    pub fn blocks(&self) -> [usize; 3] {
        self.blocks
    }

    /// The operand that stays on the device, and is read once.
    pub fn stays(&self) -> Stays {
        self.stays
    }

    /// The reason for this plan.
    pub fn why(&self) -> Why {
        self.why
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// The number of buffers on each device for blocks of A, B and C.
    pub fn places(&self) -> [usize; 3] {
        self.places
    }

    /// Bytes of these buffers, on each device.
    pub fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// Elements of a chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// The plan with smaller chunks, for tests.
    #[cfg(test)]
    pub(crate) fn with_chunk(self, chunk: usize) -> Self {
        BlockPlan { chunk, ..self }
    }

    /// Bytes of all chunks in host memory. For a GPU they are page-locked.
    pub fn host_bytes(&self) -> u64 {
        self.host_bytes
    }

    /// The number of elements read of A, B and C. An element that is read twice counts twice.
    pub fn reads(&self) -> [u64; 3] {
        self.reads
    }

    /// Whether there is a single block.
    pub fn is_one_piece(&self) -> bool {
        self.blocks.iter().all(|&blocks| blocks <= 1)
    }
}

/// Rows and columns of blocks for all of k. The panel of the operand that stays is as large as
/// possible.
fn keep(job: &Job, tile: [usize; 2], stays: Stays) -> Option<[usize; 2]> {
    let Job { shape, element_bytes, device_limit, devices, .. } = *job;
    let sizes = [shape.m(), shape.n()];
    let (kept, passing) = if stays == Stays::B { (1, 0) } else { (0, 1) };
    let block = |kept_size: usize, passing_size: usize| {
        let mut block = [0, 0, shape.k()];
        block[kept] = kept_size.min(sizes[kept]);
        block[passing] = passing_size.min(sizes[passing]);
        block
    };
    let places = if stays == Stays::B { [2, 1, 2] } else { [1, 2, 2] };
    let fits = |kept_size, passing_size| {
        bytes(block(kept_size, passing_size), places, element_bytes) <= u128::from(device_limit)
    };
    for least in [PASSING.next_multiple_of(tile[passing]), tile[passing]] {
        let kept_tiles =
            most(sizes[kept].div_ceil(tile[kept]), |tiles| fits(tiles * tile[kept], least));
        if kept_tiles == 0 {
            continue;
        }
        let kept_size = even(sizes[kept], kept_tiles * tile[kept], tile[kept], devices);
        let passing_tiles = most(sizes[passing].div_ceil(tile[passing]), |tiles| {
            fits(kept_size, tiles * tile[passing])
        });
        let [rows, cols, _] = block(kept_size, passing_tiles.max(1) * tile[passing]);
        return Some([rows, cols]);
    }
    None
}

/// Rows and columns of blocks with that depth, as square as possible.
fn cut_both(job: &Job, tile: [usize; 2], depth: usize) -> Option<[usize; 2]> {
    let Job { shape, element_bytes, device_limit, .. } = *job;
    let sizes = [shape.m(), shape.n()];
    let fits = |rows: usize, cols: usize| {
        let block = [rows.min(sizes[0]), cols.min(sizes[1]), depth];
        bytes(block, [2, 2, 2], element_bytes) <= u128::from(device_limit)
    };
    let side = tile[0].max(tile[1]);
    let longest = sizes[0].max(sizes[1]).div_ceil(side);
    let square = most(longest, |tiles| fits(tiles * side, tiles * side)) * side;
    if square == 0 {
        return fits(tile[0], tile[1]).then_some(tile);
    }
    // If one side of C is shorter than the square, the other side can be longer.
    let rows = most(sizes[0].div_ceil(tile[0]), |tiles| fits(tiles * tile[0], square)) * tile[0];
    let cols = most(sizes[1].div_ceil(tile[1]), |tiles| fits(rows, tiles * tile[1])) * tile[1];
    Some([rows, cols])
}

/// The largest number up to `limit` for which `holds` is true. It must be true for all smaller
/// ones, too. 0 if there is none.
fn most(limit: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, limit);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// The size of blocks that split `size`: at most `block`, nearly the same for all, and a multiple
/// of `tile` or all of `size`; as many for each of some devices.
fn even(size: usize, block: usize, tile: usize, devices: usize) -> usize {
    let blocks = blocks_of(size, block).max(1).next_multiple_of(devices);
    let (tile, part) = (tile.max(1), size.div_ceil(blocks));
    let even = part.next_multiple_of(tile).min(block).min(size);
    // Rounded up, some device may be left without a block.
    if blocks_of(size, even) < devices { (part / tile * tile).max(tile).min(even) } else { even }
}

fn blocks_of(size: usize, block: usize) -> usize {
    if size == 0 { 0 } else { size.div_ceil(block.max(1)) }
}

/// Buffers for blocks of A, B and C. An operand that does not stay has two: one is multiplied while
/// the next one is loaded.
fn places([rows, cols, depths]: [usize; 3], stays: Stays) -> [usize; 3] {
    let next = |blocks: usize| blocks.min(2);
    let c = next(rows * cols);
    match stays {
        _ if depths == 0 => [0, 0, c],
        Stays::A => [next(rows).min(1), next(cols), c],
        Stays::B => [next(rows), next(cols).min(1), c],
        Stays::Neither => [2, 2, c],
    }
}

/// A sentence for the plan's output.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Why::Fits => "all of A, B and C fit",
            Why::Overlaps => {
                "all of A, B and C fit; split so that reading, multiplication and writing overlap"
            }
            Why::Devices => "all of A, B and C fit; split so that each device has a part",
            Why::ReadsLess => "so reading costs least",
            Why::DepthAsked => "k is split as asked: C is rounded after each block of k",
            Why::DepthCut => {
                "k is split because all of it does not fit: C is rounded after each block of k"
            }
        })
    }
}

#[cfg(test)]
mod tests;
