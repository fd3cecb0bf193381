//! Whether a command's work fits into memory, before it begins.

use host::{Device, Error, Shape};

/// Refuses a product that does not fit. `on_device`: the bytes that it takes there. `verify`: the
/// result is verified.
pub(super) fn check_memory(
    shape: Shape,
    on_device: u64,
    verify: bool,
    device: &Device,
) -> Result<(), Error> {
    // The operands are drawn in host memory, and verification has two copies of B in float64.
    let on_host = shape.bytes() + if verify { 16 * shape.b_len() as u64 } else { 0 };
    check_bytes(on_host, on_device, device)
}

/// Refuses work that needs more memory than is free, on the host or on the device. On the CPU
/// device both are host memory.
pub(super) fn check_bytes(on_host: u64, on_device: u64, device: &Device) -> Result<(), Error> {
    match device.is_cuda() {
        true => {
            device.require_memory(on_device)?;
            Device::cpu().require_memory(on_host)
        }
        false => device.require_memory(on_device.saturating_add(on_host)),
    }
}
