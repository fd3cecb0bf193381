//! Shared memory: arrays that all threads of a block share.

use core::{
    arch::asm,
    ops::{Index, IndexMut},
};

#[cfg(target_feature = "sm_90a")]
use super::{Boxes, BoxesMut, Mbarrier, cluster::Remote, warpgroup::Operand};
use super::{
    memory::{In, Vector64, Vector128},
    shared_space::{declare_array, simt_dynamic_shared_pointer, simt_shared_address},
};
#[cfg(target_feature = "sm_90a")]
use crate::operand::{Factor, Layout};
use crate::{
    Atomic, Element,
    mma::{Fragment, Half16, Loaded, load},
};

/// An array in shared memory, made by [`shared!`]. Row-major.
pub struct Shared<T, const ROWS: usize, const COLS: usize = 1>(*mut T);

impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    /// Declares the array, 16-byte aligned.
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        Shared(declare_array::<T, ROWS, COLS>())
    }

    /// The first element's address, for kernels in Rust-CUDA's raw-pointer idiom.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0
    }
}

#[cfg(target_feature = "sm_90a")]
impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    /// The corresponding array of the block of that rank in this cluster.
    #[inline(always)]
    pub fn remote(&self, rank: u32) -> Remote<T> {
        Remote::new(simt_shared_address(self.0.cast()), rank)
    }
}

/// The dynamic shared memory, whose size the launch gives, made by [`dynamic_shared!`].
pub struct DynamicShared<T>(*mut T);

impl<T: Element> DynamicShared<T> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        DynamicShared(simt_dynamic_shared_pointer().cast())
    }
}

#[cfg(target_feature = "sm_90a")]
impl<T: Element> DynamicShared<T> {
    /// Begins a TMA copy of a box of global memory to the elements from `index` on, which is a
    /// multiple of 128 bytes. The box begins at element `(row, col)` of the `matrix`th matrix.
    /// Elements outside the matrix are zeros. The swizzle depends on the address. `row` is a signed
    /// number: rows before the first are what `wrapping_sub` gives.
    ///
    /// The box must begin at a multiple of 16 bytes of a row, even if it is outside: `col` times
    /// the bytes of an element is a multiple of
    /// 16. Otherwise the launch ends (on an H200 with an illegal instruction; NVIDIA's
    ///     documentation does not mention it).
    ///
    /// The copy is asynchronous. It completes its bytes at the mbarrier `done`.
    #[inline(always)]
    pub fn load_box<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &mut self,
        index: usize,
        boxes: &Boxes<T, ROWS, COLS, SWIZZLE>,
        (matrix, row, col): (u32, u32, u32),
        done: Mbarrier,
    ) {
        // SAFETY: inside, as the kernel promises.
        let to = simt_shared_address(unsafe { self.0.add(index) }.cast());
        boxes.load(to, (matrix, row, col), done);
    }

    /// [`load_box`](Self::load_box) to several blocks of the cluster at once (multicast): those
    /// whose bit of `blocks` is set, bit 0 for rank 0. The box is read once and copied to the
    /// corresponding place in each block's shared memory. It completes its bytes at the mbarrier
    /// that corresponds to `done` in each block. This block may be one of them or not.
    ///
    /// Each block must have initialised that mbarrier, must have read the old contents of the
    /// destination, and must not have ended. A [`cluster_pipeline!`](crate::cluster_pipeline)
    /// ensures that.
    #[inline(always)]
    pub fn load_box_multicast<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &mut self,
        index: usize,
        boxes: &Boxes<T, ROWS, COLS, SWIZZLE>,
        (matrix, row, col): (u32, u32, u32),
        done: Mbarrier,
        blocks: u16,
    ) {
        // SAFETY: inside, as the kernel promises.
        let to = simt_shared_address(unsafe { self.0.add(index) }.cast());
        boxes.load_multicast(to, (matrix, row, col), done, blocks);
    }

    /// Begins a TMA copy of the elements from `index` on to a box of global memory that begins at
    /// element `(row, col)` of the `matrix`th matrix; `index` and box as in
    /// [`load_box`](Self::load_box). Nothing outside the matrix is written.
    ///
    /// The copy sees what threads have written here if they have executed a
    /// [`fence_proxy_async`](super::fence_proxy_async) after it, and a barrier follows. The copy is
    /// asynchronous and belongs to the thread's next bulk group ([`bulk`](super::bulk)).
    #[inline(always)]
    pub fn store_box<const ROWS: usize, const COLS: usize, const SWIZZLE: usize>(
        &self,
        index: usize,
        boxes: &BoxesMut<T, ROWS, COLS, SWIZZLE>,
        place: (u32, u32, u32),
    ) {
        // SAFETY: inside, as the kernel promises.
        let from = simt_shared_address(unsafe { self.0.add(index) }.cast());
        boxes.store(from, place);
    }

    /// The operand with layout `L` from element `index` on, which is a multiple of eight swizzle
    /// spans.
    #[inline(always)]
    pub fn operand<L: Layout>(&self, index: usize) -> Operand<T, L>
    where
        T: Factor,
    {
        let start = simt_shared_address(self.0.cast());
        Operand::new(start, index as u32 * size_of::<T>() as u32)
    }

    /// The corresponding memory of the block of that rank in this cluster.
    #[inline(always)]
    pub fn remote(&self, rank: u32) -> Remote<T> {
        Remote::new(simt_shared_address(self.0.cast()), rank)
    }
}

