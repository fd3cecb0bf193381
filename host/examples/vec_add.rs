//! A whole program: two vectors to the device, a kernel, the sum back, every element compared.
//!
//! ```console
//! $ cargo run -p host --example vec_add            # a million elements and one
//! $ cargo run -p host --example vec_add -- 1000
//! ```

use std::{env, error::Error};

use host::{
    Device, Result,
    gpu::lessons::vec_add::{BLOCK, vec_add},
    operands,
    simt::LaunchConfig,
};

/// a + b on a device.
pub fn add(device: &Device, a: &[f32], b: &[f32]) -> Result<Vec<f32>> {
    // Allocates and copies. The memory is freed at the end of the scope.
    let (a, b) = (device.upload(a)?, device.upload(b)?);
    let mut c = device.uninit::<f32>(a.len())?;

    let n = u32::try_from(a.len()).map_err(|_| {
        host::Error::argument("n", a.len(), format!("must be at most {}", u32::MAX))
    })?;
    // The fewest blocks with n threads. The last one may not be full. A grid without blocks cannot
    // be launched.
    if n > 0 {
        let config = LaunchConfig::new([n.div_ceil(BLOCK as u32), 1, 1], [BLOCK as u32, 1, 1]);
        // SAFETY:
        // 1. The launch compares the three lengths with n, and the kernel keeps inside them.
        // 2. Each element is written by one thread.
        // 3. The buffers are this function's own.
        unsafe { device.stream()?.launch(&vec_add, &config, (n, &a, &b, &mut c))? };
    }
    // Waits for the kernel.
    c.to_vec()
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let n = match env::args().nth(1) {
        Some(text) => text.parse().map_err(|error| format!("n = {text}: {error}"))?,
        None => 1_000_001,
    };
    if u32::try_from(n).is_err() {
        return Err(format!("n = {n}: must be at most {}", u32::MAX).into());
    }
    let (a, b) = (operands::uniform(1, n)?, operands::uniform(2, n)?);
    let device = Device::best().device;
    let c = add(&device, &a, &b)?;
    // One addition is rounded the same way everywhere, so the bits must be equal.
    match (0..n).find(|&i| c[i].to_bits() != (a[i] + b[i]).to_bits()) {
        None => println!("{n} elements added on {device}, each as it should be"),
        Some(i) => return Err(format!("c[{i}] = {}, not {} + {}", c[i], a[i], b[i]).into()),
    }
    Ok(())
}
