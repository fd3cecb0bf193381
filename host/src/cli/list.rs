//! `devices`, and how lists are written as JSON.

use std::io::Write;

use host::Device;
use serde::{Serialize, Serializer};

use super::{Failure, args::List};

/// The JSON object of a device.
#[derive(Serialize)]
struct DeviceLine {
    name: String,
    description: String,
    /// SMs, or cores.
    sms: u32,
    memory_bytes: u64,
    free_bytes: u64,
    /// The file in `gpu/ptx/` with its kernels.
    ptx: Option<&'static str>,
    #[serde(flatten)]
    gpu: Option<GpuLine>,
}

/// Further fields for a GPU, as the driver reports them.
#[derive(Serialize)]
struct GpuLine {
    compute_capability: String,
    /// The CUDA version that the driver supports.
    driver: String,
    l2_bytes: u32,
    shared_bytes_per_block: u32,
    shared_bytes_per_multiprocessor: u32,
    registers_per_multiprocessor: u32,
    threads_per_multiprocessor: u32,
    clock_khz: Option<u32>,
    memory_clock_khz: Option<u32>,
    memory_bus_bits: Option<u32>,
}

impl GpuLine {
    #[cfg(feature = "cuda")]
    fn of(device: &Device) -> Option<Self> {
        let properties = device.cuda_properties()?;
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        Some(GpuLine {
            compute_capability: version(properties.capability),
            driver: version(properties.driver),
            l2_bytes: properties.l2,
            shared_bytes_per_block: properties.max_shared_optin,
            shared_bytes_per_multiprocessor: properties.shared_per_multiprocessor,
            registers_per_multiprocessor: properties.registers_per_multiprocessor,
            threads_per_multiprocessor: properties.threads_per_multiprocessor,
            clock_khz: properties.clock_khz,
            memory_clock_khz: properties.memory_clock_khz,
            memory_bus_bits: properties.memory_bus_bits,
        })
    }

    #[cfg(not(feature = "cuda"))]
    fn of(_: &Device) -> Option<Self> {
        None
    }
}

/// Lists the GPUs that can run the kernels, and the CPU. Standard error says why a GPU is not
/// listed.
pub(super) fn devices(list: &List, out: &mut impl Write) -> Result<(), Failure> {
    let count = Device::cuda_count().unwrap_or_else(|error| {
        super::note(format_args!("note: {error}"));
        0
    });
    let gpus = (0..count).filter_map(|index| {
        Device::cuda(index)
            .inspect_err(|error| super::note(format_args!("note: cuda:{index}: {error}")))
            .ok()
    });
    for device in gpus.chain([Device::cpu()]) {
        let (free_bytes, memory_bytes) = device.memory()?;
        let line = DeviceLine {
            name: device.name(),
            description: device.description(),
            sms: device.sms(),
            memory_bytes,
            free_bytes,
            ptx: device.ptx_file(),
            gpu: GpuLine::of(&device),
        };
        if list.json {
            json(out, &line)?;
        } else {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let (free, all) = (gib(free_bytes), gib(memory_bytes));
            writeln!(
                out,
                "{:<8} {} ({free:.1} of {all:.1} GiB free)",
                line.name, line.description
            )?;
        }
    }
    Ok(())
}

/// Writes one JSON object on a line of its own.
pub(super) fn json(out: &mut impl Write, line: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, line).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// A time, a speed or a share, rounded to six digits: no measurement has more. Errors are computed,
/// not measured, and keep all digits.
pub(super) fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// As [`six_digits`], for a field of an object.
pub(super) fn in_six_digits<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(six_digits(*value))
}

/// As [`six_digits`], for an optional field.
pub(super) fn optional_in_six_digits<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => in_six_digits(value, serializer),
        None => serializer.serialize_none(),
    }
}
