//! How fast this machine is now. Limits of time are for the machine on which they were measured.
//! Another one, or the same with other guests, takes up to twice as long for the same work.
//!
//! The measure is what the compiler takes for crates of others, in the same build: the same kind of
//! work, at the same time. (A loop of arithmetic took 1.43 times as long where compilers took 1.67
//! times: other guests slow down memory more than arithmetic.)

use std::{collections::BTreeMap, time::Duration};

/// Crates that the first command compiles, all versions of each, whatever the project's own code
/// is: half of the time of all such crates.
const CRATES: [&str; 12] = [
    "clap_builder",
    "darling_core",
    "glam",
    "nvml_wrapper",
    "plotters",
    "png",
    "rustix",
    "serde_core",
    "syn",
    "ttf_parser",
    "vek",
    "zerocopy",
];

/// The CPU seconds that they take on the machine of the limits, as the lock file has them. Another
/// version of one is another time: then this is measured anew, beside the first command (which took
/// 153 CPU seconds in the same run).
const REFERENCE: f64 = 25.2;

/// Beyond this a limit means nothing.
const MOST: f64 = 2.0;

/// How many times as long as there the same work takes here, 1 to 2. `compiled`: what each crate of
/// the first command took. `None` where not all of these crates were compiled.
pub(crate) fn slowness(compiled: &BTreeMap<&str, Duration>) -> Option<f64> {
    let took = CRATES.iter().map(|name| compiled.get(name)).sum::<Option<Duration>>()?;
    Some((took.as_secs_f64() / REFERENCE).clamp(1.0, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_as_slow_as_its_compiler_and_at_most_twice() {
        let of = |seconds: f64| {
            let each = Duration::from_secs_f64(seconds / CRATES.len() as f64);
            let mut all = BTreeMap::from(CRATES.map(|name| (name, each)));
            all.insert("gpu", Duration::from_secs(100));
            all
        };
        for (seconds, wanted) in [(0.5, 1.0), (1.0, 1.0), (1.5, 1.5), (3.0, MOST)] {
            let got = slowness(&of(seconds * REFERENCE)).unwrap();
            assert!((got - wanted).abs() < 1e-6, "{seconds}: {got}");
        }
        let mut all = of(REFERENCE);
        all.remove("syn");
        assert_eq!(slowness(&all), None);
    }
}
