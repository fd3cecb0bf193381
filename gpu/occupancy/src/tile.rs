//! The arithmetic of the lectures on tiling: what the width of a tile means for an SM.

use crate::Sm;

/// Bytes of an element.
const ELEMENT: u64 = size_of::<f32>() as u64;

/// A phase of a tiled product, seen by one block: two square tiles are loaded, one element of each
/// by every thread, and then multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Threads of the block.
    pub threads: u64,
    /// Elements that the block loads from global memory.
    pub loads: u64,
    /// Its multiplications and additions.
    pub flop: u64,
    /// Bytes of its two tiles in shared memory.
    pub shared: u64,
}

/// The phase of a block whose tiles have that width. A block has at most 1024 threads, so beyond 32
/// no device runs it.
pub fn phase(width: u32) -> Phase {
    let width = u64::from(width);
    let threads = width * width;
    let loads = threads.saturating_mul(2);
    Phase {
        threads,
        loads,
        flop: loads.saturating_mul(width),
        shared: loads.saturating_mul(ELEMENT),
    }
}

/// The blocks of a tiled product that an SM holds. Registers, which the lectures leave out, may
/// allow fewer: [`occupancy`](crate::occupancy) counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The blocks that shared memory allows.
    pub by_shared: u64,
    /// The blocks that the most threads allow.
    pub by_threads: u64,
    /// The blocks that both allow, and the SM's most blocks.
    pub blocks: u64,
}

impl Held {
    /// Loads in flight at once.
    pub fn pending(&self, phase: &Phase) -> u64 {
        self.blocks.saturating_mul(phase.loads)
    }
}

/// The blocks with such phases that an SM holds.
pub fn held(sm: &Sm, phase: &Phase) -> Held {
    let taken = phase.shared.saturating_add(sm.shared_reserved.into());
    let taken = taken.checked_next_multiple_of(sm.shared_unit.into()).unwrap_or(u64::MAX);
    let by_shared = u64::from(sm.shared) / taken.max(1);
    let warps = phase.threads.div_ceil(u64::from(crate::WARP)).max(1);
    let by_threads = u64::from(sm.warps) / warps;
    Held { by_shared, by_threads, blocks: by_shared.min(by_threads).min(u64::from(sm.blocks)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lectures' SM: 16 KiB of shared memory, 1536 threads. They name no other limit; eight
    /// blocks is what compute capability 2.x holds, whose 1536 threads these are.
    const LECTURES: Sm = Sm {
        registers: 32768,
        register_unit: 64,
        partitions: 1,
        warps: 1536 / 32,
        blocks: 8,
        shared: 16 << 10,
        shared_unit: 128,
        shared_reserved: 0,
    };

    #[test]
    fn a_tile_of_16() {
        let phase = phase(16);
        let expected = Phase { threads: 256, loads: 512, flop: 8192, shared: 2 << 10 };
        assert_eq!(phase, expected);
        let held = held(&LECTURES, &phase);
        assert_eq!(held.by_shared, 8);
        // What the lectures leave out: eight blocks have 2048 threads, and 1536 are the most.
        assert_eq!((held.by_threads, held.blocks, held.pending(&phase)), (6, 6, 3072));
    }

    #[test]
    fn a_tile_of_32() {
        let phase = phase(32);
        let expected = Phase { threads: 1024, loads: 2048, flop: 65536, shared: 8 << 10 };
        assert_eq!(phase, expected);
        let held = held(&LECTURES, &phase);
        // Shared memory for two, and threads for one.
        assert_eq!(held, Held { by_shared: 2, by_threads: 1, blocks: 1 });
    }

    #[test]
    fn on_todays_multiprocessors_it_agrees_with_the_occupancy() {
        for sm in [Sm::SM_80, Sm::SM_90] {
            for width in [1, 8, 16, 32] {
                let phase = phase(width);
                let (threads, shared) = (phase.threads as u32, phase.shared as u32);
                let block = crate::Block { threads, registers: 0, shared };
                let blocks = crate::occupancy(&sm, &block).blocks;
                assert_eq!(held(&sm, &phase).blocks, u64::from(blocks), "{width}");
            }
        }
    }

    #[test]
    fn a_tile_that_no_multiprocessor_holds() {
        assert_eq!(held(&LECTURES, &phase(u32::MAX)).blocks, 0);
        assert_eq!(held(&LECTURES, &phase(64)).blocks, 0);
        // Figures that a caller has made up.
        let most = Phase { threads: 0, loads: u64::MAX, flop: u64::MAX, shared: 0 };
        let held = Held { by_shared: u64::MAX, by_threads: 2, blocks: 2 };
        assert_eq!(held.pending(&most), u64::MAX);
    }
}
