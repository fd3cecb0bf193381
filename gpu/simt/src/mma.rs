//! Products of a warp on tensor cores: `mma.sync`, with operands and accumulators in registers.
//! Compute capability 8.0 and later.
//!
//! ```text
//!   tile.load_fragment(row)                       16 outer elements by 32 bytes along k from shared memory (`ldmatrix`)
//!   tile.load_fragment_either(row, transposed)    the same, or transposed (`ldmatrix.trans`)
//!   fragment.exchanged()                          of a fragment of B: the order in which no register is moved
//!   Fragment::from_pairs(pairs)                   the same from 16-bit numbers that each lane has loaded by itself
//!   Fragment::rounded(elements)                   the same from f32
//!   Fragment::from_elements(elements)             16 outer elements by the k-steps of an atom, of f64 that each lane has loaded
//!   sums.multiply_add(&a, &b)                     accumulates products of fragments: the atom's instruction
//!   sums.multiply_add_row(i, &a[i], &b)           the same for one fragment of A
//!   sums.multiply_add_one((i, j), &a[i], &b[j])   the same for one fragment of each
//! ```
//!
//! An *atom* is an instruction, with the types of its factors and sums ([`atoms`](crate::atoms)).
//! A fragment belongs to an atom; accumulators have a type of sums, f32 if nothing is said.
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
//! **Of f64** a lane loads its elements by itself, in either layout, in the same order: two of an
//! atom with 4 k-steps, four with 8, eight with 16.
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
//! **Of i8** a fragment has 32 elements along k, and 16 bytes of a matrix's row sixteen. It is
//! loaded plain.
//!
//! All lanes of a warp call these together. On the CPU sums are rounded as on Hopper, as far as
//! that is known.

mod fragment;
pub(crate) mod load;

#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use std::panic::Location;

use crate::device::thread;
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
use crate::{check::Operation, cpu::block};

pub use crate::atoms::{Atom, M8n8k4, M16n8k4, M16n8k8, M16n8k16, M16n8k32, Sum};
pub use fragment::Fragment;
pub use load::{Half16, Loaded};

/// A lane's part of the accumulators of `16 M x 16 N` elements: two neighbours in every eight
/// columns of every eight rows. They are `8 M N` numbers.
#[derive(Debug)]
pub struct Accumulators<const M: usize, const N: usize, S = f32>([[[S; 8]; N]; M]);

impl<const M: usize, const N: usize, S: Sum> Accumulators<M, N, S> {
    /// Zeros.
    #[inline(always)]
    pub fn zeroed() -> Self {
        Accumulators([[[S::ZERO; 8]; N]; M])
    }

    /// Accumulates products over the k-steps of the atom.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn multiply_add<X: Atom<Sum = S>>(&mut self, a: &[Fragment<X>; M], b: &[Fragment<X>; N]) {
        #[cfg(target_arch = "nvptx64")]
        for i in 0..M {
            for j in 0..N {
                X::multiply_add(&mut self.0[i][j], a[i].registers, b[j].registers);
            }
        }
        #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
        add(&mut self.0, a, b, Location::caller());
        #[cfg(not(any(feature = "cpu", target_arch = "nvptx64")))]
        {
            let _ = (a, b);
            crate::cpu::absent()
        }
    }

    /// Accumulates products of one fragment of A, to the sums of the `row`th 16 rows.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn multiply_add_row<X: Atom<Sum = S>>(
        &mut self,
        row: usize,
        a: &Fragment<X>,
        b: &[Fragment<X>; N],
    ) {
        #[cfg(target_arch = "nvptx64")]
        for j in 0..N {
            X::multiply_add(&mut self.0[row][j], a.registers, b[j].registers);
        }
        #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
        add(
            core::array::from_mut(&mut self.0[row]),
            core::array::from_ref(a),
            b,
            Location::caller(),
        );
        #[cfg(not(any(feature = "cpu", target_arch = "nvptx64")))]
        {
            let _ = (row, a, b);
            crate::cpu::absent()
        }
    }

    /// Accumulates products of one fragment of A and one of B, to the sums of the `row`th 16 rows
    /// and the `col`th 16 columns.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[track_caller]
    pub fn multiply_add_one<X: Atom<Sum = S>>(
        &mut self,
        (row, col): (usize, usize),
        a: &Fragment<X>,
        b: &Fragment<X>,
    ) {
        #[cfg(target_arch = "nvptx64")]
        X::multiply_add(&mut self.0[row][col], a.registers, b.registers);
        #[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
        add(
            core::array::from_mut(core::array::from_mut(&mut self.0[row][col])),
            core::array::from_ref(a),
            core::array::from_ref(b),
            Location::caller(),
        );
        #[cfg(not(any(feature = "cpu", target_arch = "nvptx64")))]
        {
            let _ = (row, col, a, b);
            crate::cpu::absent()
        }
    }

    /// Calls `act` for each sixteen columns of the `PART`th 16 rows, with their number and with
    /// this lane's elements as the instructions have them: 2 of row `lane / 4`, 2 of the eighth row
    /// after it, and the same of the upper eight columns. A part past the last is empty.
    #[inline(always)]
    #[track_caller]
    pub fn for_each_sixteen_of<const PART: usize>(&self, mut act: impl FnMut(usize, &[S; 8])) {
        if PART < M {
            for j in 0..N {
                act(j, &self.0[PART][j]);
            }
        }
    }

    /// Calls `act` with the row and column of the first of two neighbouring elements, and both
    /// elements, for this lane's elements in the `PART`th 16 rows. Rows are counted from the part's
    /// first row. A part past the last is empty.
    #[inline(always)]
    #[track_caller]
    pub fn for_each_pair_of<const PART: usize>(&self, mut act: impl FnMut(u32, u32, [S; 2])) {
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

/// What [`multiply_add`](Accumulators::multiply_add) is on the CPU: the lanes exchange what they
/// have.
#[cfg(all(feature = "cpu", not(target_arch = "nvptx64")))]
fn add<X: Atom, const M: usize, const N: usize>(
    sums: &mut [[[X::Sum; 8]; N]; M],
    a: &[Fragment<X>; M],
    b: &[Fragment<X>; N],
    place: &'static Location<'static>,
) {
    if let Some(checker) = block::checker() {
        checker.multiplied(place, Operation::Mma, X::INSTRUCTIONS * M * N);
    }
    let lane = block::linear_index() as usize % 32;
    let own = a.iter().chain(b).flat_map(|fragment| X::words(&fragment.registers));
    let own = own.collect::<Vec<_>>();
    block::exchange("multiply_add", &own, place, |all| {
        let whole = all.iter().all(|words| words.len() == own.len());
        assert!(whole, "the lanes of a warp multiply as many fragments");
        X::model(lane, all, sums);
    });
}
