//! Several threads of the host at once.

use std::thread;

use host::{
    Batch, BatchMut, Bias, Buffer, BufferView, BufferViewMut, Device, Error, Event, Gemm, Matrix,
    MatrixView, MatrixViewMut, Stream,
};
use tests::{
    cuda_devices, devices,
    gemm::{Bench, Case, Data, Random, Side, bytes, counted, each_device},
};

const THREADS: usize = 3;
const EACH: usize = 20;

/// The products of a thread: its own sizes, places and numbers.
fn cases(thread: usize) -> Vec<Case<f32>> {
    let mut random = Random::new(50 + thread as u64);
    let one = |number: usize| {
        let sizes = [5 + 31 * thread + number, 70 - number, 3 * number + thread];
        let case = Case::anywhere(sizes, Data::Uniform, &mut random);
        case.scaled(0.7, 1.3, Data::Uniform, 51).biased(Side::Col, Data::Uniform, 52)
    };
    (0..EACH).map(one).collect()
}

/// All results of a thread, with its own stream and buffers.
fn results(device: &Device, cases: &[Case<f32>]) -> Vec<Vec<f32>> {
    let mut bench = Bench::new(device);
    cases.iter().map(|case| bench.run(case, None).unwrap()).collect()
}

/// Each thread has its own stream and buffers: the bits are those of one thread alone.
#[test]
fn each_with_its_own_stream() {
    let mut count = 0;
    for device in devices() {
        let cases = [0, 1, 2].map(cases);
        let serial = cases.each_ref().map(|cases| results(&device, cases));
        let together = thread::scope(|scope| {
            let threads = cases.each_ref().map(|cases| scope.spawn(|| results(&device, cases)));
            threads.map(|thread| thread.join().unwrap())
        });
        for (one, other) in serial.concat().iter().zip(&together.concat()) {
            assert!(bytes(one) == bytes(other), "{device}, case {count}");
            count += 1;
        }
    }
    assert_eq!(count, THREADS * EACH * devices().len());
    counted("threads::each_with_its_own_stream", count / devices().len());
}

/// All threads read the same A and B, each writes its own C. The streams were made by another
/// thread.
#[test]
fn the_same_inputs() {
    each_device("threads::the_same_inputs", |device, count| {
        let case = Case::<f32>::dense([130, 70, 40], Data::Uniform, 53);
        let matrix = |rows, cols, values: Vec<f32>| {
            Matrix::from_row_major(&device, rows, cols, &values).unwrap()
        };
        let (a, b) = (matrix(130, 40, case.a.values()), matrix(40, 70, case.b.values()));
        let multiply = |stream: Stream| {
            let mut c = Matrix::zeros(&device, 130, 70).unwrap();
            for _ in 0..EACH {
                let gemm = Gemm::new().beta(0.5);
                gemm.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
            }
            c.to_row_major().unwrap()
        };
        let serial = multiply(device.stream().unwrap());
        let streams = [0; THREADS].map(|_| device.stream().unwrap());
        let together = thread::scope(|scope| {
            let threads = streams.map(|stream| scope.spawn(|| multiply(stream)));
            threads.map(|thread| thread.join().unwrap())
        });
        for c in together {
            assert!(bytes(&c) == bytes(&serial), "{device}");
            *count += 1;
        }
    });
}

/// All GPUs of the machine compute the same product at once, each from its own thread.
#[test]
fn all_gpus_at_once() {
    let gpus = cuda_devices();
    if gpus.is_empty() {
        return;
    }
    let case = Case::<f32>::dense([1023, 1025, 1024], Data::Uniform, 54);
    let of = |gpu: &Device| Bench::new(gpu).run(&case, None).unwrap();
    let serial = of(&gpus[0]);
    let together = thread::scope(|scope| {
        let threads = gpus.iter().map(|gpu| scope.spawn(|| of(gpu))).collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(together.iter().all(|c| bytes(c) == bytes(&serial)));
    counted("threads::all_gpus_at_once", together.len() / gpus.len());
}

/// The types of products can be sent to, and shared between, threads. The compiler checks it.
#[test]
fn everything_may_go_to_another_thread() {
    fn may<T: Send + Sync>() {}
    may::<Device>();
    may::<Stream>();
    may::<Event>();
    may::<Buffer<f32>>();
    may::<BufferView<f32>>();
    may::<BufferViewMut<f32>>();
    may::<Matrix<f64>>();
    may::<MatrixView<f64>>();
    may::<MatrixViewMut<f64>>();
    may::<Batch<f32>>();
    may::<BatchMut<f32>>();
    may::<Bias<f32>>();
    may::<Gemm<f64>>();
    may::<host::PlannedGemm<f64>>();
    may::<host::gemm::Choice>();
    may::<Error>();
}
