//! Random work from many threads at once, for `STRESS_SECONDS` (2 by default): products of whole
//! matrices, of parts and in batches, by tasks of a thread pool and by plain threads, on their own
//! and on shared streams, on devices with 1, 2 and 16 workers, with checked launches and written
//! symbols. Nothing may hang, and no element may be wrong. From a minute on no memory may leak.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use host::{Batch, BatchMut, Bf16, Device, F16, Gemm, Matrix, Stream, check, gemm::Scalar};
use rayon::prelude::*;
use tests::{
    beside::{read_coefficients, watched, write_coefficients},
    gemm::Random,
};

/// Small integers, so that every sum is exact, in every type.
fn numbers(random: &mut Random, len: usize) -> Vec<f32> {
    (0..len).map(|_| random.below(7) as f32 - 3.0).collect()
}

/// A x B, row by row.
fn product([m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<f32> {
    let element = |i: usize| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum();
    (0..m * n).map(element).collect()
}

fn sizes(random: &mut Random, most: usize) -> [usize; 3] {
    [(); 3].map(|()| 1 + random.below(most))
}

/// One product of whole matrices. Half of the time A is passed as the transpose of its transpose.
fn whole<T: Scalar<f32>>(
    stream: &Stream,
    random: &mut Random,
    kernel: Option<&str>,
    of: fn(f32) -> T,
) {
    let device = stream.device();
    let [m, n, k] = sizes(random, 100);
    let (a, b) = (numbers(random, m * k), numbers(random, k * n));
    let put = |rows: usize, cols: usize, at: &dyn Fn(usize) -> f32| {
        let values = (0..rows * cols).map(|i| of(at(i))).collect::<Vec<_>>();
        Matrix::from_row_major(device, rows, cols, &values).unwrap()
    };
    // A named kernel takes a row-major A.
    let turned = kernel.is_none() && random.below(2) == 1;
    let on_a = match turned {
        false => put(m, k, &|i| a[i]),
        true => put(k, m, &|i| a[i % m * k + i / m]),
    };
    let on_b = put(k, n, &|i| b[i]);
    let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
    let mut gemm = Gemm::<T, f32>::of_types();
    if let Some(name) = kernel {
        gemm = gemm.kernel(name).unwrap();
    }
    let a_view = if turned { on_a.view().t() } else { on_a.view() };
    gemm.run(stream, a_view, on_b.view(), c.view_mut()).unwrap();
    assert!(
        c.to_row_major().unwrap() == product([m, n, k], &a, &b),
        "{m} x {n} x {k}, {kernel:?}, A turned: {turned}"
    );
}

/// Two halves of a C, each from parts of larger matrices, on two streams.
fn parts(streams: [&Stream; 2], random: &mut Random) {
    let device = streams[0].device();
    let [m, n, k] = sizes(random, 70);
    let [top, left] = [random.below(9), random.below(9)];
    let (a, b) = (numbers(random, (m + top) * (k + left)), numbers(random, k * n));
    let on_a = Matrix::from_row_major(device, m + top, k + left, &a).unwrap();
    let on_b = Matrix::from_row_major(device, k, n, &b).unwrap();
    let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
    let middle = random.below(n + 1);
    let a_view = on_a.view().sub(top..top + m, left..left + k).unwrap();
    let (first, second) = c.view_mut().split_cols_at(middle).unwrap();
    let columns = |from, to| on_b.view().sub(0..k, from..to).unwrap();
    let gemm = Gemm::new();
    gemm.run(streams[0], a_view, columns(0, middle), first).unwrap();
    gemm.run(streams[1], a_view, columns(middle, n), second).unwrap();
    let part = (0..m * k).map(|i| a[(top + i / k) * (k + left) + left + i % k]).collect::<Vec<_>>();
    assert!(c.to_row_major().unwrap() == product([m, n, k], &part, &b), "{m} x {n} x {k} of parts");
}

/// A batch whose products of C interleave row by row, or follow each other.
fn batch(stream: &Stream, random: &mut Random) {
    let device = stream.device();
    let ([m, n, k], count) = (sizes(random, 24), 1 + random.below(9));
    let (a, b) = (numbers(random, count * m * k), numbers(random, count * k * n));
    let [on_a, on_b] = [&a, &b].map(|of| device.upload(of).unwrap());
    let mut c = device.zeros::<f32>(count * m * n).unwrap();
    let interleaved = random.below(2) == 0;
    let (strides, step) = if interleaved { ([count * n, 1], n) } else { ([n, 1], m * n) };
    let a_all = Batch::new(on_a.view(..).unwrap(), (m, k), [k, 1], count, m * k).unwrap();
    let b_all = Batch::new(on_b.view(..).unwrap(), (k, n), [n, 1], count, k * n).unwrap();
    let c_all = BatchMut::new(c.view_mut(..).unwrap(), (m, n), strides, count, step).unwrap();
    Gemm::new().launch_batch(stream, a_all, b_all, c_all).unwrap();
    let c = c.to_vec().unwrap();
    for p in 0..count {
        let want = product([m, n, k], &a[p * m * k..][..m * k], &b[p * k * n..][..k * n]);
        let got = (0..m * n).map(|i| c[p * step + i / n * strides[0] + i % n]);
        assert!(
            got.eq(want),
            "{count} of {m} x {n} x {k}, product {p}, interleaved: {interleaved}"
        );
    }
}

/// A checked launch: its findings, and its result.
fn checked(device: &Device, random: &mut Random) {
    let kernel = random.choose(&["tiled16", "vectorised", "basic"]);
    let [m, n, k] = sizes(random, 40);
    let (a, b) = (numbers(random, m * k), numbers(random, k * n));
    let on_a = Matrix::from_row_major(device, m, k, &a).unwrap();
    let on_b = Matrix::from_row_major(device, k, n, &b).unwrap();
    let mut c = Matrix::<f32>::zeros(device, m, n).unwrap();
    let entry = gpu::registry::find(kernel).expect("a lesson");
    let watched = check::multiply(entry, &on_a, &on_b, &mut c, check::Options::default()).unwrap();
    assert!(watched.findings.is_empty(), "{kernel}, {m} x {n} x {k}: {:?}", watched.findings);
    assert!(c.to_row_major().unwrap() == product([m, n, k], &a, &b), "{kernel}, {m} x {n} x {k}");
}

/// A variable that is written and read while other threads launch, and write it, too.
fn symbol(stream: &Stream, random: &mut Random) {
    if random.below(3) == 0 {
        write_coefficients(stream.device(), (1 + random.below(3)) as f32);
    }
    let number = read_coefficients(stream);
    assert!([0.0, 1.0, 2.0, 3.0].contains(&number), "nobody writes {number}");
}

/// One random kind of work.
fn anything(devices: &[Device], shared: &[Stream], random: &mut Random) {
    let device = random.below(devices.len());
    let own = devices[device].stream().unwrap();
    let stream = if random.below(2) == 0 { &own } else { &shared[device] };
    match random.below(9) {
        0..3 => whole(stream, random, None, |value| value),
        3 => whole(stream, random, Some("wgmma_bf16_f32_64x64x64_nn"), Bf16::from_f32),
        4 => whole(stream, random, None, F16::from_f32),
        5 => parts([stream, &own], random),
        6 => batch(stream, random),
        7 => checked(&devices[device], random),
        _ => symbol(stream, random),
    }
}

/// Resident memory of the process in MiB.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096 / (1 << 20)
}

#[test]
fn random_work_from_many_threads() {
    let seconds = std::env::var("STRESS_SECONDS").map_or(2, |seconds| seconds.parse().unwrap());
    let seed = std::env::var("STRESS_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (start, most) = (Instant::now(), Duration::from_secs(seconds));
    let devices = [1, 2, 16].map(Device::cpu_with_workers);
    let shared = devices.each_ref().map(|device| device.stream().unwrap());
    let (done, memory) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = &|thread: u64| {
        let mut random = Random::new(seed * 1000 + thread);
        while start.elapsed() < most {
            anything(&devices, &shared, &mut random);
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    // If nothing was done for two minutes, it is a hang. The memory after a tenth of the time is
    // the level to keep.
    let (mut last, mut since) = (0, Instant::now());
    let look = || {
        let now = done.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if since.elapsed() > Duration::from_secs(120) {
            eprintln!("stress: it hangs after {now} of seed {seed}");
            std::process::abort();
        }
        if memory.load(Ordering::Relaxed) == 0 && start.elapsed() > most / 10 {
            memory.store(resident(), Ordering::Relaxed);
        }
    };
    watched(Duration::from_millis(100), look, || {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            let mut round = 0;
            while start.elapsed() < most {
                round += 1;
                pool.install(|| {
                    (0..20).into_par_iter().for_each(|task| {
                        let mut random = Random::new(seed * 1000 + 100 * round + task);
                        rayon::join(
                            || anything(&devices, &shared, &mut random),
                            || whole(&shared[1], &mut Random::new(task), None, |value| value),
                        );
                        done.fetch_add(2, Ordering::Relaxed);
                    });
                });
            }
        });
    });
    let (before, after) = (memory.load(Ordering::Relaxed), resident());
    println!("{} of seed {seed} in {seconds} s, {before} MiB, then {after}", done.into_inner());
    assert!(seconds < 60 || after <= before + 64, "it grew from {before} to {after} MiB");
}
