//! Operands that TMA copies to shared memory, box by box. The rows of a box are 128 bytes, the
//! widest span of the swizzle.
//!
//! ```text
//!   K-major     k is contiguous (A row-major, B column-major): one box of TILE rows (columns of B) by BLOCK_K k-steps
//!   MN-major    m is contiguous (n of B): boxes of BLOCK_K k-steps by BOX rows (columns of B), TILE / BOX of them
//! ```
//!
//! * **A cluster** may share an operand: each CTA copies a part of it to all (*multicast*).
//! * **A warp** waits for a free stage.
//! * **One lane** issues the copies of a stage.
//!
//! The layout may be a constant that is set when the kernel is loaded ([`EitherMajorA`],
//! [`EitherMajorB`]). In both layouts, 64 rows of 16-bit elements (columns of B) take the same 8
//! KiB of a stage.

use core::marker::PhantomData;

use super::{
    device::{warpgroup::*, *},
    wgmma_shape::{BLOCK_K, WGMMA_M},
};
use crate::params::GemmParams;

/// Bytes of a box's row: the widest span of the swizzle.
pub const SPAN: usize = 128;

/// Bytes of a row of an MN-major box of 16 columns: the narrowest span. With rows of 128 bytes,
/// three quarters of the box would be zeros, which take space in the pipeline.
pub const NARROW_SPAN: usize = 32;

/// The span of an MN-major operand of 16-bit elements, of which a tile has `tile` rows (columns of
/// B).
pub const fn mn_span(tile: usize) -> usize {
    if tile < WGMMA_M { NARROW_SPAN } else { SPAN }
}

/// K-steps, or rows (columns of B), of half a box of 16-bit elements.
const HALF_BOX: usize = BLOCK_K / 2;

/// An operand that TMA copies.
pub trait TmaOperand {
    /// The type of its elements.
    type Element: Factor;

    /// The layout of a stage in shared memory.
    type Layout: Layout;

    /// Rows of A (columns of B) that [`load`](Self::load) copies.
    const TILE: usize;

    /// K-steps of a stage.
    const BLOCK_K: usize;

    /// Alignment classes. The rows of a tile are of one class, and this many rows apart in the
    /// matrix.
    const CLASSES: usize = 1;

    /// The shift of a class: its copies start this many k-steps before the first. All rows of a
    /// class have the same shift.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shift(_: &GemmParams, _class: u32) -> u32 {
        0
    }

    /// Of a shift, the k-steps that are whole sixteen bytes. Rows start that much after the copy
    /// does, and their tensor map with the rest: the copy starts before the map, where TMA reads
    /// nothing.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn whole_pieces(_shift: u32) -> u32 {
        0
    }

    /// Clears the first `shift` elements of 64 rows of a stage, from element `at` on. The 128
    /// threads of a warpgroup call this, and wait for each other at the barrier.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_rows(
        _: &mut DynamicShared<Self::Element>,
        _at: usize,
        _shift: u32,
        _: NamedBarrier<128>,
    ) {
    }

    /// Clears the first `shift` elements of one row of a stage that starts at element `at`.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_row(_: &mut DynamicShared<Self::Element>, _at: usize, _row: usize, _shift: u32) {}

    /// Prefetches the tensor map, so that the first copy does not wait for it.
    fn prefetch(&self);

    /// Issues the copies of a stage to each of the `BLOCKS` CTAs of the cluster, to the elements
    /// from `at` on. `outer` is the first row of A (column of B) of its class, `p` the first
    /// k-step.
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Self::Element>,
        at: usize,
        place: (u32, u32, u32),
        class: u32,
        done: Mbarrier,
    );

    /// Like [`load`](Self::load), for a tile that the CTAs of a cluster copy together: the `part`th
    /// of its `BLOCKS` parts.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_part<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Self::Element>,
        at: usize,
        (product, outer, p): (u32, u32, u32),
        part: u32,
        done: Mbarrier,
    ) {
        let first = part * Self::TILE as u32;
        let at = at + first as usize * Self::BLOCK_K;
        self.load::<BLOCKS>(tiles, at, (product, outer + first, p), 0, done);
    }
}

/// Issues the copy of a box to each CTA of the cluster.
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

/// An operand of which a CTA copies `TILE` rows (columns of B) a stage, in whole boxes. A row of a
/// box has `BOX` elements.
pub struct Tma<T: Factor, L: Layout, const TILE: usize, const BLOCK_K: usize, const BOX: usize>(
    TensorMap<T>,
    PhantomData<L>,
);

/// [`Tma`] of 16-bit elements.
pub type WholeBoxes<T, L, const TILE: usize> = Tma<T, L, TILE, BLOCK_K, WGMMA_M>;

/// [`Tma`] of 8-bit elements, which are K-major.
pub type BytesBoxes<T, L, const TILE: usize> = Tma<T, L, TILE, SPAN, 16>;

