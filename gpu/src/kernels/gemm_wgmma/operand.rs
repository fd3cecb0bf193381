//! How A and B come to shared memory: always in boxes whose rows are 128 bytes, a span of the swizzle.
//!
//! ```text
//!   AlongK   k side by side (A row-major, B column-major): one box, TILE rows (columns of B) by 64 steps of k
//!   AcrossK  m side by side (n of B): boxes of 64 steps of k by 64 rows (columns of B), TILE / 64 of them
//! ```
//!
//! Of a tile of one and a half boxes for each of two blocks, boxes are half as deep ([`PartAcrossK`]) or half as long ([`PartsAlongK`]).
//!
//! Either way 64 rows (columns of B) and all steps of a stage take the same 8 KiB, one after the other.
//!
//! Of a tile of 16 columns, B across k is a box whose rows are 32 bytes, the narrowest span ([`NarrowAcrossK`]): in a box of
//! 128 bytes three quarters would be zeros, which take room in the ring.

use super::{
    super::device::{warpgroup::*, *},
    DEPTH,
};
use crate::problem::Problem;

/// Bytes of a box's row: the span of the swizzle, as wide as there is.
pub const SPAN: usize = 2 * DEPTH;
/// The same of 16 elements.
const NARROW_SPAN: usize = 32;

/// Rows of A, or columns of B, that lie together in shared memory.
pub const GROUP: usize = 64;

/// An operand in global memory.
pub trait Operand {
    /// What it is of.
    type Element: Factor;

    /// How a stage's part of it lies in shared memory.
    type Layout: Layout;

    /// Rows of A (columns of B) that it copies at a time.
    const TILE: usize;

    /// From one row of a tile to the next.
    const STEP: usize = 1;

    /// Steps of k that lie before the row's first, up to the multiple of sixteen bytes, or 32, that its copies begin at. All rows of a
    /// tile have as many.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shift(_: &Problem, _row: u32) -> u32 {
        0
    }

    /// Clears as many elements of each of 64 rows of a stage, which begin with that element, for the tensor cores of the
    /// warpgroup that calls this, whose barrier it is.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_before(
        _: &mut DynamicShared<Self::Element>,
        _at: usize,
        _shift: u32,
        _: NamedBarrier<128>,
    ) {
    }

    /// Fetches the map, so that the first copy does not wait for it.
    fn prefetch(&self);

    /// Begins to copy rows of A (columns of B) from `outer` on, and the steps of k from `p` on, to the elements from `at`
    /// on: of each of the `BLOCKS` blocks of the cluster.
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Self::Element>,
        at: usize,
        product: u32,
        first: (u32, u32),
        done: Mbarrier,
    );

    /// As [`load`](Self::load), of a tile that the blocks of a cluster copy together: the `part`th of its `BLOCKS` parts, which lie
    /// one after the other.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_part<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Self::Element>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        part: u32,
        done: Mbarrier,
    ) {
        let first = part * Self::TILE as u32;
        self.load::<BLOCKS>(tiles, at + first as usize * DEPTH, product, (outer + first, p), done);
    }
}

/// Begins to copy a box to each block of the cluster.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn load_box<T: Factor, const ROWS: usize, const COLS: usize, const BLOCKS: usize>(
    tiles: &mut DynamicShared<T>,
    at: usize,
    boxes: &Boxes<T, ROWS, COLS, SPAN>,
    place: (u32, u32, u32),
    done: Mbarrier,
) {
    match BLOCKS {
        1 => tiles.load_box(at, boxes, place, done),
        _ => tiles.load_box_multicast(at, boxes, place, done, const { (1 << BLOCKS) - 1 }),
    }
}

/// An operand whose steps of k lie side by side, of which a tile has `TILE` rows (columns of B).
pub struct AlongK<T: Factor, const TILE: usize>(Boxes<T, TILE, DEPTH, SPAN>);

impl<T: Factor, const TILE: usize> AlongK<T, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        AlongK(map.boxes())
    }
}

