//! Products by other crates on the CPU, for comparison: nalgebra's on one core, and the crate
//! gemm's on all cores.

use host::{
    BufferView, BufferViewMut, Error,
    baseline::{DenseBatch, Epilogue},
};
use nalgebra::{DMatrixView, DMatrixViewMut, Dyn};

use super::{
    case::Views,
    ready::{Library, Ready},
};

/// Both libraries.
pub(super) fn libraries() -> Vec<Box<dyn Library<f32, f32>>> {
    vec![
        Box::new(OnCpu { name: "nalgebra", product: nalgebra, takes: is_for_nalgebra }),
        Box::new(OnCpu { name: "gemm", product: gemm, takes: |_| true }),
    ]
}

/// A product by such a crate.
type Product =
    fn(&DenseBatch, BufferView<f32>, BufferView<f32>, &mut BufferViewMut<f32>) -> host::Result<()>;

/// A library on the CPU.
struct OnCpu {
    name: &'static str,
    product: Product,
    /// Whether it can compute this product.
    takes: fn(&DenseBatch) -> bool,
}

impl Library<f32, f32> for OnCpu {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        "as in Cargo.lock".to_owned()
    }

    fn prepare<'l>(
        &'l self,
        product: &DenseBatch,
        epilogue: Epilogue,
    ) -> host::Result<Option<Box<dyn Ready<f32, f32> + 'l>>> {
        Ok(match epilogue.is_plain() && (self.takes)(product) {
            true => Some(Box::new((self.product, *product))),
            false => None,
        })
    }
}

impl Ready<f32, f32> for (Product, DenseBatch) {
    fn launch(&self, Views { a, b, mut c, .. }: Views<f32, f32>) -> host::Result<()> {
        (self.0)(&self.1, a, b, &mut c)
    }
}

/// A, B and C in host memory, each of a whole batch.
type Slices<'a> = (&'a [f32], &'a [f32], &'a mut [f32]);

fn slices<'a>(
    product: &DenseBatch,
    a: BufferView<'a, f32>,
    b: BufferView<'a, f32>,
    c: &'a mut BufferViewMut<f32>,
) -> host::Result<Slices<'a>> {
    let lens = product.lens()?;
    let device = a.device().name();
    let (Some(a), Some(b), Some(c)) = (a.as_slice(), b.as_slice(), c.as_mut_slice()) else {
        return Err(Error::argument("device", device, "nalgebra and gemm run on the CPU alone"));
    };
    if [a.len(), b.len(), c.len()] != lens {
        let limit = format!("must have {lens:?} elements");
        return Err(Error::argument(
            "operands",
            format!("{:?}", [a.len(), b.len(), c.len()]),
            limit,
        ));
    }
    Ok((a, b, c))
}

/// Whether nalgebra can compute it. If a size is 5 or less, nalgebra 0.35 uses loops of its own
/// instead of `matrixmultiply`. These write outside of a column whose elements are not contiguous
/// (`axcpy_uninit` takes the slice's length for the vector's).
fn is_for_nalgebra(product: &DenseBatch) -> bool {
    let shape = product.shape;
    let small = [shape.m(), shape.n(), shape.k()].into_iter().any(|size| size <= 5);
    !small || product.transposed == [false, false]
}

/// `nalgebra`, by its `gemm`. Its matrices are column-major, so `C^T = B^T A^T`.
fn nalgebra(
    product: &DenseBatch,
    a: BufferView<f32>,
    b: BufferView<f32>,
    c: &mut BufferViewMut<f32>,
) -> host::Result<()> {
    let (a, b, c) = slices(product, a, b, c)?;
    let shape = product.shape;
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let [of_a, of_b, of_c] = product.strides();
    // The transpose of a matrix with these strides.
    let view = |data, rows, cols, [between_rows, between_cols]: [usize; 2]| {
        let (rows, cols, along, across) =
            (Dyn(cols), Dyn(rows), Dyn(between_cols), Dyn(between_rows));
        DMatrixView::<f32, Dyn, Dyn>::from_slice_with_strides_generic(
            data, rows, cols, along, across,
        )
    };
    for ((a, b), c) in a
        .chunks(shape.a_len().max(1))
        .zip(b.chunks(shape.b_len().max(1)))
        .zip(c.chunks_mut(shape.c_len().max(1)))
    {
        let mut c = DMatrixViewMut::<f32, Dyn, Dyn>::from_slice_with_strides_generic(
            c,
            Dyn(n),
            Dyn(m),
            Dyn(of_c[1]),
            Dyn(of_c[0]),
        );
        c.gemm(1.0, &view(b, k, n, of_b), &view(a, m, k, of_a), 0.0);
    }
    Ok(())
}

/// The crate `gemm`, on all cores.
fn gemm(
    product: &DenseBatch,
    a: BufferView<f32>,
    b: BufferView<f32>,
    c: &mut BufferViewMut<f32>,
) -> host::Result<()> {
    let (a, b, c) = slices(product, a, b, c)?;
    let shape = product.shape;
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let [[a_row, a_col], [b_row, b_col], [c_row, c_col]] =
        product.strides().map(|strides| strides.map(|stride| stride as isize));
    for index in 0..product.count {
        let start = |len: usize| index * len..(index + 1) * len;
        let (a, b) = (a[start(shape.a_len())].as_ptr(), b[start(shape.b_len())].as_ptr());
        let c = c[start(shape.c_len())].as_mut_ptr();
        let cores = gemm::Parallelism::Rayon(0);
        // SAFETY: A, B and C have m k, k n and m n elements, and the strides keep inside. C is
        // borrowed mutably. It is not read.
        unsafe {
            gemm::gemm(
                m, n, k, c, c_col, c_row, false, a, a_col, a_row, b, b_col, b_row, 0.0, 1.0, false,
                false, false, cores,
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use host::{Device, Gemm, Shape, operands};

    use super::*;

    #[test]
    fn they_compute_what_we_do() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        for [m, n, k] in [[1, 1, 1], [3, 4, 5], [17, 19, 23], [64, 48, 33]] {
            for transposed in [[false, false], [true, false], [false, true], [true, true]] {
                let product =
                    DenseBatch { shape: Shape::new(m, n, k).unwrap(), transposed, count: 3 };
                let [a_len, b_len, c_len] = product.lens().unwrap();
                let a = device.upload(&operands::integers(1, a_len, 8).unwrap()).unwrap();
                let b = device.upload(&operands::integers(2, b_len, 8).unwrap()).unwrap();
                let mut own = device.zeros(c_len).unwrap();
                product.launch(&Gemm::new(), &stream, a.all(), b.all(), own.all_mut()).unwrap();
                let nalgebra = is_for_nalgebra(&product).then_some(nalgebra as Product);
                for other in nalgebra.into_iter().chain([gemm as Product]) {
                    // The result must not depend on the old C.
                    let mut c = device.upload(&vec![f32::NAN; c_len]).unwrap();
                    other(&product, a.all(), b.all(), &mut c.all_mut()).unwrap();
                    assert_eq!(c.to_vec().unwrap(), own.to_vec().unwrap(), "{product:?}");
                }
            }
        }
    }
}
