//! The frame of a chart: its grid, the numbers at it, and the titles of both axes.

use plotters::prelude::DrawingBackend;

use super::pen::{FAINT, GREY, INK, MIDDLE, Pen, RIGHT, SMALL, TEXT};

/// The frame of a chart.
pub(in crate::cli) struct Frame<'a> {
    /// The places of its left and right side.
    pub(in crate::cli) sides: (i32, i32),
    /// The places of its top and bottom.
    pub(in crate::cli) ends: (i32, i32),
    /// Places along the x axis, and the numbers there. An empty one leaves room for its neighbours.
    pub(in crate::cli) across: Vec<(i32, String)>,
    /// Places along the y axis, and the numbers there.
    pub(in crate::cli) up: Vec<(i32, String)>,
    /// The titles of both axes.
    pub(in crate::cli) titles: (&'a str, &'a str),
}

impl Frame<'_> {
    pub(in crate::cli) fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        let ((left, right), (top, bottom)) = (self.sides, self.ends);
        for (x, number) in &self.across {
            pen.line(&[(*x, top), (*x, bottom)], FAINT, 1)?;
            if !number.is_empty() {
                pen.words(number, (*x, bottom + 16), MIDDLE, SMALL, GREY)?;
            }
        }
        for (y, number) in &self.up {
            pen.line(&[(left, *y), (right, *y)], FAINT, 1)?;
            pen.words(number, (left - 8, *y), RIGHT, SMALL, GREY)?;
        }
        pen.line(&[(left, top), (left, bottom), (right, bottom)], INK, 1)?;
        pen.words(self.titles.0, ((left + right) / 2, bottom + 42), MIDDLE, TEXT, INK)?;
        pen.upward(self.titles.1, (28, (top + bottom) / 2), INK)
    }
}
