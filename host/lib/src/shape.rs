//! The sizes of a product.

use std::fmt;

use crate::error::{Error, Result};

/// The most elements of a matrix: an exbibyte of f32. With this limit the bytes of all three
/// matrices, and the memory of verification, add up without overflow in 64 bits.
const MOST_ELEMENTS: u128 = 1 << 58;

/// The three sizes of a product: A is `m x k`, B is `k x n`, C is `m x n`.
///
/// ```
/// use gpu_gemm::Shape;
///
/// let shape = Shape::new(2, 4, 3)?;
/// assert_eq!((shape.m(), shape.n(), shape.k()), (2, 4, 3));
/// assert_eq!([shape.a_len(), shape.b_len(), shape.c_len()], [6, 12, 8]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
}

impl Shape {
    /// The shape with these sizes. Each is below 2^32, and each matrix has at most 2^58 elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size or a matrix beyond that.
    pub fn new(m: u64, n: u64, k: u64) -> Result<Self> {
        let size = |name: &str, value: u64| {
            let limit = || format!("must be a whole number from 0 to {}", u32::MAX);
            u32::try_from(value).map_err(|_| Error::argument(name, value, limit()))
        };
        let shape = Shape { m: size("m", m)?, n: size("n", n)?, k: size("k", k)? };
        let limit = MOST_ELEMENTS;
        for (matrix, rows, cols) in [("m * k", m, k), ("k * n", k, n), ("m * n", m, n)] {
            let elements = u128::from(rows) * u128::from(cols);
            if elements > limit {
                let limit = format!("a matrix of f32 has at most {limit} elements");
                return Err(Error::argument(matrix, elements, limit));
            }
        }
        Ok(shape)
    }

    /// Rows of A and C.
    pub fn m(&self) -> usize {
        self.m as usize
    }

    /// Columns of B and C.
    pub fn n(&self) -> usize {
        self.n as usize
    }

    /// Columns of A and rows of B: the inner size.
    pub fn k(&self) -> usize {
        self.k as usize
    }

    /// Elements of A.
    pub fn a_len(&self) -> usize {
        self.m() * self.k()
    }

    /// Elements of B.
    pub fn b_len(&self) -> usize {
        self.k() * self.n()
    }

    /// Elements of C.
    pub fn c_len(&self) -> usize {
        self.m() * self.n()
    }

    /// The shape of a product of matrices with these rows and columns.
    ///
    /// # Errors
    /// [`Error::Argument`] for sizes that do not fit together; as [`Shape::new`].
    pub(crate) fn of_matrices([a, b, c]: [(usize, usize); 3]) -> Result<Self> {
        for (name, value, other, wanted) in [
            ("B.rows", b.0, "A.cols", a.1),
            ("C.rows", c.0, "A.rows", a.0),
            ("C.cols", c.1, "B.cols", b.1),
        ] {
            if value != wanted {
                return Err(Error::argument(name, value, format!("must be {other} = {wanted}")));
            }
        }
        Shape::new(a.0 as u64, b.1 as u64, a.1 as u64)
    }

    /// Checks that dense matrices A, B and C have these numbers of elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for a length that differs.
    pub fn check_lens(self, [a, b, c]: [usize; 3]) -> Result<()> {
        for (name, len, rule, needed) in [
            ("a", a, "m * k", self.a_len()),
            ("b", b, "k * n", self.b_len()),
            ("c", c, "m * n", self.c_len()),
        ] {
            if len != needed {
                let limit = format!("must be {rule} = {needed} for {self}");
                return Err(Error::argument(format!("{name}.len()"), len, limit));
            }
        }
        Ok(())
    }

    /// The shape with another m.
    pub(crate) fn with_m(self, m: u32) -> Self {
        Shape { m, ..self }
    }

    /// The shape with another k.
    pub(crate) fn with_k(self, k: u32) -> Self {
        Shape { k, ..self }
    }

    /// The shape of `C^T = B^T A^T`.
    pub(crate) fn transposed(self) -> Self {
        Shape { m: self.n, n: self.m, k: self.k }
    }

    /// Bytes of A, B and C together, for f32.
    pub fn bytes(&self) -> u64 {
        self.bytes_of::<f32, f32>()
    }

    /// Bytes of A, B and C together, for A and B of `T` and C of `O`.
    pub fn bytes_of<T, O>(&self) -> u64 {
        let operands = size_of::<T>() * (self.a_len() + self.b_len());
        (operands + size_of::<O>() * self.c_len()) as u64
    }

    /// Floating-point operations of the product: `2 m n k`.
    pub fn flop(&self) -> f64 {
        2.0 * f64::from(self.m) * f64::from(self.n) * f64::from(self.k)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Shape { m, n, k } = self;
        write!(f, "A {m}x{k} · B {k}x{n} = C {m}x{n}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_over_the_limits_are_named() {
        let message = |m, n, k| Shape::new(m, n, k).unwrap_err().to_string();
        assert!(message(1 << 32, 1, 1).starts_with("m = 4294967296: must be"));
        assert!(message(1, 1 << 40, 1).starts_with("n = 1099511627776: must be"));
        assert!(message(1, 1, u64::MAX).starts_with("k = 18446744073709551615: must be"));
        let max = u64::from(u32::MAX);
        assert!(message(max, 1, max).starts_with("m * k = 18446744065119617025: a matrix"));
        assert!(message(1, max, max).starts_with("k * n = 18446744065119617025: a matrix"));
        assert!(Shape::new(max, max, 0).unwrap_err().to_string().starts_with("m * n = "));
    }
}
