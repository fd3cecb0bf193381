//! The cost of the checks, compared with the fast run: tiled16 at 1000x700x513; and a ring of TMA
//! and mbarriers, a pipeline of `cp.async`, a stencil that reads global memory.
//!
//! Not part of a plain `cargo test`, because it measures the process's CPU time: `cargo test
//! --release -p tests --test check -- --ignored --nocapture --test-threads 1`

use std::num::NonZeroU32;

use gpu::params::GemmParams;
use simt::{LaunchConfig, check, checked, cpu, device, device::BoxShape};

const M: usize = 1000;
const N: usize = 700;
const K: usize = 513;

/// The CPU time of the process so far, in seconds: other programs change it little.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time to where there is room for one.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "every system has this clock");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The least CPU time of several runs, in seconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = cpu_time();
        run();
        best = best.min(cpu_time() - start);
    }
    best
}

#[test]
#[ignore = "measures time"]
fn all_checks_cost_at_most_ten_times_and_with_a_sampled_profile_twelve() {
    let a: Vec<f32> = (0..M * K).map(|i| (i * 7919 % 17) as f32 - 8.0).collect();
    let b: Vec<f32> = (0..K * N).map(|i| (i * 104729 % 13) as f32 - 6.0).collect();
    let mut c = vec![f32::NAN; M * N];
    let grid = [N.div_ceil(16) as u32, M.div_ceil(16) as u32, 1];
    let config = LaunchConfig::new(grid, [16, 16, 1]);
    let sizes = (M as u32, N as u32, K as u32);

    let fast = fastest(|| {
        // SAFETY: the vectors outlive the launch, and nobody else uses them.
        unsafe {
            let (a, b) =
                (device::In::new(a.as_ptr(), a.len()), device::In::new(b.as_ptr(), b.len()));
            let c = device::Out::new(c.as_mut_ptr(), c.len());
            let params = (sizes.0, sizes.1, sizes.2, a, b, c);
            cpu::launch(&gpu::lessons::tiled::tiled16, &config, params, &cpu::Options::default())
        }
        .expect("it runs");
    });
    println!("fast: {fast:.3} s");

    let mut checked = |what: &str, profile: Option<u32>| {
        let mut options = check::Options::default();
        options.complete = true;
        options.profile = profile.and_then(NonZeroU32::new);
        let time = fastest(|| {
            // SAFETY: as above.
            let report = unsafe {
                let (a, b) =
                    (checked::In::new(a.as_ptr(), a.len()), checked::In::new(b.as_ptr(), b.len()));
                let c = checked::Out::uninit(c.as_mut_ptr(), c.len());
                let params = (sizes.0, sizes.1, sizes.2, a, b, c);
                check::launch(&gpu::checked::lessons::tiled::tiled16, &config, params, &options)
            }
            .expect("it runs");
            assert!(report.is_clean(), "{report}");
        });
        println!("{what}: {time:.3} s, {:.1} times", time / fast);
        time / fast
    };
    let all = checked("all checks", None);
    let sampled = checked("all checks, one block in 16 profiled", Some(16));
    checked("all checks, every block profiled", Some(1));
    assert!(all <= 10.0 && sampled <= 12.0);
}

/// How many times as long as the fast run a checked run takes, with that many workers.
macro_rules! times {
    ($kernel:ident of $($module:ident)::+, $config:expr, $workers:expr, |$device:ident| $params:expr) => {{
        let fast = fastest(|| {
            use simt::device as $device;
            let mut options = cpu::Options::default();
            options.workers = Some($workers);
            // SAFETY: the memory outlives the launch, and nobody else uses it.
            let done = unsafe {
                cpu::launch(&gpu::$($module)::+::$kernel, &$config, $params, &options)
            };
            done.expect("it runs");
        });
        let all = fastest(|| {
            use simt::checked as $device;
            let mut options = check::Options::default();
            options.workers = Some($workers);
            // SAFETY: as above.
            let report = unsafe {
                check::launch(&gpu::checked::$($module)::+::$kernel, &$config, $params, &options)
            };
            let report = report.expect("it runs");
            assert!(report.is_clean(), "{report}");
        });
        let name = stringify!($kernel);
        println!("{name}, workers: {}: {fast:.4} s, checked {:.1} times", $workers, all / fast);
        all / fast
    }};
}

#[test]
#[ignore = "measures time"]
fn rings_pipelines_and_stencils_cost_little_more_than_their_fast_runs() {
    let numbers = |count: usize| (0..count).map(|i| (i % 17) as f32 - 8.0).collect::<Vec<_>>();
    let (m, n, k) = (512, 1024, 256);
    let (a, b, mut c) = (numbers(m * k + 4), numbers(k * n + 4), vec![0.0f32; m * n]);
    // TMA asks for multiples of sixteen bytes.
    let [a, b] = [&a, &b].map(|x| &x[x.as_ptr().align_offset(16)..]);
    let (row, col) = ([0, k], [0, n]);
    let problem = GemmParams::dense(m as u32, n as u32, k as u32);
    let [m32, n32, k32] = [m, n, k].map(|size| size as u32);
    let mut ring = LaunchConfig::new([n32 / 128, m32 / 128, 1], [128, 1, 1]);
    ring.dynamic_shared = 3 * 32 * 256 * 4;
    let pipeline = LaunchConfig::new([n32 / 256, m32 / 128, 1], [256, 1, 1]);
    let image = (0..1024 * 1024).map(|i| i as u8).collect::<Vec<_>>();
    let mut blurred = vec![0u8; image.len()];
    let stencil = LaunchConfig::new([32, 32, 1], [32, 32, 1]);
    let (of_a, of_b) = (
        BoxShape { rows: 128, cols: 32, swizzle: 128 },
        BoxShape { rows: 32, cols: 128, swizzle: 0 },
    );
    for workers in [1, 2] {
        let ring = times!(tma_f32_128x128x32_nn of kernels::tma, ring, workers, |device| (
            problem,
            device::TensorMap::new(a.as_ptr(), [1, m, k], row, of_a).expect("aligned"),
            device::TensorMap::new(b.as_ptr(), [1, k, n], col, of_b).expect("aligned"),
            device::Out::new(c.as_mut_ptr(), c.len()),
            device::In::new(a.as_ptr(), 0)
        ));
        let pipeline = times!(async_copy of lessons::async_copy, pipeline, workers, |device| (
            m32,
            n32,
            k32,
            device::In::new(a.as_ptr(), m * k),
            device::In::new(b.as_ptr(), k * n),
            device::Out::new(c.as_mut_ptr(), c.len())
        ));
        let stencil = times!(blur of lessons::blur, stencil, workers, |device| (
            1024,
            1024,
            1,
            1,
            device::In::new(image.as_ptr(), image.len()),
            device::Out::new(blurred.as_mut_ptr(), blurred.len())
        ));
        // On 2026-11-29 14 to 20, 18 to 26 and 4 to 6, by what else the machine did.
        assert!(ring <= 25.0 && pipeline <= 30.0 && stencil <= 10.0);
    }
}
