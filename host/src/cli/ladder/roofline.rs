//! The roofline: how fast each rung is, against what it asks of global memory.

use plotters::prelude::DrawingBackend;

use super::{
    chart::{color, label, title},
    line::Line,
};
use crate::cli::{
    Failure,
    args::Format,
    draw::{
        axis::{APART, Axis, plain, spread},
        pen::{
            Drawing, FAINT, GREY, INK, LEFT, MIDDLE, Pen, RIGHT, SMALL, TEXT, THREAD, render,
            speed, width_of,
        },
        roof::roof,
    },
};

/// The picture's bytes.
pub(super) fn draw(lines: &[Line], format: Format) -> Result<Vec<u8>, Failure> {
    let points = lines.iter().filter_map(|line| {
        let at = (1.0 / line.bytes_per_flop_derived?, line.gflops?);
        (at.0 > 0.0 && at.0.is_finite() && at.1 > 0.0).then_some(Point { line, at })
    });
    let mut points = points.collect::<Vec<_>>();
    // From the top: so the lines to their names cross least.
    points.sort_by(|one, other| other.at.1.total_cmp(&one.at.1));
    render(&Roofline { lines, points }, format)
}

struct Roofline<'a> {
    lines: &'a [Line],
    points: Vec<Point<'a>>,
}

/// A rung: FLOP a byte, and GFLOP/s.
struct Point<'a> {
    line: &'a Line,
    at: (f64, f64),
}

const WIDTH: i32 = 1060;
const HEIGHT: i32 = 640;
const TOP: i32 = 92;
const LEFT_EDGE: i32 = 92;
const BOTTOM: i32 = HEIGHT - 92;

impl Drawing for Roofline<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, HEIGHT.max(TOP + 92 + APART * self.points.len() as i32))
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Roofline of the ladder", self.lines)?;
        let words = |point: &Point| format!("{}  {}", label(point.line), speed(point.at.1));
        let names = self.points.iter().map(|point| width_of(&words(point), SMALL));
        let right = WIDTH - 40 - names.max().unwrap_or(100).min(WIDTH / 2);

        let fp32 = self.lines.iter().find_map(|line| line.roof_gflops);
        let memory = self.lines.iter().find_map(|line| line.roof_memory_gb_per_s);
        let x = Axis::around(self.points.iter().map(|point| point.at.0), 2.0, (LEFT_EDGE, right));
        // The roof over the leftmost point may be below all of them.
        let speeds = self.points.iter().map(|point| point.at.1);
        let roofs = [fp32, memory.map(|speed| speed * x.from)].into_iter().flatten();
        let y = Axis::around(speeds.chain(roofs), 10.0, (BOTTOM, TOP));

        for tick in x.ticks(2.0) {
            pen.line(&[(x.at(tick), TOP), (x.at(tick), BOTTOM)], FAINT, 1)?;
            pen.words(&plain(tick), (x.at(tick), BOTTOM + 16), MIDDLE, SMALL, GREY)?;
        }
        for tick in y.ticks(10.0) {
            pen.line(&[(LEFT_EDGE, y.at(tick)), (right, y.at(tick))], FAINT, 1)?;
            pen.words(&plain(tick), (LEFT_EDGE - 8, y.at(tick)), RIGHT, SMALL, GREY)?;
        }
        pen.line(&[(LEFT_EDGE, TOP), (LEFT_EDGE, BOTTOM), (right, BOTTOM)], INK, 1)?;
        let middle = (LEFT_EDGE + right) / 2;
        pen.words(
            "FLOP for each byte that a block asks global memory for",
            (middle, BOTTOM + 42),
            MIDDLE,
            TEXT,
            INK,
        )?;
        pen.upward("GFLOP/s", (28, (TOP + BOTTOM) / 2), INK)?;
        roof(pen, x, y, fp32, memory)?;
        let note = match (fp32, memory) {
            (None, _) => "The CPU device has no roof.",
            _ => {
                "Orange: the device's roof. Caches serve part of what blocks ask for, so a rung can lie above its slope."
            }
        };
        pen.words(note, (24, BOTTOM + 70), LEFT, SMALL, GREY)?;

        // Each name in a column at the right, as near to its point as the others let it.
        let wanted = self.points.iter().map(|point| y.at(point.at.1)).collect::<Vec<_>>();
        for ((point, &own), row) in
            self.points.iter().zip(&wanted).zip(spread(&wanted, TOP, BOTTOM))
        {
            let dot = (x.at(point.at.0), own);
            pen.line(&[dot, (right + 6, row), (right + 12, row)], THREAD, 1)?;
            pen.words(&words(point), (right + 16, row), LEFT, SMALL, INK)?;
        }
        for (point, &own) in self.points.iter().zip(&wanted) {
            pen.dot((x.at(point.at.0), own), 5, color(point.line))?;
        }
        Ok(())
    }
}
