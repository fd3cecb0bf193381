//! How fast this machine is now. Limits of time are for the machine on which they were measured;
//! another one, or the same with other guests, takes up to twice as long for the same work.

use std::{
    fmt::Write,
    hint::black_box,
    time::{Duration, Instant},
};

/// The time of [`work`] on the machine of the limits. (Not measured there: the same compilation
/// took 1.46 times as long on 2026-11-29 as when its limit was set, and the work took that long.)
const REFERENCE: Duration = Duration::from_micros(REFERENCE_US);
const REFERENCE_US: u64 = 97_500;

/// Beyond this a limit means nothing.
const MOST: f64 = 2.0;

/// Numbers written as text: calls, branches and memory, as in a compiler.
fn work() -> usize {
    let (mut text, mut len) = (String::new(), 0);
    for number in 0..1_200_000_u64 {
        text.clear();
        // Writing to a string does not fail.
        let _ = write!(text, "{}", black_box(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        len += black_box(&text).len();
    }
    len
}

/// How many times as long as there the same work takes here: the median of five, 1 to 2.
pub(crate) fn slowness() -> f64 {
    let mut times = [0; 5].map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    });
    times.sort_unstable();
    (times[2].as_secs_f64() / REFERENCE.as_secs_f64()).clamp(1.0, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_at_most_twice_as_slow() {
        // Twenty digits at most, and the first number has one.
        assert!((1_200_000..24_000_000).contains(&work()));
        assert!((1.0..=MOST).contains(&slowness()));
    }
}
