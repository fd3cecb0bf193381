//! Products of a warp on tensor cores: `mma.sync`, with operands and accumulators in registers.
//! Compute capability 8.0 and later.
//!
//! ```text
//!   tile.load_fragment(row)                       16 outer elements by 32 bytes along k from shared memory (`ldmatrix`)
//!   tile.load_fragment_either(row, transposed)    the same, or transposed (`ldmatrix.trans`)
//!   Fragment::from_pairs(pairs)                   the same from 16-bit numbers that each lane has loaded by itself
//!   Fragment::rounded(elements)                   the same from f32
//!   sums.multiply_add(&a, &b)                     accumulates products of fragments (`mma.m16n8k16`, for tf32 `.m16n8k8`)
//! ```
//!
//! A fragment has 16 elements of an operand's *outer* dimension (rows of A or columns of B) by 16
//! elements along k, for 16-bit numbers. It is loaded as four matrices of 8 x 8 elements. Lanes 8 i
//! to 8 i + 7 give the addresses of the rows of matrix `i`:
//!
//! ```text
//!                 rows of the matrices are                    first two      last two      of each two
//!   plain         along k, one for each outer element         k 0 to 7       k 8 to 15     outer 0 to 7, 8 to 15
//!   transposed    along the outer side, one for each step     k 0 to 7       k 8 to 15     outer 0 to 7, 8 to 15
//! ```
//!
//! **For f32** it has 8 elements along k, and each element is rounded to the nearest tf32. The 16
//! bytes of a matrix's row hold four elements, and each lane gets one instead of two 16-bit
//! numbers; so plain rows along k have k 0 to 3 and k 4 to 7. A transposed load would transpose
//! halves of elements. So for an MN-major operand each lane loads its four elements by itself:
//!
//! ```text
//!   element          0                1                2                3
//!   outer, k         lane / 4,        lane / 4 + 8,    lane / 4,        lane / 4 + 8,
//!                    lane % 4         lane % 4         lane % 4 + 4     lane % 4 + 4
//! ```
//!
//! **Of 16-bit numbers** a lane that loads its elements by itself has four pairs of neighbours
//! along k:
//!
//! ```text
//!   pair             0                1                2                3
//!   outer            lane / 4         lane / 4 + 8     lane / 4         lane / 4 + 8
//!   first k          lane % 4 * 2     lane % 4 * 2     lane % 4 * 2 + 8 lane % 4 * 2 + 8
//! ```
//!
//! All lanes of a warp do this together.

use core::{arch::asm, marker::PhantomData};

use super::thread;
pub use crate::operand::{Factor, Loaded};
use crate::{Tf32, operand::Numbers};

/// A lane's part of a fragment: of 16 outer elements by 32 bytes along k it has eight 16-bit
/// elements, or four f32.
#[derive(Clone, Copy)]
pub struct Fragment<T> {
    words: [u32; 4],
    of: PhantomData<T>,
}

impl<T: Factor> Fragment<T> {
    /// From the shared address of this lane's row.
    #[inline(always)]
    pub(super) fn load(row: u32) -> Self {
        let (a, b, c, d): (u32, u32, u32, u32);
        // SAFETY: inside an array and aligned, and all lanes come here, as the kernel promises.
        unsafe {
            asm!(
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) row,
                options(nostack, preserves_flags, readonly),
            );
        }
        let words = [a, b, c, d];
        match T::NUMBERS {
            Numbers::Tf32 => {
                Fragment { words: rounded(words.map(f32::from_bits)), of: PhantomData }
            }
            Numbers::Bf16 | Numbers::F16 | Numbers::Half => Fragment { words, of: PhantomData },
        }
    }

    /// From the shared address of this lane's row; the matrices are transposed or not. Where a
    /// constant of the kernel decides, the driver's compiler keeps one of the two instructions.
    #[inline(always)]
    pub(super) fn load_either(row: u32, transposed: bool) -> Self {
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
        Fragment { words: [a, b, c, d], of: PhantomData }
    }

    /// From 16-bit numbers that this lane has loaded: four pairs of neighbours along k.
    #[inline(always)]
    pub fn from_pairs(pairs: [[T; 2]; 4]) -> Self {
        const { assert!(size_of::<T>() == 2, "a register holds two elements") };
        // SAFETY: equal sizes, and a `u32` may hold any bits.
        let words = pairs.map(|pair| unsafe { core::mem::transmute_copy(&pair) });
        Fragment { words, of: PhantomData }
    }
}

