//! `cargo run -p host --example symbols`: constant memory, a global variable and a global pointer,
//! from the host.

use host::{
    Device, Result,
    gpu::lessons::memories::{
        BLOCK, COEFFICIENTS, COEFFICIENTS_LEN, NUMBERS, THREADS_SO_FAR, constant_polynomial,
        pointed_negation,
    },
    simt::LaunchConfig,
};

fn main() -> Result<()> {
    let device = Device::best().device;
    let stream = device.stream()?;
    println!("on {}", device.name());

    // Constant memory: 1 + x + x^2 ... at x = 2 is 2^8 - 1.
    let coefficients = device.symbol(&COEFFICIENTS)?;
    coefficients.write(&[1.0; COEFFICIENTS_LEN])?;
    println!("COEFFICIENTS: {} bytes at {:#x}", coefficients.bytes(), coefficients.address());
    let (x, mut y) = (device.upload(&[0.0f32, 1.0, 2.0])?, device.zeros::<f32>(3)?);
    let config = LaunchConfig::new([1, 1, 1], [BLOCK as u32, 1, 1]);
    // SAFETY: each thread writes its own element, and none after the third.
    unsafe { stream.launch(&constant_polynomial, &config, (3, &x, &mut y))? };
    println!("  the polynomial at 0, 1, 2: {:?}", y.to_vec()?);

    // A variable in global memory.
    let count = device.symbol(&THREADS_SO_FAR)?;
    count.write(&[7])?;
    println!("THREADS_SO_FAR: {} bytes at {:#x}", count.bytes(), count.address());
    println!("  written and read: {:?}", count.read()?);

    // A pointer in global memory, to a buffer that is no parameter of the kernel.
    let pointer = device.pointer_symbol(&NUMBERS)?;
    let mut numbers = device.upload(&[1.0f32, 2.0, 3.0])?;
    // SAFETY: the buffer lives until the end, and nothing else uses the variable.
    unsafe { pointer.point_to(&mut numbers)? };
    println!("NUMBERS: {} bytes at {:#x}", pointer.bytes(), pointer.address());
    // SAFETY: the pointer's buffer has three elements, and lives until the launch has ended.
    unsafe { stream.launch(&pointed_negation, &config, (3,))? };
    println!("  what it points to, negated: {:?}", numbers.to_vec()?);
    Ok(())
}
