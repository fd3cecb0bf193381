//! How fast this machine is now. Limits of time are for the machine on which they were measured.
//! Another one, or the same with other guests, takes up to twice as long for the same work.
//!
//! The measure is what the compiler takes for crates of others, in the same build: the same kind of
//! work, at the same time. (A loop of arithmetic took 1.43 times as long where compilers took 1.67
//! times: other guests slow down memory more than arithmetic.)

use std::{collections::BTreeMap, time::Duration};

/// Packages that the first command compiles, whatever the project's own code is, and all their
/// versions in the lock file: half of the time of all such packages.
const PACKAGES: [(&str, &[&str]); 12] = [
    ("clap_builder", &["4.6.7"]),
    ("darling_core", &["0.20.11"]),
    // The first alone is compiled. nalgebra's are optional.
    ("glam", &["0.20.5", "0.30.10", "0.31.1", "0.32.1", "0.33.12"]),
    ("nvml-wrapper", &["0.13.0"]),
    ("plotters", &["0.3.7"]),
    ("png", &["0.18.1"]),
    ("rustix", &["1.1.6"]),
    ("serde_core", &["1.0.229"]),
    ("syn", &["1.0.109", "2.0.119", "3.0.9"]),
    ("ttf-parser", &["0.25.1"]),
    ("vek", &["0.15.10"]),
    ("zerocopy", &["0.8.63"]),
];

/// The CPU seconds that these versions take on the machine of the limits. Other versions are
/// another time: then it is measured anew, beside the first command (which took 153 in the same
/// run).
const REFERENCE: f64 = 25.2;

/// Beyond this a limit means nothing.
const MOST: f64 = 2.0;

/// How many times as long as there the same work takes here, 1 to 2. `compiled`: what each crate of
/// the first command took. `None` where not all of these packages were compiled.
pub(crate) fn slowness(compiled: &BTreeMap<&str, Duration>) -> Option<f64> {
    let of = |(name, _): &(&str, _)| compiled.get(&*name.replace('-', "_")).copied();
    let took = PACKAGES.iter().map(of).sum::<Option<Duration>>()?;
    Some((took.as_secs_f64() / REFERENCE).clamp(1.0, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_as_slow_as_its_compiler_and_at_most_twice() {
        let names = PACKAGES.map(|(name, _)| name.replace('-', "_"));
        let of = |seconds: f64| {
            let each = Duration::from_secs_f64(seconds / names.len() as f64);
            let mut all: BTreeMap<_, _> = names.iter().map(|name| (&**name, each)).collect();
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

    /// With another version the reference is another time.
    #[test]
    fn the_reference_is_of_the_versions_in_the_lock_file() {
        let lock = include_str!("../../Cargo.lock");
        for (name, versions) in PACKAGES {
            let head = format!("[[package]]\nname = \"{name}\"\nversion = \"");
            let locked: Vec<_> =
                lock.split(&*head).skip(1).filter_map(|rest| rest.split('"').next()).collect();
            assert_eq!(locked, versions, "{name}: measure the reference anew");
        }
    }
}
