//! Flags in global memory, by which blocks wait for each other: correct kernels, and kernels that
//! are wrong in one way each.

use simt::{
    LaunchConfig,
    check::{self, Kind, Order, Report},
    checked, cpu, device,
};

/// Parts of 32 elements, and blocks.
const PARTS: usize = 12;
const BLOCKS: usize = 4;
/// Counters: parts that have been claimed, and parts that are done.
const WORDS: usize = 2;

macro_rules! kernels {
    ($module:ident: $device:ident) => {
        #[allow(dead_code, reason = "what is wrong is run checked alone")]
        mod $module {
            use simt::$device::*;

            /// Doubles parts of x as they are claimed, and adds to each of its block's parts the
            /// one after it.
            #[kernel(block = (32))]
            pub fn given_out(x: In<f32>, mut y: Out<f32>, mut z: Out<f32>, mut words: Out<u32>) {
                let lane = thread::lane_id() as usize;
                let mut mine = [false; super::PARTS];
                loop {
                    let given = if lane == 0 { words.atomic_add(0, 1) } else { 0 };
                    let part = warp::shuffle(warp::ALL, given, 0) as usize;
                    if part >= super::PARTS {
                        break;
                    }
                    mine[part] = true;
                    y[part * 32 + lane] = 2.0 * x[part * 32 + lane];
                    warp::sync_warp(warp::ALL);
                    if lane == 0 {
                        words.release_add(1, 1);
                    }
                }
                words.wait_for_at_least(1, super::PARTS as u32);
                for part in (0..super::PARTS).filter(|&part| mine[part]) {
                    let next = (part + 1) % super::PARTS;
                    z[part * 32 + lane] = y[part * 32 + lane] + y[next * 32 + lane];
                }
            }

            /// All blocks meet three times. After each meeting a block reads what the next block
            /// wrote before it.
            #[kernel(block = (32))]
            pub fn meet(x: In<f32>, mut y: Out<f32>, mut z: Out<f32>, mut words: Out<u32>) {
                let lane = thread::lane_id() as usize;
                let (block, blocks) =
                    (thread::block_idx_x() as usize, thread::grid_dim_x() as usize);
                for round in 0..3 {
                    let at = |block: usize| (round * blocks + block) * 32 + lane;
                    y[at(block)] = 2.0 * x[at(block)];
                    warp::sync_warp(warp::ALL);
                    if lane == 0 {
                        words.release_add(1, 1);
                    }
                    words.wait_for_at_least(1, ((round + 1) * blocks) as u32);
                    z[at(block)] = y[at(block)] + y[at((block + 1) % blocks)];
                }
            }

            /// How a block signals that a part has been doubled, and how the last block waits for
            /// all.
            #[derive(Clone, Copy, PartialEq, Eq)]
            enum Way {
                Right,
                NotWaited,
                NotTold,
                ToldTooEarly,
                TooMany,
                TooFew,
            }

            /// Each block doubles some parts, and the last one adds the doubled parts. It must
            /// start last.
            #[inline(always)]
            #[track_caller]
            fn in_order(
                x: In<f32>,
                mut y: Out<f32>,
                mut z: Out<f32>,
                mut words: Out<u32>,
                way: Way,
            ) {
                let lane = thread::lane_id() as usize;
                let (block, blocks) =
                    (thread::block_idx_x() as usize, thread::grid_dim_x() as usize);
                for part in (block..super::PARTS).step_by(blocks) {
                    if way == Way::ToldTooEarly && lane == 0 {
                        words.release_add(1, 1);
                    }
                    y[part * 32 + lane] = 2.0 * x[part * 32 + lane];
                    warp::sync_warp(warp::ALL);
                    match way {
                        Way::ToldTooEarly => {}
                        Way::NotTold if lane == 0 => {
                            words.atomic_add(1, 1);
                        }
                        _ if lane == 0 => words.release_add(1, 1),
                        _ => {}
                    }
                }
                if block + 1 < blocks {
                    return;
                }
                let parts = super::PARTS as u32;
                match way {
                    Way::NotWaited => {}
                    Way::TooMany => words.wait_for_at_least(1, parts + 1),
                    Way::TooFew => words.wait_for_at_least(1, parts - blocks as u32),
                    _ => words.wait_for_at_least(1, parts),
                }
                for part in 0..super::PARTS {
                    let next = (part + 1) % super::PARTS;
                    z[part * 32 + lane] = y[part * 32 + lane] + y[next * 32 + lane];
                }
            }

            macro_rules! kernel {
                ($name:ident: $way:ident) => {
                    #[kernel(block = (32))]
                    pub fn $name(x: In<f32>, y: Out<f32>, z: Out<f32>, words: Out<u32>) {
                        in_order(x, y, z, words, Way::$way);
                    }
                };
            }

            kernel! { right: Right }
            kernel! { not_waited: NotWaited }
            kernel! { not_told: NotTold }
            kernel! { told_too_early: ToldTooEarly }
            kernel! { too_many: TooMany }
            kernel! { too_few: TooFew }
        }
    };
}

