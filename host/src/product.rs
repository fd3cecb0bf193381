//! A lesson's product, `C = A B`, launched on any device at any size.

use std::fmt;

use gpu::registry::{self, Entry, Product};
use simt::{LaunchConfig, Limits};

use crate::{
    buffer::{BufferView, BufferViewMut},
    error::{Error, Result},
    gemm::{Kernel, execute},
    launch::Stream,
    matrix::Matrix,
    names::must_be_a_kernel_of,
};

/// Elements of a matrix at most: an exbibyte of f32. So the bytes of all three, and what verification needs
/// beside them, can be added up in 64 bits.
const MOST_ELEMENTS: u128 = 1 << 58;

/// The three sizes of a product: A is `m x k`, B is `k x n`, C is `m x n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

impl Shape {
    /// Checks the sizes: each below 2^32, and each matrix small enough to be addressed.
    ///
    /// # Errors
    /// [`Error::Argument`], naming the size or the matrix, its value and the limit.
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

    /// The same with another k.
    pub(crate) fn with_k(self, k: u32) -> Self {
        Shape { k, ..self }
    }

    /// That of `B^T A^T = C^T`.
    pub(crate) fn transposed(self) -> Self {
        Shape { m: self.n, n: self.m, k: self.k }
    }

    /// Bytes of A, B and C of f32 together.
    pub fn bytes(&self) -> u64 {
        self.bytes_of::<f32, f32>()
    }

    /// Bytes of A and B of `T`, and of C of `O`, together.
    pub fn bytes_of<T, O>(&self) -> u64 {
        let operands = size_of::<T>() * (self.a_len() + self.b_len());
        (operands + size_of::<O>() * self.c_len()) as u64
    }

    /// Floating-point operations of the product: a multiplication and an addition for each of m n k.
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

/// The product's kernel of that name.
///
/// # Errors
/// [`Error::Argument`], with the names that there are.
pub fn find(name: &str) -> Result<&'static Entry> {
    let mut known = registry::products().map(|(entry, _)| entry);
    known.find(|entry| entry.name() == name).ok_or_else(|| {
        let names = registry::products().map(|(entry, _)| entry.name());
        let names = names.collect::<Vec<_>>();
        Error::argument("kernel", name, must_be_a_kernel_of(name, &names))
    })
}

/// `C = A B`. An empty C launches nothing; with `k = 0` C becomes zero.
///
/// # Errors
/// [`Error::Argument`] for matrices that do not fit together, or that are not dense and row-major, which
/// is all that the lessons' kernels take; then as [`Stream::launch`].
pub fn multiply(
    stream: &Stream,
    entry: &'static Entry,
    a: &Matrix<f32>,
    b: &Matrix<f32>,
    c: &mut Matrix<f32>,
) -> Result<()> {
    let shape = shape_of(entry, a, b, c)?;
    let (a, b, c) = (a.buffer().all(), b.buffer().all(), c.buffer_mut());
    multiply_views(stream, entry, shape, a, b, c)
}

/// The sizes of a product of these matrices.
///
/// # Errors
/// [`Error::Argument`], as [`multiply`].
pub(crate) fn shape_of(
    entry: &'static Entry,
    a: &Matrix<f32>,
    b: &Matrix<f32>,
    c: &Matrix<f32>,
) -> Result<Shape> {
    dense_shape(entry.name(), a, b, c)
}

/// The same for a product that is known as `who`.
pub(crate) fn dense_shape(
    who: &str,
    a: &Matrix<f32>,
    b: &Matrix<f32>,
    c: &Matrix<f32>,
) -> Result<Shape> {
    for (name, matrix) in [("A", a), ("B", b), ("C", c)] {
        if !matrix.is_dense_row_major() {
            let (layout, leading) = (matrix.layout(), matrix.leading_dimension());
            let limit = format!("{who} takes dense row-major matrices");
            let value = format!("{layout:?} with leading dimension {leading}");
            return Err(Error::argument(name, value, limit));
        }
    }
    for (name, value, other, wanted) in [
        ("B.rows", b.rows(), "A.cols", a.cols()),
        ("C.rows", c.rows(), "A.rows", a.rows()),
        ("C.cols", c.cols(), "B.cols", b.cols()),
    ] {
        if value != wanted {
            return Err(Error::argument(name, value, format!("must be {other} = {wanted}")));
        }
    }
    Shape::new(a.rows() as u64, b.cols() as u64, a.cols() as u64)
}

/// `C = A B` on parts of buffers, each dense and row-major.
///
/// A launch has at most 65535 rows of blocks. A taller product takes as many launches as it needs.
///
/// # Errors
/// [`Error::Argument`] for a view of another length than the shape asks for; then as [`Stream::launch`].
pub fn multiply_views(
    stream: &Stream,
    entry: &'static Entry,
    shape: Shape,
    a: BufferView<f32>,
    b: BufferView<f32>,
    c: BufferViewMut<f32>,
) -> Result<()> {
    let product = of_views(entry)?;
    for (name, len, rule, needed) in [
        ("a", a.len(), "m * k", shape.a_len()),
        ("b", b.len(), "k * n", shape.b_len()),
        ("c", c.len(), "m * n", shape.c_len()),
    ] {
        if len != needed {
            let limit = format!("must be {rule} = {needed} for {shape}");
            return Err(Error::argument(format!("{name}.len()"), len, limit));
        }
    }
    execute::dense::<f32, f32>(stream, Kernel { entry, product }, shape, [a, b], c.into())
}

/// The product of a kernel that takes dense row-major matrices of f32 as views.
fn of_views(entry: &'static Entry) -> Result<&'static Product> {
    let product = entry.product.as_ref().filter(|product| product.is_of_f32_views());
    product.ok_or_else(|| Error::argument("kernel", entry.name(), "must compute a product"))
}

/// One launch of a product: some rows of A and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The first of the rows.
    pub first_row: usize,
    /// The part's sizes: only m differs from the whole's.
    pub shape: Shape,
    /// Blocks and threads.
    pub config: LaunchConfig,
}

/// The launches of a product under these limits: several where a grid has not enough rows of blocks. None for an empty C.
///
/// # Errors
/// [`Error::Argument`] for a kernel that computes no product.
pub fn launches(entry: &'static Entry, shape: Shape, limits: &Limits) -> Result<Vec<Launch>> {
    let product = of_views(entry)?;
    let panels = execute::dense_launches(Kernel { entry, product }, shape, limits)?;
    let launch =
        |(first_row, rows, config)| Launch { first_row, shape: Shape { m: rows, ..shape }, config };
    Ok(panels.into_iter().map(launch).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tall_product_takes_several_launches() {
        let entry = find("tiled16").unwrap();
        let limits = simt::cpu::LIMITS;
        let rows = |m| {
            let launches = launches(entry, Shape::new(m, 33, 5).unwrap(), &limits).unwrap();
            launches.iter().map(|l| (l.first_row, l.shape.m(), l.config.grid)).collect::<Vec<_>>()
        };
        assert_eq!(rows(0), []);
        assert_eq!(rows(17), [(0, 17, [3, 2, 1])]);
        let most = 65535 * 16;
        assert_eq!(rows(most), [(0, most as usize, [3, 65535, 1])]);
        let last = (most as usize, 1, [3, 1, 1]);
        assert_eq!(rows(most + 1), [(0, most as usize, [3, 65535, 1]), last]);
        assert!(launches(entry, Shape::new(9, 0, 5).unwrap(), &limits).unwrap().is_empty());
    }

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
