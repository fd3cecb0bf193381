//! Batches, and arrays of products.

use host::{Batch, BatchMut, Bf16, Gemm, Layout, Matrix, MatrixView, gemm::Scalar, testing};
use tests::once;
use tests::{
    devices,
    gemm::{
        Case, Data, Number, Operand, Order, Place, Random, Side, Suite, bytes, counted, each_device,
    },
    streams,
};

fn evenly_spaced<T: Number>() {
    let (mut suite, mut random) = (Suite::<T>::new().in_turns(), Random::new(21));
    for [m, n, k] in [[5, 7, 3], [33, 36, 17], [1, 1, 1], [4, 4, 0]] {
        for count in [0, 1, 2, 5] {
            // Distances: contiguous, with a gap, 16-byte aligned, and all the same matrix.
            for gaps in [[0, 0, 0], [1, 2, 3], [8, 4, 4]] {
                for one in [[false, false], [true, false], [false, true], [true, true]] {
                    let mut place = |size, gap, one: bool| {
                        let place =
                            Place::padded(size, random.choose(&Order::BOTH), random.below(2));
                        let step = if one { 0 } else { place.extent(size) + gap };
                        let place = place.at(random.below(4)).batch(count, step);
                        if random.below(2) == 0 { place } else { place.transposed() }
                    };
                    let a = place((m, k), gaps[0], one[0]);
                    let b = place((k, n), gaps[1], one[1]);
                    let c = place((m, n), gaps[2], false);
                    let data = Data::exact(k);
                    let a = Operand::draw((m, k), a, data, random.next());
                    let b = Operand::draw((k, n), b, data, random.next());
                    let case = Case::plain(a, b, c).scaled(2.0, -1.0, data, random.next());
                    let side = random.choose(&Side::BOTH);
                    let before = testing::counts().launches;
                    suite.exact(&case.biased(side, data, random.next()));
                    assert_eq!(testing::counts().launches > before, count > 0, "none to compute");
                }
            }
        }
    }
    suite.done("batches::strided");
}

#[test]
fn strided() {
    once!(crate::SOURCES);
    evenly_spaced::<f32>();
    evenly_spaced::<f64>();
}

