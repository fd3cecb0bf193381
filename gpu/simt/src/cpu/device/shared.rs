//! Shared memory: arrays that all threads of a block share. Every access is bounds-checked.

use std::{
    ops::{Index, IndexMut},
    panic::Location,
};

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::atomic::Of;
#[cfg(feature = "cpu")]
use super::memory::{four_eight_or_sixteen_bytes, is_allowed, reason, sixteen_bytes};
use super::{
    atomic::AtomicRef,
    cluster::remotes::Remote,
    mbarrier::Mbarrier,
    memory::views::In,
    tensor::maps::{Boxes, BoxesMut},
    warpgroup::Operand,
};
#[cfg(feature = "cpu")]
use crate::cpu::{
    access::{Access, Refused},
    block,
    limits::SHARED_BYTES,
};
use crate::{
    Atomic, Element,
    cpu::{fast::Fast, mode::Mode},
    mma::{Fragment, Half16, Loaded, load},
    operand::Layout,
};

/// An array in shared memory, made by [`shared!`](crate::shared). Row-major.
pub type Shared<T, const ROWS: usize, const COLS: usize = 1> = arrays::Shared<T, ROWS, COLS, Fast>;
/// The dynamic shared memory, whose size the launch gives, made by
/// [`dynamic_shared!`](crate::dynamic_shared).
pub type DynamicShared<T> = arrays::DynamicShared<T, Fast>;

/// The types behind the names, generic in the [`Mode`].
pub(crate) mod arrays {
    use super::*;

    /// An array in shared memory. Row-major.
    #[derive(Debug)]
    pub struct Shared<T, const ROWS: usize, const COLS: usize, M: Mode> {
        base: *mut T,
        tag: M::Shared,
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> Shared<T, ROWS, COLS, M> {
        /// Declares the array, 16-byte aligned.
        #[doc(hidden)]
        #[inline]
        #[track_caller]
        pub fn declare() -> Self {
            const {
                let elements = ROWS.checked_mul(COLS).expect("more elements than can be counted");
                let bytes = elements.checked_mul(size_of::<T>());
                let bytes = bytes.expect("more bytes than can be counted");
                assert!(bytes <= SHARED_BYTES, "a block has 227 KiB of shared memory");
            }
            let (base, array) =
                block::declare_shared(size_of::<T>(), (ROWS, COLS), false, Location::caller());
            // SAFETY: what the worker gave.
            Shared { base: base.cast(), tag: unsafe { M::shared_array(array) } }
        }

        /// The first element's address, for kernels in Rust-CUDA's raw-pointer idiom.
        #[inline(always)]
        pub fn as_mut_ptr(&mut self) -> *mut T {
            self.base
        }

        const fn len(&self) -> usize {
            ROWS * COLS
        }

        /// The corresponding array of the block of that rank in this cluster.
        #[track_caller]
        pub fn remote(&self, rank: u32) -> Remote<T, M> {
            Remote::new(self.base, ROWS * COLS, rank)
        }

        /// The address of an element. A column past the end of the row is refused; on the GPU it
        /// would be an element of the next row.
        #[inline(always)]
        #[track_caller]
        fn at_2d(&self, (row, col): (usize, usize), access: Access) -> *mut T {
            if row >= ROWS || col >= COLS {
                let refused = Refused::Outside2d { index: (row, col), shape: (ROWS, COLS) };
                return M::refuse_shared(self.tag, refused, access);
            }
            // SAFETY: inside the array.
            unsafe {
                M::shared::<T>(self.tag, row * COLS + col, 1, access);
                self.base.add(row * COLS + col)
            }
        }
    }

