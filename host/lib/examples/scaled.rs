//! A product of f32 matrices in e4m3, a byte an element, with scales: how long the rounding takes,
//! how far the product is off, and how long it takes.
//!
//! ```console
//! $ cargo run -p gpu-gemm --example scaled -- 200x300x400
//! $ cargo run --release -p gpu-gemm --example scaled -- 8192x8192x8192
//! ```
//!
//! Each matrix has rows and columns of very different sizes, as the activations of networks have.

use std::time::{Duration, Instant};

use gpu_gemm::{
    Bf16, BoxElement, Device, E4m3, Error, Gemm, Granularity, Layout, Matrix, Result, Stream,
    gemm::Scales, quantise,
};

/// How often each launch is repeated to be timed.
const LAUNCHES: u32 = 50;

/// The time of a launch, of many one after the other.
fn timed(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    launch()?;
    stream.synchronize()?;
    let begin = Instant::now();
    for _ in 0..LAUNCHES {
        launch()?;
    }
    stream.synchronize()?;
    Ok(begin.elapsed() / LAUNCHES)
}

/// A matrix in e4m3, and its scales in that layout. It says how long that takes.
fn scaled<T: BoxElement>(
    stream: &Stream,
    x: &Matrix<T>,
    granularity: Granularity,
    layout: Layout,
) -> Result<(Matrix<E4m3>, Matrix<f32>)> {
    let (device, rows, cols) = (x.device(), x.rows(), x.cols());
    let (down, across) = granularity.scales(rows, cols);
    let mut q = Matrix::zeros(device, rows, cols)?;
    let leading = if layout == Layout::RowMajor { across } else { down };
    let mut scales = Matrix::with_layout(device, down, across, layout, leading)?;
    let time =
        timed(stream, || quantise(stream, granularity, x.view(), q.view_mut(), scales.view_mut()))?;
    let bytes = rows * cols * (size_of::<T>() + 1) + 4 * down * across;
    println!(
        "{rows} x {cols} of {} to e4m3, {granularity:?}: {time:.2?}, {:.2} GB/s",
        T::NAME,
        1e-9 * bytes as f64 / time.as_secs_f64()
    );
    Ok((q, scales))
}

/// From -1 to 1, times a power of two of the row and one of the column.
fn draw(seed: u32, rows: usize, cols: usize) -> Vec<f32> {
    let mixed = |index: u32| {
        let first = (index ^ seed).wrapping_mul(0x7feb_352d);
        (first ^ first >> 15).wrapping_mul(0x846c_a68b) >> 8
    };
    let unit = |index: usize| mixed(index as u32) as f32 / 8_388_608.0 - 1.0;
    let power = |index: usize| 2f32.powi(mixed(index as u32 + 77) as i32 % 9 - 4);
    (0..rows * cols).map(|at| unit(at) * power(at / cols) * power(at % cols + 9999)).collect()
}

fn main() -> Result<()> {
    let sizes = std::env::args().nth(1).unwrap_or_else(|| "200x300x400".to_owned());
    let parts = sizes.split('x').map_while(|part| part.parse().ok()).collect::<Vec<usize>>();
    let (&[m, n, k], true) = (&*parts, parts.iter().all(|part| *part > 0)) else {
        return Err(Error::argument("sizes", sizes, "must be MxNxK"));
    };
    let device = Device::best().device;
    let stream = device.stream()?;
    println!("{m} x {n} x {k} in e4m3 on {}", device.name());
    let (a, b) = (draw(1, m, k), draw(2, k, n));
    // Some elements, in f64.
    let places = (0..64).map(|i| (i * 7919 % m, i * 104_729 % n)).collect::<Vec<_>>();
    let exact = |&(row, col): &(usize, usize)| -> (f64, f64) {
        (0..k).fold((0.0, 0.0), |(sum, size), p| {
            let term = f64::from(a[row * k + p]) * f64::from(b[p * n + col]);
            (sum + term, size + term.abs())
        })
    };
    let wanted = places.iter().map(exact).collect::<Vec<_>>();

    let x = Matrix::from_row_major(&device, m, k, &a)?;
    let halves = a.iter().map(|x| Bf16::from_f32(*x)).collect::<Vec<_>>();
    let half = Matrix::from_row_major(&device, m, k, &halves)?;
    // B^T is stored row by row: both operands are contiguous along k.
    let by_cols = (0..n * k).map(|at| b[at % k * n + at / k]).collect::<Vec<_>>();
    let y = Matrix::from_row_major(&device, n, k, &by_cols)?;
    for of in [Granularity::Row, Granularity::Block1x128, Granularity::Block128x128] {
        scaled(&stream, &half, of, Layout::RowMajor)?;
    }

    // A's scales of blocks are stored row by row, or column by column, so that neighbouring rows
    // have neighbouring scales.
    let (rows, cols) = (Layout::RowMajor, Layout::ColMajor);
    for (name, of_a, of_b, layout) in [
        ("a scale a row and column", Granularity::Row, Granularity::Row, rows),
        ("1 x 128 and 128 x 128", Granularity::Block1x128, Granularity::Block128x128, rows),
        ("the same, A's by columns", Granularity::Block1x128, Granularity::Block128x128, cols),
    ] {
        let (a, scales_a) = scaled(&stream, &x, of_a, layout)?;
        let (b, scales_b) = scaled(&stream, &y, of_b, rows)?;
        let (a_of, b_of) = (scales_a.view().into(), scales_b.view().t().into());
        let gemm = Gemm::<E4m3, Bf16>::of_types().scales(match of_a {
            Granularity::Row => Scales::RowsCols { a: a_of, b: b_of },
            _ => Scales::Blocks { a: a_of, b: b_of },
        });
        let mut c = Matrix::<Bf16>::zeros(&device, m, n)?;
        let choice = gemm.run(&stream, a.view(), b.view().t(), c.view_mut())?;
        let got = c.to_row_major()?;
        let off = places.iter().zip(&wanted).map(|(&(row, col), (sum, size))| {
            (f64::from(f32::from(got[row * n + col])) - sum).abs() / size
        });
        let (worst, mean) =
            off.fold((0f64, 0.0), |(most, sum), off| (most.max(off), sum + off / 64.0));
        let time = timed(&stream, || {
            gemm.launch(&stream, a.view(), b.view().t(), c.view_mut()).map(|_| ())
        })?;
        let teraflops = 2e-12 * (m * n * k) as f64 / time.as_secs_f64();
        println!(
            "{name}: off by {mean:.1e} of the terms in the mean, {worst:.1e} at most; {time:.2?}, {teraflops:.1} TFLOP/s, {}",
            choice.entry.name()
        );
    }
    Ok(())
}
