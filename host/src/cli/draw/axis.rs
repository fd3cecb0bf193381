//! Logarithmic axes, their numbers, and names next to them.

use super::pen::{SMALL, TEXT, width_of};

/// A logarithmic axis, from one power of a base to another.
#[derive(Clone, Copy)]
pub(in crate::cli) struct Axis {
    pub(in crate::cli) from: f64,
    pub(in crate::cli) to: f64,
    pub(in crate::cli) pixels: (i32, i32),
}

impl Axis {
    pub(in crate::cli) fn at(&self, value: f64) -> i32 {
        let share = (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln());
        self.pixels.0 + (share * f64::from(self.pixels.1 - self.pixels.0)).round() as i32
    }

    /// The axis between powers of the base that covers all values. It covers at least two powers.
    pub(in crate::cli) fn around(
        values: impl Iterator<Item = f64> + Clone,
        base: f64,
        pixels: (i32, i32),
    ) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max);
        let power = |value: f64| value.ln() / base.ln();
        let (low, high) = match low.is_finite() && high > 0.0 {
            true => ((power(low) - 0.05).floor(), (power(high) + 0.05).ceil()),
            false => (0.0, 2.0),
        };
        Axis { from: base.powf(low), to: base.powf(high.max(low + 2.0)), pixels }
    }

    /// The powers of the base on it.
    pub(in crate::cli) fn ticks(self, base: f64) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(self.from), move |tick| Some(tick * base))
            .take_while(move |tick| *tick <= self.to * 1.001)
    }
}

/// A number on an axis, without rounding errors.
pub(in crate::cli) fn plain(value: f64) -> String {
    format!("{value:.5e}").parse().unwrap_or(value).to_string()
}

/// The smallest of 1, 2, 5, 10, 20 ... that is at least `least`.
pub(in crate::cli) fn tick(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|of| of * power)
        .find(|tick| *tick >= least)
        .unwrap_or(10.0 * power)
}

/// The x position of an axis with these numbers, with room for its title on the left.
pub(in crate::cli) fn left_of<'a>(numbers: impl Iterator<Item = &'a str>) -> i32 {
    const TITLE: i32 = 28 + TEXT;
    let widest = numbers.map(|number| width_of(number, SMALL)).max().unwrap_or(0);
    (TITLE + widest + 12).max(92)
}

/// The distance between names that are below each other.
pub(in crate::cli) const APART: i32 = 22;

/// The heights of names that are wanted at these heights, sorted from the top: in the same order,
/// and [`APART`]. They end at `bottom`, unless there are too many.
pub(in crate::cli) fn spread(wanted: &[i32], top: i32, bottom: i32) -> Vec<i32> {
    let mut rows = Vec::<i32>::new();
    for &row in wanted {
        rows.push(rows.last().map_or(row, |last| row.max(last + APART)));
    }
    // Names below the bottom move up, and push those above them.
    let mut limit = bottom.max(top + APART * wanted.len() as i32);
    for row in rows.iter_mut().rev() {
        *row = (*row).min(limit);
        limit = *row - APART;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: i32 = 92;
    const BOTTOM: i32 = 548;

    #[test]
    fn names_keep_their_order_and_do_not_overlap() {
        for wanted in [vec![], vec![100], vec![120; 13], vec![BOTTOM; 13], vec![100, 101, 400, 401]]
        {
            let rows = spread(&wanted, TOP, BOTTOM);
            assert_eq!(rows.len(), wanted.len());
            assert!(rows.windows(2).all(|pair| pair[1] - pair[0] >= APART), "{wanted:?}: {rows:?}");
            assert!(rows.iter().all(|row| (TOP..=BOTTOM).contains(row)), "{wanted:?}: {rows:?}");
        }
        assert_eq!(spread(&[100, 400], TOP, BOTTOM), [100, 400]);
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

    #[test]
    fn numbers_do_not_reach_an_axis_title() {
        for numbers in [&["0", "70"][..], &["100000", "10"], &["0.00012", "0"], &[]] {
            let left = left_of(numbers.iter().copied());
            let widest = numbers.iter().map(|number| width_of(number, SMALL)).max().unwrap_or(0);
            // The numbers end eight pixels left of the axis. The title's middle is at 28.
            assert!(left - 8 - widest >= 28 + TEXT / 2, "{numbers:?}: {left}");
        }
    }

    #[test]
    fn ticks_are_round() {
        for (least, expected) in [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (4200.0, 5000.0), (6.0, 10.0)]
        {
            assert!((tick(least) / expected - 1.0).abs() < 1e-9, "{least}");
        }
        assert_eq!([0.5, 20.0, 0.25, 0.0].map(plain), ["0.5", "20", "0.25", "0"]);
        assert_eq!([3.0 * 0.1, 1e-5, 16384.0].map(plain), ["0.3", "0.00001", "16384"]);
    }
}
