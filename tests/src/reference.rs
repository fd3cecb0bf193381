//! The right result of a product: by nalgebra in float64, and by three plain loops that check
//! nalgebra.

use host::product::Shape;
use nalgebra::DMatrix;

/// `A B` in float64, row by row, by nalgebra.
pub fn product(shape: Shape, a: &[f32], b: &[f32]) -> Vec<f64> {
    multiply(shape, a, b, |x| x)
}

/// `|A| |B|` in float64, for error bounds.
pub fn magnitude(shape: Shape, a: &[f32], b: &[f32]) -> Vec<f64> {
    multiply(shape, a, b, f64::abs)
}

fn multiply(shape: Shape, a: &[f32], b: &[f32], f: fn(f64) -> f64) -> Vec<f64> {
    let wide = |values: &[f32]| values.iter().map(|&x| f(x.into())).collect::<Vec<_>>();
    let a = DMatrix::from_row_slice(shape.m(), shape.k(), &wide(a));
    let b = DMatrix::from_row_slice(shape.k(), shape.n(), &wide(b));
    // nalgebra stores columns. The transpose's columns are the rows.
    (a * b).transpose().as_slice().to_vec()
}

/// `A B` in float64, by three loops.
pub fn naive(shape: Shape, a: &[f32], b: &[f32]) -> Vec<f64> {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                c[i * n + j] += f64::from(a[i * k + p]) * f64::from(b[p * n + j]);
            }
        }
    }
    c
}
