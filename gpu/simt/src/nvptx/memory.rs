//! Views of global memory: one pointer in the kernel's parameter list.

use core::{
    arch::asm,
    ops::{Index, IndexMut},
};

use super::atomic::AtomicRef;
use crate::{Atomic, Element};

/// 16 bytes that are moved by one `ld.v4` or `st.v4`. (A copy of an aligned struct becomes two
/// 64-bit moves; a SIMD type stays whole.)
#[derive(Clone, Copy)]
#[repr(simd)]
pub(super) struct Vector128([u32; 4]);

/// 8 bytes, likewise in two 32-bit registers. (A `u64` would first be combined from them.)
#[derive(Clone, Copy)]
#[repr(simd)]
pub(super) struct Vector64(#[allow(dead_code, reason = "moved whole")] [u32; 2]);

impl Vector128 {
    /// From four words.
    #[inline(always)]
    pub(super) fn from_words(words: [u32; 4]) -> Self {
        Vector128(words)
    }

    /// As `N` elements of `T`, sixteen bytes together.
    #[inline(always)]
    pub(super) fn into_array<T: Copy, const N: usize>(self) -> [T; N] {
        const { assert!(N * size_of::<T>() == 16, "a 128-bit access moves sixteen bytes") };
        // SAFETY: equal sizes, and every `T` in a view may hold any bits.
        unsafe { core::mem::transmute_copy(&self) }
    }

    /// From `N` elements of `T`, sixteen bytes together.
    #[inline(always)]
    pub(super) fn from_array<T: Copy, const N: usize>(array: [T; N]) -> Self {
        const { assert!(N * size_of::<T>() == 16, "a 128-bit access moves sixteen bytes") };
        // SAFETY: equal sizes, and a `u32` may hold any bits.
        unsafe { core::mem::transmute_copy(&array) }
    }
}

macro_rules! view {
    ($name:ident) => {
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name<T>(*mut T);

        impl<T: Element> $name<T> {
            #[inline(always)]
            pub fn is_aligned128(&self) -> bool {
                self.0 as usize % 16 == 0
            }

            #[inline(always)]
            pub fn misalignment<const BYTES: usize>(&self) -> usize {
                self.0 as usize % BYTES / size_of::<T>()
            }

            #[inline(always)]
            pub fn load128<const N: usize>(&self, index: usize) -> [T; N] {
                // SAFETY: inside the buffer and aligned, as the kernel promises; not checked here.
                unsafe { *(self.0.add(index) as *const Vector128) }.into_array()
            }

            #[inline(always)]
            pub fn load64<const N: usize>(&self, index: usize) -> [T; N] {
                const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
                // SAFETY: inside the buffer and aligned, as the kernel promises; equal sizes, and
                // every `T` in a view may hold any bits.
                unsafe { core::mem::transmute_copy(&*(self.0.add(index) as *const u64)) }
            }

            #[inline(always)]
            pub fn load128_if<const N: usize>(&self, index: usize, valid: bool) -> [T; N] {
                Vector128::from_words(self.load_words_if(index, valid)).into_array()
            }

            #[inline(always)]
            pub fn load_words_if(&self, index: usize, valid: bool) -> [u32; 4] {
                let (a, b, c, d): (u32, u32, u32, u32);
                // SAFETY: inside the buffer and aligned where it is valid, as the kernel promises.
                unsafe {
                    asm!(
                        "{{ .reg .pred valid; setp.ne.b32 valid, {valid}, 0; \
                         mov.b32 {a}, 0; mov.b32 {b}, 0; mov.b32 {c}, 0; mov.b32 {d}, 0; \
                         @valid ld.global.v4.b32 {{{a}, {b}, {c}, {d}}}, [{from}]; }}",
                        valid = in(reg32) u32::from(valid),
                        from = in(reg64) self.0.wrapping_add(index),
                        // Written before the address is read, so none of them may be where that is.
                        a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                [a, b, c, d]
            }
        }

        impl<T: Element> Index<usize> for $name<T> {
            type Output = T;

            #[inline(always)]
            fn index(&self, index: usize) -> &T {
                // SAFETY: inside the buffer, as the kernel promises; not checked on the GPU.
                unsafe { &*self.0.add(index) }
            }
        }
    };
}

view! { In }

impl<T: Element> In<T> {
    /// The address of an element. It may be outside if it is not used.
    #[inline(always)]
    pub(super) fn address(&self, index: usize) -> *const T {
        self.0.wrapping_add(index)
    }
}

view! { Out }

impl<T: Element> IndexMut<usize> for Out<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        // SAFETY: inside the buffer, as the kernel promises; not checked on the GPU.
        unsafe { &mut *self.0.add(index) }
    }
}

impl<T: Element> Out<T> {
    /// The address of an element. It may be outside if it is not used.
    #[cfg(target_feature = "sm_90a")]
    #[inline(always)]
    pub(super) fn address(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }

    /// The buffer at that address.
    #[inline(always)]
    pub(super) fn from_pointer(pointer: *mut T) -> Self {
        Out(pointer)
    }

    #[inline(always)]
    pub fn store128<const N: usize>(&mut self, index: usize, values: [T; N]) {
        // SAFETY: as in `load128`.
        unsafe { *(self.0.add(index) as *mut Vector128) = Vector128::from_array(values) }
    }

    #[inline(always)]
    pub fn store64<const N: usize>(&mut self, index: usize, values: [T; N]) {
        const { assert!(N * size_of::<T>() == 8, "a 64-bit access moves eight bytes") };
        // SAFETY: as in `load64`.
        unsafe { *(self.0.add(index) as *mut u64) = core::mem::transmute_copy(&values) }
    }

    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        // SAFETY: it reads and writes nothing that a program sees; inside, as the kernel promises.
        unsafe {
            asm!(
                "prefetch.global.L2 [{}];",
                in(reg64) self.0.wrapping_add(index),
                options(nomem, nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    pub fn store_if<const N: usize>(&mut self, index: usize, values: [T; N], valid: bool) {
        let bytes = const { N * size_of::<T>() };
        const {
            assert!(
                matches!(N * size_of::<T>(), 2 | 4 | 8 | 16),
                "two, four, eight or sixteen bytes"
            )
        };
        let place = self.0.wrapping_add(index);
        // SAFETY: inside the buffer and aligned where it is valid, as the kernel promises; equal
        // sizes, of whichever of the four it is.
        unsafe {
            match bytes {
                2 => {
                    let half: u16 = core::mem::transmute_copy(&values);
                    asm!(
                        "{{ .reg .pred valid; setp.ne.b32 valid, {}, 0; @valid st.global.b16 [{}], {}; }}",
                        in(reg32) u32::from(valid), in(reg64) place, in(reg16) half,
                        options(nostack, preserves_flags),
                    );
                }
                4 => {
                    let word: u32 = core::mem::transmute_copy(&values);
                    asm!(
                        "{{ .reg .pred valid; setp.ne.b32 valid, {}, 0; @valid st.global.b32 [{}], {}; }}",
                        in(reg32) u32::from(valid), in(reg64) place, in(reg32) word,
                        options(nostack, preserves_flags),
                    );
                }
                8 => {
                    let words: [u32; 2] = core::mem::transmute_copy(&values);
                    asm!(
                        "{{ .reg .pred valid; setp.ne.b32 valid, {}, 0; \
                         @valid st.global.v2.b32 [{}], {{{}, {}}}; }}",
                        in(reg32) u32::from(valid), in(reg64) place, in(reg32) words[0], in(reg32) words[1],
                        options(nostack, preserves_flags),
                    );
                }
                _ => {
                    let words: [u32; 4] = core::mem::transmute_copy(&values);
                    asm!(
                        "{{ .reg .pred valid; setp.ne.b32 valid, {}, 0; \
                         @valid st.global.v4.b32 [{}], {{{}, {}, {}, {}}}; }}",
                        in(reg32) u32::from(valid), in(reg64) place, in(reg32) words[0], in(reg32) words[1],
                        in(reg32) words[2], in(reg32) words[3],
                        options(nostack, preserves_flags),
                    );
                }
            }
        }
    }

    #[inline(always)]
    pub fn atomic(&self, index: usize) -> AtomicRef<'_, T>
    where
        T: Atomic,
    {
        // SAFETY: inside the buffer, as the kernel promises.
        unsafe { AtomicRef::new(self.0.add(index)) }
    }

    #[inline(always)]
    pub fn atomic_add(&mut self, index: usize, value: T) -> T
    where
        T: Atomic,
    {
        // SAFETY: inside the buffer, as the kernel promises.
        unsafe { T::atomic_add(self.0.add(index), value) }
    }
}

impl Out<u32> {
    #[inline(always)]
    pub fn release_add(&mut self, index: usize, value: u32) {
        // SAFETY: inside the buffer, as the kernel promises. Not `nomem`: no access is moved after
        // it.
        unsafe {
            let place = self.0.add(index);
            asm!("red.release.gpu.global.add.u32 [{}], {};", in(reg64) place, in(reg32) value, options(nostack, preserves_flags));
        }
    }

    #[inline(always)]
    pub fn wait_for_at_least(&self, index: usize, wanted: u32) {
        loop {
            let now: u32;
            // SAFETY: inside the buffer, as the kernel promises. Not `nomem`: no access is moved
            // before it.
            unsafe {
                let place = self.0.add(index);
                asm!("ld.acquire.gpu.global.u32 {}, [{}];", out(reg32) now, in(reg64) place, options(nostack, preserves_flags));
            }
            if now >= wanted {
                return;
            }
        }
    }
}
