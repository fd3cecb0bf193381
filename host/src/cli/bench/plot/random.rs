//! The ratio of random shapes against their operations.

use plotters::prelude::DrawingBackend;

use super::{
    super::row::{Role, Row},
    legend::title,
};
use crate::cli::draw::{
    axis::{Axis, left_of, plain},
    frame::Frame,
    pen::{BLUE, Drawing, GREY, INK, LEFT, ORANGE, Pen, SMALL, TEXT},
};

/// A dot for each shape.
pub(super) struct Random<'a> {
    rows: &'a [Row],
    shapes: Vec<&'a Row>,
}

impl<'a> Random<'a> {
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let shapes = rows.iter().filter(|row| row.role == Role::Auto && row.drawn.is_some());
        Random { rows, shapes: shapes.filter(|row| row.ratio_low.is_some()).collect() }
    }
}

const WIDTH: i32 = 1060;
const HEIGHT: i32 = 640;
const TOP: i32 = 92;

impl Drawing for Random<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, HEIGHT)
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Random shapes: times as fast as the baseline", self.rows)?;
        let (right, bottom) = (WIDTH - 40, HEIGHT - 92);
        if self.shapes.is_empty() {
            return pen.words("nothing was compared", (92, TOP + 40), LEFT, TEXT, GREY);
        }
        let ratios = self.shapes.iter().filter_map(|row| row.ratio_low).chain([0.9, 1.1]);
        let y = Axis::around(ratios, 2.0, (bottom, TOP));
        let up = y.ticks(2.0).map(|tick| (y.at(tick), plain(tick))).collect::<Vec<_>>();
        let left = left_of(up.iter().map(|(_, words)| &**words));
        let x = Axis::around(self.shapes.iter().map(|row| row.flop()), 10.0, (left, right));
        let power = |value: f64| (x.at(value), format!("1e{}", value.log10().round()));
        let frame = Frame {
            sides: (left, right),
            ends: (TOP, bottom),
            across: x.ticks(10.0).map(power).collect(),
            up,
            titles: ("operations of a product, or of a batch", "ratio_low"),
        };
        frame.draw(pen)?;
        pen.line(&[(left, y.at(1.0)), (right, y.at(1.0))], INK, 1)?;
        for row in &self.shapes {
            let color = if row.aligned == Some(true) { BLUE } else { ORANGE };
            let at = (x.at(row.flop()), y.at(row.ratio_low.unwrap_or(1.0)));
            pen.dot(at, 4, color)?;
        }
        let words = "The baseline's time over ours, the lower end of the 95 % interval. Blue: aligned. Orange: not aligned.";
        pen.words(words, (24, bottom + 70), LEFT, SMALL, GREY)
    }
}