/// One matrix for all products of a batch, by [`Batch::repeat`].
#[test]
fn repeated() {
    once!(crate::SOURCES);
    each_device("batches::repeated", |device, count| {
        let stream = device.stream().unwrap();
        let a = Matrix::from_row_major(&device, 2, 3, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let b = device.upload(&(0..3 * 2 * 4).map(|x| x as f32).collect::<Vec<_>>()).unwrap();
        let mut c = device.zeros::<f32>(4 * 4).unwrap();
        for transposed in [false, true] {
            let a = if transposed { a.view().t().t() } else { a.view() };
            let b = Batch::new(b.view(..).unwrap(), (3, 2), [2, 1], 4, 6).unwrap();
            let c_all = BatchMut::new(c.view_mut(..).unwrap(), (2, 2), [2, 1], 4, 4).unwrap();
            Gemm::new().launch_batch(&stream, Batch::repeat(a, 4), b, c_all).unwrap();
            let c = c.to_vec().unwrap();
            for i in 0..4 {
                let b = |p: usize, j: usize| (6 * i + 2 * p + j) as f32;
                let want =
                    |row: f32, j| row * b(0, j) + (row + 1.0) * b(1, j) + (row + 2.0) * b(2, j);
                let all = [want(1.0, 0), want(1.0, 1), want(4.0, 0), want(4.0, 1)];
                assert_eq!(c[4 * i..4 * i + 4], all, "{device}, product {i}");
            }
            *count += 1;
        }
    });
}

/// The heads of an array of (tokens, heads, width) are an interleaved batch. No two of its elements
/// are the same.
#[test]
fn interleaved() {
    once!(crate::SOURCES);
    let count = interleaved_of::<f32>(|x| x) + interleaved_of::<Bf16>(Bf16::from_f32);
    counted("batches::interleaved", count / devices().len());
}

fn interleaved_of<T: Scalar + Into<f64>>(of: fn(f32) -> T) -> usize {
    let (heads, k, mut count) = (3, 5, 0);
    for (device, stream) in streams() {
        for (tokens, width) in [(10, 8), (7, 5), (70, 16), (1, 4), (130, 136)] {
            let values =
                |len: usize| (0..len).map(|i| of((i % 5) as f32 - 2.0)).collect::<Vec<_>>();
            let (a, b) = (values(heads * tokens * k), values(heads * k * width));
            let [on_a, on_b] = [&a, &b].map(|of| device.upload(of).unwrap());
            let mut c = device.zeros::<T>(tokens * heads * width).unwrap();
            let a_heads =
                Batch::new(on_a.view(..).unwrap(), (tokens, k), [k, 1], heads, tokens * k);
            let b_heads =
                Batch::new(on_b.view(..).unwrap(), (k, width), [width, 1], heads, k * width);
            let all = c.view_mut(..).unwrap();
            let c_heads = BatchMut::new(all, (tokens, width), [heads * width, 1], heads, width);
            let gemm = Gemm::<T, T>::of_types();
            gemm.launch_batch(&stream, a_heads.unwrap(), b_heads.unwrap(), c_heads.unwrap())
                .unwrap();
            for (at, got) in c.to_vec().unwrap().into_iter().enumerate() {
                let (token, head, col) = (at / (heads * width), at / width % heads, at % width);
                let a = |p: usize| -> f64 { a[(head * tokens + token) * k + p].into() };
                let b = |p: usize| -> f64 { b[(head * k + p) * width + col].into() };
                let sum: f64 = (0..k).map(|p| a(p) * b(p)).sum();
                assert_eq!(got.into(), sum, "{device}, {tokens} x {width}, element {at}");
            }
            count += 1;
        }
        let mut c = device.zeros::<T>(100).unwrap();
        let mut refused = |strides, step| {
            let all = c.view_mut(..).unwrap();
            BatchMut::new(all, (4, 5), strides, 3, step).map(drop).unwrap_err().to_string()
        };
        let expected = "step = 4: two elements of 3 written 4x5 matrices of strides [15, 1] might share memory";
        assert_eq!(refused([15, 1], 4), expected);
        assert!(refused([14, 1], 5).starts_with("step = 5: two elements"));
    }
    count
}

/// Products of different shapes in any layouts. Each has the bits that it has alone.
#[test]
fn arrays() {
    once!(crate::SOURCES);
    let mut count = 0;
    for (device, stream) in streams() {
        for kernel in f32::general() {
            let gemm = Gemm::new().alpha(0.7).beta(1.3).kernel(kernel).unwrap();
            let shapes = [[3, 4, 5], [40, 33, 17], [1, 1, 1], [0, 5, 2], [7, 9, 0], [65, 2, 40]];
            let cases = shapes.map(|sizes| {
                let case = Case::<f32>::dense(sizes, Data::Uniform, 22);
                case.scaled(0.7, 1.3, Data::Uniform, 23)
            });
            let matrix = |operand: &Operand<f32>| {
                let (rows, cols) = operand.size;
                Matrix::from_row_major(&device, rows, cols, &operand.values()).unwrap()
            };
            let of = |which: fn(&Case<f32>) -> &Operand<f32>| {
                cases.iter().map(|case| matrix(which(case))).collect::<Vec<_>>()
            };
            let (a, b) = (of(|case| &case.a), of(|case| &case.b));
            let (mut alone, mut together) = (of(|case| &case.c), of(|case| &case.c));
            for ((a, b), c) in a.iter().zip(&b).zip(&mut alone) {
                gemm.run(&stream, a.view(), b.view(), c.view_mut()).unwrap();
            }
            let inputs = a.iter().zip(&b).map(|(a, b)| (a.view(), b.view()));
            let inputs = inputs.collect::<Vec<(MatrixView<f32>, MatrixView<f32>)>>();
            let mut outputs = together.iter_mut().map(Matrix::view_mut).collect::<Vec<_>>();
            let choices = gemm.launch_array(&stream, &inputs, &mut outputs).unwrap();
            assert!(choices.iter().all(|choice| choice.entry.name() == kernel));
            for (one, other) in alone.iter().zip(&together) {
                let (one, other) = (one.to_row_major().unwrap(), other.to_row_major().unwrap());
                assert!(bytes(&one) == bytes(&other), "{kernel} on {device}");
                count += 1;
            }
            let none = gemm.launch_array(&stream, &[], &mut []).unwrap();
            assert!(none.is_empty());
        }
    }
    counted("batches::arrays", count / devices().len() / f32::general().len());
}

/// Two products into the halves of one matrix, in one call: the bits of the product in one piece.
/// Then one half from the other's elements.
#[test]
fn halves() {
    once!(crate::SOURCES);
    let [m, n, k] = [67, 70, 33];
    each_device("batches::halves", |device, count| {
        let stream = device.stream().unwrap();
        let draw = |rows, cols, seed| {
            let values = host::operands::uniform(seed, rows * cols).unwrap();
            Matrix::from_row_major(&device, rows, cols, &values).unwrap()
        };
        let (a, b) = (draw(m, k, 24), draw(k, n, 25));
        let mut whole = Matrix::zeros(&device, m, n).unwrap();
        Gemm::new().run(&stream, a.view(), b.view(), whole.view_mut()).unwrap();
        let whole = whole.to_row_major().unwrap();
        for (layout, leading) in [(Layout::RowMajor, n + 3), (Layout::ColMajor, m + 5)] {
            for (row, col) in [(0, n), (1, 4), (32, 35), (64, 64), (m - 1, 1), (m, 0)] {
                let c = || {
                    let mut c = Matrix::with_layout(&device, m, n, layout, leading).unwrap();
                    c.buffer_mut().fill_bytes(0xff).unwrap();
                    c
                };
                let is_whole = |c: &Matrix<f32>| {
                    assert!(bytes(&c.to_row_major().unwrap()) == bytes(&whole), "{row} {col}");
                    let padding = c.buffer().len() - m * n;
                    let stored = c.buffer().to_vec().unwrap();
                    assert_eq!(stored.into_iter().filter(|x| x.is_nan()).count(), padding);
                };
                let a_part = |rows| a.view().sub(rows, 0..k).unwrap();
                let b_part = |cols| b.view().sub(0..k, cols).unwrap();

                let mut by_rows = c();
                let (above, below) = by_rows.view_mut().split_rows_at(row).unwrap();
                let inputs = [(a_part(0..row), b.view()), (a_part(row..m), b.view())];
                Gemm::new().launch_array(&stream, &inputs, &mut [above, below]).unwrap();
                is_whole(&by_rows);

                let mut by_cols = c();
                let (left, right) = by_cols.view_mut().split_cols_at(col).unwrap();
                let inputs = [(a.view(), b_part(0..col)), (a.view(), b_part(col..n))];
                Gemm::new().launch_array(&stream, &inputs, &mut [left, right]).unwrap();
                is_whole(&by_cols);

                // The left half times 0, plus the right half times 2: the right half is read in
                // place.
                let (left, right) = by_cols.view_mut().split_cols_at(col).unwrap();
                let zeros = Matrix::zeros(&device, col, n - col).unwrap();
                let doubles = Gemm::new().beta(2.0);
                doubles.run(&stream, left.as_view(), zeros.view(), right).unwrap();
                let doubled = by_cols.to_row_major().unwrap();
                let wanted = whole.iter().enumerate();
                let wanted = wanted.map(|(at, x)| if at % n < col { *x } else { 2.0 * x });
                assert!(doubled.iter().copied().eq(wanted), "{row} {col}");
                *count += 2;
            }
        }
    });
}