impl Fragment<Tf32> {
    /// From elements that this lane has loaded, rounded to the nearest tf32.
    #[inline(always)]
    pub fn rounded(elements: [f32; 4]) -> Self {
        Fragment { words: rounded(elements), of: PhantomData }
    }
}

/// The nearest tf32 numbers, ties away from zero: half of the last digit is added, and the tensor
/// cores ignore the bits below it. Infinities and NaN stay as they are.
///
/// `cvt.rna.tf32.f32` does the same, but ptxas makes three instructions of it (on sm_80 to sm_120):
/// sum, comparison, selection. With the sum under the comparison's predicate there are two, one of
/// which runs on the FMA unit.
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

/// A lane's part of the accumulators of `16 M x 16 N` elements: two neighbours in every eight
/// columns of every eight rows. They take `8 M N` registers.
pub struct Accumulators<const M: usize, const N: usize>([[[f32; 8]; N]; M]);

impl<const M: usize, const N: usize> Accumulators<M, N> {
    /// Zeros.
    #[inline(always)]
    pub fn zeroed() -> Self {
        Accumulators([[[0.0; 8]; N]; M])
    }

    /// Accumulates products over 16 elements along k, or 8 for tf32.
    #[inline(always)]
    pub fn multiply_add<T: Factor>(&mut self, a: &[Fragment<T>; M], b: &[Fragment<T>; N]) {
        for i in 0..M {
            for j in 0..N {
                let [of_0, of_8, behind_0, behind_8] = b[j].words;
                multiply_add::<T, 0>(&mut self.0[i][j], a[i].words, [of_0, behind_0]);
                multiply_add::<T, 4>(&mut self.0[i][j], a[i].words, [of_8, behind_8]);
            }
        }
    }

    /// Calls `act` with the row and column of the first of two neighbouring elements, and both
    /// elements, for this lane's elements in the `PART`th 16 rows. Rows are counted from the part's
    /// first row. A part past the last is empty.
    #[inline(always)]
    pub fn for_each_pair_of<const PART: usize>(&self, mut act: impl FnMut(u32, u32, [f32; 2])) {
        if PART < M {
            let (row, col) = (thread::lane_id() / 4, thread::lane_id() % 4 * 2);
            for j in 0..N {
                let sums = &self.0[PART][j];
                let col = col + 16 * j as u32;
                act(row, col, [sums[0], sums[1]]);
                act(row + 8, col, [sums[2], sums[3]]);
                act(row, col + 8, [sums[4], sums[5]]);
                act(row + 8, col + 8, [sums[6], sums[7]]);
            }
        }
    }
}

/// Accumulates a product of 16 x 8 elements in four sums, from number `FIRST` on.
#[inline(always)]
fn multiply_add<T: Factor, const FIRST: usize>(sums: &mut [f32; 8], a: [u32; 4], b: [u32; 2]) {
    macro_rules! multiply_add {
        ($shape:literal, $ty:literal) => {
            asm!(
                concat!(
                    "mma.sync.aligned.", $shape, ".row.col.f32", $ty, $ty,
                    ".f32 {{{d0}, {d1}, {d2}, {d3}}}, {{{}, {}, {}, {}}}, {{{}, {}}}, {{{d0}, {d1}, {d2}, {d3}}};",
                ),
                in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3],
                in(reg32) b[0], in(reg32) b[1],
                d0 = inout(reg32) sums[FIRST], d1 = inout(reg32) sums[FIRST + 1],
                d2 = inout(reg32) sums[FIRST + 2], d3 = inout(reg32) sums[FIRST + 3],
                options(nomem, nostack, preserves_flags),
            )
        };
    }
    // SAFETY: arithmetic; all lanes call it, as the kernel promises. Not `pure`: it is not moved to
    // where some of them do not run.
    unsafe {
        match T::NUMBERS {
            Numbers::Bf16 => multiply_add!("m16n8k16", ".bf16"),
            Numbers::F16 => multiply_add!("m16n8k16", ".f16"),
            Numbers::Half => multiply_add!("m16n8k16", "/* simt.constant half */.bf16"),
            Numbers::Tf32 => multiply_add!("m16n8k8", ".tf32"),
        }
    }
}
