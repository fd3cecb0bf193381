//! `cargo run -p host --example memories`: registers, shared memory and global memory, told apart
//! by which threads share a counter.

use host::{
    Device, Result,
    gpu::lessons::memories::{
        BLOCK, THREADS_SO_FAR, global_counter, register_counter, shared_counter,
    },
    simt::LaunchConfig,
};

/// Blocks of each launch.
const BLOCKS: u32 = 3;

fn main() -> Result<()> {
    let device = Device::best().device;
    let stream = device.stream()?;
    device.symbol(&THREADS_SO_FAR)?.write(&[0])?;
    let n = BLOCKS * BLOCK as u32;
    let config = LaunchConfig::new([BLOCKS, 1, 1], [BLOCK as u32, 1, 1]);
    println!("on {}: {BLOCKS} blocks of {BLOCK} threads, each adds 1", device.name());
    for launch in 1..=2 {
        let mut threads = device.zeros::<u32>(n as usize)?;
        let mut blocks = device.zeros::<u32>(BLOCKS as usize)?;
        let mut numbers = device.zeros::<u32>(n as usize)?;
        // SAFETY: every buffer has the length that its kernel needs, and each element is written by
        // one thread.
        unsafe {
            stream.launch(&register_counter, &config, (n, 1, &mut threads))?;
            stream.launch(&shared_counter, &config, (BLOCKS, &mut blocks))?;
            stream.launch(&global_counter, &config, (n, &mut numbers))?;
        }
        let mut counts = threads.to_vec()?;
        counts.dedup();
        println!("launch {launch}");
        println!("  register, a thread's own:  {counts:?} in all {n} threads");
        println!("  shared, a block's own:     {:?}", blocks.to_vec()?);
        println!("  global, the program's:     {:?}", device.symbol(&THREADS_SO_FAR)?.read()?);
    }
    Ok(())
}
