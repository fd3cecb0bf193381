//! Tensor maps: matrices in global memory, whose boxes TMA copies (`cp.async.bulk.tensor`).

use core::{arch::asm, marker::PhantomData};

use super::Mbarrier;
use crate::Element;

// The entry point makes it from a `TensorMapParam`.
#[derive(Clone, Copy)]
pub struct TensorMap<T> {
    address: u64,
    elements: PhantomData<fn() -> T>,
}

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

    #[inline(always)]
    pub fn prefetch(&self) {
        // SAFETY: a hint; the map is at that address.
        unsafe {
            asm!("prefetch.tensormap [{}];", in(reg64) self.address, options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn boxes<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &self,
    ) -> Boxes<T, ROWS, COLS, SWIZZLE> {
        Boxes { address: self.address, elements: PhantomData }
    }
}

#[derive(Clone, Copy)]
pub struct Boxes<T, const ROWS: usize, const COLS: usize, const SWIZZLE: usize> {
    address: u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element, const ROWS: usize, const COLS: usize, const SWIZZLE: usize>
    Boxes<T, ROWS, COLS, SWIZZLE>
{
    pub const BYTES: u32 = (ROWS * COLS * size_of::<T>()) as u32;

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

    #[inline(always)]
    pub fn boxes<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &self,
    ) -> BoxesMut<T, ROWS, COLS, SWIZZLE> {
        BoxesMut(self.0.boxes())
    }
}

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
