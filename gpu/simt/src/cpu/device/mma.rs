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
//! All lanes of a warp do this together. On the CPU a sum is rounded as Hopper rounds it, as far as that is known.

use std::{marker::PhantomData, panic::Location};

use super::warpgroup::format;
use crate::cpu::{
    block,
    tensor_core::warp::{self, EACH, Sums},
};
pub use crate::operand::Factor;

/// 16 x 16 elements of an operand, a lane's part: eight.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<T> {
    words: [u32; 4],
    of: PhantomData<T>,
}

impl<T: Factor> Fragment<T> {
    /// From this lane's row, which the lanes hand to each other.
    #[track_caller]
    pub(super) fn exchange<const TRANSPOSED: bool>(row: [u32; 4]) -> Self {
        let lane = block::linear_index() as usize % 32;
        let words = block::exchange("load_fragment", &row, Location::caller(), |rows| {
            std::array::from_fn(|matrix| {
                let row = |number: usize| rows[8 * matrix + number];
                if !TRANSPOSED {
                    return row(lane / 4)[lane % 4];
                }
                // Two rows' elements of one column.
                let (first, col) = (lane % 4 * 2, lane / 4);
                let element = |number: usize| row(number)[col / 2] >> (col % 2 * 16) & 0xffff;
                element(first) | element(first + 1) << 16
            })
        });
        Fragment { words, of: PhantomData }
    }

    /// As f32, in the order of the registers.
    fn elements(&self) -> [f32; EACH] {
        std::array::from_fn(|i| format::<T>().decode(self.words[i / 2] >> (i % 2 * 16) & 0xffff))
    }
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

    /// Adds the products of 16 steps of k.
    #[track_caller]
    pub fn multiply_add<T: Factor>(&mut self, a: &[Fragment<T>; M], b: &[Fragment<T>; N]) {
        let lane = block::linear_index() as usize % 32;
        let own = a.iter().chain(b).flat_map(|fragment| fragment.elements().map(f32::to_bits));
        let own = own.collect::<Vec<_>>();
        block::exchange("multiply_add", &own, Location::caller(), |all| {
            let elements = all.map(bytemuck::cast_slice::<u32, f32>);
            let whole = elements.iter().all(|elements| elements.len() == (M + N) * EACH);
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
