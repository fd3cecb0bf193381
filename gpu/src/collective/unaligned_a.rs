//! An A along k whose rows begin anywhere, though the accelerator takes them at multiples of sixteen bytes alone.
//!
//! Of rows r, r + 8, r + 16, ... each begins as many elements behind such a multiple as the others, up to seven: their
//! *shift*. So they are a matrix of their own, a *class*, that begins at the multiple before, with a map of its own:
//!
//! ```text
//!   map 0   rows 0, 8, 16, ...   k:           0  1  2  3  4  5  6  7 | ...      shift 0
//!   map 1   rows 1, 9, 17, ...   k:        *  0  1  2  3  4  5  6 | 7 ...       shift 1, of rows of 513 elements
//!   map 2   rows 2, 10, ...      k:     *  *  0  1  2  3  4  5 | 6  7 ...       shift 2
//! ```
//!
//! A tile's rows are all of one class, and its steps of k as many behind as the shift says: B's rows are copied from so many
//! before, where below the first there are zeros. `*` is the end of the row before. B's zeros do not do away with it, for it
//! may be infinite, so it is cleared where it lies in shared memory, in a tile's first stage.
//!
//! The accelerator is faster where rows begin at multiples of 32 bytes, a sector of the caches. So there is also a kernel of
//! sixteen classes, with shifts up to fifteen, for matrices that have whole tiles of so many.
//!
//! It is the way of [`gemm_tma`'s `UnalignedA`](super::super::gemm_tma), whose threads have rows of one class each and mend what
//! they have in registers; here the tensor cores read, and a tile has them.

use super::{
    device::{warpgroup::*, *},
    tma::{Operand, SPAN},
    wgmma_shape::{BLOCK_K, WGMMA_M},
};
use crate::params::GemmParams;

/// Classes of rows that begin at multiples of sixteen bytes: as many as these have elements.
pub const CLASSES: usize = 8;

/// The same of 32 bytes.
pub const SECTOR_CLASSES: usize = 16;

/// An A of rows that begin anywhere, the first at a multiple of sixteen bytes, of which a tile has `TILE`: a map for each
/// class.
pub struct UnalignedA<T: Factor, const TILE: usize, const COUNT: usize>(TensorMaps<T, COUNT>);

impl<T: Factor, const TILE: usize, const COUNT: usize> UnalignedA<T, TILE, COUNT> {
    /// That of the maps.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(maps: &TensorMaps<T, COUNT>) -> Self {
        UnalignedA(*maps)
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn boxes(&self, class: u32) -> Boxes<T, TILE, BLOCK_K, SPAN> {
        self.0.numbered(class).boxes()
    }
}

impl<T: Factor + Default, const TILE: usize, const COUNT: usize> Operand
    for UnalignedA<T, TILE, COUNT>
{
    type Element = T;
    type Layout = KMajor<BLOCK_K>;

    const TILE: usize = TILE;
    const STEP: usize = COUNT;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        (0..COUNT as u32).for_each(|class| self.0.numbered(class).prefetch());
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shift(problem: &GemmParams, row: u32) -> u32 {
        row.wrapping_mul(problem.a[0] as u32) % COUNT as u32
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        product: u32,
        (row, p): (u32, u32),
        done: Mbarrier,
    ) {
        const { assert!(BLOCKS == 1, "a block copies its own rows") };
        let place = (product, row / COUNT as u32, p);
        tiles.load_box(at, &self.boxes(row % COUNT as u32), place, done);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_before(
        tiles: &mut DynamicShared<T>,
        at: usize,
        shift: u32,
        barrier: NamedBarrier<128>,
    ) {
        let t = thread::thread_idx_x() as usize % 128;
        let (row, number) = (t % WGMMA_M, t / WGMMA_M);
        const {
            assert!(COUNT.is_multiple_of(CLASSES), "whole pieces");
            assert!(COUNT <= 128 / WGMMA_M * CLASSES, "each thread has one piece at most");
        }
        if number < COUNT / CLASSES {
            clear_piece::<_, CLASSES>(tiles, at + row * BLOCK_K, row, number, shift);
        }
        // Of what these threads have written, before what their tensor cores read.
        fence_proxy_async();
        barrier.sync();
    }
}

/// Clears, of a row of a stage that begins there, what lies in its `number`th piece, `PIECE` elements of sixteen bytes, and before the
/// step of that shift.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
pub fn clear_piece<T: Factor + Default, const PIECE: usize>(
    tiles: &mut DynamicShared<T>,
    at: usize,
    row: usize,
    number: usize,
    shift: u32,
) {
    // The swizzle exchanges a row's pieces as the row's number says.
    let place = at + (number ^ (row % 8)) * PIECE;
    // Compared with numbers that the compiler knows: else it keeps those of a piece's elements in registers.
    let before = shift.saturating_sub((number * PIECE) as u32);
    let mut piece: [T; PIECE] = tiles.load128(place);
    for i in 0..PIECE {
        piece[i] = if (i as u32) < before { T::default() } else { piece[i] };
    }
    tiles.store128(place, piece);
}