kernels! { device_kernels: device }
kernels! { checked_kernels: checked }

/// x, y, z and the words.
struct Memory([Vec<f32>; 3], [u32; WORDS]);

impl Memory {
    fn new() -> Self {
        let x = (0..PARTS * 32).map(|i| i as f32).collect();
        Memory([x, vec![0.0; PARTS * 32], vec![0.0; PARTS * 32]], [0; WORDS])
    }

    fn is_right(&self) {
        let Memory([x, _, z], [_, told]) = self;
        for (i, &got) in z.iter().enumerate() {
            assert_eq!(got, 2.0 * (x[i] + x[(i + 32) % x.len()]), "element {i}");
        }
        assert_eq!(*told, PARTS as u32);
    }
}

fn config() -> LaunchConfig {
    LaunchConfig::new([BLOCKS as u32, 1, 1], [32, 1, 1])
}

macro_rules! run {
    ($device:ident, $launch:path, $kernel:expr, $memory:ident, $options:expr) => {{
        let Memory([x, y, z], words) = &mut $memory;
        // SAFETY: the memory outlives the launch, and nobody else uses it.
        unsafe {
            let params = (
                $device::In::new(x.as_ptr(), x.len()),
                $device::Out::new(y.as_mut_ptr(), y.len()),
                $device::Out::new(z.as_mut_ptr(), z.len()),
                $device::Out::new(words.as_mut_ptr(), WORDS),
            );
            $launch($kernel, &config(), params, $options)
        }
    }};
}

macro_rules! check {
    ($name:ident, $order:expr, $workers:expr) => {
        check!($name, $order, $workers, Memory::new())
    };
    ($name:ident, $order:expr, $workers:expr, $memory:expr) => {{
        let mut memory = $memory;
        let mut options = check::Options::default();
        (options.order, options.workers) = ($order, $workers);
        let kernel = &checked_kernels::$name;
        (run!(checked, check::launch, kernel, memory, &options).expect("a report"), memory)
    }};
}

fn orders() -> impl Iterator<Item = Order> {
    [Order::Forward, Order::Reverse].into_iter().chain((1..=10).map(Order::Random))
}

#[test]
fn what_blocks_have_told_is_seen() {
    for workers in [Some(1), None] {
        let mut options = cpu::Options::default();
        options.workers = workers;
        for kernel in [&device_kernels::given_out, &device_kernels::right] {
            let mut memory = Memory::new();
            run!(device, cpu::launch, kernel, memory, &options).expect("it runs");
            memory.is_right();
        }
        for order in orders() {
            let (report, memory) = check!(given_out, order, workers);
            assert!(report.is_clean(), "{order}: {report}");
            memory.is_right();
        }
        let (report, memory) = check!(right, Order::Forward, workers);
        assert!(report.is_clean(), "{report}");
        memory.is_right();
    }
}

/// A flag that the last launch has left at its value tells nothing of this launch: a wait for it
/// ends before any block has written.
#[test]
fn a_flag_that_nobody_has_reset_tells_nothing() {
    for workers in [Some(1), None] {
        let told = Memory(Memory::new().0, [0, PARTS as u32]);
        let (report, _) = check!(right, Order::Forward, workers, told);
        // Of two accesses that nothing orders, several workers make either the first one.
        assert!(!report.is_clean(), "{report}");
        for finding in &report.findings {
            let either = workers.is_none() && finding.kind == Kind::WriteAfterRead;
            assert!(finding.kind == Kind::ReadAfterWrite || either, "{report}");
        }
        // One less, and the wait needs the first release of this launch, and no other.
        let told = Memory(Memory::new().0, [0, PARTS as u32 - 1]);
        let (report, _) = check!(right, Order::Forward, workers, told);
        assert!(!report.is_clean(), "{report}");
    }
}

/// Each block waits for the previous one, with more threads than there are stacks. The first block
/// takes its time.
#[simt::device::kernel(block = (256))]
fn one_behind_another(mut words: device::Out<u32>) {
    use simt::device::*;
    let block = thread::block_idx_x();
    if block == 0 {
        let mut number = thread::thread_idx_x();
        for _ in 0..100_000 {
            number = std::hint::black_box(number.wrapping_mul(5) + 1);
        }
    }
    words.wait_for_at_least(0, block);
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        words.release_add(0, 1);
    }
}

