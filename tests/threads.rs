//! Launches from threads of the program: tasks of a thread pool, plain threads, holders of locks, a
//! forked process. On the CPU device, whose launches run on threads of the library.

use std::{
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use host::{Bf16, Device, Gemm, Matrix, Stream, gemm::Scalar};
use rayon::prelude::*;
use tests::beside::{read_coefficients, watched, write_coefficients};

const WORKERS: [usize; 3] = [1, 2, 16];

/// Small integers, so that every sum is exact.
fn value(row: usize, col: usize, size: usize) -> f32 {
    ((row * size + col) % 7) as f32 - 3.0
}

/// Multiplies square matrices of numbers that `of` makes, on the stream, and compares one element.
fn product<T: Scalar<f32>>(stream: &Stream, size: usize, kernel: Option<&str>, of: fn(f32) -> T) {
    let device = stream.device();
    let values = (0..size * size).map(|i| of(value(i / size, i % size, size))).collect::<Vec<_>>();
    let [a, b] = [(), ()].map(|()| Matrix::from_row_major(device, size, size, &values).unwrap());
    let mut c = Matrix::<f32>::zeros(device, size, size).unwrap();
    let mut gemm = Gemm::<T, f32>::of_types();
    if let Some(name) = kernel {
        gemm = gemm.kernel(name).unwrap();
    }
    gemm.run(stream, a.view(), b.view(), c.view_mut()).unwrap();
    let (row, col) = (size / 3, size / 2);
    let sum: f32 = (0..size).map(|p| value(row, p, size) * value(p, col, size)).sum();
    assert_eq!(c.to_row_major().unwrap()[row * size + col], sum, "size {size}, kernel {kernel:?}");
}

fn multiply(stream: &Stream, size: usize) {
    product(stream, size, None, |value| value);
}

/// Fails if `work` takes a minute: it waits for itself.
fn in_time(what: &str, work: impl FnOnce() + Send) {
    let start = Instant::now();
    let look = || {
        if start.elapsed() > Duration::from_secs(60) {
            eprintln!("{what}: it hangs");
            std::process::abort();
        }
    };
    watched(Duration::from_millis(20), look, work);
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// For each number of the pool's threads and each number of the device's workers.
fn each_pool(what: &str, work: impl Fn(&rayon::ThreadPool, &Device) + Sync) {
    for threads in WORKERS {
        for workers in WORKERS {
            in_time(&format!("{what}, {threads} threads, {workers} workers"), || {
                work(&pool(threads), &Device::cpu_with_workers(workers));
            });
        }
    }
}

/// A thread that waits for a launch runs no other task meanwhile. Otherwise its stack would hold
/// all of them.
#[test]
fn two_thousand_products_in_tasks() {
    in_time("tasks", || {
        let device = Device::cpu();
        (0..2000)
            .into_par_iter()
            .for_each_init(|| device.stream().unwrap(), |stream, _| multiply(stream, 70));
    });
    each_pool("tasks", |pool, device| {
        pool.install(|| {
            (0..40).into_par_iter().for_each(|_| {
                multiply(&device.stream().unwrap(), 70);
            });
        });
    });
}

/// Tasks that share a stream. A product has the stream's memory and counters for itself while it is
/// launched.
#[test]
fn tasks_that_share_a_stream() {
    each_pool("a shared stream", |pool, device| {
        let stream = device.stream().unwrap();
        pool.install(|| {
            (0..12).into_par_iter().for_each(|number| match number % 3 {
                // Rows of odd length are packed before.
                0 => product(&stream, 65, Some("wgmma_bf16_f32_128x256x64_nn"), Bf16::from_f32),
                // The tail of B is packed in the background, with counters.
                1 => product(
                    &stream,
                    75,
                    Some("wgmma_bf16_f32_256x256x64_c2_ua8_nn"),
                    Bf16::from_f32,
                ),
                _ => multiply(&stream, 33),
            });
        });
    });
}

/// Launches nested in a lock that all tasks take.
#[test]
fn tasks_that_hold_a_lock() {
    each_pool("a lock", |pool, device| {
        let stream = Mutex::new(device.stream().unwrap());
        pool.install(|| {
            (0..20).into_par_iter().for_each(|_| {
                multiply(&stream.lock().unwrap(), 40);
            });
        });
    });
}

/// From plain threads, more than there are workers.
#[test]
fn plain_threads() {
    for workers in WORKERS {
        in_time("threads", || {
            let device = Device::cpu_with_workers(workers);
            thread::scope(|scope| {
                for _ in 0..40 {
                    scope.spawn(|| {
                        let stream = device.stream().unwrap();
                        (0..10).for_each(|_| multiply(&stream, 50));
                    });
                }
            });
        });
    }
}

/// Clusters of 3072 threads with as many workers as possible, of which few have stacks at a time;
/// and small blocks at the same time.
#[test]
fn more_threads_than_there_are_stacks() {
    in_time("clusters", || {
        let device = Device::cpu_with_workers(28);
        thread::scope(|scope| {
            for number in 0..30 {
                let device = &device;
                scope.spawn(move || {
                    let stream = device.stream().unwrap();
                    let (size, k) = (128, 512);
                    let values = vec![Bf16::from_f32(1.0); size * k];
                    let a = Matrix::from_row_major(device, size, k, &values).unwrap();
                    let b = Matrix::from_row_major(device, k, size, &values).unwrap();
                    let mut c = Matrix::<f32>::zeros(device, size, size).unwrap();
                    for _ in 0..2 {
                        if number % 3 == 0 {
                            multiply(&stream, 50);
                            continue;
                        }
                        let gemm = Gemm::<Bf16, f32>::of_types().split_k(8).unwrap();
                        let gemm = gemm.kernel("wgmma_bf16_f32_128x128x64_nn").unwrap();
                        gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
                        assert_eq!(c.to_row_major().unwrap()[size * size - 1], k as f32);
                    }
                });
            }
        });
    });
}

/// A variable that is written while others launch without a pause: the write is not delayed for
/// ever.
#[test]
fn a_symbol_written_in_a_task() {
    each_pool("a symbol", |pool, device| {
        pool.install(|| {
            (0..60).into_par_iter().for_each(|number| {
                if number % 3 == 0 {
                    write_coefficients(device, number as f32);
                } else {
                    let number = read_coefficients(&device.stream().unwrap());
                    assert!(number % 3.0 == 0.0, "nobody writes {number}");
                }
            });
        });
    });
}

/// A forked process has none of its parent's threads, and starts its own.
#[test]
#[cfg(target_os = "linux")]
fn a_forked_process() {
    let device = Device::cpu();
    multiply(&device.stream().unwrap(), 70);
    // SAFETY: the child calls nothing for which another thread of the parent could hold a lock,
    // except the allocator, which glibc's `fork` handles. It ends by `_exit`. `alarm` ends it if it
    // hangs.
    let status = unsafe {
        let child = libc::fork();
        assert!(child >= 0, "a process");
        if child == 0 {
            libc::alarm(60);
            let done = std::panic::catch_unwind(|| {
                let device = Device::cpu();
                multiply(&device.stream().unwrap(), 70);
            });
            libc::_exit(if done.is_ok() { 0 } else { 1 });
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    };
    assert_eq!(status, 0, "the child's status");
    multiply(&device.stream().unwrap(), 70);
}
