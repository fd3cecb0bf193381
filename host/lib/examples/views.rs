//! Parts and transposes of matrices that stay on the device: no element is copied to make one.
//!
//! ```console
//! $ cargo run -p gpu-gemm --example views
//! ```

use gpu_gemm::{Batch, BatchMut, Device, Gemm, Matrix, Result};

/// The Gram matrix A^T A of an m x n matrix, block by block: each block of columns against each
/// other.
pub fn gram(device: &Device, a: &Matrix<f32>, block: usize) -> Result<Matrix<f32>> {
    let (m, n) = (a.rows(), a.cols());
    let stream = device.stream()?;
    let mut gram = Matrix::zeros(device, n, n)?;
    for i in (0..n).step_by(block) {
        for j in (0..n).step_by(block) {
            let (rows, cols) = (i..(i + block).min(n), j..(j + block).min(n));
            // Two blocks of A's columns, one of them as rows, and where their product goes.
            let left = a.view().sub(0..m, rows.clone())?.t();
            let right = a.view().sub(0..m, cols.clone())?;
            Gemm::new().launch(&stream, left, right, gram.view_mut().sub(rows, cols)?)?;
        }
    }
    // The launches follow one another on the stream. Whoever reads the matrix waits for them.
    Ok(gram)
}

/// `count` products of 8 x 8 matrices that lie one after another, by one launch.
pub fn batch(device: &Device, a: &[f32], b: &[f32], count: usize) -> Result<Vec<f32>> {
    let stream = device.stream()?;
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    let mut c = device.uninit(64 * count)?;
    let (size, strides) = ((8, 8), [8, 1]);
    Gemm::new().launch_batch(
        &stream,
        Batch::new(a.view(..)?, size, strides, count, 64)?,
        Batch::new(b.view(..)?, size, strides, count, 64)?,
        BatchMut::new(c.view_mut(..)?, size, strides, count, 64)?,
    )?;
    c.to_vec()
}

fn main() -> Result<()> {
    let device = Device::best().device;
    println!("on {device}");

    let (m, n) = (100, 60);
    let a = Matrix::from_row_major(&device, m, n, &integers(m * n))?;
    let blocks = gram(&device, &a, 25)?.to_row_major()?;
    let whole = gram(&device, &a, n)?.to_row_major()?;
    assert_eq!(blocks, whole, "an element is one sum in the order of k, whatever the blocks");
    println!("A^T A of {m} x {n} in blocks of 25 columns: as in one");

    let count = 1000;
    let (a, b) = (integers(64 * count), integers(64 * count));
    let c = batch(&device, &a, &b, count)?;
    let one = |i: usize| batch(&device, &a[64 * i..64 * (i + 1)], &b[64 * i..64 * (i + 1)], 1);
    assert_eq!(c[64 * 999..], one(999)?);
    println!("{count} products of 8 x 8 by one launch: as one by one");
    Ok(())
}

/// Small integers, whose products and sums are exact.
fn integers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7 % 17) as f32 - 8.0).collect()
}
