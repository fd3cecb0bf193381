//! Many products, by several threads, up to a number or a time.

use std::{
    fmt, panic,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use gpu::registry::Entry;
use gpu_gemm::{Device, Result};
use tests::gemm::Random;

use crate::{
    benches::Benches,
    draw::{Pool, product},
    product::Product,
    shrink::shrunk,
    tally::Tally,
};

/// What to try.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all.
    pub seed: u64,
    /// Products at most.
    pub count: u64,
    /// The time at most.
    pub most: Duration,
    /// Failures after which it ends.
    pub failures: usize,
    /// Threads, each with its own streams.
    pub threads: usize,
    /// Every product is tried on each.
    pub devices: Vec<Device>,
}

/// A product that is computed wrongly, refused wrongly, or that panics.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What draws it.
    pub case: u64,
    /// The device's name.
    pub device: String,
    /// What is wrong.
    pub wrong: String,
    /// The product.
    pub product: Product,
    /// A plainer one that fails, and how.
    pub plainer: (Product, String),
}

/// All that was found.
#[derive(Debug, Default)]
pub struct Report {
    /// By device.
    pub tallies: Vec<Tally>,
    /// As many as it ends at, and perhaps some more.
    pub failures: Vec<Failure>,
}

impl Report {
    /// What too little was tried of, by device: from a thousand products on their share that was
    /// computed, from 50,000 on each family of kernels, from two million on each kernel.
    pub fn missing(&self, devices: &[Device]) -> Vec<String> {
        let of_device = |(device, tally): (&Device, &Tally)| {
            let is_hopper = device.cuda_properties().is_none_or(|of| of.capability == (9, 0));
            let runs = |entry: &Entry| is_hopper || entry.declaration().arch.is_none();
            let tried = tally.tried();
            let missing = match tried {
                0..1000 => Vec::new(),
                1000..50_000 => tally.too_few_computed().into_iter().collect(),
                _ => tally.missing(runs, tried >= 2_000_000),
            };
            missing.into_iter().map(|what| format!("{}: {what}", device.name())).collect::<Vec<_>>()
        };
        devices.iter().zip(&self.tallies).flat_map(of_device).collect()
    }
}

/// A product of the CPU device takes milliseconds, the first launches on a GPU seconds.
const HANGS: Duration = Duration::from_secs(180);

/// What draws the product of that number.
pub fn case(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).next()
}

/// Tries one product on each of these devices.
pub fn one(pool: &Pool, benches: &mut [Benches], tallies: &mut [Tally], case: u64) -> Vec<Failure> {
    let drawn = product(pool, case);
    let mut failures = Vec::new();
    for (bench, tally) in benches.iter_mut().zip(tallies) {
        match bench.check(&drawn) {
            Ok(outcome) => tally.add(&drawn, &outcome),
            Err(wrong) => {
                let device = bench.device().name();
                let check = |product: &Product| bench.check(product).map(|_| ());
                let plainer = shrunk(drawn, wrong.clone(), check);
                failures.push(Failure { case, device, wrong, product: drawn, plainer });
            }
        }
    }
    failures
}

/// Tries products until all are tried, the time is over, or too many fail.
///
/// # Errors
/// Those of the devices.
pub fn run(options: &Options) -> Result<Report> {
    let start = Instant::now();
    let (pool, next) = (Pool::new(), AtomicU64::new(0));
    let found = Mutex::new(Vec::<Failure>::new());
    let all = || found.lock().unwrap_or_else(PoisonError::into_inner);
    // What each thread is at: 0 is nothing.
    let current = (0..options.threads).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    // A panic is a failure like others, and is told with them.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let work = |current: &AtomicU64| {
        let mut benches = options.devices.iter().map(Benches::new).collect::<Result<Vec<_>>>()?;
        let mut tallies = vec![Tally::default(); benches.len()];
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let is_over = number >= options.count || start.elapsed() >= options.most;
            if is_over || all().len() >= options.failures {
                break;
            }
            let case = case(options.seed, number);
            current.store(case, Ordering::Relaxed);
            let failures = one(&pool, &mut benches, &mut tallies, case);
            all().extend(failures);
        }
        current.store(0, Ordering::Relaxed);
        Ok(tallies)
    };
    let done = thread::scope(|scope| {
        let threads =
            current.iter().map(|current| scope.spawn(|| work(current))).collect::<Vec<_>>();
        let (mut last, mut since) = (0, Instant::now());
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            let now = next.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if since.elapsed() > HANGS {
                let cases = current
                    .iter()
                    .map(|case| format!("--case {:#x} ", case.load(Ordering::Relaxed)));
                eprintln!("fuzz: it hangs in one of {}", cases.collect::<String>());
                std::process::abort();
            }
        }
        let join = |thread: thread::ScopedJoinHandle<Result<Vec<Tally>>>| {
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    });
    panic::set_hook(hook);
    let mut report =
        Report { tallies: vec![Tally::default(); options.devices.len()], failures: Vec::new() };
    for tallies in done? {
        report.tallies.iter_mut().zip(tallies).for_each(|(all, tally)| all.merge(tally));
    }
    report.failures = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(report)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Failure { case, device, wrong, product, plainer: (plainer, plainer_wrong) } = self;
        writeln!(f, "WRONG on {device}: {wrong}")?;
        writeln!(f, "  {product:?}")?;
        writeln!(f, "  plainer: {plainer_wrong}")?;
        writeln!(f, "  {plainer:?}")?;
        write!(f, "  again: cargo run --package fuzz -- --case {case:#x}")
    }
}
