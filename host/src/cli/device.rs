//! The device that is asked for.

use host::Device;

use super::{args::DeviceChoice, note::note};

/// The device asked for. A run on the CPU for want of a GPU is never silent about being one.
pub(super) fn open(choice: DeviceChoice) -> host::Result<Device> {
    let (device, why_no_gpu) = choice.open()?;
    if let Some(why) = why_no_gpu {
        // Most machines without a GPU have no driver: a word is enough for whoever knows that.
        let why = match Device::cuda_version() {
            Err(host::Error::NoDriver { .. }) => "no NVIDIA driver",
            _ => &why,
        };
        note(format_args!("note: {why}; running on the CPU (`doctor` says more)"));
    }
    Ok(device)
}
