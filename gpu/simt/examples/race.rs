//! A kernel with a barrier left out, and the report of the checked launch on it. README quotes
//! both.

use simt::{LaunchConfig, check, checked::*};

/// y is x, each 256 numbers of it in reverse.
#[kernel(block = (256), shared = 256 * 4, len(x = 512, y = 512))]
pub fn reverse(x: In<f32>, mut y: Out<f32>) {
    let (i, first) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize * 256);
    let mut tile = shared![f32; 256];
    tile[i] = x[first + i];
    // Here should stand `thread::sync_threads();`.
    y[first + i] = tile[255 - i];
}

fn main() {
    let (x, mut y) = ([1.0; 512], [0.0; 512]);
    let config = LaunchConfig::new([2, 1, 1], [256, 1, 1]);
    // SAFETY: the arrays outlive the launch, and nothing else uses them.
    let report = unsafe {
        let (x, y) = (In::new(x.as_ptr(), 512), Out::new(y.as_mut_ptr(), 512));
        check::launch(&reverse, &config, (x, y), &check::Options::default())
    };
    println!("{}", report.expect("a launch that is allowed"));
}
