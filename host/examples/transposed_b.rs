//! B read down its columns, or transposed by the CPU first, or read along its rows: the time of
//! each.
//!
//! ```console
//! $ cargo run --release -p host --example transposed_b                    # 1000 700 513
//! $ cargo run --release -p host --example transposed_b -- 4096 4096 4096
//! ```

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use host::{
    Buffer, Device, Result, Shape, Stream, gpu::lessons::tiled_transposed::tiled_transposed,
    operands, product, simt::LaunchConfig,
};

/// The rows of a row-major `rows` x `cols` matrix as columns.
pub fn transpose(values: &[f32], [rows, cols]: [usize; 2]) -> Vec<f32> {
    let mut transposed = vec![0.0; values.len()];
    for row in 0..rows {
        for col in 0..cols {
            transposed[col * rows + row] = values[row * cols + col];
        }
    }
    transposed
}

/// C = A B, from A and the transpose of B.
pub fn multiply_transposed(
    stream: &Stream,
    shape: Shape,
    a: &Buffer<f32>,
    bt: &Buffer<f32>,
    c: &mut Buffer<f32>,
) -> Result<()> {
    let (m, n, k) = (shape.m() as u32, shape.n() as u32, shape.k() as u32);
    if m == 0 || n == 0 {
        return Ok(());
    }
    let config = LaunchConfig::new([n.div_ceil(16), m.div_ceil(16), 1], [16, 16, 1]);
    // SAFETY:
    // 1. The launch compares the three lengths with the sizes, and the kernel keeps inside them.
    // 2. Each element of C is written by the one thread that computes it.
    // 3. The buffers are the caller's, and C is borrowed mutably.
    unsafe { stream.launch(&tiled_transposed, &config, (m, n, k, a, bt, c)) }
}

/// The median time of some launches.
fn time(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    launch()?; // The driver compiles a kernel at its first launch.
    let mut times = Vec::new();
    for _ in 0..if stream.device().is_cuda() { 20 } else { 3 } {
        let start = stream.record()?;
        launch()?;
        times.push(stream.record()?.since(&start)?);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let sizes = env::args().skip(1).map(|text| {
        text.parse::<u64>()
            .map_err(|error| format!("size = {text}: {error} (m n k, three numbers)"))
    });
    let shape = match sizes.collect::<std::result::Result<Vec<_>, _>>()?[..] {
        [] => Shape::new(1000, 700, 513)?,
        [m, n, k] => Shape::new(m, n, k)?,
        ref sizes => return Err(format!("sizes = {sizes:?}: must be three, m n k").into()),
    };
    // Integers, so that all three give the same bits.
    let a = operands::integers(1, shape.a_len(), 1)?;
    let b = operands::integers(2, shape.b_len(), 1)?;
    let begin = Instant::now();
    let bt = transpose(&b, [shape.k(), shape.n()]);
    let transposing = begin.elapsed();

    let device = Device::best().device;
    let stream = device.stream()?;
    let (a, b, bt) = (device.upload(&a)?, device.upload(&b)?, device.upload(&bt)?);
    let mut c = device.zeros(shape.c_len())?;
    let mut results = Vec::new();
    println!("{shape} on {device}\n");
    for name in ["tiled_uncoalesced", "tiled16"] {
        let kernel = product::find(name)?;
        let whole = |c: &mut Buffer<f32>| {
            let (a, b) = (a.view(..)?, b.view(..)?);
            product::multiply_views(&stream, kernel, shape, a, b, c.view_mut(..)?)
        };
        println!("{name:26} {:>12.0} us", us(time(&stream, || whole(&mut c))?));
        results.push(c.to_vec()?);
    }
    let kernel = time(&stream, || multiply_transposed(&stream, shape, &a, &bt, &mut c))?;
    results.push(c.to_vec()?);
    println!("{:26} {:>12.0} us", "tiled_transposed", us(kernel));
    println!("{:26} {:>12.0} us", "B transposed by the CPU", us(transposing));
    if results.iter().any(|c| *c != results[0]) {
        return Err("the three come to different results".into());
    }
    if !device.is_cuda() {
        println!("\nthe CPU device's times: what they say of a GPU is nothing");
    }
    println!("\nall give the same C");
    Ok(())
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
