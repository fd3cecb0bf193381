//! Kinds of GPUs by name: what a time is predicted from where no device is present.

/// A kind of GPU. [`Target`](super::Target)`::from` plans for it.
///
/// What an SM holds follows from the compute capability: NVIDIA, *CUDA C++ Programming Guide*,
/// "Technical Specifications per Compute Capability", which the package `gpu-occupancy` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Card {
    /// The name that `--on` takes.
    pub name: &'static str,
    /// The product, with its article.
    pub title: &'static str,
    /// The compute capability (major, minor).
    pub capability: (u32, u32),
    /// The number of SMs.
    pub sms: u32,
    /// The boost clock.
    pub clock_mhz: u32,
    /// The bandwidth of the memory, in 10^9 bytes per second.
    pub gb_per_s: u32,
    /// The memory in GB, as the data sheet says it.
    pub memory_gb: u32,
    /// The L2, in MiB.
    pub l2_mib: u32,
    /// Multiply-adds of f16 or bf16 with sums in f32 that the tensor cores of an SM do in a clock:
    /// dense, by the fastest instruction.
    pub half_products: u32,
    /// Whether kernels were timed on it.
    pub is_measured: bool,
}

/// The kinds that can be named. Of those with one compute capability a GPU that is not here counts
/// as the first ([`Target::gpu`](super::Target::gpu)).
///
/// * SMs, boost clock, memory and its bandwidth: NVIDIA's data sheets of A30, A100 (80 GB, SXM),
///   H100, H200 and L40S, and its pages of the GeForce cards. A data sheet's TFLOPS of f32 are two
///   FLOP for each lane, SM and boost clock.
/// * `half_products`: the peaks of NVIDIA's architecture papers (A100, H100, GA102, Ada, RTX
///   Blackwell), divided by SMs and clock. That is the boost clock, but of Hopper a lower one, 1830
///   MHz of an H100. A GeForce card adds in f32 at half the rate of an L40S.
/// * L2: the same papers; of a B200 the *Blackwell Tuning Guide*, of an H200 what its driver says.
/// * B200: the number of SMs, the clock and the bandwidth are those that its driver reports. NVIDIA
///   has published no paper on it.
pub static CARDS: [Card; 11] = [
    card("rtx3060", "a GeForce RTX 3060 (12 GB)", (8, 6), [28, 1777, 360, 12, 3, 256]),
    card("rtx3090", "a GeForce RTX 3090", (8, 6), [82, 1695, 936, 24, 6, 256]),
    card("rtx4090", "a GeForce RTX 4090", (8, 9), [128, 2520, 1008, 24, 72, 256]),
    card("rtx5090", "a GeForce RTX 5090", (12, 0), [170, 2407, 1792, 32, 96, 256]),
    card("l40s", "an L40S", (8, 9), [142, 2520, 864, 48, 96, 512]),
    card("a30", "an A30", (8, 0), [56, 1440, 933, 24, 24, 1024]),
    card("a100", "an A100 (80 GB, SXM)", (8, 0), [108, 1410, 2039, 80, 40, 1024]),
    Card::H200,
    Card {
        is_measured: true,
        ..card("h100", "an H100 (SXM)", (9, 0), [132, 1980, 3350, 80, 50, 2048])
    },
    card("h100-pcie", "an H100 (PCIe)", (9, 0), [114, 1755, 2000, 80, 50, 2048]),
    card("b200", "a B200", (10, 0), [148, 1965, 7700, 180, 126, 4096]),
];

impl Card {
    /// The kind with that name.
    pub fn named(name: &str) -> Option<&'static Card> {
        CARDS.iter().find(|card| card.name == name)
    }

    /// An H200, on which most kernels were measured.
    pub const H200: Card = Card {
        is_measured: true,
        ..card("h200", "an H200", (9, 0), [132, 1980, 4800, 141, 60, 2048])
    };
}

const fn card(
    name: &'static str,
    title: &'static str,
    capability: (u32, u32),
    [sms, clock_mhz, gb_per_s, memory_gb, l2_mib, half_products]: [u32; 6],
) -> Card {
    Card {
        name,
        title,
        capability,
        sms,
        clock_mhz,
        gb_per_s,
        memory_gb,
        l2_mib,
        half_products,
        is_measured: false,
    }
}
