//! Speed against size.

use plotters::prelude::{DrawingBackend, RGBColor};

use super::{
    super::row::Row,
    legend::{color, factors, series, title},
};
use crate::cli::draw::{
    axis::{APART, Axis, left_of, plain, spread, tick},
    frame::Frame,
    pen::{Drawing, GREY, LEFT, ORANGE, Pen, SMALL, TEXT, THREAD, width_of},
    unit::Unit,
};

/// The cubes among the rows, grouped by kernel.
pub(super) struct Speed<'a> {
    rows: &'a [Row],
    series: Vec<Series>,
}

/// A line: size and GFLOP/s, in the order of sizes.
struct Series {
    name: String,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

impl<'a> Speed<'a> {
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let mut all = Vec::<Series>::new();
        let mut roles = Vec::new();
        let cubes = rows
            .iter()
            .filter(|row| row.m == row.n && row.n == row.k && row.batch == 1 && row.trans == "nn")
            .filter(|row| row.epilogue.is_none());
        for row in cubes {
            let Some(tflops) = row.tflops else { continue };
            let name = series(row);
            let point = (row.m as f64, tflops * 1e3);
            match all.iter_mut().find(|one| one.name == name) {
                Some(one) => one.points.push(point),
                None => {
                    let number = roles.iter().filter(|role| **role == row.role).count();
                    roles.push(row.role);
                    let color = color(row.role, number);
                    all.push(Series { name, color, points: vec![point] });
                }
            }
        }
        for one in &mut all {
            one.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        // From the top at the right: then the lines to the names cross least.
        let last = |one: &Series| one.points.last().map_or(0.0, |point| point.1);
        all.sort_by(|one, other| last(other).total_cmp(&last(one)));
        Speed { rows, series: all }
    }
}

const WIDTH: i32 = 1060;
const HEIGHT: i32 = 600;
const TOP: i32 = 92;

impl Drawing for Speed<'_> {
    fn size(&self) -> (i32, i32) {
        (WIDTH, HEIGHT.max(TOP + 92 + APART * self.series.len() as i32))
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        title(pen, "Speed of m = n = k", self.rows)?;
        let bottom = self.size().1 - 92;
        let points = || self.series.iter().flat_map(|one| &one.points);
        if points().next().is_none() {
            return pen.words("no cube was timed", (92, TOP + 40), LEFT, TEXT, GREY);
        }
        let names = self.series.iter().map(|one| width_of(&one.name, SMALL)).max();
        let right = WIDTH - 56 - names.unwrap_or(100).min(WIDTH / 3);
        let fastest = points().map(|point| point.1).fold(0.0, f64::max);
        let peak = self.rows.iter().find_map(|row| row.roof_tflops).map(|tflops| tflops * 1e3);
        let most = 1.05 * fastest.max(peak.unwrap_or(0.0));
        let unit = Unit::of(most);
        let step = tick(unit.value(most) / 8.0);
        let ticks =
            (0..=(unit.value(most) / step).floor() as i32).map(|number| f64::from(number) * step);
        let height = |share: f64| bottom - (f64::from(bottom - TOP) * share).round() as i32;
        let up = ticks.map(|value| (height(value / unit.value(most)), plain(value)));
        let up = up.collect::<Vec<_>>();
        let left = left_of(up.iter().map(|(_, words)| &**words));
        let x = Axis::around(points().map(|point| point.0), 2.0, (left, right));
        let y = |gflops: f64| height(gflops / most);

        let frame = Frame {
            sides: (left, right),
            ends: (TOP, bottom),
            across: x.ticks(2.0).map(|size| (x.at(size), plain(size))).collect(),
            up,
            titles: ("m = n = k", unit.name),
        };
        frame.draw(pen)?;
        if let Some(peak) = peak {
            pen.line(&[(left, y(peak)), (right, y(peak))], ORANGE, 2)?;
            let words = format!("{} peak {}", factors(self.rows), unit.words(peak));
            pen.words(&words, (left + 10, y(peak) - 12), LEFT, SMALL, ORANGE)?;
        }

        let last = |points: &[(f64, f64)]| points.last().map_or((x.from, 0.0), |&point| point);
        let wanted = self.series.iter().map(|one| y(last(&one.points).1)).collect::<Vec<_>>();
        for (one, row) in self.series.iter().zip(spread(&wanted, TOP, bottom)) {
            let at = |point: &(f64, f64)| (x.at(point.0), y(point.1));
            let line = one.points.iter().map(at).collect::<Vec<_>>();
            let (end_x, end_y) = at(&last(&one.points));
            pen.line(&[(end_x, end_y), (right + 6, row), (right + 12, row)], THREAD, 1)?;
            pen.words(&one.name, (right + 16, row), LEFT, SMALL, one.color)?;
            pen.line(&line, one.color, 2)?;
            for &point in &line {
                pen.dot(point, 4, one.color)?;
            }
        }
        Ok(())
    }
}
