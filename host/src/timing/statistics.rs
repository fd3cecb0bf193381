//! Medians and their confidence intervals.

/// The summary of a list of times, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The tenth percentile.
    pub p10: f64,
    /// The ninetieth percentile.
    pub p90: f64,
}

impl Summary {
    /// The summary of these times. All NaN for an empty list.
    pub fn of(values: &[f64]) -> Summary {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let quantile = |q: f64| quantile_of_sorted(&sorted, q);
        Summary {
            median: quantile(0.5),
            min: quantile(0.0),
            max: quantile(1.0),
            p10: quantile(0.1),
            p90: quantile(0.9),
        }
    }

    /// The distance from the tenth to the ninetieth percentile, divided by the median.
    pub fn spread(&self) -> f64 {
        (self.p90 - self.p10) / self.median
    }
}

/// The `q` quantile, with `q` from 0 to 1. NaN for an empty list.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// Interpolates linearly between two neighbours.
fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len().saturating_sub(1)) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(low), sorted.get(high)) {
        (Some(a), Some(b)) => a + (b - a) * (place - low as f64),
        _ => f64::NAN,
    }
}

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The median of the sample.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The median with its 95 % interval, from order statistics. The values must be independent, but
/// may have any distribution (W. J. Conover, *Practical Nonparametric Statistics*, section 3.2).
/// With fewer than six values there is no such interval: it is from minus to plus infinity.
pub fn interval_of_median(values: &[f64]) -> Interval {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = Summary::of(values).median;
    let n = sorted.len();
    // The `rank` smallest and the `rank` largest values are left out. The true median is among the
    // smallest ones left out with the probability that fewer than `rank` of n fair coins show
    // heads.
    let mut tail = 0.5f64.powi(n.min(1000) as i32);
    let mut binomial = tail;
    let mut rank = 0;
    for heads in 1..=n / 2 {
        if n > 1000 || tail > 0.025 {
            break;
        }
        rank = heads;
        binomial *= (n - heads + 1) as f64 / heads as f64;
        tail += binomial;
    }
    if n > 1000 {
        // For many values the binomial distribution is approximated by the normal one.
        rank = (0.5 * n as f64 - 0.98 * (n as f64).sqrt()).floor() as usize;
    }
    match rank {
        0 => Interval { median, low: f64::NEG_INFINITY, high: f64::INFINITY },
        _ => Interval { median, low: sorted[rank - 1], high: sorted[n - rank] },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((summary.min, summary.median, summary.max), (1.0, 3.0, 5.0));
        assert_eq!((summary.p10, summary.p90), (1.4, 4.6));
        assert_eq!(Summary::of(&[2.0, 4.0]).median, 3.0);
        assert!(Summary::of(&[]).median.is_nan());
    }

    #[test]
    fn intervals_as_in_the_tables() {
        // Conover's ranks for 95 %: none for n = 5, the extremes for 6 to 8, then 2 for 9, and 6
        // for 20.
        let values = |n: usize| (1..=n).map(|i| i as f64).collect::<Vec<_>>();
        let ends = |n| {
            let interval = interval_of_median(&values(n));
            (interval.low, interval.high)
        };
        assert_eq!(ends(5), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(ends(6), (1.0, 6.0));
        assert_eq!(ends(8), (1.0, 8.0));
        assert_eq!(ends(9), (2.0, 8.0));
        assert_eq!(ends(20), (6.0, 15.0));
        assert_eq!(ends(100), (40.0, 61.0));
        // The approximation continues the exact ranks.
        assert_eq!(ends(1000), (469.0, 532.0));
        assert_eq!(ends(1001), (469.0, 533.0));
    }
}
