//! A lesson's product, `C = A B`, launched on any device at any size.

use gpu::registry::{self, Entry, Product};
use simt::{LaunchConfig, Limits};

pub use crate::shape::Shape;
use crate::{
    buffer::{BufferView, BufferViewMut},
    error::{Error, Result},
    gemm::{Kernel, execute},
    matrix::Matrix,
    names::must_be_a_kernel_of,
    stream::Stream,
};

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
pub fn shape_of(
    entry: &'static Entry,
    a: &Matrix<f32>,
    b: &Matrix<f32>,
    c: &Matrix<f32>,
) -> Result<Shape> {
    dense_shape(entry.name(), a, b, c)
}

/// The same for a product that errors call `who`.
///
/// # Errors
/// [`Error::Argument`], as [`multiply`].
pub fn dense_shape(who: &str, a: &Matrix<f32>, b: &Matrix<f32>, c: &Matrix<f32>) -> Result<Shape> {
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
    shape.check_lens([a.len(), b.len(), c.len()])?;
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
}
