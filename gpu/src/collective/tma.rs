//! How A and B come to shared memory: always in boxes whose rows are 128 bytes, a span of the swizzle.
//!
//! ```text
//!   K-major    k side by side (A row-major, B column-major): one box, TILE rows (columns of B) by 64 steps of k
//!   MN-major   m side by side (n of B): boxes of 64 steps of k by 64 rows (columns of B), TILE / 64 of them
//! ```
//!
//! Which of both it is says a constant, when the kernel is loaded ([`EitherMajorA`], [`EitherMajorB`]). Of a tile of one and a half
//! boxes for each of two blocks, boxes are half as long or half as deep ([`Halves`]).
//!
//! Either way 64 rows (columns of B) and all steps of a stage take the same 8 KiB, one after the other.
//!
//! Of a tile of 16 columns, an N-major B is a box whose rows are 32 bytes, the narrowest span: in a box of 128 bytes three quarters
//! would be zeros, which take room in the ring.

use core::marker::PhantomData;

use super::{
    device::{warpgroup::*, *},
    wgmma_shape::{BLOCK_K, WGMMA_M},
};
use crate::params::GemmParams;

/// Bytes of a box's row: the span of the swizzle, as wide as there is.
pub const SPAN: usize = 2 * BLOCK_K;

/// The same of an MN-major box of 16 columns, the narrowest.
pub const NARROW_SPAN: usize = 32;

/// That of an MN-major operand of which a tile has so many rows (columns of B).
pub const fn mn_span(tile: usize) -> usize {
    if tile < WGMMA_M { NARROW_SPAN } else { SPAN }
}

/// Steps of k, or rows (columns of B), of half a box.
pub const PART: usize = BLOCK_K / 2;

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
    fn shift(_: &GemmParams, _row: u32) -> u32 {
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
        self.load::<BLOCKS>(
            tiles,
            at + first as usize * BLOCK_K,
            product,
            (outer + first, p),
            done,
        );
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

/// An operand of which a tile has `TILE` rows (columns of B), in whole boxes.
pub struct Whole<T: Factor, L: Layout, const TILE: usize>(TensorMap<T>, PhantomData<L>);

/// The same in boxes of half as many steps of k where it is MN-major, and else of [`PART`] rows (columns of B): tiles of several
/// widths have the same map, and each of two blocks copies one and a half boxes' worth.
pub struct Halves<T: Factor, L: Layout, const TILE: usize>(TensorMap<T>, PhantomData<L>);

impl<T: Factor, L: Layout, const TILE: usize> Whole<T, L, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        Whole(*map, PhantomData)
    }
}

impl<T: Factor, L: Layout, const TILE: usize> Halves<T, L, TILE> {
    /// That of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        Halves(*map, PhantomData)
    }

    /// Begins to copy half of the steps of k of an MN-major operand's groups.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_half<const BLOCKS: usize>(
        &self,
        (tiles, at): (&mut DynamicShared<T>, usize),
        groups: usize,
        product: u32,
        (outer, p): (u32, u32),
        half: u32,
        done: Mbarrier,
    ) {
        let boxes = self.0.boxes::<PART, WGMMA_M, SPAN>();
        let (at, p) = (at + half as usize * PART * WGMMA_M, p + half * PART as u32);
        for group in 0..groups {
            let place = (product, p, outer + (group * WGMMA_M) as u32);
            load_box::<_, _, _, BLOCKS>(tiles, at + group * WGMMA_M * BLOCK_K, &boxes, place, done);
        }
    }
}

impl<T: Factor, L: Layout, const TILE: usize> Operand for Whole<T, L, TILE> {
    type Element = T;
    type Layout = L;

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
        if !L::is_mn_major() {
            let boxes = self.0.boxes::<TILE, BLOCK_K, SPAN>();
            load_box::<_, _, _, BLOCKS>(tiles, at, &boxes, (product, outer, p), done);
        } else if TILE < WGMMA_M {
            const {
                assert!(TILE >= WGMMA_M || BLOCKS == 1, "a block copies for itself");
                assert!(TILE >= WGMMA_M || TILE * size_of::<T>() == NARROW_SPAN, "a row is a span");
            }
            let boxes = self.0.boxes::<BLOCK_K, TILE, NARROW_SPAN>();
            tiles.load_box(at, &boxes, (product, p, outer), done);
        } else {
            let boxes = self.0.boxes::<BLOCK_K, WGMMA_M, SPAN>();
            for group in 0..TILE / WGMMA_M {
                let place = (product, p, outer + (group * WGMMA_M) as u32);
                load_box::<_, _, _, BLOCKS>(
                    tiles,
                    at + group * WGMMA_M * BLOCK_K,
                    &boxes,
                    place,
                    done,
                );
            }
        }
    }
}

impl<T: Factor, L: Layout, const TILE: usize> Operand for Halves<T, L, TILE> {
    type Element = T;
    type Layout = L;

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
        if L::is_mn_major() {
            for half in 0..2 {
                let to = (&mut *tiles, at);
                self.load_half::<BLOCKS>(to, TILE / WGMMA_M, product, (outer, p), half, done);
            }
        } else {
            let boxes = self.0.boxes::<PART, BLOCK_K, SPAN>();
            for part in 0..TILE / PART {
                let place = (product, outer + (part * PART) as u32, p);
                load_box::<_, _, _, BLOCKS>(tiles, at + part * PART * BLOCK_K, &boxes, place, done);
            }
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
        const { assert!(BLOCKS == 2, "two halves") };
        if L::is_mn_major() {
            let groups = BLOCKS * TILE / WGMMA_M;
            self.load_half::<BLOCKS>((tiles, at), groups, product, (outer, p), part, done);
        } else {
            let first = part * TILE as u32;
            let at = at + first as usize * BLOCK_K;
            self.load::<BLOCKS>(tiles, at, product, (outer + first, p), done);
        }
    }
}
