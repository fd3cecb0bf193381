//! The ladder as a bar chart: the speed of each rung.

use plotters::prelude::{DrawingBackend, RGBColor};

use super::line::Line;
use crate::cli::{
    Failure,
    args::Format,
    draw::axis::{plain, tick},
    draw::pen::{
        BLUE, Drawing, FAINT, GREY, INK, LEFT, MIDDLE, ORANGE, PAPER, Pen, RIGHT, SMALL, TEXT,
        TITLE, render, width_of,
    },
    draw::unit::Unit,
};

/// The picture's bytes.
pub(super) fn draw(lines: &[Line], format: Format) -> Result<Vec<u8>, Failure> {
    render(&Chart { lines }, format)
}

struct Chart<'a> {
    lines: &'a [Line],
}

const WIDTH: i32 = 960;
const ROW: i32 = 32;
const TOP: i32 = 92;
const BOTTOM: i32 = 62;
/// The width for the speed beside the longest bar.
const BESIDE: i32 = 170;

impl Drawing for Chart<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, TOP + ROW * self.lines.len() as i32 + BOTTOM)
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Speed of each rung", self.lines)?;
        let names = self.lines.iter().map(|line| width_of(&label(line), TEXT));
        let left = 24 + names.max().unwrap_or(0).min(WIDTH / 2);
        let right = WIDTH - BESIDE;
        let bottom = TOP + ROW * self.lines.len() as i32;

        let speeds = self.lines.iter().filter_map(|line| line.gflops);
        let most = speeds.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let unit = Unit::of(most);
        let most = unit.value(most);
        let step = tick(most / 7.0);
        let x = |value: f64| left + (f64::from(right - left) * value / most).round() as i32;
        for number in 0..=(most / step).floor() as i32 {
            let value = f64::from(number) * step;
            pen.line(&[(x(value), TOP), (x(value), bottom)], FAINT, 1)?;
            pen.words(&plain(value), (x(value), bottom + 14), MIDDLE, SMALL, GREY)?;
        }
        pen.words(unit.name, ((left + right) / 2, bottom + 40), MIDDLE, TEXT, INK)?;

        for (number, line) in (0..).zip(self.lines) {
            let y = TOP + ROW * number + ROW / 2;
            pen.words(&label(line), (left - 10, y), RIGHT, TEXT, INK)?;
            let Some(gflops) = line.gflops else {
                let why = if line.verified { "not timed" } else { "wrong, not timed" };
                pen.words(why, (left + 8, y), LEFT, SMALL, ORANGE)?;
                continue;
            };
            let end = x(unit.value(gflops));
            pen.fill((left, y - 10), (end.max(left + 1), y + 10), color(line))?;
            let gain = line.gain.map_or(String::new(), |gain| format!("  \u{d7}{gain:.2}"));
            let words = format!("{}{gain}", unit.words(gflops));
            // Words must not cross the lines of the axis.
            let (from, to) = (end + 4, end + 8 + width_of(&words, SMALL));
            pen.fill((from, y - 9), (to, y + 9), PAPER)?;
            pen.words(&words, (from + 4, y), LEFT, SMALL, INK)?;
        }
        pen.line(&[(left, TOP), (left, bottom)], INK, 1)
    }
}

/// The rung's number and name.
pub(super) fn label(line: &Line) -> String {
    match line.rung {
        Some(number) => format!("{number}  {}", line.kernel),
        None => line.kernel.clone(),
    }
}

/// Rungs are blue, the baseline is grey.
pub(super) fn color(line: &Line) -> RGBColor {
    if line.rung.is_some() { BLUE } else { GREY }
}

/// The caption: what is shown, the device, and the size.
pub(super) fn title<B: DrawingBackend>(
    pen: &Pen<B>,
    what: &str,
    lines: &[Line],
) -> Result<(), String> {
    pen.words(what, (24, 32), LEFT, TITLE, INK)?;
    let subtitle = lines.first().map_or(String::new(), |line| {
        let Line { m, n, k, description, device, dtype, .. } = line;
        let of = if dtype == "f32" { "float32" } else { dtype };
        format!("C = A B, m = {m}, n = {n}, k = {k}, {of}, on {device}: {description}")
    });
    pen.words(&subtitle, (24, 62), LEFT, TEXT, GREY)
}