#[test]
fn a_chain_of_blocks_is_as_long_as_it_likes() {
    for workers in [1, 2, 16] {
        let mut words = [0];
        let mut options = cpu::Options::default();
        options.workers = Some(workers);
        // SAFETY: the word outlives the launch, and nobody else uses it.
        let done = unsafe {
            let params = (device::Out::new(words.as_mut_ptr(), 1),);
            let config = LaunchConfig::new([300, 1, 1], [256, 1, 1]);
            cpu::launch(&one_behind_another, &config, params, &options)
        };
        done.unwrap_or_else(|stop| panic!("{workers} workers: {stop}"));
        assert_eq!(words, [300]);
    }
}

/// The number of resident blocks depends on the launch and on the GPU that it models, not on the
/// machine's cores.
#[test]
fn blocks_that_wait_for_each_other_need_no_more_workers() {
    for workers in [Some(1), Some(2), Some(16)] {
        let mut options = cpu::Options::default();
        options.workers = workers;
        let mut memory = Memory::new();
        run!(device, cpu::launch, &device_kernels::meet, memory, &options).expect("it runs");
        let Memory([x, _, z], _) = &memory;
        for round in 0..3 {
            for i in 0..BLOCKS * 32 {
                let (own, next) =
                    (round * BLOCKS * 32 + i, round * BLOCKS * 32 + (i + 32) % (BLOCKS * 32));
                assert_eq!(z[own], 2.0 * (x[own] + x[next]), "{workers:?} workers, element {own}");
            }
        }
        for order in orders() {
            let (report, _) = check!(meet, order, workers);
            assert!(report.is_clean(), "{workers:?} workers, {order}: {report}");
        }
        // On a device with one resident block fewer, the last block never starts.
        options.resident = Some(BLOCKS as u64 - 1);
        let mut memory = Memory::new();
        let stop = run!(device, cpu::launch, &device_kernels::meet, memory, &options);
        let stop = stop.unwrap_err().to_string();
        assert!(stop.contains("for at least 4, which it never reaches"), "{workers:?}: {stop}");
    }
}

/// Blocks start one after the other, and there is one worker: the result is the same each time.
#[test]
fn who_does_not_wait_or_tell_is_in_a_race() {
    let is_a_race = |report: Report| {
        assert!(!report.is_clean());
        for finding in &report.findings {
            assert_eq!(finding.kind, Kind::ReadAfterWrite, "{report}");
            assert_eq!(finding.memory.as_deref(), Some("buffer y"), "{report}");
        }
    };
    is_a_race(check!(not_waited, Order::Forward, Some(1)).0);
    is_a_race(check!(not_told, Order::Forward, Some(1)).0);
    is_a_race(check!(told_too_early, Order::Forward, Some(1)).0);
    is_a_race(check!(too_few, Order::Forward, Some(1)).0);
}

#[test]
fn what_nobody_adds_is_waited_for_in_vain() {
    // Workers whose blocks have ended are no reason to wait.
    for workers in [Some(1), Some(2), None] {
        let (report, _) = check!(too_many, Order::Forward, workers);
        let [finding] = &report.findings[..] else { panic!("one finding: {report}") };
        assert_eq!(finding.kind, Kind::Deadlock);
        assert!(finding.detail.contains("for at least 13, which it never reaches"), "{report}");
        let mut memory = Memory::new();
        let mut options = cpu::Options::default();
        options.workers = workers;
        let kernel = &device_kernels::too_many;
        let stop = run!(device, cpu::launch, kernel, memory, &options).unwrap_err();
        assert!(stop.to_string().contains("which it never reaches"), "{stop}");
    }
}

/// A block tells two states of its sum by stores; the next one may see either.
#[simt::checked::kernel(block = (32))]
fn two_states(mut y: checked::Out<f32>, words: checked::Out<u32>) {
    use simt::checked::*;
    let (block, lane) = (thread::block_idx_x() as usize, thread::lane_id() as usize);
    if block == 0 {
        for state in 1..=2 {
            if lane == 0 {
                y[2 * state] = state as f32;
                words.atomic(0).store_release(state as u32);
            }
        }
        return;
    }
    words.wait_for_at_least(0, 1);
    y[32 + lane] = y[2];
}

#[test]
fn a_word_that_is_stored_again_tells_both_times() {
    for order in orders() {
        let (mut y, mut words) = (vec![0.0; 64], [0]);
        let mut options = check::Options::default();
        (options.order, options.workers) = (order, Some(1));
        // SAFETY: the memory outlives the launch, and nobody else uses it.
        let report = unsafe {
            let params = (
                checked::Out::new(y.as_mut_ptr(), y.len()),
                checked::Out::new(words.as_mut_ptr(), 1),
            );
            check::launch(&two_states, &LaunchConfig::new([2, 1, 1], [32, 1, 1]), params, &options)
        };
        let report = report.expect("a report");
        assert!(report.is_clean(), "{order}: {report}");
        assert_eq!(y[32..], [1.0; 32]);
    }
}
