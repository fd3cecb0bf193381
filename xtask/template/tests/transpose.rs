//! The kernel on the CPU, with every access of every thread watched: races, barriers, bounds,
//! unwritten memory. `cargo gpu-check` runs these cases, too.

use std::num::NonZeroU32;

use ::mykernels::checked::kernels::transpose;
use simt::{
    LaunchConfig, check,
    check::{Options, Report},
    checked::{In, Out},
};

/// Transposes an n x n matrix, and compares the result. CUDA promises no order of threads and
/// blocks: each n is run in ten, which `options` name. Returns what the checker saw.
#[check(1, 31, 32, 33, 100)]
fn transposes(n: usize, mut options: Options) -> Report {
    options.complete = true; // every element of x is read, and every one of y written
    let x = (0..n * n).map(|i| i as f32).collect::<Vec<_>>();
    let mut y = vec![f32::NAN; n * n];
    let blocks = n.div_ceil(32) as u32;
    let config = LaunchConfig::new([blocks, blocks, 1], [32, 32, 1]);
    // SAFETY: the vectors outlive the launch, and nobody else uses them.
    let report = unsafe {
        let x = In::new(x.as_ptr(), x.len());
        let y = Out::uninit(y.as_mut_ptr(), y.len());
        check::launch(&transpose, &config, (n as u32, x, y), &options)
    }
    .unwrap();
    assert!((0..n * n).all(|i| y[i] == x[i % n * n + i / n]), "{report}");
    report
}

/// A warp takes no more wavefronts of shared memory, and sectors of global memory, than its
/// accesses need.
#[test]
fn memory_is_used_well() {
    let mut options = Options::default();
    // What each line does to memory, counted in about one block in eight.
    options.profile = NonZeroU32::new(8);
    let profile = transposes(128, options).profile.unwrap();
    println!("{profile}");
    for line in &profile.lines {
        assert!(line.units <= line.ideal, "{profile}");
    }
}
