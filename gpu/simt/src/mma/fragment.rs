//! Fragments of operands, and those that a lane makes of elements that it has loaded by itself.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

use crate::{
    Element, Tf32,
    atoms::{Atom, M16n8k8, M16n8k16},
};

/// A lane's part of a fragment: of 16 outer elements by the k-steps of an atom.
#[cfg_attr(
    not(any(feature = "cpu", target_arch = "nvptx64")),
    allow(dead_code, reason = "no lane runs here")
)]
#[derive(Clone, Copy, Debug)]
pub struct Fragment<X: Atom> {
    pub(super) registers: X::Registers,
}

impl<T: Element> Fragment<M16n8k16<T>>
where
    M16n8k16<T>: Atom<Registers = [u32; 4]>,
{
    /// From 16-bit numbers that this lane has loaded: four pairs of neighbours along k.
    #[inline(always)]
    pub fn from_pairs(pairs: [[T; 2]; 4]) -> Self {
        const { assert!(size_of::<T>() == 2, "a register holds two elements") };
        // SAFETY: equal sizes, and a `u32` may hold any bits.
        let words = pairs.map(|pair| unsafe { core::mem::transmute_copy(&pair) });
        Fragment { registers: words }
    }
}

impl<X: Atom<Registers = [u32; 4]>> Fragment<X> {
    /// From one that was loaded with the second and the third of its matrices exchanged. An
    /// instruction reads eight columns of B from two registers side by side: these are the two that
    /// `ldmatrix` has written side by side. In the other order each pair would be moved.
    #[inline(always)]
    pub fn exchanged(self) -> Self {
        let [a, b, c, d] = self.registers;
        Fragment { registers: [a, c, b, d] }
    }
}

impl Fragment<M16n8k8<Tf32>> {
    /// From elements that this lane has loaded, rounded to the nearest tf32.
    #[inline(always)]
    pub fn rounded(elements: [f32; 4]) -> Self {
        Fragment { registers: rounded(elements) }
    }
}

impl<X: Atom<Factor = f64>> Fragment<X> {
    /// From elements that this lane has loaded.
    #[inline(always)]
    pub fn from_elements(elements: X::Registers) -> Self {
        Fragment { registers: elements }
    }
}

/// The nearest tf32 numbers, ties away from zero: half of the last digit is added, and the tensor
/// cores ignore the bits below it. Infinities and NaN stay as they are.
///
/// `cvt.rna.tf32.f32` does the same, but ptxas makes three instructions of it (on sm_80 to sm_120):
/// sum, comparison, selection. With the sum under the comparison's predicate there are two, one of
/// which runs on the FMA unit.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn rounded(elements: [f32; 4]) -> [u32; 4] {
    elements.map(|element| {
        let mut bits = element.to_bits();
        // SAFETY: arithmetic.
        unsafe {
            asm!(
                "{{ .reg .pred finite; .reg .f32 size;",
                "abs.f32 size, {bits}; setp.lt.f32 finite, size, 0f7F800000;",
                "@finite add.u32 {bits}, {bits}, {half}; }}",
                bits = inout(reg32) bits,
                half = const 1 << 12,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        bits
    })
}

/// The nearest tf32 numbers. (The tensor cores themselves would truncate.)
#[cfg(not(target_arch = "nvptx64"))]
fn rounded(elements: [f32; 4]) -> [u32; 4] {
    elements.map(|element| Tf32::from_f32(element).to_bits())
}