/// Like [`WholeBoxes`], but with half boxes: half the k-steps of an MN-major operand, half the rows
/// (columns of B) of a K-major operand. So tiles of several widths have the same tensor map, and
/// each of two CTAs can copy one and a half boxes.
pub struct HalfBoxes<T: Factor, L: Layout, const TILE: usize>(TensorMap<T>, PhantomData<L>);

impl<T: Factor, L: Layout, const TILE: usize, const BLOCK_K: usize, const BOX: usize>
    Tma<T, L, TILE, BLOCK_K, BOX>
{
    /// The operand of a tensor map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        Tma(*map, PhantomData)
    }
}

impl<T: Factor, L: Layout, const TILE: usize, const BLOCK_K: usize, const BOX: usize> TmaOperand
    for Tma<T, L, TILE, BLOCK_K, BOX>
{
    type Element = T;
    type Layout = L;

    const TILE: usize = TILE;
    const BLOCK_K: usize = BLOCK_K;

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
        (product, outer, p): (u32, u32, u32),
        _class: u32,
        done: Mbarrier,
    ) {
        if !L::is_mn_major() {
            let boxes = self.0.boxes::<TILE, BLOCK_K, SPAN>();
            load_box::<_, _, _, BLOCKS>(tiles, at, &boxes, (product, outer, p), done);
        } else if TILE < BOX {
            const {
                assert!(TILE >= BOX || BLOCKS == 1, "a CTA copies for itself");
                assert!(TILE >= BOX || TILE * size_of::<T>() == NARROW_SPAN, "a row is a span");
            }
            let boxes = self.0.boxes::<BLOCK_K, TILE, NARROW_SPAN>();
            tiles.load_box(at, &boxes, (product, p, outer), done);
        } else {
            let boxes = self.0.boxes::<BLOCK_K, BOX, SPAN>();
            for number in 0..TILE / BOX {
                let place = (product, p, outer + (number * BOX) as u32);
                load_box::<_, _, _, BLOCKS>(
                    tiles,
                    at + number * BOX * BLOCK_K,
                    &boxes,
                    place,
                    done,
                );
            }
        }
    }
}

impl<T: Factor, L: Layout, const TILE: usize> HalfBoxes<T, L, TILE> {
    /// The operand of a tensor map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<T>) -> Self {
        HalfBoxes(*map, PhantomData)
    }

    /// Issues the copies of half the k-steps of an MN-major operand: `boxes` half boxes.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_half<const BLOCKS: usize>(
        &self,
        (tiles, at): (&mut DynamicShared<T>, usize),
        groups: usize,
        (product, outer, p): (u32, u32, u32),
        half: u32,
        done: Mbarrier,
    ) {
        let boxes = self.0.boxes::<HALF_BOX, WGMMA_M, SPAN>();
        let (at, p) = (at + half as usize * HALF_BOX * WGMMA_M, p + half * HALF_BOX as u32);
        for group in 0..groups {
            let place = (product, p, outer + (group * WGMMA_M) as u32);
            let at = at + group * WGMMA_M * BLOCK_K;
            load_box::<_, _, _, BLOCKS>(tiles, at, &boxes, place, done);
        }
    }
}

impl<T: Factor, L: Layout, const TILE: usize> TmaOperand for HalfBoxes<T, L, TILE> {
    type Element = T;
    type Layout = L;

    const TILE: usize = TILE;
    const BLOCK_K: usize = BLOCK_K;

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
        (product, outer, p): (u32, u32, u32),
        _class: u32,
        done: Mbarrier,
    ) {
        const { assert!(TILE.is_multiple_of(HALF_BOX), "a tile is whole half boxes") };
        if L::is_mn_major() {
            for half in 0..2 {
                let to = (&mut *tiles, at);
                self.load_half::<BLOCKS>(to, TILE / WGMMA_M, (product, outer, p), half, done);
            }
        } else {
            let boxes = self.0.boxes::<HALF_BOX, BLOCK_K, SPAN>();
            for part in 0..TILE / HALF_BOX {
                let place = (product, outer + (part * HALF_BOX) as u32, p);
                let at = at + part * HALF_BOX * BLOCK_K;
                load_box::<_, _, _, BLOCKS>(tiles, at, &boxes, place, done);
            }
        }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load_part<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        (product, outer, p): (u32, u32, u32),
        part: u32,
        done: Mbarrier,
    ) {
        const { assert!(BLOCKS == 2, "two halves") };
        if L::is_mn_major() {
            let groups = BLOCKS * TILE / WGMMA_M;
            self.load_half::<BLOCKS>((tiles, at), groups, (product, outer, p), part, done);
        } else {
            let first = part * TILE as u32;
            let at = at + first as usize * BLOCK_K;
            self.load::<BLOCKS>(tiles, at, (product, outer + first, p), 0, done);
        }
    }
}
