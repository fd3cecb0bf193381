//! The same bits in every run, for every number of cores, order of fibers, kernel, processor and
//! device. The numbers are real, so that every change of the order of summation shows.

use host::{Activation, Bf16, Device, F16, check::orders, gemm::Scalar};
use tests::{
    Turns, cuda_devices, devices, full,
    gemm::{
        Bench, Case, Data, Number, Operand, Order, Place, Side, bytes, counted, each_device,
        portable, watched,
    },
};

/// One of each kind: plain, transposed into columns, any strides, a batch; each activation.
fn cases<T: Number>() -> Vec<Case<T>> {
    let draw = |size, place, seed| Operand::<T>::draw(size, place, Data::Uniform, seed);
    let [(m, k), (_, n)] = [(100, 75), (75, 90)];
    let plain = Case::dense([m, n, k], Data::Uniform, 30);

    let a = draw((m, k), Place::padded((m, k), Order::Columns, 1).transposed(), 31);
    let b = draw((k, n), Place::padded((k, n), Order::Columns, 0).at(1), 32);
    let columns = Case::plain(a, b, Place::padded((m, n), Order::Columns, 4));
    let columns = columns.scaled(0.7, 1.3, Data::Uniform, 33).biased(Side::Row, Data::Uniform, 34);

    let a = draw((33, 20), Place::strided([3, 100]), 35);
    let b = draw((20, 70), Place::strided([0, 2]), 36);
    let strided = Case::plain(a, b, Place::strided([150, 2]));
    let strided = strided.scaled(-1.0, 0.5, Data::Uniform, 37).activated(Activation::Relu);

    let a = draw((17, 40), Place::dense((17, 40), Order::Rows).batch(3, 17 * 40), 38);
    let b = draw((40, 35), Place::dense((40, 35), Order::Rows).batch(3, 0), 39);
    let batch = Case::plain(a, b, Place::padded((17, 35), Order::Rows, 1).batch(3, 17 * 36 + 1));
    let batch = batch.biased(Side::Col, Data::Uniform, 40).activated(Activation::Gelu);
    vec![plain, columns, strided, batch]
}

/// Runs each case with each kernel on a device.
fn runs<T: Number>(device: &Device) -> Vec<Vec<T>> {
    let mut bench = Bench::new(device);
    let pairs = cases()
        .into_iter()
        .flat_map(|case| T::general().into_iter().map(move |kernel| (kernel, case.clone())));
    pairs.map(|(kernel, case)| bench.run(&case, Some(kernel)).unwrap()).collect()
}

/// Compares with `first`, and returns the number of cases, of one type or both.
fn same<T: Number>(first: &[Vec<T>], again: &[Vec<T>], what: &str) -> usize {
    assert_eq!(first.len(), again.len());
    for (number, (one, other)) in first.iter().zip(again).enumerate() {
        let finite = one.iter().all(|&x| x.into().is_finite());
        assert!(finite && !one.is_empty() && bytes(one) == bytes(other), "{what}, run {number}");
    }
    first.len() / T::general().len()
}

/// Twenty times as many if a GPU is required.
fn repetitions() -> usize {
    if full() { 100 } else { 5 }
}

#[test]
fn from_run_to_run() {
    let mut count = 0;
    for device in devices() {
        let first = (runs::<f32>(&device), runs::<f64>(&device));
        for run in 0..repetitions() {
            // Freed memory is full of NaN when it is used again.
            device.zeros::<f64>(1 << 16).unwrap().fill_bytes(0xff).unwrap();
            let what = format!("{device}, repetition {run}");
            count += same(&first.0, &runs(&device), &what) + same(&first.1, &runs(&device), &what);
        }
    }
    counted("same_bits::from_run_to_run", count / devices().len() / repetitions() * 5);
}

#[test]
fn from_any_number_of_cores() {
    let one = Device::cpu_with_workers(1);
    let one = (runs::<f32>(&one), runs::<f64>(&one));
    let mut count = 0;
    for workers in [2, 3, 64] {
        let device = Device::cpu_with_workers(workers);
        let what = format!("{workers} cores");
        count += same(&one.0, &runs(&device), &what) + same(&one.1, &runs(&device), &what);
    }
    counted("same_bits::from_any_number_of_cores", count);
}

