//! A product of f32 matrices in e4m3, a byte an element, with scales: how far it is off, and how
//! long it takes.
//!
//! ```console
//! $ cargo run -p gpu-gemm --example scaled -- 200x300x400
//! $ cargo run --release -p gpu-gemm --example scaled -- 8192x8192x8192
//! ```
//!
//! Each matrix has rows and columns of very different sizes, as the activations of networks have.

use std::time::Instant;

use gpu_gemm::{Bf16, Buffer, Device, E4m3, Error, Gemm, Matrix, MatrixView, Result, gemm::Scales};

/// The largest e4m3.
const LARGEST: f32 = 448.0;

const MATRIX: &str = "one scale a matrix";
const ROWS_COLS: &str = "a scale a row and column";
const BY_COLS: &str = "1 x 128 and 128 x 128, A's by columns";

/// How long each product is timed, in launches.
const LAUNCHES: u32 = 50;

/// A matrix in e4m3, and the scales of its blocks.
struct Scaled {
    numbers: Vec<E4m3>,
    scales: Vec<f32>,
}

/// Divides each block by its largest element over the largest e4m3, and rounds.
fn scaled(values: &[f32], [rows, cols]: [usize; 2], [down, across]: [usize; 2]) -> Scaled {
    let blocks = [rows.div_ceil(down), cols.div_ceil(across)];
    let mut scales = vec![0f32; blocks[0] * blocks[1]];
    let block = |at: usize| at / cols / down * blocks[1] + at % cols / across;
    for (at, value) in values.iter().enumerate() {
        scales[block(at)] = scales[block(at)].max(value.abs() / LARGEST);
    }
    scales.iter_mut().filter(|scale| **scale == 0.0).for_each(|scale| *scale = 1.0);
    let number = |(at, value): (usize, &f32)| E4m3::from_f32(value / scales[block(at)]);
    Scaled { numbers: values.iter().enumerate().map(number).collect(), scales }
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

    // Of everything, of rows and columns, and of blocks. Those of A's blocks are stored row by row,
    // or column by column, so that neighbouring rows have neighbouring scales.
    for (name, of_a, of_b) in [
        (MATRIX, [m, k], [k, n]),
        (ROWS_COLS, [1, k], [k, 1]),
        ("1 x 128 and 128 x 128", [1, 128], [128, 128]),
        (BY_COLS, [1, 128], [128, 128]),
    ] {
        let (mut of_a, of_b) = (scaled(&a, [m, k], of_a), scaled(&b, [k, n], of_b));
        if name == BY_COLS {
            let blocks = k.div_ceil(128);
            of_a.scales = (0..m * blocks).map(|at| of_a.scales[at % m * blocks + at / m]).collect();
        }
        let on_device = |scales: &[f32]| -> Result<Buffer<f32>> { device.upload(scales) };
        let scales = [on_device(&of_a.scales)?, on_device(&of_b.scales)?];
        let a = Matrix::from_row_major(&device, m, k, &of_a.numbers)?;
        // B^T is stored row by row: both operands are contiguous along k.
        let by_cols = (0..n * k).map(|at| of_b.numbers[at % k * n + at / k]).collect::<Vec<_>>();
        let b = Matrix::from_row_major(&device, n, k, &by_cols)?;
        let mut c = Matrix::<Bf16>::zeros(&device, m, n)?;
        let view = |i: usize, rows, cols| MatrixView::new(scales[i].all(), rows, cols, [cols, 1]);
        let gemm = Gemm::<E4m3, Bf16>::of_types();
        let gemm = match name {
            MATRIX => gemm.alpha(of_a.scales[0] * of_b.scales[0]),
            ROWS_COLS => {
                gemm.scales(Scales::RowsCols { a: view(0, m, 1)?.into(), b: view(1, 1, n)?.into() })
            }
            _ => {
                let blocks = k.div_ceil(128);
                let strides = if name == BY_COLS { [1, m] } else { [blocks, 1] };
                let a = MatrixView::new(scales[0].all(), m, blocks, strides)?;
                let b = view(1, blocks, n.div_ceil(128))?;
                gemm.scales(Scales::Blocks { a: a.into(), b: b.into() })
            }
        };
        let choice = gemm.run(&stream, a.view(), b.view().t(), c.view_mut())?;
        let got = c.to_row_major()?;
        let off = places.iter().zip(&wanted).map(|(&(row, col), (sum, size))| {
            (f64::from(f32::from(got[row * n + col])) - sum).abs() / size
        });
        let (worst, mean) =
            off.fold((0f64, 0.0), |(most, sum), off| (most.max(off), sum + off / 64.0));
        let begin = Instant::now();
        for _ in 0..LAUNCHES {
            gemm.launch(&stream, a.view(), b.view().t(), c.view_mut())?;
        }
        stream.synchronize()?;
        let time = begin.elapsed() / LAUNCHES;
        let teraflops = 2e-12 * (m * n * k) as f64 / time.as_secs_f64();
        println!(
            "{name}: off by {mean:.1e} of the terms in the mean, {worst:.1e} at most; {time:.2?}, {teraflops:.1} TFLOP/s, {}",
            choice.entry.name()
        );
    }
    Ok(())
}
