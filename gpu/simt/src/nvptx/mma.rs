//! Tensor cores of one warp: `mma.sync`, whose operands and sums are in registers. Compute capability 8.0 and later.
//!
//! ```text
//!   tile.load_fragment::<TRANSPOSED>(row)    16 x 16 elements of an operand from shared memory (`ldmatrix`)
//!   sums.multiply_add(&a, &b)                adds the products of fragments of A and of B (`mma.m16n8k16`)
//! ```
//!
//! A fragment is of an operand's *outer* side, rows of A or columns of B, by 16 steps of k. It comes as four matrices of
//! 8 x 8 elements, to each of whose rows a lane points, lanes 8 i to 8 i + 7 to those of the `i`th:
//!
//! ```text
//!                 rows of the matrices lie                    first two      last two      of each two
//!   plain         along k, one for each outer element         k 0 to 7       k 8 to 15     outer 0 to 7, 8 to 15
//!   TRANSPOSED    along the outer side, one for each step     k 0 to 7       k 8 to 15     outer 0 to 7, 8 to 15
//! ```
//!
//! All lanes of a warp do this together.

use core::{arch::asm, marker::PhantomData};

use super::thread;
pub use crate::operand::Factor;
use crate::operand::Numbers;

/// 16 x 16 elements of an operand, a lane's part: eight.
#[derive(Clone, Copy)]
pub struct Fragment<T> {
    words: [u32; 4],
    of: PhantomData<T>,
}

impl<T: Factor> Fragment<T> {
    /// From the shared address of this lane's row.
    #[inline(always)]
    pub(super) fn load<const TRANSPOSED: bool>(row: u32) -> Self {
        let (a, b, c, d): (u32, u32, u32, u32);
        // SAFETY: inside an array and aligned, and all lanes come here, as the kernel promises.
        unsafe {
            if TRANSPOSED {
                asm!(
                    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{}, {}, {}, {}}}, [{}];",
                    out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) row,
                    options(nostack, preserves_flags, readonly),
                );
            } else {
                asm!(
                    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{}, {}, {}, {}}}, [{}];",
                    out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) row,
                    options(nostack, preserves_flags, readonly),
                );
            }
        }
        Fragment { words: [a, b, c, d], of: PhantomData }
    }
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

    /// Adds the products of 16 steps of k.
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
        ($ty:literal) => {
            asm!(
                concat!(
                    "mma.sync.aligned.m16n8k16.row.col.f32.", $ty, ".", $ty,
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
            Numbers::Bf16 => multiply_add!("bf16"),
            Numbers::F16 => multiply_add!("f16"),
            // Fragments are of elements of two bytes.
            Numbers::Tf32 => {}
        }
    }
}