impl<T: Element, const ROWS: usize, const COLS: usize> Index<(usize, usize)>
    for Shared<T, ROWS, COLS>
{
    type Output = T;

    #[inline(always)]
    fn index(&self, (row, col): (usize, usize)) -> &T {
        &self[row * COLS + col]
    }
}

impl<T: Element, const ROWS: usize, const COLS: usize> IndexMut<(usize, usize)>
    for Shared<T, ROWS, COLS>
{
    #[inline(always)]
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut T {
        &mut self[row * COLS + col]
    }
}

macro_rules! indexed {
    ([$($generics:tt)*] $array:ty) => {
        impl<$($generics)*> Index<usize> for $array {
            type Output = T;

            #[inline(always)]
            fn index(&self, index: usize) -> &T {
                // SAFETY: inside the array, as the kernel promises; not checked on the GPU.
                unsafe { &*self.0.add(index) }
            }
        }

        impl<$($generics)*> IndexMut<usize> for $array {
            #[inline(always)]
            fn index_mut(&mut self, index: usize) -> &mut T {
                // SAFETY: as in `index`.
                unsafe { &mut *self.0.add(index) }
            }
        }

        impl<$($generics)*> $array {
            /// The `N` elements from `index` on, in one access of 16 bytes. Their address must be a
            /// multiple of 16.
            #[inline(always)]
            pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: inside the array and aligned, as the kernel promises.
                unsafe { *(self.0.add(index) as *const Vector128) }.into_array()
            }

            /// [`load128`](Self::load128) that neither compiler moves down to where its elements
            /// are used, so that they have arrived by then.
            #[inline(always)]
            pub fn load128_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: inside the array and aligned, as the kernel promises.
                let place = simt_shared_address(unsafe { self.0.add(index) }.cast());
                let (a, b, c, d): (u32, u32, u32, u32);
                // SAFETY: as above. Volatile, because ptxas sinks every other kind.
                unsafe {
                    asm!(
                        "ld.volatile.shared.v4.b32 {{{}, {}, {}, {}}}, [{}];",
                        out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) place,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                Vector128::from_words([a, b, c, d]).into_array()
            }

            /// [`load128_in_order`](Self::load128_in_order) for 8 bytes. Their address must be a
            /// multiple of 8.
            #[inline(always)]
            pub fn load64_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: inside the array and aligned, as the kernel promises.
                let place = simt_shared_address(unsafe { self.0.add(index) }.cast());
                let (a, b): (u32, u32);
                // SAFETY: as above, and volatile for the same reason; equal sizes, and every `T`
                // may hold any bits.
                unsafe {
                    asm!(
                        "ld.volatile.shared.v2.b32 {{{}, {}}}, [{}];",
                        out(reg32) a, out(reg32) b, in(reg32) place,
                        options(nostack, preserves_flags, readonly),
                    );
                    core::mem::transmute_copy(&[a, b])
                }
            }

            /// Writes `N` elements from `index` on, in one access of 16 bytes. Their address must
            /// be a multiple of 16.
            #[inline(always)]
            pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                // SAFETY: as in `load128`.
                unsafe { *(self.0.add(index) as *mut Vector128) = Vector128::from_array(values) }
            }

            /// Writes `N` elements from `index` on, in one access of 8 bytes. Their address must be
            /// a multiple of 8.
            #[inline(always)]
            pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: equal sizes; inside the array and aligned, as the kernel promises.
                unsafe {
                    *(self.0.add(index) as *mut Vector64) = core::mem::transmute_copy(&values);
                }
            }

            /// Writes `N` elements from `index` on, in one access of 4 bytes. Their address must be
            /// a multiple of 4.
            #[inline(always)]
            pub fn store32<const N: usize>(&mut self, index: usize, values: [T; N]) {
                const { assert!(N * size_of::<T>() == 4, "a 32-bit access moves four bytes") };
                // SAFETY: equal sizes; inside the array and aligned, as the kernel promises.
                unsafe { *(self.0.add(index) as *mut u32) = core::mem::transmute_copy(&values) }
            }

            /// Begins an asynchronous copy of `N` elements from element `from` of `source` to
            /// element `index`: 4, 8 or 16 bytes, whose addresses are multiples of these bytes. If
            /// not `valid`, nothing is read and zeros are written.
            ///
            /// The copy has completed after [`wait_group`](super::copies::wait_group), and other
            /// threads see it after a following barrier.
            #[inline(always)]
            pub fn copy_async<const N: usize>(
                &mut self,
                index: usize,
                source: &In<T>,
                from: usize,
                valid: bool,
            ) {
                let bytes = const {
                    let bytes = N * size_of::<T>();
                    assert!(bytes == 16 || bytes == 8 || bytes == 4, "four, eight or sixteen bytes");
                    bytes as u32
                };
                // Bytes beyond the source's are zeros.
                let read = if valid { bytes } else { 0 };
                // SAFETY: inside the array and the buffer and aligned, as the kernel promises; of a
                // copy of no bytes the source is not read.
                unsafe {
                    let to = simt_shared_address(self.0.add(index).cast());
                    let from = source.address(from);
                    // 16-byte copies bypass L1: it would not be read from.
                    if bytes == 16 {
                        asm!(
                            "cp.async.cg.shared.global [{to}], [{from}], 16, {read};",
                            to = in(reg32) to,
                            from = in(reg64) from,
                            read = in(reg32) read,
                            options(nostack, preserves_flags),
                        );
                    } else {
                        asm!(
                            "cp.async.ca.shared.global [{to}], [{from}], {bytes}, {read};",
                            to = in(reg32) to,
                            from = in(reg64) from,
                            bytes = const N * size_of::<T>(),
                            read = in(reg32) read,
                            options(nostack, preserves_flags),
                        );
                    }
                }
            }

            /// A fragment for the warp's tensor cores: 16 x 16 elements (16 x 8 of f32) in four
            /// matrices of eight rows of 16 bytes. Each lane gives the index of the first element
            /// of a row, at a multiple of 16 bytes. All lanes call it. See [`mma`](crate::mma), for
            /// the order of the rows.
            #[inline(always)]
            pub fn load_fragment(&self, index: usize) -> Fragment<T::Atom>
            where
                T: Loaded,
            {
                // SAFETY: inside the array and aligned, as the kernel promises.
                let row = simt_shared_address(unsafe { self.0.add(index) }.cast());
                load::load::<T>(row)
            }

            /// [`load_fragment`](Self::load_fragment) for 16-bit elements, whose matrices are
            /// transposed during the load if `transposed`. All lanes choose alike.
            #[inline(always)]
            pub fn load_fragment_either(&self, index: usize, transposed: bool) -> Fragment<T::Atom>
            where
                T: Half16,
            {
                // SAFETY: as above.
                let row = simt_shared_address(unsafe { self.0.add(index) }.cast());
                load::load_either::<T>(row, transposed)
            }

            /// Adds `value` to an element atomically, and gives the element's old value.
            #[inline(always)]
            pub fn atomic_add(&mut self, index: usize, value: T) -> T
            where
                T: Atomic,
            {
                // SAFETY: inside the array, as the kernel promises.
                unsafe { T::atomic_add(self.0.add(index), value) }
            }
        }
    };
}

indexed! { [T: Element, const ROWS: usize, const COLS: usize] Shared<T, ROWS, COLS> }
indexed! { [T: Element] DynamicShared<T> }
