//! The roofline: how fast each rung is, against what it asks of global memory.

use plotters::prelude::DrawingBackend;

use super::{
    chart::{color, label, plain, title},
    line::Line,
};
use crate::cli::{
    Failure,
    args::Format,
    pen::{
        Drawing, FAINT, GREY, INK, LEFT, MIDDLE, ORANGE, Pen, RIGHT, SMALL, TEXT, THREAD, render,
        speed, width_of,
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
/// Names stand below one another, so far apart.
const APART: i32 = 22;

/// A logarithmic axis, from one power of a base to another.
#[derive(Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    pixels: (i32, i32),
}

impl Axis {
    fn at(&self, value: f64) -> i32 {
        let share = (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln());
        self.pixels.0 + (share * f64::from(self.pixels.1 - self.pixels.0)).round() as i32
    }

    /// From the greatest power that is not above all values to the least that is not below them, two apart at
    /// least.
    fn around(values: impl Iterator<Item = f64> + Clone, base: f64, pixels: (i32, i32)) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max);
        let power = |value: f64| value.ln() / base.ln();
        let (low, high) = match low.is_finite() && high > 0.0 {
            true => ((power(low) - 0.05).floor(), (power(high) + 0.05).ceil()),
            false => (0.0, 2.0),
        };
        Axis { from: base.powf(low), to: base.powf(high.max(low + 2.0)), pixels }
    }

    /// The powers of the base along it.
    fn ticks(self, base: f64) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(self.from), move |tick| Some(tick * base))
            .take_while(move |tick| *tick <= self.to * 1.001)
    }
}

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
        self.roof(pen, x, y, fp32, memory)?;
        let note = match (fp32, memory) {
            (None, _) => "The CPU device has no roof.",
            _ => {
                "Orange: the device's roof. Caches serve part of what blocks ask for, so a rung can lie above its slope."
            }
        };
        pen.words(note, (24, BOTTOM + 70), LEFT, SMALL, GREY)?;

        // Each name in a column at the right, as near to its point as the others let it.
        let wanted = self.points.iter().map(|point| y.at(point.at.1)).collect::<Vec<_>>();
        for ((point, &own), row) in self.points.iter().zip(&wanted).zip(spread(&wanted)) {
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

impl Roofline<'_> {
    /// Memory's slope up to where it meets the peak, then the peak.
    fn roof<B: DrawingBackend>(
        &self,
        pen: &Pen<B>,
        x: Axis,
        y: Axis,
        fp32: Option<f64>,
        memory: Option<f64>,
    ) -> Result<(), String> {
        let Some(fp32) = fp32 else { return Ok(()) };
        let corner = memory.map_or(x.from, |speed| (fp32 / speed).max(x.from));
        let peak = y.at(fp32);
        let mut points = Vec::new();
        if let Some(speed) = memory {
            points.push((x.from, speed * x.from));
        }
        if corner < x.to {
            points.extend([(corner, fp32), (x.to, fp32)]);
        } else if let Some(speed) = memory {
            points.push((x.to, speed * x.to));
        }
        let points = points.iter().map(|&(a, b)| (x.at(a), y.at(b))).collect::<Vec<_>>();
        pen.line(&points, ORANGE, 2)?;
        let words = format!("float32 peak {}", speed(fp32));
        pen.words(&words, (x.pixels.1 - 8, peak - 14), RIGHT, SMALL, ORANGE)?;
        if let Some(memory) = memory {
            let words = format!("global memory {memory:.0} GB/s");
            let at = (x.at(x.from) + 10, y.at(memory * x.from) + 4);
            pen.words(&words, (at.0 + 16, at.1 + 14), LEFT, SMALL, ORANGE)?;
        }
        Ok(())
    }
}

/// Rows for names wanted at these heights, from the top: in the same order, and apart.
fn spread(wanted: &[i32]) -> Vec<i32> {
    let mut rows = Vec::<i32>::new();
    for &row in wanted {
        rows.push(rows.last().map_or(row, |last| row.max(last + APART)));
    }
    // What was pushed out below goes up again, and pushes those above it.
    let mut limit = BOTTOM.max(TOP + APART * wanted.len() as i32);
    for row in rows.iter_mut().rev() {
        *row = (*row).min(limit);
        limit = *row - APART;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_do_not_overlap() {
        for wanted in [vec![], vec![100], vec![120; 13], vec![BOTTOM; 13], vec![100, 101, 400, 401]]
        {
            let rows = spread(&wanted);
            assert_eq!(rows.len(), wanted.len());
            assert!(rows.windows(2).all(|pair| pair[1] - pair[0] >= APART), "{wanted:?}: {rows:?}");
            assert!(rows.iter().all(|row| (TOP..=BOTTOM).contains(row)), "{wanted:?}: {rows:?}");
        }
        assert_eq!(spread(&[100, 400]), [100, 400]);
    }

    #[test]
    fn an_axis_reaches_over_its_values() {
        let axis = Axis::around([0.25, 8.0].into_iter(), 2.0, (100, 700));
        assert!(axis.from < 0.25 && axis.to > 8.0);
        assert!(axis.at(0.25) > 100 && axis.at(8.0) < 700 && axis.at(1.0) < axis.at(2.0));
        assert_eq!(axis.ticks(2.0).count(), 8);
        let one = Axis::around([3.0].into_iter(), 10.0, (0, 100));
        assert!(one.from <= 3.0 && one.to >= 3.0);
        let none = Axis::around(std::iter::empty::<f64>(), 10.0, (0, 100));
        assert_eq!((none.from, none.to), (1.0, 100.0));
    }
}
