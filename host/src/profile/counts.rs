//! The figures of a launch by which kernels are compared.

use serde::{Deserialize, Serialize};
use simt::{
    LaunchConfig,
    check::{Line, Operation, Profile},
};

use gpu_gemm::Shape;

/// Figures of a product, over all its blocks. A ratio without a denominator is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Sectors of 32 bytes that a warp's load from global memory touches.
    pub sectors_per_request: Option<f64>,
    /// The fewest sectors for the same bytes.
    pub sectors_per_request_ideal: Option<f64>,
    /// Wavefronts of a warp's load from shared memory, or store to it. More than the ideal are bank
    /// conflicts.
    pub wavefronts_per_request: Option<f64>,
    /// The fewest wavefronts for the same bytes.
    pub wavefronts_per_request_ideal: Option<f64>,
    /// Barriers that a warp waits at.
    pub barriers_per_warp: f64,
    /// Multiply-adds of a warp. Each has 32 lanes.
    pub fma_per_warp: f64,
    /// Loads from global memory that a warp makes.
    pub global_loads_per_warp: f64,
    /// Stores to global memory that a warp makes.
    pub global_stores_per_warp: f64,
    /// Loads from shared memory that a warp makes.
    pub shared_loads_per_warp: f64,
    /// Stores to shared memory that a warp makes.
    pub shared_stores_per_warp: f64,
    /// The arithmetic intensity: FLOP per byte that threads load from global memory, by loads and
    /// by TMA copies.
    pub flop_per_byte: Option<f64>,
    /// FLOP per byte of the sectors that are moved. These include bytes that no thread asked for.
    /// Bytes that several lanes of a warp ask for count once.
    pub flop_per_sector_byte: Option<f64>,
    /// Instructions of tensor cores that a warp executes: `mma.sync`, or its part of `wgmma`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_ops_per_warp: Option<f64>,
    /// Bytes that TMA copies load. A copy to several blocks counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tma_load_bytes: Option<f64>,
    /// Bytes that TMA copies store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tma_store_bytes: Option<f64>,
    /// The share of intervals between waits in which a warp's lanes took different branches.
    pub divergent_share: f64,
}

/// Lanes of a warp.
const WARP: u64 = 32;

impl Counts {
    /// The figures of a profile of `shape`. `config`: the blocks of its launches.
    pub fn of(profile: &Profile, config: &LaunchConfig, shape: Shape) -> Counts {
        use Operation::*;
        let [x, y, z] = config.block.map(u64::from);
        let warps = (profile.blocks * (x * y * z).div_ceil(WARP)).max(1) as f64;
        let requests = |line: &Line| line.requests;
        let sum = |operations: &[Operation], count: &dyn Fn(&Line) -> u64| -> f64 {
            operations.iter().map(|&operation| profile.total(operation, count)).sum()
        };
        let each = |operations: &[Operation], count: &dyn Fn(&Line) -> u64| {
            let requests = sum(operations, &requests);
            (requests > 0.0).then(|| sum(operations, count) / requests)
        };
        let per_warp = |operations: &[Operation]| sum(operations, &requests) / warps;
        let some = |value: f64| Some(value).filter(|value| *value > 0.0);
        let copied = |operation| some(sum(&[operation], &|line| line.units));
        let asked = sum(&[GlobalLoad], &|line| line.lanes * u64::from(line.width))
            + sum(&[TmaLoad], &|line| line.units);
        let shared = [SharedLoad, SharedStore, SharedCopy];
        Counts {
            sectors_per_request: each(&[GlobalLoad], &|line| line.units),
            sectors_per_request_ideal: each(&[GlobalLoad], &|line| line.ideal),
            wavefronts_per_request: each(&shared, &|line| line.units),
            wavefronts_per_request_ideal: each(&shared, &|line| line.ideal),
            barriers_per_warp: per_warp(&[Barrier]),
            fma_per_warp: sum(&[Fma], &|line| line.lanes) / (WARP as f64 * warps),
            global_loads_per_warp: per_warp(&[GlobalLoad]),
            global_stores_per_warp: per_warp(&[GlobalStore]),
            shared_loads_per_warp: per_warp(&[SharedLoad]),
            shared_stores_per_warp: per_warp(&[SharedStore, SharedCopy]),
            flop_per_byte: (asked > 0.0).then(|| shape.flop() / asked),
            flop_per_sector_byte: super::flop_per_byte(profile, GlobalLoad, shape),
            tensor_ops_per_warp: some(per_warp(&[Mma, Wgmma])),
            tma_load_bytes: copied(TmaLoad),
            tma_store_bytes: copied(TmaStore),
            divergent_share: super::divergent_share(profile),
        }
    }
}
