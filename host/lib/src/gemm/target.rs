//! The device that a kernel is selected for.

use crate::device::Device;

/// The properties of a device by which a kernel is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// Whether it is a GPU.
    pub cuda: bool,
    /// The compute capability of a GPU (major, minor).
    pub capability: (u32, u32),
    /// The number of SMs of a GPU, or of cores of a CPU.
    pub sms: u32,
}

impl Target {
    /// An H200.
    pub const H200: Target = Target { cuda: true, capability: (9, 0), sms: 132 };

    /// A GPU with that compute capability and `sms` SMs.
    pub fn gpu(capability: (u32, u32), sms: u32) -> Self {
        Target { cuda: true, capability, sms: sms.max(1) }
    }

    /// The CPU device with `cores` cores.
    pub fn cpu(cores: u32) -> Self {
        Target { cuda: false, capability: (0, 0), sms: cores.max(1) }
    }

    /// A device.
    pub fn of(device: &Device) -> Self {
        let sms = device.sms().max(1);
        #[cfg(feature = "cuda")]
        if let Some(properties) = device.cuda_properties() {
            return Target { cuda: true, capability: properties.capability, sms };
        }
        Target::cpu(sms)
    }
}
