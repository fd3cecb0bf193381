//! A launch on the CPU device: its blocks are handed out to workers.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    address_space,
    block::in_kernel,
    check::{CheckedLaunch, MOST_SLOTS},
    fault::Stop,
    fiber::SPARE_BYTES,
    launch_state::{LaunchState, Program},
    limits::{MOST_WORKERS, SHARED_BYTES, STACK_BYTES},
    order::Order,
    panics,
    pool::{self, workers},
    process::Process,
    quiescence::Quiescence,
    worker::work,
};
use crate::{Declaration, Kernel, LaunchConfig, Limits, Params, ThreadFn};

/// The limits of a launch on the CPU: CUDA's, so that what runs here can be launched on a GPU.
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
    /// The most workers, 1 to 28. `None`: [one for each core](workers).
    pub workers: Option<usize>,
    /// The most clusters in progress at a time, where clusters wait for each other's flags. `None`:
    /// the clusters that an H200 would have resident, as far as threads and shared memory limit
    /// them.
    pub resident: Option<u64>,
    /// Run only these blocks, numbered along x, then y, then z. In a launch with clusters these are
    /// numbers of clusters.
    pub blocks: Option<Range<u64>>,
    /// A flag that cancels the launch when it is set: the launch ends at the next barrier or block.
    pub cancel: Option<&'a AtomicBool>,
    /// Counts the blocks that have ended, to show progress.
    pub done: Option<&'a AtomicU64>,
}

/// Runs a kernel on the CPU and waits for its end.
///
/// The first launch of a process installs a panic hook: a panic in a kernel is
/// kept for the [`Fault`](super::Fault) and not printed, every other goes to the previous hook.
///
/// # Errors
/// [`Stop::Config`] where the launch breaks the kernel's declaration or [`LIMITS`], before anything
/// runs. [`Stop::Fault`] where the kernel fails; what it had written by then stays written.
/// [`Stop::Interrupted`] where it was cancelled, [`Stop::OutOfMemory`] and [`Stop::TooManyThreads`]
/// where there are too few stacks.
///
/// # Safety
/// 1. Every view and pointer in `params` is valid until this returns, and nobody else writes what
///    the kernel reads, or touches what it writes. The same of the kernel's variables
///    ([`global!`](crate::global)), except for the functions of [`symbol`](super::symbol), and of
///    the buffers that they point to.
/// 2. No two threads of the launch access one element, one of them writing, without a barrier
///    between.
/// 3. A kernel that takes raw pointers stays inside their buffers.
/// 4. A thread of the kernel holds no two references into one `Out` or shared array, one of them
///    mutable (the views are `Copy`, so the compiler does not see it), and none where it waits for
///    threads that write there. No reference, view, tensor map or shared array outlives the thread.
/// 5. Where a thread waits, or makes an atomic operation, it holds nothing whose destructor must
///    run: when another thread fails, or the launch is cancelled, the ones that wait are abandoned
///    where they are. So is one whose stack is too small, wherever it is.
pub unsafe fn launch<P: Params>(
    kernel: &Kernel<P>,
    config: &LaunchConfig,
    params: P,
    options: &Options,
) -> Result<(), Stop> {
    kernel.check(config, &LIMITS, &params).map_err(Stop::Config)?;

    // SAFETY: this function's contract.
    let thread = unsafe { bind(&kernel.code.thread, params) };
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

/// The part of a launch that is the same for every kernel. It is compiled once, and in this crate,
/// which is optimised in a dev build, too.
pub(super) fn run_blocks(
    declaration: &Declaration,
    config: &LaunchConfig,
    kernel: &(dyn Fn() + Sync),
    options: &Options,
    order: Order,
    checked: Option<&CheckedLaunch>,
) -> Result<(), Stop> {
    panics::install_hook(in_kernel);
    let cluster = declaration.cluster.unwrap_or(config.cluster);
    let constants = declaration.resolve(&config.constants).map_err(Stop::Config)?;
    let clusters = LaunchConfig { grid: [0, 1, 2].map(|i| config.grid[i] / cluster[i]), ..*config };
    let blocks = match &options.blocks {
        Some(range) => range.start..range.end.min(clusters.blocks()),
        None => 0..clusters.blocks(),
    };
    let cancelled = || options.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed));
    // A worker runs all threads of a cluster. If these are more than a block's 1024, there may be
    // fewer workers.
    let threads = config.threads() * u64::from(cluster.iter().product::<u32>());
    let most = (MOST_WORKERS as u64 * 1024 / threads.max(1024)).max(1) as usize;
    let workers = options.workers.unwrap_or_else(workers).clamp(1, most);
    let workers =
        workers.min(usize::try_from(blocks.end.saturating_sub(blocks.start)).unwrap_or(workers));
    let stack_bytes = declaration.stack.unwrap_or(0).max(STACK_BYTES);
    let workers = workers_with_memory(workers, threads as usize, stack_bytes);
    let position = |number| position(order.block(number, clusters.blocks()), &clusters);
    let launch = LaunchState {
        program: Program {
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
        quiescence: Quiescence::default(),
        checked,
    };

    assert!(!in_kernel(), "a kernel cannot launch a kernel");
    let _running = Process::get().launches.begin();
    let look = || checked.iter().for_each(|checked| checked.watchdog.look());
    pool::run(workers, &|| work(&launch), &look);

    match launch.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, reason)) => Err(reason),
        // It was cancelled before any worker had room for a cluster's fibers.
        None if launch.next.load(Ordering::Relaxed) < launch.end => Err(Stop::Interrupted),
        None => Ok(()),
    }
}

/// The workers, of those `wanted`, for which the process's limits leave memory, should each need
/// that number of fibers. A launch that has begun cannot do with fewer. (Stacks of other launches
/// count as this launch's. So a launch may fail while others run.)
fn workers_with_memory(wanted: usize, fibers: usize, stack_bytes: usize) -> usize {
    // And a stack for the coroutine that runs a cluster.
    let bytes = fibers.saturating_add(1).saturating_mul(stack_bytes);
    let bytes = bytes.saturating_add(SPARE_BYTES + address_space::THREAD_BYTES);
    address_space::workers_that_fit(
        wanted,
        bytes,
        Process::get().fibers().saturating_mul(STACK_BYTES),
    )
}

/// The clusters of a launch that an H200 would have resident, as far as threads and shared memory
/// limit them. The kernel's registers on a GPU are not known here.
fn resident(declaration: &Declaration, config: &LaunchConfig) -> u64 {
    const SMS: u64 = 132;
    let shared = declaration.shared.unwrap_or(0) as u32 + config.dynamic_shared;
    let block = occupancy::Block { threads: config.threads() as u32, registers: 0, shared };
    let blocks = occupancy::occupancy(&occupancy::Sm::SM_90, &block).blocks;
    let cluster = declaration.cluster.unwrap_or(config.cluster).iter().product::<u32>();
    SMS * u64::from(blocks) / u64::from(cluster)
}

/// The index along x, y, z of the `number`th block, or cluster, of a grid.
fn position(number: u64, config: &LaunchConfig) -> [u32; 3] {
    let [x, y, _] = config.grid.map(u64::from);
    // Each fits: the grid's extents are u32.
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
