//! Odd leading dimensions, unaligned starts and sizes below a tile must have at least half the
//! speed of regular neighbours. With them cuBLAS's half-precision product loses a factor of five.
//!
//! Only a GPU can show it. The measurements are printed (`--nocapture`).

use host::{
    Device, Gemm, MatrixView, MatrixViewMut, Shape,
    gemm::{Request, Scalar, Target, choose},
    timing::{self, Candidate, Options},
};
use tests::cuda_devices;

/// A product, and the layout of its operands.
#[derive(Clone, Copy)]
struct Case {
    size: [usize; 3],
    /// Elements between the end of a row and the start of the next.
    padding: usize,
    /// Elements before the first.
    offset: usize,
    transposed: [bool; 2],
}

impl Case {
    fn new(size: [usize; 3]) -> Self {
        Case { size, padding: 0, offset: 0, transposed: [false; 2] }
    }

    fn describe(&self) -> String {
        let [m, n, k] = self.size;
        let letters = self.transposed.map(|transposed| if transposed { 'T' } else { 'N' });
        let Case { padding, offset, .. } = self;
        let [a, b] = letters;
        format!("{m}x{n}x{k} {a}{b}, padding {padding}, offset {offset}")
    }
}

/// FLOP per second of each case, measured in turn.
fn speeds(device: &Device, cases: &[Case]) -> Vec<f64> {
    let stream = device.stream().unwrap();
    // Large enough for the largest of them. Integers, so that no subnormal number slows it.
    let largest = |of: fn(&Case) -> usize| cases.iter().map(of).max().unwrap_or_default();
    let a_len = largest(|case| {
        let [m, _, k] = case.size;
        (m * (k + case.padding)).max(k * (m + case.padding)) + case.offset
    });
    let b_len = largest(|case| {
        let [_, n, k] = case.size;
        (k * (n + case.padding)).max(n * (k + case.padding)) + case.offset
    });
    let c_len = largest(|case| case.size[0] * (case.size[1] + case.padding) + case.offset);
    let draw = |len, seed| host::operands::uniform(seed, len).unwrap();
    let a = device.upload(&draw(a_len, 1)).unwrap();
    let b = device.upload(&draw(b_len, 2)).unwrap();
    let c = std::cell::RefCell::new(device.zeros::<f32>(c_len).unwrap());
    let mut candidates = Vec::<Candidate>::new();
    for case in cases {
        let (stream, a, b, c) = (&stream, &a, &b, &c);
        candidates.push(Box::new(move |_| {
            let [m, n, k] = case.size;
            let operand = |buffer, rows: usize, cols: usize, transposed: bool| {
                let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
                let strides = [cols + case.padding, 1];
                let view = host::Buffer::view(buffer, case.offset..)?;
                let view = MatrixView::new(view, rows, cols, strides)?;
                Ok::<_, host::Error>(if transposed { view.t() } else { view })
            };
            let a = operand(a, m, k, case.transposed[0])?;
            let b = operand(b, k, n, case.transposed[1])?;
            let mut c = c.borrow_mut();
            let c = c.view_mut(case.offset..)?;
            let c = MatrixViewMut::new(c, m, n, [n + case.padding, 1])?;
            Gemm::new().launch(stream, a, b, c).map(|_| ())
        }));
    }
    let options = Options {
        duration: std::time::Duration::from_millis(40 * cases.len() as u64),
        ..Options::new(device, cases.len())
    };
    let measured = timing::compare(&stream, &mut candidates, 1, &options).unwrap();
    let speed = |(case, measured): (&Case, &timing::Measurement)| {
        let [m, n, k] = case.size.map(|size| size as u64);
        Shape::new(m, n, k).unwrap().flop() / measured.summary().median * 1e6
    };
    cases.iter().zip(&measured).map(speed).collect()
}

