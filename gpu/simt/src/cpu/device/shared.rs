//! Shared memory: one array for all threads of a block, every access bounds-checked.

use std::{
    ops::{Index, IndexMut},
    panic::Location,
};

use super::{
    cluster::remotes::Remote,
    mbarrier::Mbarrier,
    memory::{four_eight_or_sixteen_bytes, is_allowed, reason, sixteen_bytes, views::In},
    mma::Fragment,
    tensor::maps::{Boxes, BoxesMut},
    warpgroup::Operand,
};
use crate::{
    Atomic, Element,
    cpu::{
        block,
        mode::{Access, Fast, Mode, Refused},
    },
    operand::{Factor, Layout, Loaded},
};

/// An array in shared memory, made by [`shared!`](crate::shared). Rows lie one after another.
pub type Shared<T, const ROWS: usize, const COLS: usize = 1> = arrays::Shared<T, ROWS, COLS, Fast>;
/// The shared memory whose size the launch gives, made by [`dynamic_shared!`](crate::dynamic_shared).
pub type DynamicShared<T> = arrays::DynamicShared<T, Fast>;

/// The types behind the names, generic in how accesses are carried out.
pub(crate) mod arrays {
    use super::*;

    /// An array in shared memory. Rows lie one after another.
    #[derive(Debug)]
    pub struct Shared<T, const ROWS: usize, const COLS: usize, M: Mode> {
        base: *mut T,
        tag: M::Shared,
    }

