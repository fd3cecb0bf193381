//! One product over several devices, beside the same on one: bits, times, and the plan.
//!
//! ```console
//! $ cargo run -p gpu-gemm --example several_devices -- cpu:4 300x200x100 f64
//! $ cargo run --release -p gpu-gemm --example several_devices -- 0,1 8192x8192x28672 bf16 gather
//! ```

use std::time::{Duration, Instant};

use gpu_gemm::{
    Bf16, Device, Devices, Error, Gemm, Matrix, Result, Shape, ShardLayout, Sharded,
    gemm::ShardedScalar,
};

const USAGE: &str = "\
several_devices PLACES MxNxK f32|f64|bf16 [LAYOUT]     [cpu:4 300x200x100 f64]
PLACES: cpu:4, all, or numbers of GPUs: 0,1
LAYOUT: how A, B and C are sharded
  rows     all by rows
  cols     all by columns
  grid     all by a grid, as square as it gets
  gather   A by rows, B and C by columns: A travels [without a LAYOUT]
  scatter  A by columns, B by rows, C by rows: sums travel";

/// A product is timed so often at least, and for so long.
const RUNS: usize = 5;
const TIMED: Duration = Duration::from_millis(300);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).collect::<Vec<_>>();
    if arguments.is_empty() {
        arguments = ["cpu:4", "300x200x100", "f64"].map(str::to_owned).to_vec();
    }
    let [places, sizes, element, rest @ ..] = &*arguments else {
        println!("{USAGE}");
        return Ok(());
    };
    let devices = match places.strip_prefix("cpu:") {
        Some(count) => Devices::cpu(number(count)?)?,
        None if places == "all" => Devices::all()?,
        None => Devices::of(&places.split(',').map(number).collect::<Result<Vec<_>>>()?)?,
    };
    let sizes = sizes.split('x').map(number).collect::<Result<Vec<_>>>()?;
    let Ok(sizes) = <[usize; 3]>::try_from(sizes) else {
        return Err(Error::argument("sizes", &arguments[1], "must be three: MxNxK"));
    };
    let layout = rest.first().map_or("gather", String::as_str);
    match &**element {
        "f32" => compare::<f32>(&devices, sizes, layout, |value| value),
        "f64" => compare::<f64>(&devices, sizes, layout, f64::from),
        "bf16" => compare::<Bf16>(&devices, sizes, layout, Bf16::from_f32),
        _ => Err(Error::argument("type", element, "must be f32, f64 or bf16")),
    }
}

fn number(text: &str) -> Result<usize> {
    text.parse::<usize>().map_err(|_| Error::argument("argument", text, "must be a number"))
}

/// The layouts of A, B and C.
fn layouts(name: &str, [m, n, k]: [usize; 3], places: usize) -> Result<[ShardLayout; 3]> {
    let (rows, cols) = (ShardLayout::rows, ShardLayout::cols);
    let sides = [[m, k], [k, n], [m, n]];
    let down = (1..=places)
        .rfind(|side| places.is_multiple_of(*side) && side * side <= places)
        .unwrap_or(1);
    Ok(match name {
        "rows" => sides.map(|[down, _]| rows(down, places)),
        "cols" => sides.map(|[_, across]| cols(across, places)),
        "grid" => sides.map(|size| ShardLayout::grid(size, [down, places / down])),
        "gather" => [rows(m, places), cols(n, places), cols(n, places)],
        "scatter" => [cols(k, places), rows(k, places), rows(m, places)],
        _ => return Err(Error::argument("LAYOUT", name, "must be one of those in the usage")),
    })
}

/// The median of some calls' times, after one that loads the kernels.
fn timed(mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    call()?;
    let (first, mut times) = (Instant::now(), Vec::new());
    while times.len() < RUNS || first.elapsed() < TIMED {
        let begin = Instant::now();
        call()?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

fn compare<T>(devices: &Devices, sizes: [usize; 3], layout: &str, of: fn(f32) -> T) -> Result<()>
where
    T: ShardedScalar + PartialEq,
{
    let [m, n, k] = sizes;
    let draw = |seed: u32, count: usize| {
        let mixed = |index: usize| {
            let first = (index as u32 ^ seed).wrapping_mul(0x7feb_352d);
            (first ^ first >> 15).wrapping_mul(0x846c_a68b) >> 8
        };
        (0..count).map(|index| of(mixed(index) as f32 / 8_388_608.0 - 1.0)).collect::<Vec<_>>()
    };
    let (a, b) = (draw(0x1234_5678, m * k), draw(0x0fed_cba9, k * n));

    let mut gemm = Gemm::new();
    if layout == "scatter" {
        // Each place sums its own range of k.
        gemm =
            gemm.partials(devices.len().try_into().unwrap_or(u32::MAX))?.workspace_limit(8 << 30);
    }
    let one = devices.iter().next().cloned().unwrap_or_else(Device::cpu);
    let stream = one.stream()?;
    let (a1, b1) =
        (Matrix::from_row_major(&one, m, k, &a)?, Matrix::from_row_major(&one, k, n, &b)?);
    let mut c1 = Matrix::zeros(&one, m, n)?;
    // The fastest of one place, which needs no partial products.
    let of_one =
        timed(|| Gemm::new().run(&stream, a1.view(), b1.view(), c1.view_mut()).map(|_| ()))?;
    gemm.run(&stream, a1.view(), b1.view(), c1.view_mut())?;

    let [of_a, of_b, of_c] = layouts(layout, sizes, devices.len())?;
    let a = Sharded::from_row_major(devices, m, k, of_a, &a)?;
    let b = Sharded::from_row_major(devices, k, n, of_b, &b)?;
    let mut c = Sharded::zeros(devices, m, n, of_c)?;
    let shape = Shape::new(m as u64, n as u64, k as u64)?;
    let layouts = [a.layout(), b.layout(), c.layout()];
    let mut product = gemm.prepare_sharded(devices, shape, layouts)?;
    let over_all = timed(|| product.run(&a, &b, &mut c))?;
    println!("{}\n", product.plan());
    let predicted = product.plan().predicted_us();
    drop(product);
    let anew = timed(|| gemm.run_sharded(devices, &a, &b, &mut c).map(|_| ()))?;

    let teraflops = |time: Duration| 2e-12 * (m * n * k) as f64 / time.as_secs_f64();
    let line = |what: &str, time| println!("{what}: {time:.3?}, {:.1} TFLOP/s", teraflops(time));
    line(&one.name(), of_one);
    line(&format!("{devices}, prepared"), over_all);
    line("its plan, streams and panels made anew", anew);
    let faster = of_one.as_secs_f64() / over_all.as_secs_f64();
    println!("prepared over one: {faster:.2} times as fast; predicted {predicted:.0} us");
    let is_same = c.gather()? == c1.to_row_major()?;
    println!("the numbers of one device: {}", if is_same { "yes" } else { "NO" });
    match is_same {
        true => Ok(()),
        false => Err(Error::argument("C", "other bits", "must be those of one device")),
    }
}
