//! nalgebra's matrices as operands, without a copy on the way: they are column-major, and so are
//! the products.
//!
//! ```console
//! $ cargo run -p gpu-gemm --features nalgebra --example nalgebra
//! ```

use gpu_gemm::{Device, Gemm, Result, SliceView};
use nalgebra::DMatrix;

/// A B, and A^T A, of nalgebra's matrices.
pub fn products(
    device: &Device,
    a: &DMatrix<f32>,
    b: &DMatrix<f32>,
) -> Result<(DMatrix<f32>, DMatrix<f32>)> {
    let stream = device.stream()?;
    let mut c = DMatrix::zeros(a.nrows(), b.ncols());
    Gemm::new().run_slices(&stream, a, b, &mut c)?;

    // A transpose is a view here: none is made in memory.
    let mut gram = DMatrix::zeros(a.ncols(), a.ncols());
    Gemm::new().run_slices(&stream, SliceView::try_from(a)?.t(), a, &mut gram)?;
    Ok((c, gram))
}

fn main() -> Result<()> {
    let device = Device::best().device;
    let a = DMatrix::from_fn(300, 200, |row, col| ((row * 7 + col) % 5) as f32 - 2.0);
    let b = DMatrix::from_fn(200, 100, |row, col| ((row + col * 3) % 7) as f32 - 3.0);
    let (c, gram) = products(&device, &a, &b)?;
    assert_eq!(c, &a * &b);
    assert_eq!(gram, a.transpose() * &a);
    println!(
        "A B and A^T A on {device}: as nalgebra has them, bit for bit (the elements are small integers)"
    );
    Ok(())
}
