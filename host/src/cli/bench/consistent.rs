//! Whether the figures of a recorded row agree with each other: tables and summaries trust each.

use super::row::{Role, Row};

/// How far recorded figures may be from those that follow from others: they have six digits.
const ROUNDING: f64 = 1.001;

/// How far the ratio of two medians may be outside of the interval of the rounds' ratios.
const NOISE: f64 = 2.0;

/// What contradicts itself in a row.
pub(super) fn contradiction(row: &Row) -> Option<String> {
    let words = verification(row).or_else(|| figures(row).err())?;
    Some(format!("{} {}: {words}", row.size(), row.kernel))
}

/// A wrong product that was timed, or a right one that was not.
fn verification(row: &Row) -> Option<String> {
    let is_own = row.role != Role::Baseline;
    let shown = |is: Option<bool>| is.map_or("null".to_owned(), |is| is.to_string());
    let (verified, exact) = (shown(row.verified), shown(row.exact_on_integers));
    match row.time_us {
        None if row.verified != Some(false) => {
            Some(format!("verified = {verified} without time_us: only what is wrong is not timed"))
        }
        // Libraries are timed whatever their arithmetic is. Without a run on integers, as for a
        // large k, `false` is that nothing was found, and nothing settled.
        Some(_) if is_own && row.verified == Some(false) && row.exact_on_integers.is_some() => {
            Some("verified = false, and time_us: a wrong product is not timed".to_owned())
        }
        _ if is_own && row.verified != Some(false) && row.exact_on_integers == Some(false) => {
            Some(format!("verified = {verified}, and exact_on_integers = {exact}"))
        }
        _ if is_own && row.verified == Some(true) && row.exact_on_integers.is_none() => {
            Some("verified = true, and exact_on_integers = null".to_owned())
        }
        _ => None,
    }
}

/// Figures without those that they are of, or that are not what follows from these.
fn figures(row: &Row) -> Result<(), String> {
    let flop = row.flop() * 1e-6;
    let (time, than) = (("time_us", row.time_us), ("baseline_time_us", row.baseline_time_us));
    let plain = ("plain_time_us", row.plain_time_us);
    let speeds = [("tflops", row.tflops), ("baseline_tflops", row.baseline_tflops)];
    for ((name, value), (of, speed)) in [time, than].into_iter().zip(speeds) {
        derived((of, speed), ("flop", Some(flop)), (name, value))?;
        if value.is_some() && speed.is_none() {
            return Err(format!("{name} without {of}"));
        }
    }
    if let (Some(least), Some(median)) = (row.min_us, row.time_us)
        && least > median * ROUNDING
    {
        return Err(format!("min_us = {least:e}, and time_us = {median:e}"));
    }
    let ratio = [row.ratio_low, row.ratio, row.ratio_high];
    within(["ratio_low", "ratio", "ratio_high"], ratio, than, time)?;
    let over = [row.over_plain_low, row.over_plain, row.over_plain_high];
    within(["over_plain_low", "over_plain", "over_plain_high"], over, time, plain)
}

/// A figure with its name.
type Named = (&'static str, Option<f64>);

/// A figure that is one over another.
fn derived((name, value): Named, (over, one): Named, (under, other): Named) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    let (Some(one), Some(other)) = (one, other) else {
        return Err(format!("{name} without {under}"));
    };
    let right = one / other;
    match value <= right * ROUNDING && value * ROUNDING >= right {
        true => Ok(()),
        false => Err(format!("{name} = {value:e}, and {over} / {under} = {right:e}")),
    }
}

/// The median of one over another in each round, and its interval.
fn within(
    names: [&str; 3],
    values: [Option<f64>; 3],
    (over, one): Named,
    (under, other): Named,
) -> Result<(), String> {
    let ([lowest, name, highest], [low, median, high]) = (names, values);
    let Some(median) = median else {
        return match (low, high) {
            (None, None) => Ok(()),
            _ => Err(format!("{lowest} or {highest} without {name}")),
        };
    };
    let [low, high] = [low, high].map(|end| end.unwrap_or(median));
    if low > median || median > high {
        return Err(format!("{name} = {median:e}, and its interval is {low:e} to {high:e}"));
    }
    let (Some(one), Some(other)) = (one, other) else {
        return Err(format!("{name} without {over} and {under}"));
    };
    let right = one / other;
    match right <= high * NOISE && right * NOISE >= low {
        true => Ok(()),
        false => Err(format!("{name} = {median:e}, and {over} / {under} = {right:e}")),
    }
}
