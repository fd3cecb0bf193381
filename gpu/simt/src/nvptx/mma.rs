//! Tensor cores of one warp: `mma.sync`, whose operands and sums are in registers. Compute capability 8.0 and later.
//!
//! ```text
//!   tile.load_fragment(row)                       16 outer elements by 32 bytes of k from shared memory (`ldmatrix`)
//!   tile.load_fragment_either(row, transposed)    the same, or of matrices that are transposed on their way (`ldmatrix.trans`)
//!   Fragment::rounded(elements)                   the same of f32 that a lane has loaded by itself
//!   sums.multiply_add(&a, &b)                     adds the products of fragments of A and of B (`mma.m16n8k16`, of tf32 `.m16n8k8`)
//! ```
//!
//! A fragment is of an operand's *outer* side, rows of A or columns of B, by 16 steps of k of numbers of 16 bits. It comes as
//! four matrices of 8 x 8 elements, to each of whose rows a lane points, lanes 8 i to 8 i + 7 to those of the `i`th:
//!
//! ```text
//!                 rows of the matrices lie                    first two      last two      of each two
//!   plain         along k, one for each outer element         k 0 to 7       k 8 to 15     outer 0 to 7, 8 to 15
//!   transposed    along the outer side, one for each step     k 0 to 7       k 8 to 15     outer 0 to 7, 8 to 15
//! ```
//!
//! **Of f32** it is by 8 steps of k, and what is multiplied is each element rounded to tf32, to the nearest. In the sixteen bytes of
//! a matrix's row are four elements, and each lane gets one where it would get two halves: so plain rows along k are k 0 to 3 and
//! k 4 to 7. But what would be transposed are halves of elements. Of an operand that lies across k a lane loads its four by itself:
//!
//! ```text
//!   element          0                1                2                3
//!   outer, k         lane / 4,        lane / 4 + 8,    lane / 4,        lane / 4 + 8,
//!                    lane % 4         lane % 4         lane % 4 + 4     lane % 4 + 4
//! ```
//!
//! All lanes of a warp do this together.

use core::{arch::asm, marker::PhantomData};

use super::thread;
pub use crate::operand::{Factor, Loaded};
use crate::{Tf32, operand::Numbers};

/// 16 outer elements of an operand by 32 bytes of k, a lane's part: eight elements of 16 bits, or four.
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

    /// From the shared address of this lane's row, of matrices that are transposed or not. Of two instructions the driver's compiler
    /// keeps one, where a constant of the kernel says which.
    #[inline(always)]
    pub(super) fn load_either(row: u32, transposed: bool) -> Self {
        let (a, b, c, d): (u32, u32, u32, u32);
        // SAFETY: inside an array and aligned, and all lanes come here with the same choice, as the kernel promises.
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
}

impl Fragment<Tf32> {
    /// Of what this lane has loaded, rounded to the nearest.
    #[inline(always)]
    pub fn rounded(elements: [f32; 4]) -> Self {
        Fragment { words: rounded(elements), of: PhantomData }
    }
}

/// The nearest numbers of tf32, of two that are equally near the one further from zero: half of their last digit is added, and the
/// tensor cores do not look at what is below it. What is infinite, or no number, stays as it is.
///
/// So does `cvt.rna.tf32.f32`, of which ptxas makes three instructions (on sm_80 to sm_120): sum, comparison, and a choice. With
/// the sum under the comparison's predicate they are two, and ptxas gives one of them to the unit of multiply-adds.
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

/// The sums of `16 M x 16 N` elements, a lane's part: two neighbours in every eight columns of every eight rows. They take
/// `8 M N` registers.
pub struct Accumulators<const M: usize, const N: usize>([[[f32; 8]; N]; M]);

impl<const M: usize, const N: usize> Accumulators<M, N> {
    /// Zeros.
    #[inline(always)]
    pub fn zeroed() -> Self {
        Accumulators([[[0.0; 8]; N]; M])
    }

    /// Adds the products of 16 steps of k, of tf32 of 8.
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

    /// Calls `act` with row and column of the first of two elements beside each other, and both, for those of this lane in
    /// the `PART`th 16 rows. Rows are counted from the part's first. There is nothing in a part past the last.
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

/// Adds a product of 16 x 8 elements to four sums, from the `FIRST` on.
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
    // SAFETY: arithmetic; all lanes come here, as the kernel promises. Not `pure`: it stays where all of them are.
    unsafe {
        match T::NUMBERS {
            Numbers::Bf16 => multiply_add!("m16n8k16", ".bf16"),
            Numbers::F16 => multiply_add!("m16n8k16", ".f16"),
            Numbers::Half => multiply_add!("m16n8k16", "/* simt.constant half */.bf16"),
            Numbers::Tf32 => multiply_add!("m16n8k8", ".tf32"),
        }
    }
}
