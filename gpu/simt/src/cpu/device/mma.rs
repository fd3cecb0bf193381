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
//! All lanes of a warp do this together. On the CPU a sum is rounded as Hopper rounds it, as far as that is known.

use std::{marker::PhantomData, panic::Location};

use super::warpgroup::format;
pub use crate::operand::{Factor, Loaded};
use crate::{
    Tf32,
    cpu::{
        block,
        tensor_core::warp::{self, Sums},
    },
    operand::Numbers,
};

/// 16 outer elements of an operand by 32 bytes of k, a lane's part: eight elements of 16 bits, or four.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<T> {
    words: [u32; 4],
    of: PhantomData<T>,
}

impl<T: Factor> Fragment<T> {
    /// From this lane's row, which the lanes hand to each other, of matrices that are transposed or not: only where elements
    /// have two bytes.
    #[track_caller]
    pub(super) fn exchange(row: [u32; 4], transposed: bool) -> Self {
        let lane = block::linear_index() as usize % 32;
        let words = block::exchange("load_fragment", &row, Location::caller(), |rows| {
            std::array::from_fn(|matrix| {
                let row = |number: usize| rows[8 * matrix + number];
                if !transposed {
                    return row(lane / 4)[lane % 4];
                }
                // Two rows' elements of one column.
                let (first, col) = (lane % 4 * 2, lane / 4);
                let element = |number: usize| row(number)[col / 2] >> (col % 2 * 16) & 0xffff;
                element(first) | element(first + 1) << 16
            })
        });
        match T::NUMBERS {
            Numbers::Tf32 => {
                Fragment { words: rounded(words.map(f32::from_bits)), of: PhantomData }
            }
            Numbers::Bf16 | Numbers::F16 | Numbers::Half => Fragment { words, of: PhantomData },
        }
    }

    /// As f32, in the order of the registers.
    fn elements(&self) -> impl Iterator<Item = f32> {
        let format = format::<T>();
        let (in_word, bits) = (4 / format.bytes() as usize, 8 * format.bytes() as usize);
        let parts = move |word: u32| (0..in_word).map(move |i| word >> (i * bits));
        // A format of 16 bits has the lower half.
        self.words.into_iter().flat_map(parts).map(move |bits| format.decode(bits))
    }
}

impl Fragment<Tf32> {
    /// Of what this lane has loaded, rounded to the nearest.
    pub fn rounded(elements: [f32; 4]) -> Self {
        Fragment { words: rounded(elements), of: PhantomData }
    }
}

/// The nearest numbers of tf32. (The tensor cores themselves would cut off.)
fn rounded(elements: [f32; 4]) -> [u32; 4] {
    elements.map(|element| Tf32::from_f32(element).to_bits())
}

/// The sums of `16 M x 16 N` elements, a lane's part: two neighbours in every eight columns of every eight rows. They take
/// `8 M N` registers.
#[derive(Debug)]
pub struct Accumulators<const M: usize, const N: usize>([[Sums; N]; M]);

impl<const M: usize, const N: usize> Accumulators<M, N> {
    /// Zeros.
    pub fn zeroed() -> Self {
        Accumulators([[[0.0; 8]; N]; M])
    }

    /// Adds the products of 16 steps of k, of tf32 of 8.
    #[track_caller]
    pub fn multiply_add<T: Factor>(&mut self, a: &[Fragment<T>; M], b: &[Fragment<T>; N]) {
        let lane = block::linear_index() as usize % 32;
        let own = a.iter().chain(b).flat_map(|fragment| fragment.elements().map(f32::to_bits));
        let own = own.collect::<Vec<_>>();
        block::exchange("multiply_add", &own, Location::caller(), |all| {
            let elements = all.map(bytemuck::cast_slice::<u32, f32>);
            let each = warp::each(format::<T>());
            let whole = elements.iter().all(|elements| elements.len() == (M + N) * each);
            assert!(whole, "the lanes of a warp multiply as many fragments");
            warp::multiply_add(format::<T>(), lane, &elements, &mut self.0);
        });
    }

    /// Calls `act` with row and column of the first of two elements beside each other, and both, for those of this lane in
    /// the `PART`th 16 rows. Rows are counted from the part's first. There is nothing in a part past the last.
    #[track_caller]
    pub fn for_each_pair_of<const PART: usize>(&self, mut act: impl FnMut(u32, u32, [f32; 2])) {
        let lane = block::linear_index() as usize % 32;
        for (j, sums) in self.0.get(PART).into_iter().flatten().enumerate() {
            for i in (0..sums.len()).step_by(2) {
                let (row, col) = warp::accumulator(lane, i);
                act(row as u32, (16 * j + col) as u32, [sums[i], sums[i + 1]]);
            }
        }
    }
}
