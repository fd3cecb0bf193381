//! The roof of a roofline.

use plotters::prelude::DrawingBackend;

use super::{
    axis::Axis,
    pen::{LEFT, ORANGE, Pen, RIGHT, SMALL},
    unit::Unit,
};

/// The line of memory bandwidth up to the peak, then the peak: GFLOP/s of a type, and 10^9 bytes
/// per second.
pub(in crate::cli) fn roof<B: DrawingBackend>(
    pen: &Pen<B>,
    x: Axis,
    y: Axis,
    (peak, memory): (Option<f64>, Option<f64>),
    (of, unit): (&str, Unit),
) -> Result<(), String> {
    let Some(most) = peak else { return Ok(()) };
    let corner = memory.map_or(x.from, |speed| (most / speed).max(x.from));
    let peak = y.at(most);
    let mut points = Vec::new();
    if let Some(speed) = memory {
        points.push((x.from, speed * x.from));
    }
    if corner < x.to {
        points.extend([(corner, most), (x.to, most)]);
    } else if let Some(speed) = memory {
        points.push((x.to, speed * x.to));
    }
    let points = points.iter().map(|&(a, b)| (x.at(a), y.at(b))).collect::<Vec<_>>();
    pen.line(&points, ORANGE, 2)?;
    let words = format!("{of} peak {}", unit.words(most));
    pen.words(&words, (x.pixels.1 - 8, peak - 14), RIGHT, SMALL, ORANGE)?;
    if let Some(memory) = memory {
        let words = format!("global memory {memory:.0} GB/s");
        let at = (x.at(x.from) + 10, y.at(memory * x.from) + 4);
        pen.words(&words, (at.0 + 16, at.1 + 14), LEFT, SMALL, ORANGE)?;
    }
    Ok(())
}
