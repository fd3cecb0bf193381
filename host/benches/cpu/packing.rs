//! Copies of matrices in any layout, counted in bytes of their elements.

use divan::{Bencher, counter::BytesCount};
use host::{Device, Layout, Matrix, SliceView};

const ROWS: usize = 1000;
const COLS: usize = 700;

/// Enough values for every layout below.
fn values() -> Vec<f32> {
    host::operands::uniform(1, 4 * ROWS * COLS).unwrap()
}

fn upload(bencher: Bencher, strides: [usize; 2]) {
    let (device, values) = (Device::cpu(), values());
    let view = SliceView::new(&values, ROWS, COLS, strides).unwrap();
    bencher
        .counter(BytesCount::of_many::<f32>(ROWS * COLS))
        .bench_local(|| Matrix::upload(&device, divan::black_box(view)).unwrap());
}

/// Contiguous rows.
#[divan::bench]
fn dense(bencher: Bencher) {
    upload(bencher, [COLS, 1]);
}

/// Rows with padding.
#[divan::bench]
fn leading_dimension(bencher: Bencher) {
    upload(bencher, [COLS + 3, 1]);
}

/// Contiguous columns.
#[divan::bench]
fn by_columns(bencher: Bencher) {
    upload(bencher, [1, ROWS]);
}

/// Every other element of every other row.
#[divan::bench]
fn strided(bencher: Bencher) {
    upload(bencher, [2 * COLS, 2]);
}

/// Row-major to column-major.
#[divan::bench]
fn transposed(bencher: Bencher) {
    let device = Device::cpu();
    let values = &values()[..ROWS * COLS];
    let mut matrix = Matrix::with_layout(&device, ROWS, COLS, Layout::ColMajor, ROWS).unwrap();
    bencher
        .counter(BytesCount::of_slice(values))
        .bench_local(|| matrix.write_row_major(divan::black_box(values)).unwrap());
}
