//! `C = A B` by a given kernel, for dense row-major matrices: the products of the course.

use gpu::registry::{self, Entry, Product};
use simt::{LaunchConfig, Limits};

pub use crate::shape::Shape;
use crate::{
    buffer::{BufferView, BufferViewMut},
    error::{Error, Result},
    gemm::{
        Kernel, Scalar,
        execute::{self, DenseLaunch},
    },
    matrix::Matrix,
    names::must_be_a_kernel_of,
    stream::Stream,
};

/// Finds the kernel of a product by its name.
///
/// # Errors
/// [`Error::Argument`] for an unknown name. It lists the known ones.
pub fn find(name: &str) -> Result<&'static Entry> {
    let mut known = registry::products().map(|(entry, _)| entry);
    known.find(|entry| entry.name() == name).ok_or_else(|| {
        let names = registry::products().map(|(entry, _)| entry.name());
        let names = names.collect::<Vec<_>>();
        Error::argument("kernel", name, must_be_a_kernel_of(name, &names))
    })
}

/// Launches `C = A B`. If C is empty nothing is launched. With `k = 0` C becomes zero.
///
/// ```
/// use gpu_gemm::{Device, Matrix, product};
///
/// let device = Device::best().device;
/// let a = Matrix::from_row_major(&device, 2, 2, &[1.0, 2.0, 3.0, 4.0])?;
/// let b = Matrix::from_row_major(&device, 2, 2, &[0.0, 1.0, 1.0, 0.0])?;
/// let mut c = Matrix::zeros(&device, 2, 2)?;
/// product::multiply(&device.stream()?, product::find("tiled16")?, &a, &b, &mut c)?;
/// assert_eq!(c.to_row_major()?, [2.0, 1.0, 4.0, 3.0]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for matrices whose sizes do not fit together, and for those that are not
/// dense and row-major; as [`Stream::launch`].
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

/// The shape of a product of these matrices.
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

/// As [`shape_of`], for a product that errors call `who`.
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
    Shape::of_matrices([a, b, c].map(|matrix| (matrix.rows(), matrix.cols())))
}

/// Launches `C = A B` for parts of buffers, each dense and row-major.
///
/// A launch has at most 65535 rows of blocks. A taller product takes several launches.
///
/// # Errors
/// [`Error::Argument`] for a view whose length is not that of the shape; as [`counted`] and
/// [`Stream::launch`].
pub fn multiply_views<T: Scalar>(
    stream: &Stream,
    entry: &'static Entry,
    shape: Shape,
    a: BufferView<T>,
    b: BufferView<T>,
    c: BufferViewMut<T>,
) -> Result<()> {
    let product = counted(entry)?;
    if product.variant.operands != T::TYPE {
        let limit = format!("must be for A and B of {}", T::name());
        return Err(Error::argument("kernel", entry.name(), limit));
    }
    shape.check_lens([a.len(), b.len(), c.len()])?;
    execute::dense::<T, T>(stream, Kernel { entry, product }, shape, [a, b], c.into())
}

/// The product of a kernel whose accesses are counted: a lesson, or one that takes f32 or f64 as
/// `In` and `Out`. (No counts of others were compared with a GPU's.)
///
/// # Errors
/// [`Error::Argument`] for another kernel.
pub fn counted(entry: &'static Entry) -> Result<&'static Product> {
    let product = entry.product.as_ref().filter(|product| product.is_counted());
    product.ok_or_else(|| {
        let limit = "must be a lesson, or a kernel of f32 or f64 on CUDA cores and not one by TMA: the accesses of others are not counted";
        Error::argument("kernel", entry.name(), limit)
    })
}

/// A launch of a product. It computes some rows of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The first row.
    pub first_row: usize,
    /// The shape of the part. Only m differs from that of the product.
    pub shape: Shape,
    /// Grid and block.
    pub config: LaunchConfig,
    /// Elements from one row of A, B and C to the next, as the kernel gets them: A and B may be
    /// packed.
    pub pitches: [usize; 3],
}

/// The launches of a product under these limits. There are several if the grid of one would have
/// too many rows of blocks, and none if C is empty.
///
/// # Errors
/// As [`counted`].
pub fn launches(entry: &'static Entry, shape: Shape, limits: &Limits) -> Result<Vec<Launch>> {
    let product = counted(entry)?;
    let panels = execute::dense_launches(Kernel { entry, product }, shape, limits)?;
    let launch = |DenseLaunch { first_row, rows, config, pitches }| {
        let shape = Shape { m: rows, ..shape };
        Launch { first_row, shape, config, pitches }
    };
    Ok(panels.into_iter().map(launch).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_on_tensor_cores_gets_packed_operands() {
        let launch = |name, shape: [u64; 3]| {
            let entry = registry::find(name).unwrap();
            let shape = Shape::new(shape[0], shape[1], shape[2]).unwrap();
            launches(entry, shape, &simt::cpu::LIMITS).unwrap()[0]
        };
        assert_eq!(launch("tensor_wgmma", [5, 4, 3]).pitches, [3, 4, 4]);
        assert_eq!(launch("tensor_tma", [5, 4, 3]).pitches, [8, 8, 4]);
        assert_eq!(launch("tensor_tma", [5, 16, 24]).pitches, [24, 16, 16]);
        // Two blocks share a tile of 256 x 256.
        let Launch { config, .. } = launch("tensor_cluster", [300, 8, 8]);
        assert_eq!(
            (config.grid, config.cluster, config.block),
            ([2, 1, 1], [2, 1, 1], [384, 1, 1])
        );
        // TMA cannot store rows of eight bytes: C is stored in the workspace first.
        assert_eq!(launch("tensor_tma_store", [5, 8, 8]).pitches, [8, 8, 8]);
        assert_eq!(launch("tensor_tma_store", [5, 4, 8]).pitches, [8, 8, 8]);
        assert_eq!(launch("tensor_tma_store", [5, 300, 8]).pitches, [8, 320, 320]);
    }

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
