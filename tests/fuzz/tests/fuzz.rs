//! `FUZZ_COUNT` random products, 3000 by default, of `FUZZ_SEED`, on the CPU device and on a GPU.
//! CI runs 100,000, and `cargo xtask ci fuzz` ten million.

use std::{env, thread, time::Duration};

use fuzz::campaign::{Options, run};
use gpu_gemm::Device;

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_products() {
    let mut devices = vec![Device::cpu()];
    devices.extend(tests::cuda_devices().into_iter().take(1));
    let options = Options {
        seed: number("FUZZ_SEED", 1),
        count: number("FUZZ_COUNT", 3000),
        most: Duration::MAX,
        failures: 8,
        threads: thread::available_parallelism().map_or(1, usize::from),
        devices,
    };
    let report = run(&options).unwrap();
    report.tallies.iter().for_each(|tally| println!("{tally}"));
    let failures = report.failures.iter().map(|failure| format!("{failure}\n"));
    let failures = failures.collect::<String>();
    assert!(report.failures.is_empty(), "{failures}");
    assert_eq!(report.missing(&options.devices), [""; 0]);
    for tally in &report.tallies {
        assert_eq!(tally.tried(), options.count);
    }
}
