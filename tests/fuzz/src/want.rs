//! The right C, by integers.

use gpu_gemm::Activation;
use tests::gemm::{Number, Side, activated};

use crate::product::Product;

/// The integers of a product, in the order of its elements: product by product, row by row. They
/// need not be those of an operand that is not read.
#[derive(Debug)]
pub struct Integers {
    /// A.
    pub a: Vec<i64>,
    /// B.
    pub b: Vec<i64>,
    /// The old C.
    pub c: Vec<i64>,
    /// The bias.
    pub bias: Vec<i64>,
}

/// C's elements.
#[derive(Debug)]
pub struct Want {
    /// The exact ones, of a smooth activation those in float64.
    pub values: Vec<f64>,
    /// How far from these they may be: of a smooth activation alone.
    pub bounds: Option<Vec<f64>>,
}

impl Want {
    /// Of a product with a C of `O`.
    pub fn new<O: Number>(product: &Product, integers: &Integers) -> Self {
        let sums = match product.multiplies() {
            true => sums(product, integers),
            false => vec![0; integers.c.len()],
        };
        let [_, n, _] = product.size;
        let exact = sums.into_iter().enumerate().map(|(at, sum)| {
            let (row, col) = (at / n % product.size[0], at % n);
            let mut value = product.alpha * sum as f64;
            if product.beta != 0.0 {
                value += product.beta * integers.c[at] as f64;
            }
            value += match product.bias {
                None => 0.0,
                Some(Side::Row) => integers.bias[row] as f64,
                Some(Side::Col) => integers.bias[col] as f64,
            };
            value
        });
        match product.activation {
            Activation::Identity => Want { values: exact.collect(), bounds: None },
            Activation::Relu => Want { values: exact.map(|x| x.max(0.0)).collect(), bounds: None },
            other => {
                let both = exact.map(|x| {
                    let (value, bound) = activated::<O>(other, x, 0.0);
                    let is_rounded = size_of::<O>() < size_of::<O::Sum>();
                    let more =
                        if is_rounded { O::U * (value.abs() + bound) + O::TINY } else { 0.0 };
                    (value, bound + more)
                });
                let (values, bounds) = both.unzip();
                Want { values, bounds: Some(bounds) }
            }
        }
    }

    /// Checks the elements, and that those that must be exact have the right bits. (Of a zero any
    /// sign: tiles are padded with zeros.)
    ///
    /// # Errors
    /// The first wrong element.
    pub fn check<O: Number>(&self, product: &Product, got: &[O]) -> Result<(), String> {
        let [m, n, _] = product.size;
        for (at, got) in got.iter().enumerate() {
            let (value, want): (f64, f64) = ((*got).into(), self.values[at]);
            let is_right = match &self.bounds {
                None => value == O::nearest(want).into(),
                Some(bounds) => (value - want).abs() <= bounds[at],
            };
            if !is_right {
                let (i, row, col) = (at / (m * n), at / n % m, at % n);
                return Err(format!(
                    "product {i}, row {row}, column {col}: {value}, and {want} is right"
                ));
            }
        }
        Ok(())
    }
}

/// A B.
fn sums(product: &Product, Integers { a, b, .. }: &Integers) -> Vec<i64> {
    let [m, n, k] = product.size;
    let mut sums = vec![0; product.count() * m * n];
    for i in 0..product.count() {
        for row in 0..m {
            let to = &mut sums[(i * m + row) * n..][..n];
            for p in 0..k {
                let (x, from) = (a[(i * m + row) * k + p], &b[(i * k + p) * n..][..n]);
                to.iter_mut().zip(from).for_each(|(sum, y)| *sum += x * y);
            }
        }
    }
    sums
}
