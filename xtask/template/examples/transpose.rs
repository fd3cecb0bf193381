//! Transposes a matrix on the GPU, or on the CPU device where there is no GPU.

use ::mykernels::kernels;
use gpu_gemm::{BufferView, BufferViewMut, Device, Error, Result, Stream, simt::LaunchConfig};

/// Loads the kernels on a GPU. On the CPU device they are part of the program.
fn load(device: &Device) -> Result<()> {
    let Some(gpu) = device.cuda_properties() else { return Ok(()) };
    // SAFETY: it is the PTX of this crate's kernels. (A kernel whose declaration is not that of the
    // source is refused at the launch. One whose body is older is not: build the PTX anew after
    // each change.)
    unsafe { device.load_ptx("mykernels", ::mykernels::ptx(gpu.capability)) }
}

/// y (n x n) = x transposed. On a GPU this only queues work.
fn transpose(stream: &Stream, n: u32, x: BufferView<f32>, y: BufferViewMut<f32>) -> Result<()> {
    let config = LaunchConfig::new([n.div_ceil(32), n.div_ceil(32), 1], [32, 32, 1]);
    // The launch compares the lengths of x and y with n * n, and the block with the kernel's.
    // SAFETY: `Stream::launch` lists the conditions. The kernel accesses elements of its buffers
    // alone, and no element from two threads without a barrier between: the tests check both. It
    // has no variables, and keeps no references.
    unsafe { stream.launch(&kernels::transpose, &config, (n, x, y)) }
}

fn main() -> Result<()> {
    let best = Device::best();
    if let Some(reason) = &best.why_no_gpu {
        println!("no GPU: {reason}");
    }
    let device = best.device;
    load(&device)?;
    let stream = device.stream()?;
    let n = 1000;
    let values = (0..n * n).map(|i| i as f32).collect::<Vec<_>>();
    let x = device.upload(&values)?;
    let mut y = device.zeros::<f32>(n * n)?;
    transpose(&stream, n as u32, x.view(..)?, y.view_mut(..)?)?;
    // Reading waits for the kernel.
    let y = y.to_vec()?;
    assert!((0..n * n).all(|i| y[i] == values[i % n * n + i / n]));

    // A shorter buffer is refused before anything runs.
    let mut short = device.zeros::<f32>(n)?;
    match transpose(&stream, n as u32, x.view(..)?, short.view_mut(..)?) {
        Err(Error::Launch { what, .. }) => println!("refused: {what}"),
        other => panic!("{other:?}"),
    }
    println!("right on {device}");
    Ok(())
}
