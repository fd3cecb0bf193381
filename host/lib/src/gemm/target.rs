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
    /// Multiprocessors of a GPU, cores of a CPU.
    pub multiprocessors: u32,
}

impl Target {
    /// An H200, for a plan without a device.
    pub const H200: Target = Target { cuda: true, capability: (9, 0), multiprocessors: 132 };

    /// A GPU of that compute capability with so many multiprocessors, for a plan without one.
    pub fn gpu(capability: (u32, u32), multiprocessors: u32) -> Self {
        Target { cuda: true, capability, multiprocessors: multiprocessors.max(1) }
    }

    /// The CPU device of a machine with so many cores.
    pub fn cpu(cores: u32) -> Self {
        Target { cuda: false, capability: (0, 0), multiprocessors: cores.max(1) }
    }

    /// A device.
    pub fn of(device: &Device) -> Self {
        let multiprocessors = device.multiprocessors().max(1);
        #[cfg(feature = "cuda")]
        if let Some(properties) = device.cuda_properties() {
            return Target { cuda: true, capability: properties.capability, multiprocessors };
        }
        Target::cpu(multiprocessors)
    }
}
