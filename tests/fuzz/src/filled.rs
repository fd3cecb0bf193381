//! The operands of a product in this machine's memory, among noise, and the right result.

use tests::gemm::{Number, Place, Random, Side};

use crate::{
    memory::{Memory, integers},
    product::{Product, each, extent},
    want::{Integers, Want},
};

/// A product's matrices in this machine's memory, and the right C.
#[derive(Debug)]
pub struct Filled<T, O> {
    /// A, and B where it is in A's memory.
    pub a: Memory<T>,
    /// B.
    pub b: Memory<T>,
    /// The old C.
    pub c: Memory<O>,
    /// The bias, and one element more.
    pub bias: Memory<O>,
    /// The new C.
    pub want: Want,
}

impl<T: Number, O: Number> Filled<T, O> {
    /// From a seed.
    pub fn new(product: &Product, seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let (places, sizes) = (product.places, product.sizes());
        let lens = [0, 1, 2].map(|i| extent(&places[i], sizes[i]));
        let of_a = if product.shared { lens[0].max(lens[1]) } else { lens[0] };
        let a_integers = integers(random, product.largest, of_a);
        let b_integers =
            if product.shared { Vec::new() } else { integers(random, product.largest, lens[1]) };
        let b_integers = if product.shared { &a_integers } else { &b_integers };
        let c_integers = integers(random, product.largest, lens[2]);
        let [m, n, _] = product.size;
        let of_bias = match product.bias {
            None => 0,
            Some(Side::Row) => m,
            Some(Side::Col) => n,
        };
        let bias_integers = integers(random, product.largest, of_bias);
        // With C at its beginning or its end A's memory has room for it: if that is not refused, it
        // is found.
        let room =
            if product.wrong.is_some() { lens[2] * size_of::<O>() / size_of::<T>() + 2 } else { 0 };
        let mut a = Memory::noise(of_a, places[0].offset, random);
        a.stored.extend(Memory::<T>::noise(room, 0, random).stored);
        let mut b = Memory::noise(lens[1], places[1].offset, random);
        let mut c = Memory::noise(lens[2], places[2].offset, random);
        let mut bias = Memory::noise(of_bias + 1, 0, random);
        // What is not read is noise.
        if product.multiplies() {
            a.fill(&places[0], sizes[0], &a_integers);
            match product.shared {
                true => a.fill(&places[1], sizes[1], &a_integers),
                false => b.fill(&places[1], sizes[1], b_integers),
            }
        }
        if product.beta != 0.0 {
            c.fill(&places[2], sizes[2], &c_integers);
        }
        let of_bias = Place::strided([0, 1]);
        bias.fill(&of_bias, (1, bias_integers.len()), &bias_integers);
        let at = |i: usize, of: &[i64]| logical(&places[i], sizes[i], product.inverted[i], of);
        let integers = Integers {
            a: at(0, &a_integers),
            b: at(1, b_integers),
            c: at(2, &c_integers),
            bias: bias_integers,
        };
        let want = Want::new::<O>(product, &integers);
        Filled { a, b, c, bias, want }
    }
}

impl<T: Number, O: Number> Filled<T, O> {
    /// Replaces the elements of A and B by fractions. Their sums are rounded, so that C's bits tell
    /// in which order they were added.
    pub fn with_fractions(mut self, product: &Product, seed: u64) -> Self {
        if product.multiplies() {
            let (places, sizes) = (product.places, product.sizes());
            // By place, so that two matrices in one memory agree.
            let value = |at: usize| {
                let bits =
                    Random::new(seed ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).next();
                (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
            };
            self.a.fill_by(&places[0], sizes[0], value);
            let b = if product.shared { &mut self.a } else { &mut self.b };
            b.fill_by(&places[1], sizes[1], value);
        }
        self
    }
}

/// The elements by product, row and column, of values by their distance from the first in memory.
fn logical(place: &Place, size: (usize, usize), inverted: [bool; 2], of: &[i64]) -> Vec<i64> {
    let mut values = Vec::with_capacity(place.count.unwrap_or(1) * size.0 * size.1);
    each(place, size, |_, at| values.push(of[at]));
    turned(&values, size, inverted)
}

/// Elements in the order in which they lie as those of the matrix, or the other way round.
pub fn turned<V: Copy>(
    values: &[V],
    (rows, cols): (usize, usize),
    [by_rows, by_cols]: [bool; 2],
) -> Vec<V> {
    if !by_rows && !by_cols {
        return values.to_vec();
    }
    let from = |row: usize, col: usize| {
        let row = if by_rows { rows - 1 - row } else { row };
        let col = if by_cols { cols - 1 - col } else { col };
        values[row * cols + col]
    };
    (0..rows * cols).map(|at| from(at / cols, at % cols)).collect()
}
