//! The speed relative to the baseline.

use plotters::prelude::DrawingBackend;

use super::{
    super::row::{Role, Row},
    legend::title,
};
use crate::cli::draw::{
    axis::{Axis, plain},
    pen::{
        BLUE, Drawing, FAINT, GREY, INK, LEFT, MIDDLE, ORANGE, Pen, RIGHT, SMALL, TEXT, width_of,
    },
};

/// Kernels and their baselines.
pub(super) struct Ratio<'a> {
    all: &'a [Row],
    rows: Vec<&'a Row>,
    /// The number of rows left out.
    more: usize,
}

/// The most rows of a picture.
const MOST: usize = 120;
const WIDTH: i32 = 1060;
const LINE: i32 = 26;
const TOP: i32 = 92;
const BOTTOM: i32 = 92;
/// The width for the figures on the right.
const BESIDE: i32 = 270;

impl<'a> Ratio<'a> {
    pub(super) fn of(all: &'a [Row]) -> Self {
        let is_own = |row: &&Row| {
            let other = row.baseline.as_ref().is_some_and(|baseline| *baseline != row.kernel);
            row.role != Role::Baseline && (other || row.is_wrong())
        };
        let mut rows = all.iter().filter(is_own).collect::<Vec<_>>();
        let more = rows.len().saturating_sub(MOST);
        rows.truncate(MOST);
        Ratio { all, rows, more }
    }

    /// The label of a row: its size and its kernel.
    fn label(row: &Row) -> String {
        format!("{}  {}", row.work(), row.kernel)
    }
}

impl Drawing for Ratio<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, TOP + LINE * self.rows.len().max(2) as i32 + BOTTOM)
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Times as fast as the baseline", self.all)?;
        if self.rows.is_empty() {
            return pen.words("nothing was compared", (24, TOP + 20), LEFT, TEXT, GREY);
        }
        let names = self.rows.iter().map(|row| width_of(&Ratio::label(row), SMALL));
        let left = 34 + names.max().unwrap_or(0).min(WIDTH / 2);
        let right = WIDTH - BESIDE;
        let bottom = TOP + LINE * self.rows.len() as i32;
        let ratios = self.rows.iter().flat_map(|row| [row.ratio_low, row.ratio, row.ratio_high]);
        let values = ratios.flatten().chain([0.9, 1.1]);
        let x = Axis::around(values, 2.0, (left, right));
        for value in x.ticks(2.0) {
            pen.line(&[(x.at(value), TOP), (x.at(value), bottom)], FAINT, 1)?;
            pen.words(&plain(value), (x.at(value), bottom + 14), MIDDLE, SMALL, GREY)?;
        }
        pen.line(&[(x.at(1.0), TOP), (x.at(1.0), bottom)], INK, 1)?;
        for (number, row) in (0..).zip(&self.rows) {
            let y = TOP + LINE * number + LINE / 2;
            pen.words(&Ratio::label(row), (left - 10, y), RIGHT, SMALL, INK)?;
            let (Some(ratio), Some(baseline)) = (row.ratio, &row.baseline) else {
                pen.words("wrong, not timed", (right + 12, y), LEFT, SMALL, ORANGE)?;
                continue;
            };
            let (low, high) = (row.ratio_low.unwrap_or(ratio), row.ratio_high.unwrap_or(ratio));
            let color = match () {
                () if low >= 1.0 => BLUE,
                () if high < 1.0 => ORANGE,
                () => GREY,
            };
            pen.line(&[(x.at(low), y), (x.at(high), y)], color, 3)?;
            pen.dot((x.at(ratio), y), 4, color)?;
            let words = format!("{ratio:.3} ({low:.3} to {high:.3})  {baseline}");
            pen.words(&words, (right + 12, y), LEFT, SMALL, INK)?;
        }
        let words = "the baseline's time over its own, median and 95 % interval: blue is faster, orange slower";
        pen.words(words, (24, bottom + 42), LEFT, SMALL, GREY)?;
        if self.more > 0 {
            let words = format!("and {} more", self.more);
            pen.words(&words, (24, bottom + 66), LEFT, SMALL, GREY)?;
        }
        Ok(())
    }
}
