//! A product of matrices that belong to the crate `cudarc`, without a copy.
//!
//! ```console
//! $ cargo run --release -p gpu-gemm --features cudarc --example with_cudarc
//! ```

use cudarc::driver::{CudaContext, CudaSlice};
use gpu_gemm::{Device, Gemm, MatrixView, MatrixViewMut, Result, interchange::scope};

/// C = A B of row-major n x n matrices. On the slices' streams all is in order, before and after:
/// nobody waits here.
pub fn multiply(
    device: &Device,
    n: usize,
    a: &CudaSlice<f32>,
    b: &CudaSlice<f32>,
    c: &mut CudaSlice<f32>,
) -> Result<()> {
    let stream = c.stream().clone();
    scope(device, |scope| {
        let (a, b, mut c) = (scope.cudarc(a)?, scope.cudarc(b)?, scope.cudarc_mut(c)?);
        let stream = scope.cudarc_stream(&stream)?;
        Gemm::new().launch(
            &stream,
            MatrixView::new(a.view(), n, n, [n, 1])?,
            MatrixView::new(b.view(), n, n, [n, 1])?,
            MatrixViewMut::new(c.view_mut(), n, n, [n, 1])?,
        )?;
        Ok(())
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let n = 64;
    let device = Device::cuda(0)?;
    let stream = CudaContext::new(0)?.default_stream();
    let a = stream.clone_htod(&vec![1.0f32; n * n])?;
    let b = stream.clone_htod(&vec![0.5f32; n * n])?;
    let mut c = stream.alloc_zeros::<f32>(n * n)?;
    multiply(&device, n, &a, &b, &mut c)?;
    assert_eq!(stream.clone_dtoh(&c)?, vec![0.5 * n as f32; n * n]);
    println!("right on {device}");
    Ok(())
}
