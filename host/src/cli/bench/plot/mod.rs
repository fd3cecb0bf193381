//! Pictures of results.
//!
//! | module | what it shows |
//! |---|---|
//! | `speed` | the speed of cubes against their size, a line for each kernel and library |
//! | `ratio` | how many times as fast as the baseline, with its interval, a row for each size |
//! | `random` | the lower end of the ratio against a product's operations, a dot for each random shape |
//! | `roofline` | the speed against what a product computes for each byte, under the device's roof |

mod random;
mod ratio;
mod roofline;
mod speed;

use plotters::prelude::{DrawingBackend, RGBColor};

use super::row::{Role, Row};
use crate::cli::{
    Failure,
    args::Format,
    draw::pen::{BLUE, GREY, INK, LEFT, ORANGE, Pen, TEXT, THREAD, TITLE, render},
};

/// Their files, in the order of [`all`].
pub(super) const FILES: [&str; 8] = [
    "speed.svg",
    "speed.png",
    "ratio.svg",
    "ratio.png",
    "roofline.svg",
    "roofline.png",
    "random.svg",
    "random.png",
];

/// The files that show these rows, with their bytes. Random shapes have a picture of their own: they are too many for the
/// others.
pub(super) fn all(rows: &[Row]) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let [
        speed_svg,
        speed_png,
        ratio_svg,
        ratio_png,
        roofline_svg,
        roofline_png,
        random_svg,
        random_png,
    ] = FILES;
    if rows.iter().any(|row| row.drawn.is_some()) {
        let random = random::Random::of(rows);
        return Ok(vec![
            (random_svg, render(&random, Format::Svg)?),
            (random_png, render(&random, Format::Png)?),
        ]);
    }
    let (speed, ratio) = (speed::Speed::of(rows), ratio::Ratio::of(rows));
    let roofline = roofline::Roofline::of(rows);
    Ok(vec![
        (speed_svg, render(&speed, Format::Svg)?),
        (speed_png, render(&speed, Format::Png)?),
        (ratio_svg, render(&ratio, Format::Svg)?),
        (ratio_png, render(&ratio, Format::Png)?),
        (roofline_svg, render(&roofline, Format::Svg)?),
        (roofline_png, render(&roofline, Format::Png)?),
    ])
}

/// What it is, and where it was measured.
fn title<B: DrawingBackend>(pen: &Pen<B>, what: &str, rows: &[Row]) -> Result<(), String> {
    pen.words(what, (24, 32), LEFT, TITLE, INK)?;
    let subtitle = rows.first().map_or(String::new(), |row| {
        let types = match rows.iter().all(|other| other.is_of_types(row)) {
            true => row.types(),
            false => "several types".to_owned(),
        };
        format!("C = A B, {types}, on {}: {}", row.device, row.description)
    });
    pen.words(&subtitle, (24, 62), LEFT, TEXT, GREY)
}

/// What is multiplied, of which the roof is.
fn factors(rows: &[Row]) -> String {
    let of = |row: &Row| match &*row.compute {
        "fp32" => row.dtype.clone(),
        how => how.to_owned(),
    };
    rows.first().map_or_else(String::new, of)
}

/// What a row's line is called: the kernel that is chosen has another name at each size.
fn series(row: &Row) -> String {
    if row.role == Role::Auto { "the chosen kernel".to_owned() } else { row.kernel.clone() }
}

/// Colours of kernels asked for by name, over and over.
const KERNELS: [RGBColor; 6] = [
    ORANGE,
    RGBColor(46, 139, 87),
    RGBColor(128, 70, 160),
    RGBColor(180, 60, 90),
    RGBColor(60, 150, 170),
    RGBColor(140, 120, 40),
];

/// The colour of the series of that number among those of its role.
fn color(role: Role, number: usize) -> RGBColor {
    match role {
        Role::Auto => BLUE,
        Role::Named => KERNELS[number % KERNELS.len()],
        Role::Baseline => [INK, GREY, THREAD][number % 3],
    }
}
