//! Titles, names and colours.

use plotters::prelude::{DrawingBackend, RGBColor};

use super::super::row::{Role, Row};
use crate::cli::draw::pen::{BLUE, GREY, INK, LEFT, ORANGE, Pen, TEXT, THREAD, TITLE};

/// The caption: what is shown, and where it was measured.
pub(super) fn title<B: DrawingBackend>(
    pen: &Pen<B>,
    what: &str,
    rows: &[Row],
) -> Result<(), String> {
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

/// The type of the operands, by which the roof is computed.
pub(super) fn factors(rows: &[Row]) -> String {
    let of = |row: &Row| match &*row.compute {
        "fp32" | "fp64" => row.dtype.clone(),
        how => how.to_owned(),
    };
    rows.first().map_or_else(String::new, of)
}

/// The name of a row's line. `auto` is a different kernel at each size.
pub(super) fn series(row: &Row) -> String {
    if row.role == Role::Auto { "the chosen kernel".to_owned() } else { row.kernel.clone() }
}

/// Colours of named kernels, used in rotation.
const KERNELS: [RGBColor; 6] = [
    ORANGE,
    RGBColor(46, 139, 87),
    RGBColor(128, 70, 160),
    RGBColor(180, 60, 90),
    RGBColor(60, 150, 170),
    RGBColor(140, 120, 40),
];

/// The colour of the series with that number among those of its role.
pub(super) fn color(role: Role, number: usize) -> RGBColor {
    match role {
        Role::Auto => BLUE,
        Role::Named => KERNELS[number % KERNELS.len()],
        Role::Baseline => [INK, GREY, THREAD][number % 3],
    }
}
