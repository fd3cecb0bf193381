//! Fragments from rows in shared memory: `ldmatrix`. On the CPU the lanes exchange their rows.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use std::panic::Location;

use super::fragment::Fragment;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::cpu::block;
use crate::{
    Bf16, Element, F16, Half, Tf32,
    atoms::{Atom, M16n8k8, M16n8k16, M16n8k32},
};

/// An element type of which fragments are loaded: 16-bit numbers and i8, which are multiplied as
/// they are, or f32, which is rounded to tf32 when it is loaded.
#[allow(private_bounds, reason = "nobody else implements it")]
pub trait Loaded: Element + Sealed {
    /// The atom that multiplies it.
    type Atom: Atom;

    /// The fragment of what `ldmatrix` gives.
    #[doc(hidden)]
    fn from_words(words: [u32; 4]) -> Fragment<Self::Atom>;
}

/// A 16-bit number.
pub trait Half16: Loaded<Atom: Atom<Sum = f32>> {}

macro_rules! loaded {
    ($($t:ident: $atom:ident;)*) => {$(
        impl Sealed for $t {}

        impl Loaded for $t {
            type Atom = $atom<$t>;

            #[inline(always)]
            fn from_words(words: [u32; 4]) -> Fragment<$atom<$t>> {
                Fragment { registers: words }
            }
        }
    )*};
}

loaded! {
    Bf16: M16n8k16;
    F16: M16n8k16;
    Half: M16n8k16;
    i8: M16n8k32;
}

impl Half16 for Bf16 {}
impl Half16 for F16 {}
impl Half16 for Half {}

impl Sealed for f32 {}

impl Loaded for f32 {
    type Atom = M16n8k8<Tf32>;

    #[inline(always)]
    fn from_words(words: [u32; 4]) -> Fragment<M16n8k8<Tf32>> {
        Fragment::rounded(words.map(f32::from_bits))
    }
}

trait Sealed {}

/// A fragment from the shared address of this lane's row.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn load<T: Loaded>(row: u32) -> Fragment<T::Atom> {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: inside an array and aligned, and all lanes come here, as the kernel promises.
    unsafe {
        asm!(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{}, {}, {}, {}}}, [{}];",
            out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) row,
            options(nostack, preserves_flags, readonly),
        );
    }
    T::from_words([a, b, c, d])
}

/// The same; the matrices are transposed or not. Where a constant of the kernel decides, the
/// driver's compiler keeps one of the two instructions.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn load_either<T: Half16>(row: u32, transposed: bool) -> Fragment<T::Atom> {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: inside an array and aligned, and all lanes call it with the same choice, as the
    // kernel promises.
    unsafe {
        asm!(
            "{{ .reg .pred transposed; setp.ne.u32 transposed, {choice}, 0;",
            "@transposed ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{a}, {b}, {c}, {d}}}, [{row}];",
            "@!transposed ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{a}, {b}, {c}, {d}}}, [{row}]; }}",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d,
            row = in(reg32) row, choice = in(reg32) u32::from(transposed),
            options(nostack, preserves_flags, readonly),
        );
    }
    T::from_words([a, b, c, d])
}

/// A fragment from this lane's row: the lanes exchange their rows. The matrices may be `transposed`
/// only if elements have two bytes.
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
#[track_caller]
pub(crate) fn exchange<T: Loaded>(row: [u32; 4], transposed: bool) -> Fragment<T::Atom> {
    let lane = block::linear_index() as usize % 32;
    let words = block::exchange("load_fragment", &row, Location::caller(), |rows| {
        std::array::from_fn(|matrix| {
            let row = |number: usize| rows[8 * matrix + number];
            if !transposed {
                return row(lane / 4)[lane % 4];
            }
            // The elements of two rows in one column.
            let (first, col) = (lane % 4 * 2, lane / 4);
            let element = |number: usize| row(number)[col / 2] >> (col % 2 * 16) & 0xffff;
            element(first) | element(first + 1) << 16
        })
    });
    T::from_words(words)
}
