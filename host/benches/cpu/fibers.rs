//! The CPU device: fibers for threads, and barriers.

use divan::{Bencher, counter::ItemsCount};
use host::{Device, Gemm, Matrix};
use simt::{LaunchConfig, device::*};

/// Every thread waits for all others, `rounds` times.
#[kernel(len(c = blocks * threads))]
fn wait(blocks: u32, threads: u32, rounds: u32, mut c: Out<u32>) {
    for _ in 0..rounds {
        thread::sync_threads();
    }
    let at = thread::block_idx_x() * threads + thread::thread_idx_x();
    c[at as usize] = rounds;
    let _ = blocks;
}

fn launch(bencher: Bencher, blocks: u32, threads: u32, rounds: u32) {
    let device = Device::cpu_with_workers(1);
    let stream = device.stream().unwrap();
    let mut c = device.zeros::<u32>((blocks * threads) as usize).unwrap();
    let config = LaunchConfig::new([blocks, 1, 1], [threads, 1, 1]);
    bencher.bench_local(|| {
        // SAFETY: each thread writes one element of its own.
        unsafe { stream.launch(&wait, &config, (blocks, threads, rounds, &mut c)) }.unwrap();
    });
}

/// A barrier, counted for each waiting thread: the switch to the next fiber.
#[divan::bench(args = [32, 256, 1024])]
fn barrier(bencher: Bencher, threads: u32) {
    let bencher = bencher.counter(ItemsCount::new(1000 * threads));
    launch(bencher, 1, threads, 1000);
}

/// Blocks without a barrier, counted for each thread: the start and end of a fiber.
#[divan::bench(args = [32, 256, 1024])]
fn thread(bencher: Bencher, threads: u32) {
    let bencher = bencher.counter(ItemsCount::new(100 * threads));
    launch(bencher, 100, threads, 0);
}

/// A product with the selected kernel, on one core, counted in FLOP.
#[divan::bench(args = [64, 256])]
fn product(bencher: Bencher, size: usize) {
    let device = Device::cpu_with_workers(1);
    let stream = device.stream().unwrap();
    let matrix = |seed| {
        let values = host::operands::uniform::<f32>(seed, size * size).unwrap();
        Matrix::from_row_major(&device, size, size, &values).unwrap()
    };
    let (a, b, mut c) = (matrix(1), matrix(2), matrix(3));
    bencher.counter(ItemsCount::new(2 * size * size * size)).bench_local(|| {
        Gemm::new().run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    });
}
