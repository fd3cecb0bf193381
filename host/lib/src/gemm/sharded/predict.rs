//! Times of steps, and of a plan: a simulation of lanes and links.

use std::collections::HashMap;

use super::plan::{Step, What};
use crate::{devices::Devices, gemm::Target};

/// A way between two places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    /// Bytes in a microsecond, in each direction of a place.
    pub(super) bytes_per_us: f64,
    /// Microseconds before the first byte.
    pub(super) latency_us: f64,
}

/// NVLink between two H200: 393 GB/s measured between four of them.
const NVLINK: Link = Link { bytes_per_us: 393e3, latency_us: 8.0 };

/// Two places of one H200: a copy reads and writes its memory.
const ONE_GPU: Link = Link { bytes_per_us: 1900e3, latency_us: 4.0 };

/// Other GPUs: a PCIe 4.0 bus, not measured here.
const PCIE: Link = Link { bytes_per_us: 20e3, latency_us: 12.0 };

/// Two CPU devices: one core copies, not measured.
const HOST: Link = Link { bytes_per_us: 8e3, latency_us: 1.0 };

impl Link {
    /// The way between two devices of that kind.
    pub(super) fn between(target: &Target) -> Link {
        match (target.cuda, target.capability) {
            (false, _) => HOST,
            (true, (9, 0)) => NVLINK,
            (true, _) => PCIE,
        }
    }

    /// The slowest way between any two of these places.
    pub(super) fn of(devices: &Devices) -> Link {
        let (first, target) = (devices.at(0), Target::of(devices.at(0)));
        match target.cuda && devices.iter().all(|other| other == first) {
            true => ONE_GPU,
            false => Link::between(&target),
        }
    }

    /// Microseconds for a copy.
    pub(super) fn us(&self, bytes: usize) -> f64 {
        self.latency_us + bytes as f64 / self.bytes_per_us
    }
}

/// When each step begins and ends, in microseconds. Each lane runs one step at a time, and so does
/// each direction of a place's link.
pub(super) fn simulate(steps: &[Step]) -> Vec<[f64; 2]> {
    #[derive(PartialEq, Eq, Hash)]
    enum Resource {
        Lane(usize, usize),
        Into(usize),
        OutOf(usize),
    }
    let mut free = HashMap::<Resource, f64>::new();
    let mut times = Vec::<[f64; 2]>::with_capacity(steps.len());
    for step in steps {
        let mut needed = vec![Resource::Lane(step.place, step.lane)];
        if let What::Transfer { from, to } = &step.what
            && from.place != to.place
        {
            needed.extend([Resource::Into(to.place), Resource::OutOf(from.place)]);
        }
        let waited = step.after.iter().map(|&earlier| times[earlier][1]);
        let ready = needed.iter().filter_map(|resource| free.get(resource).copied());
        let start = waited.chain(ready).fold(0.0, f64::max);
        let end = start + step.us;
        needed.into_iter().for_each(|resource| {
            free.insert(resource, end);
        });
        times.push([start, end]);
    }
    times
}
