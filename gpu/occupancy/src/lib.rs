//! Occupancy: the blocks of a kernel that an SM holds at once, and the resource that limits them.
//!
//! The resources of an SM are from NVIDIA's *CUDA C++ Programming Guide*, table "Technical
//! Specifications per Compute Capability". Their allocation (registers by warp in units of 256 in
//! each of four partitions; shared memory in units of 128 bytes, with 1 KiB for the system in every
//! block) is from the toolkit's header `cuda_occupancy.h` and the "Occupancy" sections of the
//! *Ampere* and *Hopper Tuning Guide*.

pub mod tile;

use std::fmt;

/// Threads of a warp, on every GPU.
const WARP: u32 = 32;

/// The resources of an SM (streaming multi-processor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sm {
    /// 32-bit registers.
    pub registers: u32,
    /// The allocation unit of a warp's registers.
    pub register_unit: u32,
    /// The number of partitions, each with its own registers and warps.
    pub partitions: u32,
    /// The most resident warps.
    pub warps: u32,
    /// The most resident blocks.
    pub blocks: u32,
    /// The most bytes of shared memory.
    pub shared: u32,
    /// The allocation unit of a block's shared memory in bytes.
    pub shared_unit: u32,
    /// Bytes of shared memory that the system reserves in every block.
    pub shared_reserved: u32,
}

impl Sm {
    /// Compute capability 8.0.
    pub const SM_80: Sm = Sm {
        registers: 65536,
        register_unit: 256,
        partitions: 4,
        warps: 64,
        blocks: 32,
        shared: 164 << 10,
        shared_unit: 128,
        shared_reserved: 1 << 10,
    };

    /// Compute capability 9.0.
    pub const SM_90: Sm = Sm { shared: 228 << 10, ..Sm::SM_80 };

    /// Compute capability 8.6: most Ampere cards for desks and workstations.
    pub const SM_86: Sm = Sm { warps: 48, blocks: 16, shared: 100 << 10, ..Sm::SM_80 };

    /// Compute capability 8.9, and 12.0 and 12.1, which have the same.
    pub const SM_89: Sm = Sm { blocks: 24, ..Sm::SM_86 };

    /// The SM of a compute capability, given without the dot; `None` for an unknown one.
    pub const fn of(compute_capability: u32) -> Option<Sm> {
        match compute_capability {
            80 => Some(Sm::SM_80),
            86 => Some(Sm::SM_86),
            87 => Some(Sm { shared: Sm::SM_80.shared, ..Sm::SM_86 }),
            89 | 120 | 121 => Some(Sm::SM_89),
            90 | 100 | 103 => Some(Sm::SM_90),
            _ => None,
        }
    }
}

/// The resources of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of its threads.
    pub threads: u32,
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of shared memory, static and dynamic.
    pub shared: u32,
}

/// The resources that limit the resident blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The most resident warps.
    Warps,
    /// The most resident blocks.
    Blocks,
    /// Shared memory.
    Shared,
    /// Registers.
    Registers,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Resource::Warps => "warps",
            Resource::Blocks => "blocks",
            Resource::Shared => "shared memory",
            Resource::Registers => "registers",
        })
    }
}

/// The occupancy of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Resident blocks; 0 where not even one fits.
    pub blocks: u32,
    /// Their number of warps.
    pub warps: u32,
    /// The most warps of the SM.
    pub most_warps: u32,
    /// The resource that limits the blocks. If there are several, the first in the order of the
    /// enum.
    pub limited_by: Resource,
    /// The blocks that each resource alone would allow. `None` for shared memory or registers that
    /// are not used.
    pub limits: [(Resource, Option<u32>); 4],
}

impl Occupancy {
    /// Resident warps in percent of the SM's most warps.
    pub fn percent(&self) -> f64 {
        100.0 * f64::from(self.warps) / f64::from(self.most_warps.max(1))
    }
}