impl<T: Factor, const TILE: usize> Operand for AlongK<T, TILE> {
    type Element = T;
    type Layout = KMajor<DEPTH>;

    const TILE: usize = TILE;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        load_box::<_, _, _, BLOCKS>(tiles, at, &self.0, (product, outer, p), done);
    }
}

/// As [`AlongK`], in boxes of [`PART`] rows (columns of B): tiles of several widths have the same map.
pub struct PartsAlongK<T: Factor, const TILE: usize>(Boxes<T, PART, DEPTH, SPAN>);

impl<T: Factor, const TILE: usize> PartsAlongK<T, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        PartsAlongK(map.boxes())
    }
}

impl<T: Factor, const TILE: usize> Operand for PartsAlongK<T, TILE> {
    type Element = T;
    type Layout = KMajor<DEPTH>;

    const TILE: usize = TILE;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        const { assert!(TILE.is_multiple_of(PART), "a tile is whole boxes") };
        for part in 0..TILE / PART {
            let place = (product, outer + (part * PART) as u32, p);
            load_box::<_, _, _, BLOCKS>(tiles, at + part * PART * DEPTH, &self.0, place, done);
        }
    }
}

/// An operand whose rows (columns of B) lie side by side, of which a tile has `TILE`.
pub struct AcrossK<T: Factor, const TILE: usize>(Boxes<T, DEPTH, GROUP, SPAN>);

impl<T: Factor, const TILE: usize> AcrossK<T, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        AcrossK(map.boxes())
    }
}

impl<T: Factor, const TILE: usize> Operand for AcrossK<T, TILE> {
    type Element = T;
    type Layout = MnMajor<DEPTH>;

    const TILE: usize = TILE;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        for group in 0..TILE / GROUP {
            let place = (product, p, outer + (group * GROUP) as u32);
            load_box::<_, _, _, BLOCKS>(tiles, at + group * GROUP * DEPTH, &self.0, place, done);
        }
    }
}

/// As [`AcrossK`], of a tile that two blocks copy together, of which each would have one and a half boxes: each copies half of the
/// steps of k.
pub struct PartAcrossK<T: Factor, const TILE: usize>(Boxes<T, PART, GROUP, SPAN>);

/// Steps of k that one of two blocks copies; and rows of a box of [`PartsAlongK`].
pub const PART: usize = DEPTH / 2;

impl<T: Factor, const TILE: usize> PartAcrossK<T, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        PartAcrossK(map.boxes())
    }
}

impl<T: Factor, const TILE: usize> Operand for PartAcrossK<T, TILE> {
    type Element = T;
    type Layout = MnMajor<DEPTH>;

    const TILE: usize = TILE;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        first: (u32, u32),
        done: Mbarrier,
    ) {
        for part in 0..2 {
            self.load_part::<BLOCKS>(tiles, at, product, first, part, done);
        }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_part<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        part: u32,
        done: Mbarrier,
    ) {
        let (at, p) = (at + part as usize * PART * GROUP, p + part * PART as u32);
        for group in 0..2 * TILE / GROUP {
            let place = (product, p, outer + (group * GROUP) as u32);
            load_box::<_, _, _, BLOCKS>(tiles, at + group * GROUP * DEPTH, &self.0, place, done);
        }
    }
}

/// As [`AcrossK`], of 16 columns alone.
pub struct NarrowAcrossK<T: Factor, const TILE: usize>(Boxes<T, DEPTH, TILE, NARROW_SPAN>);

impl<T: Factor, const TILE: usize> NarrowAcrossK<T, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        const { assert!(TILE * size_of::<T>() == NARROW_SPAN, "a row is a span of the swizzle") };
        NarrowAcrossK(map.boxes())
    }
}

impl<T: Factor, const TILE: usize> Operand for NarrowAcrossK<T, TILE> {
    type Element = T;
    type Layout = MnMajor<DEPTH, NARROW_SPAN>;

    const TILE: usize = TILE;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        const { assert!(BLOCKS == 1, "a block copies for itself") };
        tiles.load_box(at, &self.0, (product, p, outer), done);
    }
}
