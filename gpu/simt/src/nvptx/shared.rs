//! Shared memory: arrays that all threads of a block share.

use core::{
    arch::asm,
    ops::{Index, IndexMut},
};

#[cfg(target_feature = "sm_90a")]
use super::{Boxes, BoxesMut, Mbarrier, Out, cluster::Remote, warpgroup::Operand};
use super::{
    atomic::AtomicRef,
    memory::{In, Vector64, Vector128},
    shared_space::{declare_array, simt_dynamic_shared_pointer, simt_shared_address},
};
#[cfg(target_feature = "sm_90a")]
use crate::operand::Layout;
use crate::{
    Atomic, Element,
    mma::{Fragment, Half16, Loaded, load},
};

pub struct Shared<T, const ROWS: usize, const COLS: usize = 1>(*mut T);

impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn declare() -> Self {
        Shared(declare_array::<T, ROWS, COLS>())
    }

    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.0
    }
}

#[cfg(target_feature = "sm_90a")]
impl<T: Element, const ROWS: usize, const COLS: usize> Shared<T, ROWS, COLS> {
    #[inline(always)]
    pub fn remote(&self, rank: u32) -> Remote<T> {
        Remote::new(simt_shared_address(self.0.cast()), rank)
    }
}

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

    #[inline(always)]
    pub fn load_bulk(
        &mut self,
        index: usize,
        source: &In<T>,
        from: usize,
        count: usize,
        done: Mbarrier,
    ) {
        // SAFETY: both inside and aligned, as the kernel promises. Not `nomem`: it is not moved
        // before what precedes it.
        unsafe {
            asm!(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
                in(reg32) simt_shared_address(self.0.add(index).cast()),
                in(reg64) source.address(from),
                in(reg32) (count * size_of::<T>()) as u32,
                in(reg32) done.address(),
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    pub fn store_bulk(&self, index: usize, target: &mut Out<T>, to: usize, count: usize) {
        // SAFETY: as above.
        unsafe {
            asm!(
                "cp.async.bulk.global.shared::cta.bulk_group [{}], [{}], {};",
                in(reg64) target.address(to),
                in(reg32) simt_shared_address(self.0.add(index).cast()),
                in(reg32) (count * size_of::<T>()) as u32,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    pub fn operand<L: Layout>(&self, index: usize) -> Operand<T, L> {
        let start = simt_shared_address(self.0.cast());
        Operand::new(start, index as u32 * size_of::<T>() as u32)
    }

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
            #[inline(always)]
            pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: inside the array and aligned, as the kernel promises.
                unsafe { *(self.0.add(index) as *const Vector128) }.into_array()
            }

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

            #[inline(always)]
            pub fn load64_in_order<const N: usize>(&self, index: usize) -> [T; N] {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: inside the array and aligned, as the kernel promises.
                let place = simt_shared_address(unsafe { self.0.add(index) }.cast());
                if size_of::<T>() == 8 {
                    let word: u64;
                    // SAFETY: as below. One register: ptxas would move the halves of two together.
                    unsafe {
                        asm!("ld.volatile.shared.b64 {}, [{}];", out(reg64) word, in(reg32) place,
                            options(nostack, preserves_flags, readonly));
                        return core::mem::transmute_copy(&word);
                    }
                }
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

            #[inline(always)]
            pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
                // SAFETY: as in `load128`.
                unsafe { *(self.0.add(index) as *mut Vector128) = Vector128::from_array(values) }
            }

            #[inline(always)]
            pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: equal sizes; inside the array and aligned, as the kernel promises.
                unsafe {
                    *(self.0.add(index) as *mut Vector64) = core::mem::transmute_copy(&values);
                }
            }

            #[inline(always)]
            pub fn store32<const N: usize>(&mut self, index: usize, values: [T; N]) {
                const { assert!(N * size_of::<T>() == 4, "a 32-bit access moves four bytes") };
                // SAFETY: equal sizes; inside the array and aligned, as the kernel promises.
                unsafe { *(self.0.add(index) as *mut u32) = core::mem::transmute_copy(&values) }
            }

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

            #[inline(always)]
            pub fn load_fragment(&self, index: usize) -> Fragment<T::Atom>
            where
                T: Loaded,
            {
                // SAFETY: inside the array and aligned, as the kernel promises.
                let row = simt_shared_address(unsafe { self.0.add(index) }.cast());
                load::load::<T>(row)
            }

            #[inline(always)]
            pub fn load_fragment_either(&self, index: usize, transposed: bool) -> Fragment<T::Atom>
            where
                T: Half16,
            {
                // SAFETY: as above.
                let row = simt_shared_address(unsafe { self.0.add(index) }.cast());
                load::load_either::<T>(row, transposed)
            }

            #[inline(always)]
            pub fn atomic(&self, index: usize) -> AtomicRef<'_, T>
            where
                T: Atomic,
            {
                // SAFETY: inside the array, as the kernel promises.
                unsafe { AtomicRef::new(self.0.add(index)) }
            }

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
