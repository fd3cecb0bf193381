//! A launch: blocks handed out to the cores.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    block::{SHARED_BYTES, in_kernel},
    check::{MOST_SLOTS, Watch},
    fault::{Stop, watch_panics},
    fiber::{self, STACK_BYTES},
    order::Order,
    pool::{self, MOST_WORKERS, workers},
    words::Others,
    worker::{Job, Launch, work},
};
use crate::{Declaration, Kernel, LaunchConfig, Limits, Params, ThreadFn};

/// What a launch on the CPU may be: CUDA's limits, so that what runs here can be launched there.
pub const LIMITS: Limits = Limits {
    block_threads: 1024,
    block: [1024, 1024, 64],
    grid: [i32::MAX as u32, 65535, 65535],
    shared: SHARED_BYTES as u32,
    cluster: 8,
};

/// How a launch is carried out. The result does not depend on it, bit for bit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// How many workers at most, and no more than 28; [as many as there are cores](workers) where `None`.
    pub workers: Option<usize>,
    /// How many clusters are begun before one has ended, at most, where they wait for words of each other: what a GPU has at once.
    /// What an H200 has by threads and shared memory where `None`.
    pub resident: Option<u64>,
    /// Run only these blocks, numbered x first, then y, then z; of a launch in clusters, these clusters.
    pub blocks: Option<Range<u64>>,
    /// Raised by another thread, it ends the launch at the next barrier or block.
    pub cancel: Option<&'a AtomicBool>,
    /// Counts the blocks that have ended, for whoever shows progress.
    pub done: Option<&'a AtomicU64>,
}

/// Runs a kernel on the CPU and waits for its end.
///
/// The first launch of a process puts a panic hook before the one that is there: a panic in a kernel is
/// remembered for the [`Fault`](super::Fault) and not printed, every other goes on to the previous hook.
///
/// # Errors
/// [`Stop::Config`] where the launch breaks the kernel's declaration or [`LIMITS`], before anything runs;
/// [`Stop::Fault`] where the kernel goes wrong. What it had written by then stays written.
///
/// # Safety
/// 1. Every view and pointer in `params` is valid until this returns, and nobody else writes what the
///    kernel reads, or touches what it writes.
///    The same of the kernel's variables ([`global!`](crate::global)), except for the functions of
///    [`symbol`](super::symbol), and of the buffers that they point to.
/// 2. No two threads of the launch access one element, one of them writing, without a barrier between.
/// 3. A kernel that takes raw pointers stays inside their buffers.
/// 4. A thread of the kernel holds no two references into one `Out` or shared array, one of them mutable (the
///    views are `Copy`, so the compiler does not see it), and none where it waits for threads that write there. No reference, view,
///    tensor map or shared array outlives the thread.
/// 5. Where a thread waits, or makes an atomic operation, it holds nothing whose destructor must run: when another thread goes
///    wrong, or the launch is cancelled, the ones that wait are abandoned where they are. So is one whose stack is too small, wherever
///    it is.
pub unsafe fn launch<P: Params>(
    kernel: &Kernel<P>,
    config: &LaunchConfig,
    params: P,
    options: &Options,
) -> Result<(), Stop> {
    kernel.check(config, &LIMITS, &params).map_err(Stop::Config)?;

    // SAFETY: this function's contract.
    let thread = unsafe { bind(&kernel.thread, params) };
    let declaration = &kernel.declaration;
    run_blocks(declaration, config, &thread, options, Order::Forward, None)
}

/// One thread of a kernel, its parameters bound.
///
/// # Safety
/// The result is called as a launch calls it, with the launch's conditions kept.
pub(super) unsafe fn bind<P: Params>(thread: &ThreadFn<P>, params: P) -> impl Fn() + Sync {
    /// Parameters may hold raw pointers, which are not `Sync`.
    struct Shared<P>(P);
    // SAFETY: the launch's conditions: its threads may use them together.
    unsafe impl<P> Sync for Shared<P> {}
    impl<P> Shared<P> {
        fn get(&self) -> &P {
            &self.0
        }
    }

    let (params, thread) = (Shared(params), thread.select());
    // SAFETY: `select` chose a version that this processor can run; the rest is the caller's.
    move || unsafe { thread(params.get()) }
}