    /// The dynamic shared memory, whose size the launch gives.
    #[derive(Debug)]
    pub struct DynamicShared<T, M: Mode> {
        pub(in crate::cpu::device) base: *mut T,
        pub(in crate::cpu::device) len: usize,
        pub(in crate::cpu::device) tag: M::Shared,
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, M: Mode> DynamicShared<T, M> {
        /// All of it.
        #[doc(hidden)]
        #[inline]
        #[track_caller]
        pub fn declare() -> Self {
            const { assert!(size_of::<T>() > 0, "an element of no bytes") };
            let len = block::launch_config().dynamic_shared as usize / size_of::<T>();
            let (base, array) =
                block::declare_shared(size_of::<T>(), (len, 1), true, Location::caller());
            // SAFETY: what the worker gave.
            DynamicShared { base: base.cast(), len, tag: unsafe { M::shared_array(array) } }
        }

        const fn len(&self) -> usize {
            self.len
        }

        /// Begins a TMA copy of a box of global memory to the elements from `index` on, which is a
        /// multiple of 128 bytes. The box begins at element `(row, col)` of the `matrix`th matrix.
        /// Elements outside the matrix are zeros. The swizzle depends on the address. `row` is a
        /// signed number: rows before the first are what `wrapping_sub` gives.
        ///
        /// The box must begin at a multiple of 16 bytes of a row, even if it is outside: `col`
        /// times the bytes of an element is a multiple of 16. Otherwise the launch ends (on an H200
        /// with an illegal instruction; NVIDIA's documentation does not mention it).
        ///
        /// The copy is asynchronous. It completes its bytes at the mbarrier `done`.
        #[track_caller]
        pub fn load_box<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize>(
            &mut self,
            index: usize,
            boxes: &Boxes<T, BOX_ROWS, BOX_COLS, SWIZZLE, M>,
            place: (u32, u32, u32),
            done: Mbarrier,
        ) {
            self.load_box_to(index, boxes, place, done, 1 << block::rank());
        }

        /// [`load_box`](Self::load_box) to several blocks of the cluster at once (multicast): those
        /// whose bit of `blocks` is set, bit 0 for rank 0. The box is read once and copied to the
        /// corresponding place in each block's shared memory. It completes its bytes at the
        /// mbarrier that corresponds to `done` in each block. This block may be one of them or not.
        ///
        /// Each block must have initialised that mbarrier, must have read the old contents of the
        /// destination, and must not have ended. A [`cluster_pipeline!`](crate::cluster_pipeline)
        /// ensures that. On the CPU the copies to the blocks complete at different times.
        #[track_caller]
        pub fn load_box_multicast<
            const BOX_ROWS: usize,
            const BOX_COLS: usize,
            const SWIZZLE: usize,
        >(
            &mut self,
            index: usize,
            boxes: &Boxes<T, BOX_ROWS, BOX_COLS, SWIZZLE, M>,
            place: (u32, u32, u32),
            done: Mbarrier,
            blocks: u16,
        ) {
            let count = block::current_cluster().blocks;
            assert!(
                blocks != 0 && u32::from(blocks) >> count == 0,
                "a copy to the blocks {blocks:#018b}: the cluster has {count}, a bit each"
            );
            self.load_box_to(index, boxes, place, done, blocks);
        }

        #[track_caller]
        fn load_box_to<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize>(
            &mut self,
            index: usize,
            boxes: &Boxes<T, BOX_ROWS, BOX_COLS, SWIZZLE, M>,
            (matrix, row, col): (u32, u32, u32),
            done: Mbarrier,
            blocks: u16,
        ) {
            let offset = index * size_of::<T>();
            if !self.is_box_allowed(index, boxes, col, Access::Write) {
                return;
            }
            let source = boxes.at((matrix, row, col));
            // SAFETY: inside, as just checked; the map is valid (`TensorMap::new`).
            unsafe {
                let to = self.base.add(index).cast();
                M::load_box((self.tag, offset), boxes.tag(), to, source, done.place(), blocks);
            }
        }

        /// Begins a TMA copy of the elements from `index` on to a box of global memory that begins
        /// at element `(row, col)` of the `matrix`th matrix; `index` and box as in
        /// [`load_box`](Self::load_box). Nothing outside the matrix is written.
        ///
        /// The copy sees what threads have written here if they have executed a
        /// [`fence_proxy_async`](crate::device::fence_proxy_async) after it, and a barrier follows.
        /// The copy is asynchronous and belongs to the thread's next bulk group
        /// ([`bulk`](crate::device::bulk)).
        #[track_caller]
        pub fn store_box<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize>(
            &self,
            index: usize,
            boxes: &BoxesMut<T, BOX_ROWS, BOX_COLS, SWIZZLE, M>,
            (matrix, row, col): (u32, u32, u32),
        ) {
            let BoxesMut(boxes) = boxes;
            if !self.is_box_allowed(index, boxes, col, Access::Read) {
                return;
            }
            let (offset, target) = (index * size_of::<T>(), boxes.at((matrix, row, col)));
            // SAFETY: inside, as just checked; the map is valid (`TensorMapMut::new`).
            unsafe {
                let from = self.base.add(index).cast();
                M::store_box((self.tag, offset), boxes.tag(), from, target);
            }
        }

        /// Whether a box may be at `index` here and begin at that column of the matrix; otherwise
        /// reports it. `access` is what the copy does here.
        #[track_caller]
        fn is_box_allowed<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize>(
            &self,
            index: usize,
            boxes: &Boxes<T, BOX_ROWS, BOX_COLS, SWIZZLE, M>,
            col: u32,
            access: Access,
        ) -> bool {
            // The swizzle permutes 16-byte groups within lines of 128 bytes.
            let lines = if SWIZZLE > 0 { 128 / size_of::<T>() } else { 1 };
            let count = (BOX_ROWS * BOX_COLS).next_multiple_of(lines);
            let is_aligned = (index * size_of::<T>()).is_multiple_of(128);
            if index > self.len || count > self.len - index || !is_aligned {
                M::refuse_shared::<T>(self.tag, reason::<T>(self.len, index, count), access);
                return false;
            }
            if !(col as usize * size_of::<T>()).is_multiple_of(16) {
                let refused = Refused::BoxColumn { col, element: size_of::<T>() };
                let in_global = if access == Access::Write { Access::Read } else { Access::Write };
                M::refuse_global::<T>(boxes.tag(), refused, in_global);
                return false;
            }
            true
        }

        /// The operand with layout `L` from element `index` on, which is a multiple of eight
        /// swizzle spans.
        #[track_caller]
        pub fn operand<L: Layout>(&self, index: usize) -> Operand<T, L> {
            let start = self.base.addr() - block::shared_base().addr();
            let end = start + self.len * size_of::<T>();
            Operand::new(start + index * size_of::<T>(), end)
        }

        /// The corresponding memory of the block of that rank in this cluster.
        #[track_caller]
        pub fn remote(&self, rank: u32) -> Remote<T, M> {
            Remote::new(self.base, self.len, rank)
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> Index<(usize, usize)>
        for Shared<T, ROWS, COLS, M>
    {
        type Output = T;

        #[inline(always)]
        #[track_caller]
        fn index(&self, index: (usize, usize)) -> &T {
            // SAFETY: inside the array, which lives as long as the block.
            unsafe { &*self.at_2d(index, Access::Read) }
        }
    }

    #[cfg_attr(not(feature = "cpu"), signatures)]
    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> IndexMut<(usize, usize)>
        for Shared<T, ROWS, COLS, M>
    {
        #[inline(always)]
        #[track_caller]
        fn index_mut(&mut self, index: (usize, usize)) -> &mut T {
            // SAFETY: inside the array, which lives as long as the block.
            unsafe { &mut *self.at_2d(index, Access::Write) }
        }
    }

    macro_rules! indexed {
        ([$($generics:tt)*] $array:ty) => {
            #[cfg_attr(not(feature = "cpu"), signatures)]
            impl<$($generics)*> $array {
                #[inline(always)]
                #[track_caller]
                fn at(&self, index: usize, count: usize, access: Access) -> *mut T {
                    if !is_allowed(self.base, self.len(), index, count) {
                        let refused = reason::<T>(self.len(), index, count);
                        return M::refuse_shared(self.tag, refused, access);
                    }
                    // SAFETY: inside, as just checked.
                    unsafe {
                        M::shared::<T>(self.tag, index, count, access);
                        self.base.add(index)
                    }
                }

                /// The `N` elements from `index` on, in one access of 16 bytes. Their address must
                /// be a multiple of 16.
                #[inline(always)]
                #[track_caller]
                pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// [`load128`](Self::load128) that the compiler does not move down to where its
                /// elements are used, so that on a GPU they have arrived by then.
                #[inline(always)]
                #[track_caller]
                pub fn load128_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                    self.load128(index)
                }

                /// [`load128_in_order`](Self::load128_in_order) for 8 bytes. Their address must be
                /// a multiple of 8.
                #[inline(always)]
                #[track_caller]
                pub fn load64_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                    const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// Writes `N` elements from `index` on, in one access of 16 bytes. Their address
                /// must be a multiple of 16.
                #[inline(always)]
                #[track_caller]
                pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Write).cast() = values }
                }

                /// Writes `N` elements from `index` on, in one access of 8 bytes. Their address
                /// must be a multiple of 8.
                #[inline(always)]
                #[track_caller]
                pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
                    const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Write).cast() = values }
                }

