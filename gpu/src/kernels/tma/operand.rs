//! Operands that TMA copies, slab by slab: 32 k-steps.

use super::{
    collective::{
        fragment::{SLAB, Staged},
        vector::FOUR,
    },
    device::*,
};

/// An operand in global memory.
pub trait Operand: Staged {
    /// Bytes of a slab.
    const BYTES: u32;

    /// Prefetches the tensor maps, so that the first copy does not wait for them.
    fn prefetch(&self);

    /// Issues the copy of the slab that starts with row (column) `outer` and step `p` to element
    /// `at` and those after it.
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        first: (u32, u32),
        done: Mbarrier,
    );
}

/// Boxes of a K-major operand are swizzled.
impl<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize> Staged
    for Boxes<f32, BOX_ROWS, BOX_COLS, SWIZZLE>
{
    const K_MAJOR: bool = SWIZZLE > 0;
}

impl<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize> Operand
    for Boxes<f32, BOX_ROWS, BOX_COLS, SWIZZLE>
{
    const BYTES: u32 = (BOX_ROWS * BOX_COLS * size_of::<f32>()) as u32;

    #[inline(always)]
    fn prefetch(&self) {
        Boxes::prefetch(self);
    }

    #[inline(always)]
    #[track_caller]
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        const {
            let steps = if SWIZZLE > 0 { BOX_COLS } else { BOX_ROWS };
            let steps_before = SWIZZLE == 0 && steps == SLAB + FOUR;
            assert!(steps == SLAB || steps_before, "a slab's box");
            assert!(SWIZZLE == 0 || SWIZZLE == 4 * SLAB, "a slab's box");
        }
        let place = if Self::K_MAJOR { (product, outer, p) } else { (product, p, outer) };
        tiles.load_box(at, self, place, done);
    }
}

/// A K-major A of unaligned rows. TMA takes 16-byte aligned rows only.
///
/// The rows r, r + 4, r + 8, ... have the same misalignment: 0 to 3 elements after a multiple of
/// sixteen bytes. They form an alignment class with a tensor map of its own, which starts at the
/// multiple before. The misalignment is the *shift* of the class:
///
/// ```text
///   class 0   rows 0, 4, 8, ...    k:        0  1  2  3 | 4  5  6  7 | ...      shift 0
///   class 1   rows 1, 5, 9, ...    k:    *   0  1  2  3   4  5  6   ...         shift 1, of rows of 513 elements
///   class 2   rows 2, 6, ...       k: *  *   0  1  2  3   4  5   ...            shift 2
/// ```
///
/// A thread's rows are of one class, so the thread works `shift` steps behind: the element of A
/// that it reads at step t belongs to step t - shift of k, and it reads that row of B. `*` is the
/// end of the row before. It counts as zero.
pub struct UnalignedA<const ROWS: usize>(pub TensorMaps<f32, FOUR>);

impl<const ROWS: usize> UnalignedA<ROWS> {
    #[inline(always)]
    fn boxes(&self, map: usize) -> Boxes<f32, ROWS, SLAB, { 4 * SLAB }> {
        self.0.numbered(map as u32).boxes()
    }
}

impl<const ROWS: usize> Staged for UnalignedA<ROWS> {
    const K_MAJOR: bool = true;
    const UNALIGNED: bool = true;
}

impl<const ROWS: usize> Operand for UnalignedA<ROWS> {
    const BYTES: u32 = (FOUR * ROWS * SLAB * size_of::<f32>()) as u32;

    #[inline(always)]
    fn prefetch(&self) {
        for map in 0..FOUR {
            self.0.numbered(map as u32).prefetch();
        }
    }

    #[inline(always)]
    #[track_caller]
    fn load(
        &self,
        tiles: &mut DynamicShared<f32>,
        at: usize,
        product: u32,
        (outer, p): (u32, u32),
        done: Mbarrier,
    ) {
        for map in 0..FOUR {
            let place = (product, outer / FOUR as u32, p);
            tiles.load_box(at + map * ROWS * SLAB, &self.boxes(map), place, done);
        }
    }
}
