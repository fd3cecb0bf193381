//! The roofline: the speed of each rung against its operations per byte of global memory.

use plotters::prelude::DrawingBackend;

use super::{
    chart::{color, title},
    line::Line,
};
use crate::cli::{
    Failure,
    args::Format,
    draw::{
        axis::{APART, Axis, left_of, plain},
        frame::Frame,
        numbered::{self, Numbered, list_width},
        pen::{Drawing, GREY, LEFT, Pen, SMALL, render},
        roof::roof,
        unit::Unit,
    },
};

/// The picture's bytes.
pub(super) fn draw(lines: &[Line], format: Format) -> Result<Vec<u8>, Failure> {
    let points = lines.iter().filter_map(|line| {
        let at = (line.flop_per_byte_derived?, line.gflops?);
        let number = line.rung?;
        (at.0 > 0.0 && at.0.is_finite() && at.1 > 0.0).then_some(Point { line, number, at })
    });
    render(&Roofline { lines, points: points.collect() }, format)
}

struct Roofline<'a> {
    lines: &'a [Line],
    points: Vec<Point<'a>>,
}

/// A rung: its number, FLOP per byte, and GFLOP/s.
struct Point<'a> {
    line: &'a Line,
    number: usize,
    at: (f64, f64),
}

const WIDTH: i32 = 1060;
const HEIGHT: i32 = 640;
const TOP: i32 = 92;
const BOTTOM: i32 = HEIGHT - 92;

impl Drawing for Roofline<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, HEIGHT.max(TOP + 92 + APART * self.points.len() as i32))
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Roofline of the ladder", self.lines)?;
        let fp32 = self.lines.iter().find_map(|line| line.roof_gflops);
        let memory = self.lines.iter().find_map(|line| line.roof_memory_gb_per_s);
        let speeds = self.points.iter().map(|point| point.at.1);
        let unit = Unit::of(speeds.clone().chain(fp32).fold(0.0, f64::max));
        let words = |point: &Point| format!("{}  {}", point.line.kernel, unit.words(point.at.1));
        let all = self.points.iter().map(|point| (point.number, words(point))).collect::<Vec<_>>();
        let names = list_width(all.iter().map(|(number, words)| (*number, &**words)));
        let right = WIDTH - 40 - names.min(WIDTH / 2);

        // The roof above the leftmost point may be below all points.
        let shares = self.points.iter().map(|point| point.at.0);
        let from = Axis::around(shares.clone(), 2.0, (0, right)).from;
        let roofs = [fp32, memory.map(|speed| speed * from)].into_iter().flatten();
        let y = Axis::around(speeds.chain(roofs), 10.0, (BOTTOM, TOP));
        let up =
            y.ticks(10.0).map(|tick| (y.at(tick), plain(unit.value(tick)))).collect::<Vec<_>>();
        let left = left_of(up.iter().map(|(_, words)| &**words));
        let x = Axis::around(shares, 2.0, (left, right));

        let frame = Frame {
            sides: (left, right),
            ends: (TOP, BOTTOM),
            across: x.ticks(2.0).map(|tick| (x.at(tick), plain(tick))).collect(),
            up,
            titles: ("FLOP for each byte that a block asks global memory for", unit.name),
        };
        frame.draw(pen)?;
        let of = self.lines.first().map_or("f32", |line| &line.dtype);
        let of = if of == "f32" { "float32" } else { of };
        roof(pen, x, y, (fp32, memory), (of, unit))?;
        let note = match (fp32, memory) {
            (None, _) => "The CPU device has no roof.",
            _ => {
                "Orange: the device's roof. Caches serve part of what blocks ask for, so a rung can lie above its slope."
            }
        };
        pen.words(note, (24, BOTTOM + 70), LEFT, SMALL, GREY)?;

        let points = self.points.iter().zip(all).map(|(point, (number, words))| Numbered {
            number,
            words,
            at: (x.at(point.at.0), y.at(point.at.1)),
            color: color(point.line),
        });
        numbered::draw(pen, &points.collect::<Vec<_>>(), (right + 16, TOP + APART / 2))
    }
}
