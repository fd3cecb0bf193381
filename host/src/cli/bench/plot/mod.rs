//! Pictures of results.
//!
//! | module | what it shows |
//! |---|---|
//! | `speed` | the speed of plain products of cubes against their size, a line for each kernel and library |
//! | `ratio` | the speed relative to the baseline, with its interval, a row for each size |
//! | `random` | the lower end of the ratio against a product's operations, a dot for each random shape |
//! | `roofline` | the speed of plain products against the operations per byte, under the device's roof |

mod legend;
mod random;
mod ratio;
mod roofline;
mod speed;

use super::row::Row;
use crate::cli::{
    Failure,
    args::Format,
    draw::pen::{Drawing, render},
};

/// All files that can be written: an SVG and a PNG for each picture.
pub(super) const FILES: [[&str; 2]; 4] = [
    ["speed.svg", "speed.png"],
    ["ratio.svg", "ratio.png"],
    ["roofline.svg", "roofline.png"],
    ["random.svg", "random.png"],
];

/// The pictures of these rows: file names and bytes. Random shapes are too many for most pictures,
/// so they have their own.
pub(super) fn all(rows: &[Row]) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let [speed, ratio, roofline, random] = FILES;
    if rows.iter().any(|row| row.drawn.is_some()) {
        return Ok(files(random, &random::Random::of(rows))?.to_vec());
    }
    let speed = files(speed, &speed::Speed::of(rows))?;
    let ratio = files(ratio, &ratio::Ratio::of(rows))?;
    let roofline = files(roofline, &roofline::Roofline::of(rows))?;
    Ok([speed, ratio, roofline].concat())
}

/// A picture's files.
fn files(
    [svg, png]: [&'static str; 2],
    drawing: &impl Drawing,
) -> Result<[(&'static str, Vec<u8>); 2], Failure> {
    Ok([(svg, render(drawing, Format::Svg)?), (png, render(drawing, Format::Png)?)])
}
