//! The cost of the checks: tiled16 at 1000x700x513, compared with the fast run.
//!
//! Not part of a plain `cargo test`, because it measures time: `cargo test --release -p tests
//! --test check -- --ignored --nocapture`

use std::{num::NonZeroU32, time::Instant};

use simt::{LaunchConfig, check, checked, cpu, device};

const M: usize = 1000;
const N: usize = 700;
const K: usize = 513;

/// The fastest of several runs, in seconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
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