#[test]
fn operands_that_are_hard_to_read() {
    let mut compared = 0;
    for device in cuda_devices() {
        for size in [512, 1024, 2048, 4096] {
            let base = Case::new([size; 3]);
            let less = size - 1;
            let mut cases = vec![base];
            cases.extend([1, 2, 3].map(|offset| Case { offset, ..base }));
            cases.extend([1, 2, 7].map(|padding| Case { padding, ..base }));
            cases.extend(
                [[less, size, size], [size, less, size], [size, size, less], [less; 3]]
                    .map(Case::new),
            );
            for transposed in [[true, false], [false, true], [true, true]] {
                cases.push(Case { transposed, ..base });
                cases.push(Case { transposed, padding: 1, offset: 1, ..base });
            }
            let speeds = speeds(&device, &cases);
            for (case, speed) in cases.iter().zip(&speeds) {
                let share = speed / speeds[0];
                println!("{:>7.2} TFLOP/s  {share:.2}  {}", speed * 1e-12, case.describe());
                assert!(share >= 0.5, "{} has {share:.2} of {}", case.describe(), base.describe());
                compared += 1;
            }
        }
        // Sizes below a tile, and next to a multiple of it.
        for size in [17, 31, 33, 63, 65, 127, 129] {
            let even = (size as f64 / 16.0).ceil() as usize * 16;
            let cases = [Case::new([even; 3]), Case::new([size; 3])];
            let times = speeds(&device, &cases);
            // The smaller size has fewer operations.
            let flop = |n: usize| 2.0 * (n as f64).powi(3);
            let share = (flop(even) / times[0]) / (flop(size) / times[1]);
            println!("{size}^3 takes {:.2} of the time of {even}^3", 1.0 / share);
            assert!(share >= 0.5, "{size}^3");
            compared += 1;
        }
    }
    assert!(compared == 4 * 17 * cuda_devices().len() + 7 * cuda_devices().len());
}

/// The selection of a kernel compared with all kernels, measured: the loss is printed.
#[test]
fn the_choice_is_near_the_fastest() {
    for device in cuda_devices() {
        let target = Target::of(&device);
        let names = <f32 as Scalar>::kernels().map(|kernel| kernel.entry.name());
        let names = names.filter(|name| !["basic", "rust_cuda_tiled16"].contains(name));
        let names = names.collect::<Vec<_>>();
        for [m, n, k] in [
            [64, 64, 64],
            [128, 128, 128],
            [256, 256, 256],
            [512, 512, 512],
            [1024, 1024, 1024],
            [2048, 2048, 2048],
            [4096, 4096, 4096],
            [1000, 700, 513],
            [16, 4096, 4096],
            [4096, 16, 4096],
            [8192, 8192, 64],
            [2000, 3000, 100],
        ] {
            let shape = Shape::new(m, n, k).unwrap();
            let chosen = choose::<f32>(&Request::dense(shape), &target, None).unwrap();
            let stream = device.stream().unwrap();
            let operands = timing::Operands::new(&device, shape, 1).unwrap();
            let timing::Operands { a, b, c } = operands;
            let c = std::cell::RefCell::new(c);
            let candidate = |name: &'static str| -> Candidate {
                let (stream, a, b, c) = (&stream, &a, &b, &c);
                Box::new(move |_| {
                    let gemm = Gemm::new().kernel(name)?;
                    gemm.launch(stream, a.view(), b.view(), c.borrow_mut().view_mut()).map(|_| ())
                })
            };
            let mut candidates = names.iter().map(|name| candidate(name)).collect::<Vec<_>>();
            let options = Options {
                duration: std::time::Duration::from_millis(20 * names.len() as u64),
                ..Options::new(&device, names.len())
            };
            let measured = timing::compare(&stream, &mut candidates, 1, &options).unwrap();
            let times = measured.iter().map(|one| one.summary().median).collect::<Vec<_>>();
            let best = (0..times.len()).min_by(|&i, &j| times[i].total_cmp(&times[j])).unwrap();
            let own = names.iter().position(|&name| name == chosen.entry.name()).unwrap();
            let share = times[best] / times[own];
            println!(
                "{m}x{n}x{k}: {} {:.1} us ({}), best {} {:.1} us: {share:.2}",
                names[own], times[own], chosen.reason, names[best], times[best]
            );
            assert!(share >= 0.7, "{m}x{n}x{k}");
        }
    }
}
