//! Speed under the device's roof.

use plotters::prelude::DrawingBackend;

use super::{
    super::row::{Role, Row},
    legend::{factors, title},
};
use crate::cli::draw::{
    axis::{APART, Axis, left_of, plain},
    frame::Frame,
    numbered::{self, Numbered, list_width},
    pen::{BLUE, Drawing, GREY, LEFT, Pen, SMALL, TEXT},
    roof::roof,
    unit::Unit,
};

/// The fastest kernel of each size, and its number. Libraries are left out.
pub(super) struct Roofline<'a> {
    rows: &'a [Row],
    own: Vec<Point>,
    libraries: Vec<(f64, f64)>,
}

/// FLOP per byte, GFLOP/s, and the size.
struct Point {
    at: (f64, f64),
    size: String,
}

/// The most names in a picture.
const MOST: usize = 60;

impl<'a> Roofline<'a> {
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let at = |row: &Row| row.tflops.map(|tflops| (row.flop_per_byte(), tflops * 1e3));
        // An epilogue moves other bytes.
        let is_plain = |row: &Row| row.epilogue.is_none();
        let mut own = Vec::<Point>::new();
        for rows in rows.chunk_by(|one, other| one.size() == other.size()) {
            let timed = rows.iter().filter(|row| row.role != Role::Baseline && is_plain(row));
            let timed = timed.filter_map(|row| Some((row, at(row)?)));
            let fastest = timed.max_by(|one, other| one.1.1.total_cmp(&other.1.1));
            own.extend(fastest.map(|(row, at)| Point { at, size: row.size() }));
        }
        own.truncate(MOST);
        // The fastest comes first.
        own.sort_by(|one, other| other.at.1.total_cmp(&one.at.1));
        let libraries = rows.iter().filter(|row| row.role == Role::Baseline && is_plain(row));
        let libraries = libraries.filter_map(at);
        Roofline { rows, own, libraries: libraries.collect() }
    }
}

const WIDTH: i32 = 1060;
const HEIGHT: i32 = 640;
const TOP: i32 = 92;

impl Drawing for Roofline<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, HEIGHT.max(TOP + 110 + APART * self.own.len() as i32))
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Roofline", self.rows)?;
        let bottom = self.size().1 - 92;
        if self.own.is_empty() {
            return pen.words("nothing was timed", (92, TOP + 40), LEFT, TEXT, GREY);
        }
        let points = || self.own.iter().map(|point| point.at).chain(self.libraries.iter().copied());
        let peak = self.rows.iter().find_map(|row| row.roof_tflops).map(|tflops| tflops * 1e3);
        let memory = self.rows.iter().find_map(|row| row.roof_memory_gb_per_s);
        let unit = Unit::of(points().map(|at| at.1).chain(peak).fold(0.0, f64::max));
        let words =
            self.own.iter().map(|point| format!("{}  {}", point.size, unit.words(point.at.1)));
        let words = words.collect::<Vec<_>>();
        let names = list_width((1..).zip(words.iter().map(|words| &**words)));
        let right = WIDTH - 40 - names.min(WIDTH / 2);
        let y = Axis::around(points().map(|at| at.1).chain(peak), 10.0, (bottom, TOP));
        let up =
            y.ticks(10.0).map(|tick| (y.at(tick), plain(unit.value(tick)))).collect::<Vec<_>>();
        let left = left_of(up.iter().map(|(_, words)| &**words));
        let x = Axis::around(points().map(|at| at.0), 2.0, (left, right));
        // Every second power of two: a cube of 16384 does 2731 FLOP per byte.
        let power = |(number, value): (usize, f64)| {
            (x.at(value), if number % 2 == 0 { plain(value) } else { String::new() })
        };
        let frame = Frame {
            sides: (left, right),
            ends: (TOP, bottom),
            across: x.ticks(2.0).enumerate().map(power).collect(),
            up,
            titles: ("FLOP for each byte of A, B and C, moved once", unit.name),
        };
        frame.draw(pen)?;
        roof(pen, x, y, (peak, memory), (&factors(self.rows), unit))?;
        let note = match peak {
            None => "Blue: the fastest kernel. Grey: libraries. The CPU device has no roof.",
            Some(_) => "Blue: the fastest kernel. Grey: libraries. Orange: the device's roof.",
        };
        pen.words(note, (24, bottom + 70), LEFT, SMALL, GREY)?;
        for &(flop_per_byte, gflops) in &self.libraries {
            pen.dot((x.at(flop_per_byte), y.at(gflops)), 3, GREY)?;
        }
        let points = (1..).zip(self.own.iter().zip(words)).map(|(number, (point, words))| {
            Numbered { number, words, at: (x.at(point.at.0), y.at(point.at.1)), color: BLUE }
        });
        numbered::draw(pen, &points.collect::<Vec<_>>(), (right + 16, TOP + APART / 2))
    }
}
