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
//! All lanes of a warp call these together. On the CPU sums are rounded as on Hopper, as far as
//! that is known.

use std::{marker::PhantomData, panic::Location};

#[cfg(not(feature = "cpu"))]
use simt_macros::signatures;

#[cfg(feature = "cpu")]
use super::warpgroup::format;
use crate::Tf32;
pub use crate::operand::{Factor, Loaded};
#[cfg(feature = "cpu")]
use crate::{
    check::Operation,
    cpu::{
        block,
        tensor_core::warp::{self, Sums},
    },
    operand::Numbers,
};

/// A lane's part of a fragment: of 16 outer elements by 32 bytes along k it has eight 16-bit
/// elements, or four f32.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<T> {
    words: [u32; 4],
    of: PhantomData<T>,
}

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<T: Factor> Fragment<T> {
    /// From this lane's row: the lanes exchange their rows. The matrices may be `transposed` only
    /// if elements have two bytes.
    #[track_caller]
    pub(super) fn exchange(row: [u32; 4], transposed: bool) -> Self {
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
        match T::NUMBERS {
            Numbers::Tf32 => {
                Fragment { words: rounded(words.map(f32::from_bits)), of: PhantomData }
            }
            Numbers::Bf16 | Numbers::F16 | Numbers::Half => Fragment { words, of: PhantomData },
        }
    }

    /// From 16-bit numbers that this lane has loaded: four pairs of neighbours along k.
    pub fn from_pairs(pairs: [[T; 2]; 4]) -> Self {
        const { assert!(size_of::<T>() == 2, "a register holds two elements") };
        // SAFETY: equal sizes, and a `u32` may hold any bits.
        let words = pairs.map(|pair| unsafe { std::mem::transmute_copy(&pair) });
        Fragment { words, of: PhantomData }
    }

    /// Its elements as f32, in the order of the registers.
    fn elements(&self) -> impl Iterator<Item = f32> {
        let format = format::<T>();
        let (in_word, bits) = (4 / format.bytes() as usize, 8 * format.bytes() as usize);
        let parts = move |word: u32| (0..in_word).map(move |i| word >> (i * bits));
        // A 16-bit number is in the lower half.
        self.words.into_iter().flat_map(parts).map(move |bits| format.decode(bits))
    }
}

impl Fragment<Tf32> {
    /// From elements that this lane has loaded, rounded to the nearest tf32.
    pub fn rounded(elements: [f32; 4]) -> Self {
        Fragment { words: rounded(elements), of: PhantomData }
    }
}

/// The nearest tf32 numbers. (The tensor cores themselves would truncate.)
fn rounded(elements: [f32; 4]) -> [u32; 4] {
    elements.map(|element| Tf32::from_f32(element).to_bits())
}

/// A lane's part of the accumulators of `16 M x 16 N` elements: two neighbours in every eight
/// columns of every eight rows. They take `8 M N` registers.
#[cfg_attr(not(feature = "cpu"), signatures)]
#[derive(Debug)]
pub struct Accumulators<const M: usize, const N: usize>([[Sums; N]; M]);

#[cfg_attr(not(feature = "cpu"), signatures)]
impl<const M: usize, const N: usize> Accumulators<M, N> {
    /// Zeros.
    pub fn zeroed() -> Self {
        Accumulators([[[0.0; 8]; N]; M])
    }

    /// Accumulates products over 16 elements along k, or 8 for tf32.
    #[track_caller]
    pub fn multiply_add<T: Factor>(&mut self, a: &[Fragment<T>; M], b: &[Fragment<T>; N]) {
        if let Some(checker) = block::checker() {
            // An instruction multiplies half a fragment of B.
            checker.multiplied(Location::caller(), Operation::Mma, 2 * M * N);
        }
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

    /// Calls `act` with the row and column of the first of two neighbouring elements, and both
    /// elements, for this lane's elements in the `PART`th 16 rows. Rows are counted from the part's
    /// first row. A part past the last is empty.
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
