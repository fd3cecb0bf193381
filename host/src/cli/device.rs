//! Opens the device.

use host::Device;

use super::{args::DeviceChoice, note::note};

/// Opens the device. If `auto` takes the CPU because there is no GPU, a note says so.
pub(super) fn open(choice: DeviceChoice) -> host::Result<Device> {
    let (device, why_no_gpu) = choice.open()?;
    if let Some(why) = why_no_gpu {
        // Most machines without a GPU have no driver. For them the note is short.
        let why = match Device::cuda_version() {
            Err(host::Error::NoDriver { .. }) => "no NVIDIA driver",
            _ => &why,
        };
        note(format_args!("note: {why}; running on the CPU (`doctor` says more)"));
    }
    Ok(device)
}
