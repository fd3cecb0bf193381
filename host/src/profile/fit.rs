//! How many blocks of a kernel an SM holds: on this machine's GPU, or on a named one.

use gpu::registry::Entry;
use occupancy::{Block, Occupancy, Sm};
use simt::LaunchConfig;

use gpu_gemm::{
    Device, Error, Result,
    gemm::{CARDS, Card},
    ptx::{self, Ptx, Resources},
};

/// A kind of GPU that can be named. It need not be present.
#[derive(Debug)]
#[non_exhaustive]
pub struct Gpu {
    /// Its names: the compute capability, then products that are not among the [`CARDS`].
    pub names: &'static [&'static str],
    /// Compute capability (major, minor).
    pub capability: (u32, u32),
}

/// The GPUs, by compute capability.
static GPUS: [Gpu; 6] = [
    Gpu { names: &["sm_90", "sm_90a", "gh200"], capability: (9, 0) },
    Gpu { names: &["sm_80"], capability: (8, 0) },
    Gpu { names: &["sm_86"], capability: (8, 6) },
    Gpu { names: &["sm_89"], capability: (8, 9) },
    Gpu { names: &["sm_100"], capability: (10, 0) },
    Gpu { names: &["sm_120"], capability: (12, 0) },
];

/// The GPU for figures where none is named and none is present: Hopper, which was measured.
pub fn default_gpu() -> &'static Gpu {
    &GPUS[0]
}

/// The names of GPUs: compute capabilities, and products.
pub fn gpu_names() -> impl Iterator<Item = &'static str> {
    GPUS.iter().flat_map(|gpu| gpu.names).copied().chain(CARDS.iter().map(|card| card.name))
}

/// The GPU with that name, in upper or lower case.
///
/// # Errors
/// [`Error::Argument`], with all names.
pub fn gpu(name: &str) -> Result<&'static Gpu> {
    let lower = name.to_lowercase();
    let card = Card::named(&lower);
    let is_it = |gpu: &&Gpu| match card {
        Some(card) => gpu.capability == card.capability,
        None => gpu.names.contains(&&*lower),
    };
    GPUS.iter().find(is_it).ok_or_else(|| {
        let names = gpu_names().collect::<Vec<_>>().join(", ");
        Error::argument("gpu", name, format!("must be one of {names}"))
    })
}

/// How a kernel's blocks fit on an SM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit {
    /// The GPU: `sm_90`, or a device's description.
    pub gpu: String,
    /// The source of the figures: `ptxas 13.0`, or `the driver`.
    pub source: String,
    /// The kernel's resources, with static shared memory. `None` if unknown.
    pub resources: Option<Resources>,
    /// Bytes of shared memory that the launch adds.
    pub dynamic_shared: u32,
    /// The occupancy. `None` if the resources or the GPU are unknown.
    pub occupancy: Option<Occupancy>,
}

impl Fit {
    /// Bytes of shared memory of a block, static and dynamic.
    pub fn shared_bytes(&self) -> Option<u32> {
        Some(self.resources?.shared.saturating_add(self.dynamic_shared))
    }
}

/// On a named GPU, with ptxas's figures. A driver may compile the kernel differently.
pub fn on_gpu(entry: &Entry, config: &LaunchConfig, gpu: &Gpu) -> Fit {
    let ptx = Ptx::for_device(gpu.names[0], gpu.capability).ok();
    let resources = ptx.and_then(|ptx| ptx.resources(entry.declaration(), &entry.constants));
    Fit {
        gpu: gpu.names[0].to_owned(),
        source: format!("ptxas {}", ptx::ptxas_release()),
        resources,
        dynamic_shared: config.dynamic_shared,
        occupancy: fitting(gpu.capability, config, resources),
    }
}

/// On a GPU of this machine. Its driver compiles the kernel and reports the resources.
///
/// # Errors
/// [`Error::Argument`] for the CPU device; as [`Device::kernel_resources`].
pub fn on_device(entry: &Entry, config: &LaunchConfig, device: &Device) -> Result<Fit> {
    #[cfg(feature = "cuda")]
    if let Some(properties) = device.cuda_properties() {
        let resources = device.kernel_resources(entry.declaration(), &entry.constants)?;
        return Ok(Fit {
            gpu: device.to_string(),
            source: "the driver".to_owned(),
            resources,
            dynamic_shared: config.dynamic_shared,
            occupancy: fitting(properties.capability, config, resources),
        });
    }
    let _ = (entry, config);
    Err(Error::argument("device", device.name(), "must be a GPU: the CPU has no SMs"))
}

fn fitting(
    (major, minor): (u32, u32),
    config: &LaunchConfig,
    resources: Option<Resources>,
) -> Option<Occupancy> {
    let Resources { registers, shared } = resources?;
    let block = Block {
        threads: config.block.iter().product(),
        registers,
        shared: shared.saturating_add(config.dynamic_shared),
    };
    Some(occupancy::occupancy(&Sm::of(10 * major + minor)?, &block))
}
