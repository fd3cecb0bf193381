//! The CPU device of a build with the feature `cpu`.

use std::sync::Arc;

use super::{Device, Kind};

/// The CPU. It runs each CUDA thread as a fiber.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The most cores to use.
    pub(crate) workers: Option<usize>,
    /// Which of several CPU devices of the process it is.
    pub(crate) number: Option<usize>,
}

/// The result of [`Device::best`].
#[derive(Clone, Debug)]
pub struct Best {
    /// The device.
    pub device: Device,
    /// Why the device is not a GPU. `None` if it is one.
    pub why_no_gpu: Option<String>,
}

impl Device {
    /// The CPU, with all cores.
    pub fn cpu() -> Self {
        Device(Arc::new(Kind::Cpu(Cpu { workers: None, number: None })))
    }

    /// The CPU with at most `workers` cores, and at least one. The number does not change results:
    /// they are the same, bit for bit.
    pub fn cpu_with_workers(workers: usize) -> Self {
        Device(Arc::new(Kind::Cpu(Cpu { workers: Some(workers), number: None })))
    }

    /// One of several CPU devices. Each owns its memory: what runs on another one is refused.
    pub(crate) fn cpu_numbered(number: usize) -> Self {
        Device(Arc::new(Kind::Cpu(Cpu { workers: None, number: Some(number) })))
    }

    /// The first GPU that can run the kernels. If there is none, the CPU and the reason.
    pub fn best() -> Best {
        let cpu = |why: String| Best { device: Device::cpu(), why_no_gpu: Some(why) };
        match Device::cuda_count() {
            Err(error) => cpu(error.to_string()),
            Ok(0) => cpu("the NVIDIA driver finds no device".to_owned()),
            Ok(count) => {
                let mut refusals = Vec::new();
                for index in 0..count {
                    match Device::cuda(index) {
                        Ok(device) => return Best { device, why_no_gpu: None },
                        Err(error) => refusals.push(format!("cuda:{index}: {error}")),
                    }
                }
                cpu(refusals.join("; "))
            }
        }
    }
}
