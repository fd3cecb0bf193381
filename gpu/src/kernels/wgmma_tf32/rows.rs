//! A on its way to shared memory: rows that begin at multiples of sixteen bytes, or anywhere.
//!
//! The accelerator takes rows at multiples of sixteen bytes alone, and is fast where they begin at multiples of 32, a sector of the
//! caches: a product of 4096 x 4096 x 4100 takes a third longer than one of k = 4104. But of rows r, r + 8, r + 16, ... each begins as
//! many elements behind such a multiple as the others, up to seven: their *shift*. So they are a matrix of their own, a *class*, that
//! begins at the multiple before, with a map of its own:
//!
//! ```text
//!   map 0   rows 0, 8, 16, ...   k:           0  1  2  3  4  5  6  7 | ...      shift 0
//!   map 1   rows 1, 9, 17, ...   k:        *  0  1  2  3  4  5  6 | 7 ...       shift 1, of rows of 513 elements
//!   map 2   rows 2, 10, ...      k:     *  *  0  1  2  3  4  5 | 6  7 ...       shift 2
//! ```
//!
//! A tile's rows are all of one class, and its steps of k as many behind as the shift says: B's rows are copied from so many before,
//! where below the first there are zeros. `*` is the end of the row before, which may be infinite, so it is cleared where it lies in
//! shared memory. (It is the way of [`gemm_wgmma`](super::super::gemm_wgmma) for elements of two bytes.)

use super::{
    collective::{tma::load_box, unaligned_a::clear_piece},
    device::*,
    tile::BLOCK_K,
};
use crate::params::GemmParams;

/// Elements of a sector, 32 bytes, and classes of rows.
pub const CLASSES: usize = 8;

/// Elements of sixteen bytes.
const PIECE: usize = 4;

/// A, which lies along k.
pub trait Rows {
    /// Rows that a block copies.
    const PART: usize;
    /// From one row of a tile to the next: as many classes as there are.
    const STEP: usize = 1;

    /// Steps of k that lie before the first of a class's rows.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shift(_: &GemmParams, _class: u32) -> u32 {
        0
    }

    /// Begins to copy rows of a product: of that class, from one among its rows on, a stage's steps of k from one on; to each of the
    /// `BLOCKS` blocks of the cluster.
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Tf32>,
        at: usize,
        place: (u32, u32, u32),
        class: u32,
        done: Mbarrier,
    );

    /// Clears what lies before a row's first step in a stage that begins there.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_before(_: &mut DynamicShared<Tf32>, _at: usize, _row: usize, _shift: u32) {}
}

/// Rows that begin at multiples of sixteen bytes, of which a block copies `PART`.
pub struct InOrder<const PART: usize>(Boxes<Tf32, PART, BLOCK_K, { 4 * BLOCK_K }>);

impl<const PART: usize> InOrder<PART> {
    /// Those of the map.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(map: &TensorMap<Tf32>) -> Self {
        InOrder(map.boxes())
    }
}

impl<const PART: usize> Rows for InOrder<PART> {
    const PART: usize = PART;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Tf32>,
        at: usize,
        place: (u32, u32, u32),
        _class: u32,
        done: Mbarrier,
    ) {
        load_box::<_, _, _, BLOCKS>(tiles, at, &self.0, place, done);
    }
}

/// Rows that begin anywhere, the first at a multiple of sixteen bytes, of which a block copies `PART`: a map for each class.
pub struct Anywhere<const PART: usize>(TensorMaps<Tf32, CLASSES>);

impl<const PART: usize> Anywhere<PART> {
    /// Those of the maps.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(maps: &TensorMaps<Tf32, CLASSES>) -> Self {
        Anywhere(*maps)
    }
}

impl<const PART: usize> Rows for Anywhere<PART> {
    const PART: usize = PART;
    const STEP: usize = CLASSES;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shift(problem: &GemmParams, class: u32) -> u32 {
        class.wrapping_mul(problem.a[0] as u32) % CLASSES as u32
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<Tf32>,
        at: usize,
        place: (u32, u32, u32),
        class: u32,
        done: Mbarrier,
    ) {
        let boxes = self.0.numbered(class).boxes::<PART, BLOCK_K, { 4 * BLOCK_K }>();
        load_box::<_, _, _, BLOCKS>(tiles, at, &boxes, place, done);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_before(tiles: &mut DynamicShared<Tf32>, at: usize, row: usize, shift: u32) {
        for number in 0..CLASSES / PIECE {
            clear_piece::<_, PIECE>(tiles, at + row * BLOCK_K, row, number, shift);
        }
    }
}