/// The occupancy of `sm` by blocks like `block`.
pub fn occupancy(sm: &Sm, block: &Block) -> Occupancy {
    let warps = block.threads.div_ceil(WARP).max(1);
    let warp_registers =
        (block.registers.saturating_mul(WARP)).checked_next_multiple_of(sm.register_unit);
    let by_registers = (block.registers > 0).then(|| {
        let per_warp = warp_registers.unwrap_or(u32::MAX);
        // A warp's registers are in one partition. An SM without partitions has no registers.
        let of_partition = sm.registers.checked_div(sm.partitions).unwrap_or(0);
        (of_partition / per_warp) * sm.partitions / warps
    });
    let taken = (block.shared.saturating_add(sm.shared_reserved))
        .checked_next_multiple_of(sm.shared_unit)
        .unwrap_or(u32::MAX);
    let by_shared = (block.shared > 0).then(|| sm.shared / taken);
    let limits = [
        (Resource::Warps, Some(sm.warps / warps)),
        (Resource::Blocks, Some(sm.blocks)),
        (Resource::Shared, by_shared),
        (Resource::Registers, by_registers),
    ];
    let (mut limited_by, mut blocks) = (Resource::Warps, u32::MAX);
    for (resource, limit) in limits {
        if let Some(limit) = limit.filter(|limit| *limit < blocks) {
            (limited_by, blocks) = (resource, limit);
        }
    }
    Occupancy { blocks, warps: blocks * warps, most_warps: sm.warps, limited_by, limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An SM that a caller has made up: whichever of its numbers is zero or large.
    #[test]
    fn no_number_of_an_sm_is_a_fault() {
        let most = [0, 1, u32::MAX];
        for field in 0..8 {
            for value in most {
                let mut sm = Sm::SM_90;
                let fields = [
                    &mut sm.registers,
                    &mut sm.register_unit,
                    &mut sm.partitions,
                    &mut sm.warps,
                    &mut sm.blocks,
                    &mut sm.shared,
                    &mut sm.shared_unit,
                    &mut sm.shared_reserved,
                ];
                *fields.into_iter().nth(field).unwrap() = value;
                for (threads, registers) in most.iter().flat_map(|one| most.map(|two| (*one, two)))
                {
                    let block = Block { threads, registers, shared: registers };
                    let occupancy = occupancy(&sm, &block);
                    let percent = occupancy.percent();
                    assert!(percent >= 0.0 && occupancy.warps <= sm.warps, "{sm:?} {block:?}");
                    assert!(value > 0 || field != 2 || registers == 0 || occupancy.blocks == 0);
                }
            }
        }
    }

    fn of(sm: &Sm, threads: u32, registers: u32, shared: u32) -> Occupancy {
        occupancy(sm, &Block { threads, registers, shared })
    }

    #[test]
    fn a_tiled_product_fills_a_multiprocessor() {
        // As Nsight Compute reports it of `tiled16` on an H200: 8 blocks by warps, 8 by registers,
        // 100 %. (Its limit by shared memory is lower, 21: the driver gave shared memory 64 KiB,
        // which is enough.)
        let occupancy = of(&Sm::SM_90, 256, 32, 2048);
        assert_eq!((occupancy.blocks, occupancy.warps, occupancy.percent()), (8, 64, 100.0));
        assert_eq!(occupancy.limited_by, Resource::Warps);
        let limits: Vec<_> = occupancy.limits.iter().filter_map(|(_, limit)| *limit).collect();
        assert_eq!(limits, [8, 32, 76, 8]);
    }

    #[test]
    fn each_resource_runs_out() {
        let sm = &Sm::SM_80;
        let limited = |threads, registers, shared| {
            let occupancy = of(sm, threads, registers, shared);
            (occupancy.limited_by, occupancy.blocks)
        };
        assert_eq!(limited(1024, 32, 8192), (Resource::Warps, 2));
        assert_eq!(limited(32, 16, 0), (Resource::Blocks, 32));
        // 40 KiB and one more, which is 41: four blocks in 164 KiB, and one byte more makes it
        // three.
        assert_eq!(limited(128, 32, 40 << 10), (Resource::Shared, 4));
        assert_eq!(limited(128, 32, (40 << 10) + 1), (Resource::Shared, 3));
        assert_eq!(limited(256, 33, 0), (Resource::Registers, 6), "33 registers are paid as 40");
        // 168 registers: 5376 a warp, 3 in each of 4 partitions, so one block of 12 warps.
        assert_eq!(limited(384, 168, 0), (Resource::Registers, 1));
    }

    #[test]
    fn what_does_not_fit_is_no_block() {
        assert_eq!(of(&Sm::SM_80, 1024, 255, 0).blocks, 0);
        assert_eq!(of(&Sm::SM_80, 32, 16, 164 << 10).blocks, 0);
        assert_eq!(of(&Sm::SM_90, 32, 16, 227 << 10).blocks, 1);
        // 99 KiB, which is all that a block may have there.
        assert_eq!(of(&Sm::SM_89, 32, 16, 99 << 10).blocks, 1);
        assert_eq!(of(&Sm::SM_89, 32, 16, (99 << 10) + 1).blocks, 0);
        assert_eq!(of(&Sm::SM_90, 32, 16, u32::MAX).blocks, 0);
        assert_eq!(of(&Sm::SM_90, u32::MAX, u32::MAX, 0).blocks, 0);
    }

    #[test]
    fn other_architectures_are_not_guessed() {
        assert_eq!(Sm::of(90), Some(Sm::SM_90));
        assert_eq!(Sm::of(75), None);
        // A block may have 99 KiB, and an SM 1536 threads.
        let ada = Sm::of(89).unwrap();
        assert_eq!(of(&ada, 256, 64, 99 << 10).blocks, 1);
        assert_eq!(of(&ada, 256, 64, (99 << 10) + 1).blocks, 0);
        assert_eq!(of(&ada, 512, 40, 0).blocks, 3);
    }
}
