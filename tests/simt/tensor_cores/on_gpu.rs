//! Products of 8-bit integers on a GPU: what their model on the CPU computes.
//!
//! The PTX of the narrowest and of the widest kernel of [`integers`](super::integers) is committed
//! here, as `cargo xtask build-ptx` wrote it in a crate with these kernels. Without a Hopper this
//! is skipped, and says so.

use host::Device;
use simt::LaunchConfig;
use tests::hoppers;

use super::integers::{Integers, KERNELS, a, b};

/// Twice the product, by the kernel's model or its PTX.
fn run(device: &Device, kernel: &'static Integers, columns: usize) -> Vec<i32> {
    let stream = device.stream().unwrap();
    let rows = (0..64 * 128).map(|at| a(at / 128, at % 128)).collect::<Vec<_>>();
    let cols = (0..columns * 128).map(|at| b(at / 128, at % 128)).collect::<Vec<_>>();
    let [rows, cols] = [rows, cols].map(|bytes| device.upload(&bytes).unwrap());
    let mut c = device.zeros::<i32>(64 * columns).unwrap();
    let dynamic_shared = kernel.declaration.dynamic_shared.unwrap();
    let config = LaunchConfig { dynamic_shared, ..LaunchConfig::new([1; 3], [128, 1, 1]) };
    // SAFETY: the operands and C have as many elements as the kernel reads and writes.
    unsafe { stream.launch(kernel, &config, (2u32, &rows, &cols, &mut c)).unwrap() };
    c.to_vec().unwrap()
}

#[test]
fn products_of_8_bits_are_those_of_the_model() {
    let texts = [
        (KERNELS[0], include_str!("ptx/integers_8.ptx")),
        (KERNELS[17], include_str!("ptx/integers_256.ptx")),
    ];
    for device in hoppers() {
        for ((columns, kernel), text) in texts {
            let name = kernel.declaration.name;
            // SAFETY: it is what the kernel of this name was compiled to.
            unsafe { device.load_ptx(name, text).unwrap() };
            let expected = run(&Device::cpu(), kernel, columns);
            assert_eq!(run(&device, kernel, columns), expected, "{name} on {device}");
        }
    }
}