    impl<T: Element, const ROWS: usize, const COLS: usize, M: Mode> Shared<T, ROWS, COLS, M> {
        /// Sets the array aside, 16-byte aligned.
        #[doc(hidden)]
        #[inline]
        #[track_caller]
        pub fn declare() -> Self {
            const {
                let elements = ROWS.checked_mul(COLS).expect("more elements than can be counted");
                let bytes = elements.checked_mul(size_of::<T>());
                let bytes = bytes.expect("more bytes than can be counted");
                assert!(bytes <= block::SHARED_BYTES, "a block has 227 KiB of shared memory");
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

        /// The same array of the block of that rank in this cluster.
        #[track_caller]
        pub fn remote(&self, rank: u32) -> Remote<T, M> {
            Remote::new(self.base, ROWS * COLS, rank)
        }

        /// The place of an element. A column past the row's end would be an element of the next row: on
        /// the GPU silently so.
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

    /// The shared memory whose size the launch gives.
    #[derive(Debug)]
    pub struct DynamicShared<T, M: Mode> {
        base: *mut T,
        len: usize,
        tag: M::Shared,
    }

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

        /// Begins to copy a box of global memory, whose first element is `(row, col)` of the `matrix`th, to the elements
        /// from `index` on: a multiple of 128 bytes. Zeros take the place of what lies outside. The swizzle is one of the
        /// address. `row` is a signed number: as `u32` those before the first are what `wrapping_sub` makes of them.
        ///
        /// The box must begin at a multiple of sixteen bytes of a row: `col` times an element's bytes is one, also
        /// where it lies outside. The launch ends otherwise (on an H200: an illegal instruction; NVIDIA's documentation
        /// does not say it).
        ///
        /// The copy goes on while the thread does; `done` is told of its bytes when they have come.
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

        /// [`load_box`](Self::load_box) for several blocks of the cluster at once, those whose bit of `blocks` is set (bit 0
        /// for rank 0): the box is read once, and comes to the same place of each block's shared memory; the mbarrier of the
        /// same place as `done` in each block is told of all its bytes. This block may be one of them or not.
        ///
        /// Each of them must have initialised that mbarrier, have had the place read, and not have ended: a
        /// [`cluster_pipeline!`](crate::cluster_pipeline) keeps to that. On the CPU the box comes to each of them at a time
        /// of its own.
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

        /// Begins to copy the elements from `index` on to a box of global memory, whose first element is `(row, col)` of the
        /// `matrix`th; both as for [`load_box`](Self::load_box). What lies outside is not written.
        ///
        /// What threads have written here is copied if they have put a [`fence_proxy_async`](crate::device::fence_proxy_async)
        /// behind it, and a barrier follows. The copy goes on while the thread does: it belongs to the next of its groups
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

        /// May a box lie here from `index` on, and begin at that column? `access` is what the copy does here.
        #[track_caller]
        fn is_box_allowed<const BOX_ROWS: usize, const BOX_COLS: usize, const SWIZZLE: usize>(
            &self,
            index: usize,
            boxes: &Boxes<T, BOX_ROWS, BOX_COLS, SWIZZLE, M>,
            col: u32,
            access: Access,
        ) -> bool {
            // The swizzle exchanges groups of whole lines of 128 bytes.
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

        /// The operand of the tensor cores that lies so from element `index` on: a multiple of eight times the
        /// swizzle's span.
        #[track_caller]
        pub fn operand<L: Layout>(&self, index: usize) -> Operand<T, L>
        where
            T: Factor,
        {
            let start = self.base.addr() - block::shared_base().addr();
            let end = start + self.len * size_of::<T>();
            Operand::new(start + index * size_of::<T>(), end)
        }

        /// The same memory of the block of that rank in this cluster.
        #[track_caller]
        pub fn remote(&self, rank: u32) -> Remote<T, M> {
            Remote::new(self.base, self.len, rank)
        }
    }

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

                /// The `N` elements from `index` on, sixteen bytes in one access. Their address must be a
                /// multiple of sixteen.
                #[inline(always)]
                #[track_caller]
                pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// [`load128`](Self::load128) that stays where it stands: no compiler moves it down to where its
                /// elements are used, so that on a GPU they are there by then.
                #[inline(always)]
                #[track_caller]
                pub fn load128_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                    self.load128(index)
                }

                /// [`load128_in_order`](Self::load128_in_order) of eight bytes, whose address must be a multiple of eight.
                #[inline(always)]
                #[track_caller]
                pub fn load64_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                    const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Read).cast() }
                }

                /// Writes `N` elements from `index` on, sixteen bytes in one access. Their address must be
                /// a multiple of sixteen.
                #[inline(always)]
                #[track_caller]
                pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                    const { sixteen_bytes::<T, N>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Write).cast() = values }
                }

                /// Writes `N` elements from `index` on, eight bytes in one access. Their address must be a multiple of
                /// eight.
                #[inline(always)]
                #[track_caller]
                pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
                    const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { *self.at(index, N, Access::Write).cast() = values }
                }

                /// Begins to copy `N` elements of global memory, from `from` of `source` on, to those from
                /// `index` on: four, eight or sixteen bytes, whose addresses are multiples of so many. Where `valid` does
                /// not hold nothing is read and zeros are written.
                ///
                /// The copy goes on while the thread does. It has come to its end after
                /// [`wait_group`](crate::device::copies::wait_group), and other threads see it after a
                /// barrier that follows.
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
                        // SAFETY: an element may be of any bits.
                        false => unsafe { std::mem::zeroed() },
                    };
                    if !is_allowed(self.base, self.len(), index, N) {
                        let refused = reason::<T>(self.len(), index, N);
                        M::refuse_shared::<T>(self.tag, refused, Access::Write);
                        return;
                    }
                    // SAFETY: inside, as just checked.
                    unsafe { M::copy_async(self.tag, self.base.add(index), index, values) }
                }

                /// A fragment as the warp's tensor cores read it, 16 x 16 elements, of f32 16 x 8, in four matrices of eight rows
                /// of sixteen bytes: each lane names the element that a row begins with, at a multiple of sixteen bytes. All
                /// lanes come here. See [`mma`](crate::device::mma), which has the order of the rows.
                #[track_caller]
                pub fn load_fragment(&self, index: usize) -> Fragment<T::Factor>
                where
                    T: Loaded,
                {
                    let count = const { 16 / size_of::<T>() };
                    // SAFETY: inside the array, which lives as long as the block.
                    let row = unsafe { *self.at(index, count, Access::Read).cast::<[u32; 4]>() };
                    Fragment::exchange(row, false)
                }

                /// [`load_fragment`](Self::load_fragment) of elements of 16 bits, whose matrices are transposed on their way, or
                /// not. All lanes choose alike.
                #[track_caller]
                pub fn load_fragment_either(&self, index: usize, transposed: bool) -> Fragment<T>
                where
                    T: Loaded<Factor = T> + Factor,
                {
                    // SAFETY: as above: eight elements are sixteen bytes.
                    let row = unsafe { *self.at(index, 8, Access::Read).cast::<[u32; 4]>() };
                    Fragment::exchange(row, transposed)
                }

                /// Adds `value` to an element, so that no other thread's addition is lost, and gives what
                /// the element was before.
                #[inline(always)]
                #[track_caller]
                pub fn atomic_add(&mut self, index: usize, value: T) -> T
                where
                    T: Atomic,
                {
                    // SAFETY: inside the array, and aligned like every element.
                    let before = unsafe { T::atomic_add(self.at(index, 1, Access::Atomic), value) };
                    crate::cpu::polls::polls(Location::caller());
                    before
                }
            }

            impl<$($generics)*> Index<usize> for $array {
                type Output = T;

                #[inline(always)]
                #[track_caller]
                fn index(&self, index: usize) -> &T {
                    // SAFETY: inside the array, which lives as long as the block.
                    unsafe { &*self.at(index, 1, Access::Read) }
                }
            }

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
