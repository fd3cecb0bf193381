//! Boundary checks in the kernel, or padded matrices and a kernel without checks: the time and the
//! bytes of each.
//!
//! ```console
//! $ cargo run --release -p host --example padding                    # 1000 700 513
//! $ cargo run --release -p host --example padding -- 4097 4097 4097
//! ```

use std::{env, error::Error, time::Duration};

use host::{
    Device, Shape, operands,
    padding::{Measured, padded_shape, with_checks, with_padding},
};

/// A figure to compare: its name, its value, its unit.
struct Row(&'static str, fn(&Measured) -> f64, &'static str);

const ROWS: [Row; 7] = [
    Row("on the device, and copied", |way| way.bytes as f64, "bytes"),
    Row("padding A and B", |way| us(way.pad), "us"),
    Row("A and B to the device", |way| us(way.upload), "us"),
    Row("kernel", |way| us(way.kernel), "us"),
    Row("C from the device", |way| us(way.download), "us"),
    Row("cutting C out", |way| us(way.cut), "us"),
    Row("in all", |way| us(way.total()), "us"),
];

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn main() -> Result<(), Box<dyn Error>> {
    let sizes = env::args().skip(1).map(|text| {
        text.parse::<u64>()
            .map_err(|error| format!("size = {text}: {error} (m n k, three numbers)"))
    });
    let shape = match sizes.collect::<Result<Vec<_>, _>>()?[..] {
        [] => Shape::new(1000, 700, 513)?,
        [m, n, k] => Shape::new(m, n, k)?,
        ref sizes => return Err(format!("sizes = {sizes:?}: must be three, m n k").into()),
    };
    let device = Device::best().device;
    let stream = device.stream()?;
    // Integers, so that both ways give the same bits.
    let a = operands::integers(1, shape.a_len(), 1)?;
    let b = operands::integers(2, shape.b_len(), 1)?;
    let launches = if device.is_cuda() { 20 } else { 3 };
    let checked = with_checks(&stream, shape, &a, &b, launches)?;
    let padded = with_padding(&stream, shape, &a, &b, launches)?;
    if checked.c != padded.c {
        return Err("the two ways come to different results".into());
    }

    println!("{shape} on {device}");
    println!("padded: {}\n", padded_shape(shape)?);
    println!("{:26} {:>14} {:>14}", "", "tiled16", "padded16");
    for Row(name, value, unit) in ROWS {
        let [checked, padded] = [&checked, &padded].map(value);
        let ratio =
            if checked > 0.0 { format!("{:.3} x", padded / checked) } else { String::new() };
        println!("{name:26} {checked:>14.0} {padded:>14.0} {unit:5} {ratio:>9}");
    }
    println!("\nboth give the same C");
    Ok(())
}