fn any_order<T: Number>() -> usize {
    let mut bench = Bench::<T>::new(&Device::cpu());
    let (kernels, mut count) = (T::general(), 0);
    let mut turns = Turns::of(kernels.len());
    for case in cases::<T>() {
        let right = kernels.iter().map(|kernel| bench.run(&case, Some(kernel)).unwrap());
        let right = right.collect::<Vec<_>>();
        for order in orders(10, 41) {
            for number in turns.next_case() {
                let kernel = kernels[number];
                let (c, findings) = watched(&case, kernel, order);
                assert!(findings.is_empty(), "{kernel}, {order}: {case}: {findings:#?}");
                assert!(bytes(&c) == bytes(&right[number]), "{kernel}, {order}: {case}");
            }
            count += 1;
        }
    }
    turns.each_had_one();
    count
}

/// Forward, reverse, and eight random orders, with every access of every thread checked: no races,
/// and nothing is read before it is written, also C with beta = 0.
#[test]
fn from_any_order_of_fibers() {
    counted("same_bits::from_any_order_of_fibers", any_order::<f32>() + any_order::<f64>());
    any_order::<Bf16>();
    any_order::<F16>();
}

fn any_processor<T: Number>() -> usize {
    let runs = runs::<T>(&Device::cpu());
    let pairs = cases()
        .into_iter()
        .flat_map(|case| T::general().into_iter().map(move |kernel| (kernel, case.clone())));
    let portable = pairs.map(|(kernel, case)| portable(&case, kernel)).collect::<Vec<_>>();
    same(&runs, &portable, "portable")
}

/// A kernel is compiled twice for the CPU. A processor without a fused multiply-add instruction
/// runs the other version.
#[test]
fn from_any_processor() {
    counted("same_bits::from_any_processor", any_processor::<f32>() + any_processor::<f64>());
    any_processor::<Bf16>();
    any_processor::<F16>();
}

#[test]
fn from_a_gpu_and_from_the_cpu() {
    let cpu = (runs::<f32>(&Device::cpu()), runs::<f64>(&Device::cpu()));
    for device in cuda_devices() {
        let what = device.to_string();
        let count = same(&cpu.0, &runs(&device), &what) + same(&cpu.1, &runs(&device), &what);
        counted("same_bits::from_a_gpu_and_from_the_cpu", count);
    }
}

/// A product of dense matrices has the bits of the lessons' `basic`, with any kernel. Also for a
/// column-major C, for which A and B are swapped.
#[test]
fn from_every_lesson() {
    each_device("same_bits::from_every_lesson", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        for sizes in [[100, 90, 75], [33, 1, 17], [130, 259, 64]] {
            for order in Order::BOTH {
                let [m, n, k] = sizes;
                let [a, b, c] = [(m, k), (k, n), (m, n)].map(|size| Place::dense(size, order));
                let a = Operand::draw((m, k), a, Data::Uniform, 42);
                let b = Operand::draw((k, n), b, Data::Uniform, 43);
                let case = Case::plain(a, b, c);
                let basic = bench.run(&case, Some("basic")).unwrap();
                // Other kernels do not take all of these, or add the sums in parts. tf32 gives
                // other numbers.
                let kernels = f32::kernels().filter(|kernel| {
                    let in_order = kernel.product.is_general() || kernel.product.is_lesson();
                    in_order && !kernel.entry.is_tf32()
                });
                let names = kernels.map(|kernel| kernel.entry.name());
                // `rust_cuda_tiled16` has no fused multiply-add.
                for name in names.filter(|name| *name != "rust_cuda_tiled16") {
                    let c = bench.run(&case, Some(name)).unwrap();
                    assert!(bytes(&c) == bytes(&basic), "{name} on {device}: {case}");
                }
                // On a GPU the fastest may be one of the others.
                let chosen = bench.run(&case, None).unwrap();
                assert!(device.is_cuda() || bytes(&chosen) == bytes(&basic), "{device}: {case}");
                *count += 1;
            }
        }
    });
}