/// The part of a launch that is the same for every kernel, compiled once and in this crate, where it is
/// optimised in a dev build too.
pub(super) fn run_blocks(
    declaration: &Declaration,
    config: &LaunchConfig,
    kernel: &(dyn Fn() + Sync),
    options: &Options,
    order: Order,
    watch: Option<&Watch>,
) -> Result<(), Stop> {
    watch_panics();
    let cluster = declaration.cluster.unwrap_or(config.cluster);
    let constants = declaration.resolve(&config.constants).map_err(Stop::Config)?;
    let clusters = LaunchConfig { grid: [0, 1, 2].map(|i| config.grid[i] / cluster[i]), ..*config };
    let blocks = match &options.blocks {
        Some(range) => range.start..range.end.min(clusters.blocks()),
        None => 0..clusters.blocks(),
    };
    let cancelled = || options.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed));
    // A cluster's threads are one worker's: fewer workers, where they are more than a block can have.
    let threads = config.threads() * u64::from(cluster.iter().product::<u32>());
    let most = (MOST_WORKERS as u64 * 1024 / threads.max(1024)).max(1) as usize;
    let workers = options.workers.unwrap_or_else(workers).clamp(1, most);
    let workers =
        workers.min(usize::try_from(blocks.end.saturating_sub(blocks.start)).unwrap_or(workers));
    let stack_bytes = declaration.stack.unwrap_or(0).max(STACK_BYTES);
    let workers = fiber::workers(workers, threads as usize, stack_bytes);
    let position = |number| position(order.block(number, clusters.blocks()), &clusters);
    let launch = Launch {
        job: Job {
            name: declaration.name,
            declared_shared: declaration.shared,
            stack_bytes,
            config: LaunchConfig { cluster, constants, ..*config },
            kernel,
            cancelled: &cancelled,
            order,
        },
        position: &position,
        next: AtomicU64::new(blocks.start),
        end: blocks.end,
        done: options.done,
        failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        open: AtomicU64::new(0),
        opened: AtomicU64::new(0),
        most_open: options
            .resident
            .unwrap_or_else(|| resident(declaration, config))
            .clamp(1, MOST_SLOTS / 2),
        others: Others::default(),
        watch,
    };

    assert!(!in_kernel(), "a kernel cannot launch a kernel");
    let _running = pool::launches().begin();
    let look = || watch.iter().for_each(|watch| watch.watchdog.look());
    pool::run(workers, &|| work(&launch), &look);

    match launch.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, reason)) => Err(reason),
        // It was cancelled before anybody had room for its first cluster.
        None if launch.next.load(Ordering::Relaxed) < launch.end => Err(Stop::Interrupted),
        None => Ok(()),
    }
}

/// Clusters of a launch that are on an H200 at once, as far as threads and shared memory have a say: what registers the kernel takes
/// there is not known here.
fn resident(declaration: &Declaration, config: &LaunchConfig) -> u64 {
    const MULTIPROCESSORS: u64 = 132;
    let shared = declaration.shared.unwrap_or(0) as u32 + config.dynamic_shared;
    let block = occupancy::Block { threads: config.threads() as u32, registers: 0, shared };
    let blocks = occupancy::occupancy(&occupancy::Multiprocessor::SM_90, &block).blocks;
    let cluster = declaration.cluster.unwrap_or(config.cluster).iter().product::<u32>();
    MULTIPROCESSORS * u64::from(blocks) / u64::from(cluster)
}

/// A block's index along x, y, z, or a cluster's.
fn position(number: u64, config: &LaunchConfig) -> [u32; 3] {
    let [x, y, _] = config.grid.map(u64::from);
    // Each fits: the grid's extents are u32.
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
