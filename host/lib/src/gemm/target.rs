//! The device that a kernel is selected for.

use occupancy::Sm;

use super::card::{CARDS, Card};
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
    /// The highest clock of a GPU's SMs.
    pub clock_mhz: u32,
    /// The bandwidth of a GPU's memory, in 10^9 bytes per second.
    pub gb_per_s: u32,
    /// As [`Card::half_products`].
    pub half_products: u32,
    /// Bytes of shared memory that a block may have.
    pub shared: u32,
}

/// What multiplies and adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// CUDA cores in f32.
    F32,
    /// CUDA cores in f64.
    F64,
    /// Tensor cores in f64.
    TensorF64,
    /// Tensor cores on 16-bit types, with sums in f32, by the fastest instruction of the GPU.
    TensorHalf,
    /// The same by `mma.sync`.
    MmaHalf,
    /// Tensor cores in tf32 by `mma.sync`.
    MmaTf32,
    /// Tensor cores on integers of 8 bits by `mma.sync`.
    MmaInt8,
}

impl Target {
    /// An H200.
    pub const H200: Target = Target::of_card(&Card::H200);

    /// A GPU with that compute capability and `sms` SMs. Clock, memory and tensor cores are those
    /// of the first card of the table that has both, or the capability, or its major number, or of
    /// the first card.
    pub fn gpu(capability: (u32, u32), sms: u32) -> Self {
        let first = |is_alike: &dyn Fn(&Card) -> bool| CARDS.iter().find(|card| is_alike(card));
        let card = first(&|card| (card.capability, card.sms) == (capability, sms))
            .or_else(|| first(&|card| card.capability == capability))
            .or_else(|| first(&|card| card.capability.0 == capability.0))
            .unwrap_or(&CARDS[0]);
        let shared = shared_of_block(capability);
        Target { capability, sms: sms.max(1), shared, ..Target::of_card(card) }
    }

    /// The CPU device with `cores` cores.
    pub fn cpu(cores: u32) -> Self {
        Target {
            cuda: false,
            capability: (0, 0),
            sms: cores.max(1),
            clock_mhz: 0,
            gb_per_s: 0,
            half_products: 0,
            shared: u32::MAX,
        }
    }

    /// A GPU of that kind.
    pub const fn of_card(card: &Card) -> Self {
        let Card { capability, sms, clock_mhz, gb_per_s, half_products, .. } = *card;
        let shared = shared_of_block(capability);
        Target { cuda: true, capability, sms, clock_mhz, gb_per_s, half_products, shared }
    }

    /// A device. Of a GPU the driver reports all but [`half_products`](Self::half_products). Those
    /// follow from its name: a GeForce adds in f32 at half the rate of other cards. (So does an
    /// L40, which counts as an L40S.)
    pub fn of(device: &Device) -> Self {
        let sms = device.sms().max(1);
        #[cfg(feature = "cuda")]
        if let Some(known) = device.cuda_properties() {
            let like = Target::gpu(known.capability, sms);
            // Two transfers a clock.
            let bandwidth = |(khz, bits): (u32, u32)| {
                u32::try_from(u64::from(khz) * u64::from(bits) / 4_000_000).ok()
            };
            let memory = known.memory_clock_khz.zip(known.memory_bus_bits);
            let is_geforce = known.name.contains("GeForce");
            return Target {
                half_products: match known.capability {
                    (8, 6 | 9) | (12, _) => {
                        if is_geforce {
                            256
                        } else {
                            512
                        }
                    }
                    (8, 7) => 1024,
                    _ => like.half_products,
                },
                shared: known.max_shared_optin,
                clock_mhz: known.clock_khz.map_or(like.clock_mhz, |khz| khz / 1000).max(1),
                gb_per_s: memory.and_then(bandwidth).unwrap_or(like.gb_per_s).max(1),
                ..like
            };
        }
        Target::cpu(sms)
    }

    /// Multiply-adds that an SM starts in each clock. On CUDA cores and in f64: NVIDIA, *CUDA C++
    /// Programming Guide*, "Throughput of Native Arithmetic Instructions", and for f64 on tensor
    /// cores the architecture papers of A100 and H100. Capabilities that are not there count as
    /// those of GeForce cards.
    pub fn products(&self, unit: Unit) -> u32 {
        match (unit, self.capability) {
            (Unit::F32, (8, 0)) => 64,
            (Unit::F32, _) => 128,
            (Unit::F64, (8, 0)) => 32,
            (Unit::F64 | Unit::TensorF64, (10, 0)) | (Unit::F64, (9, 0)) => 64,
            (Unit::TensorF64, (8, 0)) => 64,
            (Unit::TensorF64, (9, 0)) => 128,
            // A 64th of f32.
            (Unit::F64 | Unit::TensorF64, _) => 2,
            (Unit::TensorHalf, _) => self.half_products,
            // Measured on an H200: 639 TFLOP/s at 1980 MHz (docs/log/mma.md).
            (Unit::MmaHalf, (9, 0)) => 1222,
            // A guess, as on 8.0: NVIDIA has not published it.
            (Unit::MmaHalf, (10, _)) => 1024,
            (Unit::MmaHalf, _) => self.half_products,
            (Unit::MmaTf32, _) => self.products(Unit::MmaHalf) / 2,
            // Of these, GeForce cards do as many as others (NVIDIA's architecture papers). Of 10.x
            // it is a guess.
            (Unit::MmaInt8, (8, 6 | 9) | (12, _)) => 1024,
            (Unit::MmaInt8, _) => self.products(Unit::MmaHalf) * 2,
        }
    }

    /// GFLOP/s of one SM at the highest clock: two FLOP for each multiply-add.
    pub fn gflops_of_sm(&self, unit: Unit) -> f64 {
        2e-3 * f64::from(self.products(unit)) * f64::from(self.clock_mhz)
    }
}

/// Bytes of shared memory that a block may have. A compute capability that is not known counts as
/// the smallest.
const fn shared_of_block((major, minor): (u32, u32)) -> u32 {
    let sm = match Sm::of(10 * major + minor) {
        Some(sm) => sm,
        None => Sm::SM_86,
    };
    sm.shared - sm.shared_reserved
}

impl From<&Card> for Target {
    fn from(card: &Card) -> Self {
        Target::of_card(card)
    }
}
