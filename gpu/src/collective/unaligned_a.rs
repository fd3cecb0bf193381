//! A K-major A of unaligned rows, by TMA. TMA takes 16-byte aligned rows only.
//!
//! With 16-bit elements, the rows r, r + 8, r + 16, ... have the same misalignment: they start 0 to
//! 7 elements after a multiple of sixteen bytes. They form an *alignment class*. Its tensor map
//! starts at that multiple, and has one row for every eighth row of A. The misalignment is the
//! *shift* of the class:
//!
//! ```text
//!   class 0   rows 0, 8, 16, ...   k:           0  1  2  3  4  5  6  7 | ...      shift 0
//!   class 1   rows 1, 9, 17, ...   k:        *  0  1  2  3  4  5  6 | 7 ...       shift 1, of rows of 513 elements
//!   class 2   rows 2, 10, ...      k:     *  *  0  1  2  3  4  5 | 6  7 ...       shift 2
//! ```
//!
//! All rows of a tile are of one class. The stages of A and of B start `shift` k-steps early. In B,
//! TMA fills in zeros before step 0. In A, `*` may be anything: the end of the row before, or no
//! element of A. It may be infinite, and infinity times B's zero is NaN. So `*` is cleared in
//! shared memory, in the first stage of a tile.
//!
//! TMA reads whole sixteen bytes. Of these it reads none that has no element of the row: the tensor
//! map starts at the last multiple of sixteen bytes, and a stage that starts earlier starts outside
//! of the map.
//!
//! TMA is faster with 32-byte aligned rows, which are whole sectors: with tf32, 4096 x 4096 x 4100
//! takes a third longer than with k = 4104. Eight classes of 32-bit elements are 32-byte aligned.
//! 16-bit elements need sixteen classes for that. Each class has tiles of its own, and rows of its
//! last tile may be unused. So sixteen classes are for matrices of many rows.
//!
//! The kernels on CUDA cores ([`tma`](super::super::kernels::tma)) use classes too. Their tiles
//! have rows of all classes, and all rows of a thread are of one class.

use core::marker::PhantomData;

use super::{
    device::{warpgroup::*, *},
    tma::{SPAN, TmaOperand, load_box},
    wgmma_shape::WGMMA_M,
};
use crate::params::GemmParams;

/// An A of unaligned rows. The first row is 16-byte aligned. Each of the `CLASSES` classes has a
/// tensor map, and a CTA copies `TILE` rows. `PIECE` elements are sixteen bytes.
pub struct UnalignedA<
    T: Factor,
    L,
    const TILE: usize,
    const BLOCK_K: usize,
    const CLASSES: usize,
    const PIECE: usize,
>(TensorMaps<T, CLASSES>, PhantomData<L>);

impl<
    T: Factor,
    L,
    const TILE: usize,
    const BLOCK_K: usize,
    const CLASSES: usize,
    const PIECE: usize,
> UnalignedA<T, L, TILE, BLOCK_K, CLASSES, PIECE>
{
    /// The operand of the tensor maps.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    pub fn new(maps: &TensorMaps<T, CLASSES>) -> Self {
        UnalignedA(*maps, PhantomData)
    }
}

impl<
    T: Factor + Default,
    L: Layout,
    const TILE: usize,
    const BLOCK_K: usize,
    const CLASSES: usize,
    const PIECE: usize,
> TmaOperand for UnalignedA<T, L, TILE, BLOCK_K, CLASSES, PIECE>
{
    type Element = T;
    type Layout = L;

    const TILE: usize = TILE;
    const BLOCK_K: usize = BLOCK_K;
    const CLASSES: usize = CLASSES;

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn prefetch(&self) {
        (0..CLASSES as u32).for_each(|class| self.0.numbered(class).prefetch());
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn shift(problem: &GemmParams, class: u32) -> u32 {
        class.wrapping_mul(problem.a[0] as u32) % CLASSES as u32
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn whole_pieces(shift: u32) -> u32 {
        if CLASSES > PIECE { shift / PIECE as u32 * PIECE as u32 } else { 0 }
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn load<const BLOCKS: usize>(
        &self,
        tiles: &mut DynamicShared<T>,
        at: usize,
        place: (u32, u32, u32),
        class: u32,
        done: Mbarrier,
    ) {
        let boxes = self.0.numbered(class).boxes::<TILE, BLOCK_K, SPAN>();
        load_box::<_, _, _, BLOCKS>(tiles, at, &boxes, place, done);
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_rows(tiles: &mut DynamicShared<T>, at: usize, shift: u32, barrier: NamedBarrier<128>) {
        let t = thread::thread_idx_x() as usize % 128;
        let (row, number) = (t % WGMMA_M, t / WGMMA_M);
        const {
            assert!(PIECE * size_of::<T>() == 16 && CLASSES.is_multiple_of(PIECE), "whole pieces");
            assert!(CLASSES <= 128 / WGMMA_M * PIECE, "each thread has one piece at most");
        }
        if number < CLASSES / PIECE {
            clear_piece::<_, PIECE>(tiles, at + row * BLOCK_K, row, number, shift);
        }
        // The tensor cores read through the async proxy what these threads have written.
        fence_proxy_async();
        barrier.sync();
    }

    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    fn clear_row(tiles: &mut DynamicShared<T>, at: usize, row: usize, shift: u32) {
        for number in 0..CLASSES / PIECE {
            clear_piece::<_, PIECE>(tiles, at + row * BLOCK_K, row, number, shift);
        }
    }
}

/// Clears the elements before step `shift` in piece `number` of a row of a stage. The row starts at
/// element `at`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[track_caller]
fn clear_piece<T: Factor + Default, const PIECE: usize>(
    tiles: &mut DynamicShared<T>,
    at: usize,
    row: usize,
    number: usize,
    shift: u32,
) {
    // The swizzle permutes a row's pieces by the row's number.
    let place = at + (number ^ (row % 8)) * PIECE;
    // Each `i` is a constant of the unrolled loop. If the k-steps `number * PIECE + i` were
    // compared with `shift`, the compiler would keep all of them in registers.
    let before = shift.saturating_sub((number * PIECE) as u32);
    let mut piece: [T; PIECE] = tiles.load128(place);
    for i in 0..PIECE {
        piece[i] = if (i as u32) < before { T::default() } else { piece[i] };
    }
    tiles.store128(place, piece);
}
