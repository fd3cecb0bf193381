//! Speed under the device's roof.

use plotters::prelude::DrawingBackend;

use super::{Role, Row, title};
use crate::cli::draw::{
    axis::{APART, Axis, plain, spread},
    pen::{
        BLUE, Drawing, FAINT, GREY, INK, LEFT, MIDDLE, Pen, RIGHT, SMALL, TEXT, THREAD, speed,
        width_of,
    },
    roof::roof,
};

/// What was timed: the fastest kernel of each size with its name, libraries without.
pub(super) struct Roofline<'a> {
    rows: &'a [Row],
    own: Vec<Point>,
    libraries: Vec<(f64, f64)>,
}

/// FLOP a byte, GFLOP/s, and the words beside it.
struct Point {
    at: (f64, f64),
    words: String,
}

/// More names are no picture.
const MOST: usize = 60;

impl<'a> Roofline<'a> {
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let at = |row: &Row| row.tflops.map(|tflops| (row.flop_per_byte(), tflops * 1e3));
        let mut own = Vec::<Point>::new();
        for rows in rows.chunk_by(|one, other| one.size() == other.size()) {
            let timed = rows.iter().filter(|row| row.role != Role::Baseline);
            let timed = timed.filter_map(|row| Some((row, at(row)?)));
            let fastest = timed.max_by(|one, other| one.1.1.total_cmp(&other.1.1));
            own.extend(
                fastest.map(|(row, at)| Point {
                    at,
                    words: format!("{}  {}", row.size(), speed(at.1)),
                }),
            );
        }
        own.truncate(MOST);
        // From the top: so the lines to their names cross least.
        own.sort_by(|one, other| other.at.1.total_cmp(&one.at.1));
        let libraries = rows.iter().filter(|row| row.role == Role::Baseline).filter_map(at);
        Roofline { rows, own, libraries: libraries.collect() }
    }
}

const WIDTH: i32 = 1060;
const HEIGHT: i32 = 640;
const TOP: i32 = 92;
const LEFT_EDGE: i32 = 92;

impl Drawing for Roofline<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, HEIGHT.max(TOP + 110 + APART * self.own.len() as i32))
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Roofline", self.rows)?;
        let bottom = self.size().1 - 92;
        if self.own.is_empty() {
            return pen.words("nothing was timed", (LEFT_EDGE, TOP + 40), LEFT, TEXT, GREY);
        }
        let names = self.own.iter().map(|point| width_of(&point.words, SMALL));
        let right = WIDTH - 40 - names.max().unwrap_or(100).min(WIDTH / 2);
        let points = || self.own.iter().map(|point| point.at).chain(self.libraries.iter().copied());
        let fp32 = self.rows.iter().find_map(|row| row.roof_tflops).map(|tflops| tflops * 1e3);
        let memory = self.rows.iter().find_map(|row| row.roof_memory_gb_per_s);
        let x = Axis::around(points().map(|at| at.0), 2.0, (LEFT_EDGE, right));
        let y = Axis::around(points().map(|at| at.1).chain(fp32), 10.0, (bottom, TOP));
        // Every second power: a cube of 16384 does 2731 FLOP for each byte.
        for (number, value) in x.ticks(2.0).enumerate() {
            pen.line(&[(x.at(value), TOP), (x.at(value), bottom)], FAINT, 1)?;
            if number % 2 == 0 {
                pen.words(&plain(value), (x.at(value), bottom + 16), MIDDLE, SMALL, GREY)?;
            }
        }
        for value in y.ticks(10.0) {
            pen.line(&[(LEFT_EDGE, y.at(value)), (right, y.at(value))], FAINT, 1)?;
            pen.words(&plain(value), (LEFT_EDGE - 8, y.at(value)), RIGHT, SMALL, GREY)?;
        }
        pen.line(&[(LEFT_EDGE, TOP), (LEFT_EDGE, bottom), (right, bottom)], INK, 1)?;
        let words = "FLOP for each byte of A, B and C, moved once";
        pen.words(words, ((LEFT_EDGE + right) / 2, bottom + 42), MIDDLE, TEXT, INK)?;
        pen.upward("GFLOP/s", (28, (TOP + bottom) / 2), INK)?;
        roof(pen, x, y, fp32, memory)?;
        let note = match fp32 {
            None => "Blue: the fastest kernel. Grey: libraries. The CPU device has no roof.",
            Some(_) => "Blue: the fastest kernel. Grey: libraries. Orange: the device's roof.",
        };
        pen.words(note, (24, bottom + 70), LEFT, SMALL, GREY)?;
        for &(flop_per_byte, gflops) in &self.libraries {
            pen.dot((x.at(flop_per_byte), y.at(gflops)), 3, GREY)?;
        }
        let place = |point: &Point| (x.at(point.at.0), y.at(point.at.1));
        let wanted = self.own.iter().map(|point| place(point).1).collect::<Vec<_>>();
        for (point, row) in self.own.iter().zip(spread(&wanted, TOP, bottom)) {
            pen.line(&[place(point), (right + 6, row), (right + 12, row)], THREAD, 1)?;
            pen.words(&point.words, (right + 16, row), LEFT, SMALL, INK)?;
        }
        self.own.iter().try_for_each(|point| pen.dot(place(point), 5, BLUE))
    }
}
