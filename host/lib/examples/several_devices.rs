//! One product over several devices, beside the same on one: bits, times, and the plan.
//!
//! ```console
//! $ cargo run --release -p gpu-gemm --example several_devices -- 0,0 8192 f32
//! $ cargo run -p gpu-gemm --example several_devices -- cpu:4 300 f64
//! ```

use std::time::{Duration, Instant};

use gpu_gemm::{
    Bf16, Device, Devices, Error, Gemm, Matrix, Result, Shape, ShardLayout, Sharded,
    gemm::ShardedScalar,
};

/// How often each is timed.
const RUNS: usize = 5;

fn main() -> Result<()> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let word = |index: usize, default: &str| {
        arguments.get(index).map_or(default, String::as_str).to_owned()
    };
    let (places, size, element) = (word(0, "cpu:4"), word(1, "300"), word(2, "f32"));
    let number = |text: &str| {
        text.parse::<usize>().map_err(|_| Error::argument("argument", text, "must be a number"))
    };
    let devices = match places.strip_prefix("cpu:") {
        Some(count) => Devices::cpu(number(count)?)?,
        None if places == "all" => Devices::all()?,
        None => Devices::of(&places.split(',').map(number).collect::<Result<Vec<_>>>()?)?,
    };
    match &*element {
        "f32" => compare::<f32>(&devices, number(&size)?, |value| value as f32),
        "f64" => compare::<f64>(&devices, number(&size)?, |value| value),
        "bf16" => compare::<Bf16>(&devices, number(&size)?, |value| Bf16::from_f32(value as f32)),
        _ => Err(Error::argument("type", element, "must be f32, f64 or bf16")),
    }
}

/// The shortest time of some calls, after one that loads the kernels.
fn timed(mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    call()?;
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let begin = Instant::now();
        call()?;
        best = best.min(begin.elapsed());
    }
    Ok(best)
}

fn compare<T>(devices: &Devices, size: usize, of: impl Fn(f64) -> T) -> Result<()>
where
    T: ShardedScalar + PartialEq,
{
    let draw = |seed: usize| {
        let value = |index: usize| (((index + seed) * 2_654_435_761) % 2003) as f64 / 1001.0 - 1.0;
        (0..size * size).map(|index| of(value(index))).collect::<Vec<_>>()
    };
    let (a, b) = (draw(1), draw(7));

    let one = devices.iter().next().cloned().unwrap_or_else(Device::cpu);
    let stream = one.stream()?;
    let whole = |values: &[T]| Matrix::from_row_major(&one, size, size, values);
    let (a1, b1, mut c1) = (whole(&a)?, whole(&b)?, Matrix::zeros(&one, size, size)?);
    let gemm = Gemm::new();
    let of_one = timed(|| gemm.run(&stream, a1.view(), b1.view(), c1.view_mut()).map(|_| ()))?;

    let (rows, cols) =
        (ShardLayout::rows(size, devices.len()), ShardLayout::cols(size, devices.len()));
    let a = Sharded::from_row_major(devices, size, size, rows.clone(), &a)?;
    let b = Sharded::from_row_major(devices, size, size, cols, &b)?;
    let mut c = Sharded::zeros(devices, size, size, rows)?;
    let (side, layouts) = (size as u64, [a.layout(), b.layout(), c.layout()]);
    let mut product = gemm.prepare_sharded(devices, Shape::new(side, side, side)?, layouts)?;
    let over_all = timed(|| product.run(&a, &b, &mut c))?;
    println!("{}\n", product.plan());
    drop(product);
    let anew = timed(|| gemm.run_sharded(devices, &a, &b, &mut c).map(|_| ()))?;

    println!("{} alone: {of_one:.2?}", one.name());
    println!(
        "{devices}: {over_all:.2?}, and {anew:.2?} with its plan, streams and panels made anew"
    );
    let is_same = c.gather()? == c1.to_row_major()?;
    println!("the numbers of one device: {}", if is_same { "yes" } else { "NO" });
    match is_same {
        true => Ok(()),
        false => Err(Error::argument("C", "other bits", "must be those of one device")),
    }
}
