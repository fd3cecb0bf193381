//! Shared memory: one array for all threads of a block.

use core::{
    arch::asm,
    ops::{Index, IndexMut},
};

#[cfg(target_feature = "sm_90a")]
use super::{Boxes, BoxesMut, Mbarrier, cluster::Remote, warpgroup::Operand};
use super::{
    memory::{In, Vector64, Vector128},
    mma::Fragment,
};
#[cfg(target_feature = "sm_90a")]
use crate::operand::Layout;
use crate::{
    Atomic, Element,
    operand::{Factor, Loaded},
};

unsafe extern "C" {
    // device.ll
    safe fn simt_shared_pointer(address: u32) -> *mut u8;
    safe fn simt_dynamic_shared_pointer() -> *mut u8;
    pub(super) safe fn simt_shared_address(pointer: *mut u8) -> u32;
}

/// An array in shared memory, made by [`shared!`]. Rows lie one after another.
pub struct Shared<T, const ROWS: usize, const COLS: usize = 1>(*mut T);

impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    /// Sets the array aside, 16-byte aligned.
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        let address: u32;
        // SAFETY: declares a symbol of the PTX block around it and takes its address. Not `pure`: each
        // declaration is an array of its own.
        unsafe {
            asm!(
                "{{ .shared .align 16 .b8 array[{bytes}]; mov.u32 {address}, array; }}",
                bytes = const ROWS * COLS * size_of::<T>(),
                address = out(reg32) address,
                options(nomem, nostack, preserves_flags),
            )
        };
        Shared(simt_shared_pointer(address).cast())
    }

    /// The first element's address, for kernels in Rust-CUDA's raw-pointer idiom.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0
    }
}

#[cfg(target_feature = "sm_90a")]
impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    /// The same array of the block of that rank in this cluster.
    #[inline(always)]
    pub fn remote(&self, rank: u32) -> Remote<T> {
        Remote::new(simt_shared_address(self.0.cast()), rank)
    }
}

