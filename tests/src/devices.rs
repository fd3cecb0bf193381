//! The devices under test.

use std::sync::OnceLock;

use host::{Device, Stream};

use crate::{skip, skip::is_set};

/// The CPU device, and every CUDA device.
///
/// # Panics
/// As [`cuda_devices`].
pub fn devices() -> Vec<Device> {
    let mut devices = cuda_devices();
    devices.insert(0, Device::cpu());
    devices
}

/// Each of these with a stream.
///
/// # Panics
/// As [`cuda_devices`]; if a stream cannot be made.
pub fn streams() -> impl Iterator<Item = (Device, Stream)> {
    devices().into_iter().map(|device| (device.clone(), device.stream().unwrap()))
}

/// Every CUDA device. If there is none, that is a counted skip.
///
/// # Panics
/// If there is none and `REQUIRE_GPU=1` is set.
pub fn cuda_devices() -> Vec<Device> {
    // Opened once, so that the driver compiles the kernels once in a program.
    static FOUND: OnceLock<Result<Vec<Device>, String>> = OnceLock::new();
    match FOUND.get_or_init(open) {
        Ok(devices) => devices.clone(),
        Err(why) => {
            skip(&format!("no CUDA device: {why}"), "REQUIRE_GPU");
            Vec::new()
        }
    }
}

/// The GPUs of compute capability 9.0. Without any the caller skips, and it is said.
pub fn hoppers() -> Vec<Device> {
    let all = cuda_devices();
    let is_hopper = |of: &&Device| of.description().contains("compute capability 9.0");
    let hoppers = all.iter().filter(is_hopper).cloned().collect::<Vec<_>>();
    if hoppers.is_empty() && !all.is_empty() {
        skip("no GPU of compute capability 9.0", "REQUIRE_GPU");
    }
    hoppers
}

fn open() -> Result<Vec<Device>, String> {
    let count = Device::cuda_count().map_err(|error| error.to_string())?;
    let (mut devices, mut refusals) = (Vec::new(), vec![format!("the driver finds {count}")]);
    for index in 0..count {
        match Device::cuda(index) {
            Ok(device) => devices.push(device),
            Err(error) => refusals.push(error.to_string()),
        }
    }
    if devices.is_empty() { Err(refusals.join("; ")) } else { Ok(devices) }
}

/// Whether to run the tests in full: with `REQUIRE_GPU=1`, for a machine with a GPU and many cores.
pub fn full() -> bool {
    is_set("REQUIRE_GPU")
}