                /// Writes `N` elements from `index` on, in one access of 4 bytes. Their address
                /// must be a multiple of 4.
                #[inline(always)]
                #[track_caller]
                pub fn store32<const N: usize>(&mut self, index: usize, values: [T; N]) {
                    const { assert!(N * size_of::<T>() == 4, "a 32-bit access moves four bytes") };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Write).cast() = values }
                }

                /// Begins an asynchronous copy of `N` elements from element `from` of `source` to
                /// element `index`: 4, 8 or 16 bytes, whose addresses are multiples of these bytes.
                /// If not `valid`, nothing is read and zeros are written; the addresses are such
                /// multiples all the same.
                ///
                /// The copy has completed after [`wait_group`](crate::device::copies::wait_group),
                /// and other threads see it after a following barrier.
                #[inline(always)]
                #[track_caller]
                pub fn copy_async<const N: usize>(
                    &mut self,
                    index: usize,
                    source: &In<T, M>,
                    from: usize,
                    valid: bool,
                ) {
                    const { four_eight_or_sixteen_bytes::<T, N>() };
                    let values: [T; N] = match valid {
                        true => source.copy_of(from),
                        false => {
                            source.copy_of_nothing::<N>(from);
                            // SAFETY: an element may be of any bits.
                            unsafe { std::mem::zeroed() }
                        }
                    };
                    if !is_allowed(self.base, self.len(), index, N) {
                        let refused = reason::<T>(self.len(), index, N);
                        M::refuse_shared::<T>(self.tag, refused, Access::Write);
                        return;
                    }
                    // SAFETY: inside, as just checked.
                    unsafe { M::copy_async(self.tag, self.base.add(index), index, values) }
                }

                /// A fragment for the warp's tensor cores: 16 x 16 elements (16 x 8 of f32) in four
                /// matrices of eight rows of 16 bytes. Each lane gives the index of the first
                /// element of a row, at a multiple of 16 bytes. All lanes call it. See
                /// [`mma`](crate::mma), for the order of the rows.
                #[track_caller]
                pub fn load_fragment(&self, index: usize) -> Fragment<T::Atom>
                where
                    T: Loaded,
                {
                    let count = const { 16 / size_of::<T>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    let row = unsafe { *self.at(index, count, Access::Read).cast::<[u32; 4]>() };
                    load::exchange::<T>(row, false)
                }

                /// [`load_fragment`](Self::load_fragment) for 16-bit elements, whose matrices are
                /// transposed during the load if `transposed`. All lanes choose alike.
                #[track_caller]
                pub fn load_fragment_either(&self, index: usize, transposed: bool) -> Fragment<T::Atom>
                where
                    T: Half16,
                {
                    // SAFETY: as above: eight elements are sixteen bytes.
                    let row = unsafe { *self.at(index, 8, Access::Read).cast::<[u32; 4]>() };
                    load::exchange::<T>(row, transposed)
                }

                /// An element for atomic operations.
                #[inline(always)]
                #[track_caller]
                pub fn atomic(&self, index: usize) -> AtomicRef<'_, T, M>
                where
                    T: Atomic,
                {
                    let (place, of) = match index < self.len() {
                        // SAFETY: inside, as just checked.
                        true => (unsafe { self.base.add(index) }, Of::Shared(self.tag, index)),
                        false => {
                            let refused = reason::<T>(self.len(), index, 1);
                            (M::refuse_shared(self.tag, refused, Access::Atomic), Of::Outside)
                        }
                    };
                    // SAFETY: inside the array, which lives as long as the block, and aligned like
                    // every element; or memory for accesses outside.
                    unsafe { AtomicRef::new(place, of) }
                }

                /// Adds `value` to an element atomically, and gives the element's old value.
                #[inline(always)]
                #[track_caller]
                pub fn atomic_add(&mut self, index: usize, value: T) -> T
                where
                    T: Atomic,
                {
                    self.atomic(index).add(value)
                }
            }

            #[cfg_attr(not(feature = "cpu"), signatures)]
            impl<$($generics)*> Index<usize> for $array {
                type Output = T;

                #[inline(always)]
                #[track_caller]
                fn index(&self, index: usize) -> &T {
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { &*self.at(index, 1, Access::Read) }
                }
            }

            #[cfg_attr(not(feature = "cpu"), signatures)]
            impl<$($generics)*> IndexMut<usize> for $array {
                #[inline(always)]
                #[track_caller]
                fn index_mut(&mut self, index: usize) -> &mut T {
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { &mut *self.at(index, 1, Access::Write) }
                }
            }
        };
    }

    indexed! {
        [T: Element, const ROWS: usize, const COLS: usize, M: Mode] Shared<T, ROWS, COLS, M>
    }
    indexed! { [T: Element, M: Mode] DynamicShared<T, M> }
}
