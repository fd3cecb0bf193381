//! Tensor maps: matrices in global memory, whose boxes TMA copies (`cp.async.bulk.tensor`).

use core::{arch::asm, marker::PhantomData};

use super::Mbarrier;
use crate::Element;

/// A batch of matrices in global memory, from which TMA copies boxes. A kernel's parameter; the
/// entry point makes it from a [`TensorMapParam`].
///
/// A box begins at a multiple of 16 bytes of a row; TMA copies no other.
#[derive(Clone, Copy)]
pub struct TensorMap<T> {
    address: u64,
    elements: PhantomData<fn() -> T>,
}

/// `COUNT` [`TensorMap`]s as one parameter of a kernel, which selects one by its index.
#[derive(Clone, Copy)]
pub struct TensorMaps<T, const COUNT: usize> {
    address: u64,
    elements: PhantomData<fn() -> T>,
}

/// The driver's encodings of `COUNT` tensor maps, as a kernel's parameter.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TensorMapParam<const COUNT: usize>([[u64; 16]; COUNT]);

impl<T: Element, const COUNT: usize> TensorMaps<T, COUNT> {
    #[doc(hidden)]
    pub const COUNT: usize = COUNT;

    /// # Safety
    /// 1. A [`TensorMapParam`] of that number of maps is at the address.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn at(address: u64) -> Self {
        TensorMaps { address, elements: PhantomData }
    }

    /// The map with that index, below `COUNT`. The index is not checked here; a launch on the CPU
    /// checks it.
    #[inline(always)]
    pub fn numbered(&self, number: u32) -> TensorMap<T> {
        let bytes = number * size_of::<TensorMapParam<1>>() as u32;
        TensorMap { address: self.address + u64::from(bytes), elements: PhantomData }
    }
}

impl<T: Element> TensorMap<T> {
    #[doc(hidden)]
    pub const COUNT: usize = 1;

    /// # Safety
    /// 1. A [`TensorMapParam`] of one map is at the address.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn at(address: u64) -> Self {
        TensorMap { address, elements: PhantomData }
    }

    /// Lets TMA fetch the map, so that the first copy need not wait for it. A kernel's parameters
    /// do not depend on earlier grids, so this may come before
    /// [`wait_for_earlier`](super::grid::wait_for_earlier). A hint.
    #[inline(always)]
    pub fn prefetch(&self) {
        // SAFETY: a hint; the map is at that address.
        unsafe {
            asm!("prefetch.tensormap [{}];", in(reg64) self.address, options(nostack, preserves_flags));
        }
    }

    /// Its boxes: `ROWS x COLS` elements, row-major in shared memory, swizzled over spans of
    /// `SWIZZLE` bytes (0: not swizzled). The tensor map must have boxes of this shape.
    #[inline(always)]
    pub fn boxes<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &self,
    ) -> Boxes<T, ROWS, COLS, SWIZZLE> {
        Boxes { address: self.address, elements: PhantomData }
    }
}

/// The boxes of a [`TensorMap`].
#[derive(Clone, Copy)]
pub struct Boxes<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> {
    address: u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element, const ROWS: usize, const COLS: usize, const SWIZZLE: usize>
    Boxes<T, ROWS, COLS, SWIZZLE>
{
    /// Bytes of a box.
    pub const BYTES: u32 = (ROWS * COLS * size_of::<T>()) as u32;

    /// [`TensorMap::prefetch`] of its map.
    #[inline(always)]
    pub fn prefetch(&self) {
        TensorMap::<T> { address: self.address, elements: PhantomData }.prefetch();
    }

    /// Begins a TMA copy of the box at (row, col) of a matrix to shared memory. Elements outside
    /// are zeros. It completes all the box's bytes at `done`.
    #[inline(always)]
    pub(super) fn load(&self, to: u32, (matrix, row, col): (u32, u32, u32), done: Mbarrier) {
        // SAFETY: inside the block's shared memory and aligned, as the kernel promises; the map
        // describes memory that is valid as long as the launch. Not `nomem`: it is not moved before
        // what precedes it.
        unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
                 [{}], [{}, {{{}, {}, {}}}], [{}];",
                in(reg32) to,
                in(reg64) self.address,
                in(reg32) col,
                in(reg32) row,
                in(reg32) matrix,
                in(reg32) done.address(),
                options(nostack, preserves_flags),
            );
        }
    }

    /// The same copy to the corresponding place in each block whose bit of `blocks` is set, by its
    /// rank. It completes at the block's own mbarrier (PTX ISA, "cp.async.bulk.tensor",
    /// `.multicast::cluster`).
    #[inline(always)]
    pub(super) fn load_multicast(
        &self,
        to: u32,
        (matrix, row, col): (u32, u32, u32),
        done: Mbarrier,
        blocks: u16,
    ) {
        // SAFETY: as in `load`, of each of these blocks, none of which has ended.
        unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\
                 .multicast::cluster [{}], [{}, {{{}, {}, {}}}], [{}], {};",
                in(reg32) to,
                in(reg64) self.address,
                in(reg32) col,
                in(reg32) row,
                in(reg32) matrix,
                in(reg32) done.address(),
                in(reg16) blocks,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// A batch of matrices in global memory, to which TMA copies boxes. A kernel's parameter, like
/// [`TensorMap`].
#[derive(Clone, Copy)]
pub struct TensorMapMut<T>(TensorMap<T>);

impl<T: Element> TensorMapMut<T> {
    #[doc(hidden)]
    pub const COUNT: usize = 1;

    /// # Safety
    /// 1. A [`TensorMapParam`] of one map is at the address.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn at(address: u64) -> Self {
        // SAFETY: the caller's.
        TensorMapMut(unsafe { TensorMap::at(address) })
    }

    /// Its boxes, as [`TensorMap::boxes`].
    #[inline(always)]
    pub fn boxes<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &self,
    ) -> BoxesMut<T, ROWS, COLS, SWIZZLE> {
        BoxesMut(self.0.boxes())
    }
}

/// The boxes of a [`TensorMapMut`].
#[derive(Clone, Copy)]
pub struct BoxesMut<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
    Boxes<T, ROWS, COLS, SWIZZLE>,
);

impl<T: Element, const ROWS: usize, const COLS: usize, const SWIZZLE: usize>
    BoxesMut<T, ROWS, COLS, SWIZZLE>
{
    /// Begins a TMA copy from shared memory to the box at (row, col) of a matrix. Nothing outside
    /// is written (PTX ISA, "cp.async.bulk.tensor", `.bulk_group`).
    #[inline(always)]
    pub(super) fn store(&self, from: u32, (matrix, row, col): (u32, u32, u32)) {
        // SAFETY: as in `Boxes::load`. Not `nomem`: it is not moved before what precedes it.
        unsafe {
            asm!(
                "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [{}, {{{}, {}, {}}}], [{}];",
                in(reg64) self.0.address,
                in(reg32) col,
                in(reg32) row,
                in(reg32) matrix,
                in(reg32) from,
                options(nostack, preserves_flags),
            );
        }
    }
}
