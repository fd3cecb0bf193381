//! Where a product is to run.

use crate::device::Device;

/// Where a product is to run, as far as the choice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// A GPU, or the CPU device?
    pub cuda: bool,
    /// Compute capability of a GPU (major, minor).
    pub capability: (u32, u32),
    /// SMs of a GPU, cores of a CPU.
    pub sms: u32,
}

impl Target {
    /// An H200, for a plan without a device.
    pub const H200: Target = Target { cuda: true, capability: (9, 0), sms: 132 };

    /// A GPU of that compute capability with so many SMs, for a plan without one.
    pub fn gpu(capability: (u32, u32), sms: u32) -> Self {
        Target { cuda: true, capability, sms: sms.max(1) }
    }

    /// The CPU device of a machine with so many cores.
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