/// The shared memory whose size the launch gives, made by [`dynamic_shared!`].
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
    /// Begins to copy a box of global memory, whose first element is `(row, col)` of the `matrix`th, to the elements from
    /// `index` on: a multiple of 128 bytes. Zeros take the place of what lies outside. The swizzle is one of the address. `row`
    /// is a signed number: as `u32` those before the first are what `wrapping_sub` makes of them.
    ///
    /// The box must begin at a multiple of sixteen bytes of a row: `col` times an element's bytes is one, also where it
    /// lies outside. The launch ends otherwise (on an H200: an illegal instruction; NVIDIA's documentation does not say
    /// it).
    ///
    /// The copy goes on while the thread does; `done` is told of its bytes when they have come.
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

    /// [`load_box`](Self::load_box) for several blocks of the cluster at once, those whose bit of `blocks` is set (bit 0 for
    /// rank 0): the box is read once, and comes to the same place of each block's shared memory; the mbarrier of the same
    /// place as `done` in each block is told of all its bytes. This block may be one of them or not.
    ///
    /// Each of them must have initialised that mbarrier, have had the place read, and not have ended: a
    /// [`cluster_pipeline!`](crate::cluster_pipeline) keeps to that.
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

    /// Begins to copy the elements from `index` on to a box of global memory, whose first element is `(row, col)` of the
    /// `matrix`th; both as for [`load_box`](Self::load_box). What lies outside is not written.
    ///
    /// What threads have written here is copied if they have put a [`fence_proxy_async`](super::fence_proxy_async) behind it,
    /// and a barrier follows. The copy goes on while the thread does: it belongs to the next of its groups
    /// ([`bulk`](super::bulk)).
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

    /// The operand of the tensor cores that lies so from element `index` on: a multiple of eight times the swizzle's
    /// span.
    #[inline(always)]
    pub fn operand<L: Layout>(&self, index: usize) -> Operand<T, L>
    where
        T: Factor,
    {
        let start = simt_shared_address(self.0.cast());
        Operand::new(start, index as u32 * size_of::<T>() as u32)
    }

    /// The same memory of the block of that rank in this cluster.
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
            /// The `N` elements from `index` on, sixteen bytes in one access. Their address must be a
            /// multiple of sixteen.
            #[inline(always)]
            pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: inside the array and aligned, as the kernel promises.
                unsafe { *(self.0.add(index) as *const Vector128) }.into_array()
            }

            /// [`load128`](Self::load128) that stays where it stands: neither compiler moves it down to where its
            /// elements are used, so that they are there by then.
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

            /// [`load128_in_order`](Self::load128_in_order) of eight bytes, whose address must be a multiple of eight.
            #[inline(always)]
            pub fn load64_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: inside the array and aligned, as the kernel promises.
                let place = simt_shared_address(unsafe { self.0.add(index) }.cast());
                let (a, b): (u32, u32);
                // SAFETY: as above, and volatile for the same reason; equal sizes, and every `T` may hold any bits.
                unsafe {
                    asm!(
                        "ld.volatile.shared.v2.b32 {{{}, {}}}, [{}];",
                        out(reg32) a, out(reg32) b, in(reg32) place,
                        options(nostack, preserves_flags, readonly),
                    );
                    core::mem::transmute_copy(&[a, b])
                }
            }

            /// Writes `N` elements from `index` on, sixteen bytes in one access. Their address must be
            /// a multiple of sixteen.
            #[inline(always)]
            pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                // SAFETY: as in `load128`.
                unsafe { *(self.0.add(index) as *mut Vector128) = Vector128::from_array(values) }
            }

            /// Writes `N` elements from `index` on, eight bytes in one access. Their address must be a multiple of
            /// eight.
            #[inline(always)]
            pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: equal sizes; inside the array and aligned, as the kernel promises.
                unsafe {
                    *(self.0.add(index) as *mut Vector64) = core::mem::transmute_copy(&values);
                }
            }

            /// Begins to copy `N` elements of global memory, from `from` of `source` on, to those from
            /// `index` on: four, eight or sixteen bytes, whose addresses are multiples of so many. Where `valid` does not
            /// hold nothing is read and zeros are written.
            ///
            /// The copy goes on while the thread does. It has come to its end after
            /// [`wait_group`](super::copies::wait_group), and other threads see it after a barrier that
            /// follows.
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
                // Zeros fill what the source does not.
                let read = if valid { bytes } else { 0 };
                // SAFETY: inside the array and the buffer and aligned, as the kernel promises; of a copy
                // of no bytes the source is not read.
                unsafe {
                    let to = simt_shared_address(self.0.add(index).cast());
                    let from = source.address(from);
                    // Sixteen bytes go past the first-level cache, which they would not be read from.
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

            /// A fragment as the warp's tensor cores read it, 16 x 16 elements, of f32 16 x 8, in four matrices of eight rows of
            /// sixteen bytes: each lane names the element that a row begins with, at a multiple of sixteen bytes. All lanes come
            /// here. See [`mma`](super::mma), which has the order of the rows.
            #[inline(always)]
            pub fn load_fragment(&self, index: usize) -> Fragment<T::Factor>
            where
                T: Loaded,
            {
                // SAFETY: inside the array and aligned, as the kernel promises.
                let row = simt_shared_address(unsafe { self.0.add(index) }.cast());
                Fragment::load(row)
            }

            /// [`load_fragment`](Self::load_fragment) of elements of 16 bits, whose matrices are transposed on their way, or not. All
            /// lanes choose alike.
            #[inline(always)]
            pub fn load_fragment_either(&self, index: usize, transposed: bool) -> Fragment<T>
            where
                T: Loaded<Factor = T> + Factor,
            {
                // SAFETY: as above.
                let row = simt_shared_address(unsafe { self.0.add(index) }.cast());
                Fragment::load_either(row, transposed)
            }

            /// Adds `value` to an element, so that no other thread's addition is lost, and gives what
            /// the element was before.
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
