//! What a cluster runs in: threads, fibers and shared memory. It is made once, and used by one
//! cluster after another.

use std::{cell::Cell, ptr::null};

use super::{
    block::{BlockRun, Thread, set_current},
    cluster::{ClusterArrival, Wait},
    fiber::Fiber,
    limits::{SHARED_BYTES, WARP},
    process::Process,
    warp_operation::{WarpKind, WarpOperation},
};
use crate::LaunchConfig;

/// What shared memory holds before a kernel writes it: NaN as f16, bf16, f32 and f64.
const POISON: u8 = 0xff;

/// What one cluster runs in. It belongs to one operating-system thread.
#[derive(Default)]
pub(super) struct Slot {
    /// Threads of a block along x, y, z.
    block: [u32; 3],
    /// The threads of all blocks of a cluster, block after block.
    pub(super) threads: Vec<Thread>,
    /// For each thread its part in a warp operation.
    pub(super) warp_operations: Vec<Cell<WarpOperation>>,
    /// What each thread waits for, by the thread's number in the cluster.
    pub(super) waits: Vec<Cell<Wait>>,
    pub(super) fibers: Vec<Fiber<BlockRun>>,
    /// Bytes of each fiber's stack.
    pub(super) stack_bytes: usize,
    /// Fibers for which it has taken room ([`Process::take_room`]).
    room: usize,
    shared: Vec<Line>,
    /// The fibers whose threads wait.
    pub(super) parked: Vec<usize>,
    /// The order in which a block's threads start.
    pub(super) order: Vec<u32>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.keep(0);
    }
}

/// Shared memory is aligned to 1024 bytes, after which the widest TMA swizzle repeats.
#[derive(Clone, Copy)]
#[repr(align(1024))]
struct Line(#[allow(dead_code, reason = "only its address is used")] [u8; 1024]);

impl Slot {
    /// Takes room for that number of fibers, and waits for it while `waits` holds. Gives whether
    /// the room is there.
    pub(super) fn take_room(&mut self, fibers: usize, waits: impl Fn() -> bool) -> bool {
        let is_there = self.room >= fibers || Process::get().take_room(fibers - self.room, waits);
        if is_there {
            self.room = self.room.max(fibers);
        }
        is_there
    }

    /// The fibers that it lacks, to have `fibers` with stacks of that size.
    pub(super) fn missing(&self, fibers: usize, stack_bytes: usize) -> usize {
        let has = if self.stack_bytes == stack_bytes { self.fibers.len() } else { 0 };
        fibers.saturating_sub(has)
    }

    /// Makes what clusters of this launch need. `None`: there is no memory for a fiber.
    pub(super) fn prepare(&mut self, config: &LaunchConfig, stack_bytes: usize) -> Option<()> {
        let [x, y, z] = config.block;
        let blocks = config.cluster.iter().product::<u32>();
        let threads = (x * y * z) as usize;
        if self.block != config.block || self.threads.len() != threads * blocks as usize {
            let indices =
                || (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
            let stride = (x * y * z).next_multiple_of(WARP);
            let of_block = |rank: u32| {
                let thread =
                    move |(linear, index)| Thread::new(linear, rank * stride + linear, index);
                (0..).zip(indices()).map(thread)
            };
            self.threads = (0..blocks).flat_map(of_block).collect();
            let nothing = WarpOperation { kind: WarpKind::Sync, mask: 0, value: 0 };
            self.warp_operations = vec![Cell::new(nothing); self.threads.len()];
            self.waits =
                vec![Cell::new(Wait::Cluster(ClusterArrival::Release)); (blocks * stride) as usize];
            self.block = config.block;
        }
        let lines = SHARED_BYTES / 1024 * blocks as usize;
        if self.shared.len() < lines {
            self.shared = vec![Line([POISON; 1024]); lines];
        }
        if self.stack_bytes != stack_bytes {
            self.fibers.clear();
            self.stack_bytes = stack_bytes;
        }
        if self.fibers.is_empty() {
            self.add_fiber()?;
        }
        Some(())
    }

    /// The first byte of the cluster's shared memory.
    pub(super) fn shared(&mut self) -> *mut u8 {
        self.shared.as_mut_ptr().cast()
    }

    /// Poisons the shared memory that a block may have written.
    pub(super) fn poison(&self, run: &BlockRun) {
        let dynamic = run.config.dynamic_shared.next_multiple_of(16) as usize;
        let dirty = (dynamic + run.shared_high.get()).min(SHARED_BYTES);
        // SAFETY: within the arena: `declare_shared` and the launch's limits see to it. No fiber
        // runs.
        unsafe { run.shared.write_bytes(POISON, dirty) };
    }

    /// Abandons the threads of a cluster that has failed.
    pub(super) fn abandon(&mut self) {
        set_current(null());
        self.fibers.iter_mut().for_each(Fiber::reset);
    }

    /// Keeps at most that number of fibers, and gives the room of the others back.
    pub(super) fn keep(&mut self, fibers: usize) {
        self.fibers.truncate(fibers);
        if self.room > fibers {
            Process::get().give_room(self.room - fibers);
            self.room = fibers;
        }
    }

    /// Whether it has taken room for fibers.
    pub(super) fn has_room(&self) -> bool {
        self.room > 0
    }

    /// Makes one more fiber. `None`: there is no memory for it.
    pub(super) fn add_fiber(&mut self) -> Option<()> {
        self.fibers.push(Fiber::new(self.fibers.len(), self.stack_bytes)?);
        Some(())
    }
}
