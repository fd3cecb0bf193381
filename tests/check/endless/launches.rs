//! Launches of kernels that are checked: in every order, with every number of workers, with low
//! limits.

use std::{hint::black_box, time::Duration};

use simt::{
    Declaration, Kernel, LaunchConfig,
    check::{self, Kind, Options, Order, Report},
    checked::{In, Mbarriers, Out, TensorMap, TensorMapMut, mbarrier, thread},
    device::BoxShape,
};
use tests::Turns;

pub(super) const BLOCKS: u32 = 4;

/// Elements of x and of y. They are also matrices of `COLS` columns for kernels that copy boxes of
/// four rows.
pub(super) const LEN: usize = 1024;
pub(super) const COLS: usize = 16;
pub(super) const SHAPE: BoxShape = BoxShape { rows: 4, cols: COLS, swizzle: 0 };

#[repr(align(128))]
pub(super) struct Aligned(pub(super) [f32; LEN]);

/// The memory of a launch: x is 0, 1, 2 and so on. y and the words, which hold flags, are zeros.
pub(super) struct Memory {
    pub(super) x: Aligned,
    pub(super) y: Aligned,
    words: [u32; 16],
}

impl Memory {
    pub(super) fn new() -> Self {
        let x = Aligned(std::array::from_fn(|i| i as f32));
        Memory { x, y: Aligned([0.0; LEN]), words: [0; 16] }
    }
}

/// A kernel that is checked, with any parameters.
pub(super) trait Checked: Sync {
    fn declaration(&self) -> &Declaration;

    fn check(&self, config: &LaunchConfig, memory: &mut Memory, options: &Options) -> Report;
}

macro_rules! checked {
    ($($x:ty, $y:ty: |$memory:ident| ($($param:expr),*);)*) => {$(
        impl Checked for Kernel<($x, $y, Out<u32>)> {
            fn declaration(&self) -> &Declaration {
                &self.declaration
            }

            fn check(
                &self,
                config: &LaunchConfig,
                $memory: &mut Memory,
                options: &Options,
            ) -> Report {
                // SAFETY: the memory outlives the launch, and nobody else uses it.
                unsafe {
                    let words = Out::new($memory.words.as_mut_ptr(), $memory.words.len());
                    check::launch(self, config, ($($param),*, words), options).expect("a report")
                }
            }
        }
    )*};
}

checked! {
    In<f32>, Out<f32>: |memory| (
        In::new(memory.x.0.as_ptr(), LEN),
        Out::new(memory.y.0.as_mut_ptr(), LEN)
    );
    TensorMap<f32>, Out<f32>: |memory| (
        TensorMap::new(memory.x.0.as_ptr(), [1, LEN / COLS, COLS], [0, COLS], SHAPE).expect("a map"),
        Out::new(memory.y.0.as_mut_ptr(), LEN)
    );
    In<f32>, TensorMapMut<f32>: |memory| (
        In::new(memory.x.0.as_ptr(), LEN),
        TensorMapMut::new(memory.y.0.as_mut_ptr(), [1, LEN / COLS, COLS], [0, COLS], SHAPE)
            .expect("a map")
    );
}

/// Returns the report, and y. The limits on accesses, waits and time are low, so that kernels that
/// never end are ended soon.
pub(super) fn run(
    kernel: &dyn Checked,
    order: Order,
    workers: usize,
    most_waits: u64,
) -> (Report, Box<[f32]>) {
    let mut memory = Memory::new();
    let mut options = Options::default();
    (options.order, options.workers) = (order, Some(workers));
    (options.most_accesses, options.most_waits) = (Some(40_000), Some(most_waits));
    options.patience = Some(Duration::from_millis(30));
    let declaration = kernel.declaration();
    let config = LaunchConfig {
        dynamic_shared: declaration.dynamic_shared.unwrap_or(0),
        ..LaunchConfig::new([BLOCKS, 1, 1], declaration.block.expect("it declares that"))
    };
    let report = kernel.check(&config, &mut memory, &options);
    black_box(&memory.words);
    (report, memory.y.0.into())
}

pub(super) fn orders() -> impl Iterator<Item = Order> {
    [Order::Forward, Order::Reverse].into_iter().chain((1..=8).map(Order::Random))
}

/// One order, for kernels that the watchdog ends: each launch takes as long as the watchdog's
/// patience.
pub(super) fn one_order() -> impl Iterator<Item = Order> {
    [Order::Forward].into_iter()
}

pub(super) const WORKERS: [usize; 3] = [1, 2, 16];

/// The most waits for a correct kernel and for a wrong one. Where several blocks never end, each
/// may have twice that number.
pub(super) const MOST_WAITS: u64 = 2_000;
pub(super) const MOST_WAITS_OF_WRONG: u64 = MOST_WAITS / 2;

/// Runs a kernel in each order and checks each report: in the first with each number of workers, in
/// the others with one of them in turn, and with `FULL=1` with each.
pub(super) fn each(
    kernel: &dyn Checked,
    most_waits: u64,
    orders: impl Iterator<Item = Order>,
    look: impl Fn(&str, &Report, &[f32]),
) {
    let mut turns = Turns::of(WORKERS.len());
    for (number, order) in orders.enumerate() {
        let all = [0, 1, 2];
        let numbers = if number == 0 { all.to_vec() } else { turns.among(&all) };
        for workers in numbers.into_iter().map(|number| WORKERS[number]) {
            let (report, y) = run(kernel, order, workers, most_waits);
            let name = format!("{}, {order}, {workers} workers", kernel.declaration().name);
            look(&name, &report, &y);
        }
    }
}

/// A wrong kernel, and the kinds of all its findings.
pub(super) struct Wrong {
    pub(super) kernel: &'static dyn Checked,
    pub(super) kinds: &'static [Kind],
}

/// Initialises mbarriers for these arrivals, before all threads of the block.
pub(super) fn init<const N: usize>(mbarriers: &Mbarriers<N>, arrivals: [u32; N]) {
    if thread::thread_idx_x() == 0 {
        (0..N).for_each(|number| mbarriers.at(number).init(arrivals[number]));
        mbarrier::fence_init();
    }
    thread::sync_threads();
}
