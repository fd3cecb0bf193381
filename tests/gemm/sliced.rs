//! Operands of f32 that are split into slices: every layout, numbers of every size, and that sums
//! are as accurate as documented.

mod model;

use gpu::{kernels::emulated::two_widths::wide_tiles_across, registry::Scheme};
use host::{
    Activation, Compute, Device, Gemm, Matrix, MatrixView, PreparedMatrix, Shape, SliceView,
    SliceViewMut,
    gemm::{Request, Scalar, Target},
};
pub(super) use model::*;
use tests::{
    Turns, devices,
    gemm::{Bench, Case, Data, Operand, Order, Place, Random, Side, Want, counted, each_device},
    kernels::variant,
    once,
};

/// The kernels with that tile. For each, whether A, and B, is K-major.
fn kernels() -> Vec<(&'static str, [bool; 2])> {
    let kernels = f32::kernels().filter(|kernel| kernel.entry.is_emulated());
    let kernels = kernels.map(|kernel| (kernel.entry.name(), kernel.product.variant.k_major()));
    let kernels = kernels.collect::<Vec<_>>();
    assert!(!kernels.is_empty());
    kernels
}

/// C as that kernel computes it.
pub(super) fn run(bench: &mut Bench<f32>, case: &Case<f32>, name: &str) -> Vec<f32> {
    bench.run_as(case, |gemm| gemm.compute(asks_for(name)).kernel(name)).unwrap()
}

/// The arithmetic for a kernel of that name.
fn asks_for(name: &str) -> Compute {
    match variant(name).scheme {
        Scheme::F16x3 => Compute::Fp32F16x3,
        _ => Compute::Fp32Bf16x6,
    }
}

/// Multiplies by that kernel, and compares the reported number of recomputed elements: for a
/// product that is waited for, and for several on a stream.
pub(super) fn computes_again(
    device: &Device,
    name: &str,
    [m, n, k]: [usize; 3],
    [a, b]: [&[f32]; 2],
    wanted: u64,
) {
    let stream = device.stream().unwrap();
    let gemm = Gemm::new().compute(asks_for(name)).kernel(name).unwrap();
    let of_a = Matrix::from_row_major(device, m, k, a).unwrap();
    let of_b = Matrix::from_row_major(device, k, n, b).unwrap();
    let mut c = Matrix::zeros(device, m, n).unwrap();
    let run = |waits: bool, c: &mut Matrix<f32>| {
        let way = if waits { Gemm::run } else { Gemm::launch };
        way(&gemm, &stream, of_a.view(), of_b.view(), c.view_mut()).unwrap().recomputed
    };
    assert_eq!(stream.recomputed().unwrap(), 0);
    assert_eq!(run(true, &mut c), Some(wanted), "{name}");
    assert_eq!(run(true, &mut c), Some(wanted), "{name}");
    assert_eq!(stream.recomputed().unwrap(), 2 * wanted, "{name}");
    // Earlier launches are not counted with the next.
    assert_eq!(run(false, &mut c), None);
    assert_eq!(run(true, &mut c), Some(wanted), "{name}");
    assert_eq!(run(false, &mut c), None);
    assert_eq!(stream.recomputed().unwrap(), 5 * wanted, "{name}");
    let mut c = vec![0.0; m * n];
    let (a, b) = (SliceView::row_major(a, m, k).unwrap(), SliceView::row_major(b, k, n).unwrap());
    let c = SliceViewMut::row_major(&mut c, m, n).unwrap();
    assert_eq!(gemm.run_slices(&stream, a, b, c).unwrap().recomputed, Some(wanted), "{name}");
    assert_eq!(stream.recomputed().unwrap(), 6 * wanted, "{name}");
}

/// The number of recomputed elements is reported: a column with infinity, all elements for NaN, and
/// none for numbers of all sizes.
#[test]
fn what_is_computed_again_is_counted() {
    once!(crate::SOURCES);
    const SIZES: [usize; 3] = [70, 140, 40];
    let [m, n, k] = SIZES;
    let mut random = Random::new(29);
    let x = Kind::Normal.draw(m, k, false, &mut random);
    let y = Kind::Normal.draw(n, k, true, &mut random);
    let infinite = y.iter().enumerate();
    let infinite = infinite.map(|(at, y)| if at == 7 * n + 66 { f32::INFINITY } else { *y });
    let small = y.iter().enumerate().map(|(at, y)| if at % n == 3 { 1e-12 * y } else { *y });
    each_device("sliced::what_is_computed_again_is_counted", |device, count| {
        let names = ["256x192x64_c2", "256x128x64_c2", "64x128x64"]
            .map(|of| format!("wgmma_bf16x6_{of}_nn"));
        let mut turns = Turns::on(&device, names.len());
        for (a, b, wanted) in [
            (x.clone(), y.clone(), 0),
            (x.clone(), small.clone().collect::<Vec<_>>(), 0),
            (x.clone(), infinite.clone().collect(), m as u64),
            (vec![f32::NAN; m * k], y.clone(), (m * n) as u64),
        ] {
            for name in turns.next_case() {
                computes_again(&device, &names[name], SIZES, [&a, &b], wanted);
            }
            *count += 1;
        }
        turns.each_had_one();
    });
}

/// The orders that a kernel reads.
fn orders([a, b]: [bool; 2]) -> [Order; 2] {
    let along = |rows: bool| if rows { Order::Rows } else { Order::Columns };
    [along(a), along(!b)]
}

/// Every layout of A and B, with each of the kernels for it in turn: both biases, a batch; aligned
/// and unaligned rows and first elements; whole and partial tiles.
#[test]
fn every_way_to_lie() {
    once!(crate::SOURCES);
    let kernels = kernels();
    each_device("sliced::every_way_to_lie", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        let mut turns = Turns::on(&device, kernels.len());
        for along_k in [[true, true], [true, false], [false, true], [false, false]] {
            let [of_a, of_b] = orders(along_k);
            let takes = |&kernel: &usize| kernels[kernel].1 == along_k;
            let takers = (0..kernels.len()).filter(takes).collect::<Vec<_>>();
            assert!(!takers.is_empty(), "{along_k:?}");
            for (number, ([m, n, k], padding)) in
                [([37, 70, 45], 0), ([130, 300, 200], 1), ([300, 132, 8], 4)]
                    .into_iter()
                    .enumerate()
            {
                let data = Data::exact(k);
                let lies = |size: (usize, usize), order| {
                    let one = Place::padded(size, order, padding);
                    if padding == 1 { one.at(3) } else { one }
                };
                for (side, beta, count_of) in [(Side::Row, 0.0, None), (Side::Col, -1.0, Some(2))] {
                    let many = |size, place: Place| match count_of {
                        Some(of) => place.batch(of, place.extent(size) + number),
                        None => place,
                    };
                    let operand = |size, order, salt| {
                        Operand::draw(size, many(size, lies(size, order)), data, salt)
                    };
                    let (a, b) = (operand((m, k), of_a, 91), operand((k, n), of_b, 92));
                    let c = many((m, n), Place::padded((m, n), Order::Rows, 2));
                    let case = Case::plain(a, b, c).scaled(2.0, beta, data, 93);
                    let case = case.biased(side, data, 94).activated(Activation::Relu);
                    let want = Want::exact(&case);
                    for (name, _) in turns.among(&takers).into_iter().map(|kernel| kernels[kernel])
                    {
                        want.check(&run(&mut bench, &case, name))
                            .unwrap_or_else(|wrong| panic!("{wrong}\n{name}: {case}"));
                    }
                    *count += 1;
                }
            }
        }
        turns.each_had_one();
    });
}

/// Numbers that slices cannot hold are found in all patches of which a tile has a part. The second
/// tile of 192 columns has the end of one patch of 256 and the start of the next, and only the
/// numbers of the latter are too small.
#[test]
fn a_tile_has_parts_of_patches() {
    once!(crate::SOURCES);
    const K: usize = 40;
    each_device("sliced::a_tile_has_parts_of_patches", |device, count| {
        let (m, n) = of_two_widths(&device, 2);
        let mut random = Random::new(5);
        let mut draw = || 1.0 + (random.next() >> 41) as f32 * 2f32.powi(-23);
        let a = (0..m * K).map(|_| draw() * 2f32.powi(100)).collect::<Vec<_>>();
        let small = |at: usize| if at % n < 256 { 1.0 } else { 2f32.powi(-100) * 2f32.powi(-35) };
        let b = (0..K * n).map(|at| draw() * small(at)).collect::<Vec<_>>();
        let case = Case::of([m, n, K], &a, (&b, Order::Rows));
        let mut bench = Bench::<f32>::new(&device);
        let c = run(&mut bench, &case, "wgmma_bf16x6_256x192x64_c2_nn");
        // The rows of a few warps.
        for row in (0..m).step_by(17) {
            for col in 0..n {
                let term = |p: usize| f64::from(a[row * K + p]) * f64::from(b[p * n + col]);
                let want = (0..K).map(term).sum::<f64>();
                let error = (f64::from(c[row * n + col]) - want).abs() / want;
                let bound = (K as f64 / 32.0 + 48.0) * 2f64.powi(-24);
                assert!(error <= bound, "{device:?}, ({row}, {col}) of {m} x {n}: {error:e}");
            }
        }
        *count += 1;
    });
}

/// Single products, and sums of few, have the bits of fused multiply-adds: zeros of both signs,
/// subnormal numbers, overflow, infinities; and any NaN.
#[test]
fn special_values_are_those_of_f32() {
    once!(crate::SOURCES);
    let tiny = f32::from_bits(1);
    let values = [
        0.0,
        -0.0,
        1.0,
        -3.0,
        tiny,
        -tiny,
        f32::from_bits(0x7f_ffff),
        f32::MIN_POSITIVE,
        1.5 * 2f32.powi(-111),
        1.234_568e-35,
        -7.654_321e-20,
        3.402_823e38,
        f32::MAX,
        f32::MIN,
        2f32.powi(64),
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut count = 0;
    for (device, name) in devices().into_iter().flat_map(|device| {
        ["wgmma_bf16x6_64x128x64_nn", "wgmma_f16x3_64x128x64_nn"].map(|name| (device.clone(), name))
    }) {
        let mut bench = Bench::<f32>::new(&device);
        // All pairs: C's elements are single products, next to other rows.
        let side = |size| {
            Operand::new(size, Place::dense(size, Order::Rows), |_, row, col| values[row + col])
        };
        let n = values.len();
        let place = Place::dense((n, n), Order::Rows);
        let case = Case::plain(side((n, 1)), side((1, n)), place);
        let c = run(&mut bench, &case, name);
        for (at, c) in c.iter().enumerate() {
            let (x, y) = (values[at / n], values[at % n]);
            let want = x.mul_add(y, 0.0);
            assert!(is_same(*c, want), "{x:e} * {y:e}: {c:e}, should be {want:e}");
            count += 1;
        }
        for (a, b) in [
            (&[f32::MAX, f32::MAX][..], &[1.0, 1.0][..]),
            (&[f32::MAX, f32::MIN], &[1.0, 1.0]),
            (&[f32::INFINITY, 1.0], &[1.0, f32::NEG_INFINITY]),
            (&[f32::INFINITY, 0.0], &[1.0, f32::INFINITY]),
            (&[tiny, tiny, 1.0], &[1.0, 2.0, 0.0]),
            (&[2f32.powi(-75), -2f32.powi(-74)], &[2f32.powi(-74), 2f32.powi(-75)]),
            (&[1.0, -1.0], &[-1.0, -1.0]),
        ] {
            let want = a.iter().zip(b).fold(0.0f32, |sum, (a, b)| a.mul_add(*b, sum));
            let c = run(&mut bench, &single(a, b), name)[0];
            assert!(is_same(c, want), "{a:?} {b:?}: {c:e}, should be {want:e}");
            count += 1;
        }
    }
    counted("sliced::special_values_are_those_of_f32", count / devices().len());
}

/// Every element is within the bound that the kernel's documentation derives. Over all elements of
/// long sums, three errors are not larger than those of fused multiply-adds in the order of k: the
/// median relative error, the Frobenius norm's, and the largest one relative to the terms' absolute
/// values.
#[test]
fn errors_are_not_larger_than_those_of_f32() {
    once!(crate::SOURCES);
    const M: usize = 48;
    const N: usize = 40;
    each_device("sliced::errors_are_not_larger_than_those_of_f32", |device, count| {
        let mut bench = Bench::<f32>::new(&device);
        for kind in Kind::ALL {
            for k in [64, 128, 1024] {
                let mut random = Random::new(k as u64);
                let a = kind.draw(M, k, false, &mut random);
                let b = kind.draw(N, k, true, &mut random);
                let (mut plain, mut want) = (Vec::new(), Vec::new());
                for i in 0..M * N {
                    let (row, col) = (&a[i / N * k..][..k], &b[i % N * k..][..k]);
                    let terms = || row.iter().zip(col).map(|(a, b)| f64::from(*a) * f64::from(*b));
                    want.push((terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>()));
                    plain.push(row.iter().zip(col).fold(0.0f32, |sum, (a, b)| a.mul_add(*b, sum)));
                }
                let case = Case::of([M, N, k], &a, (&b, Order::Columns));
                for (name, roundings, median) in [
                    ("wgmma_bf16x6_64x128x64_nt", k as f64 / 32.0 + 48.0, 1.5e-7),
                    ("wgmma_f16x3_64x128x64_nt", k as f64 / 32.0 + 58.0, 1.5e-7),
                ] {
                    let c = run(&mut bench, &case, name);
                    let bound = roundings * 2f64.powi(-24);
                    let (ours, of_plain) = (errors(&c, &want), errors(&plain, &want));
                    let shown =
                        |errors: [f64; 4]| errors.map(|error| format!("{error:.1e}")).join(" ");
                    println!("{name} {kind:?} {k}: {} beside {}", shown(ours), shown(of_plain));
                    assert!(ours[3] <= bound, "{name} {kind:?} {k}: {:e} > {bound:e}", ours[3]);
                    if k == 1024 {
                        let not_more = |what: usize| {
                            assert!(ours[what] <= of_plain[what], "{name} {kind:?}: {what}");
                        };
                        not_more(0);
                        not_more(3);
                        // If one product dominates a sum, a fused multiply-add rounds it, and
                        // tensor cores truncate it.
                        if !matches!(kind, Kind::Outlier) {
                            not_more(2);
                        }
                    }
                    // Without promotion it is 7e-6 at 1024. With slices of bf16 and the large
                    // products first it is 4e-7.
                    if matches!(kind, Kind::Normal | Kind::Positive) {
                        assert!(ours[0] < median, "{name} {kind:?} {k}: {:e}", ours[0]);
                    }
                    *count += 1;
                }
            }
        }
    });
}

/// The kernel has the bits of the documented computation. Without promotion, or with large products
/// first, the errors would be too large for [`errors_are_not_larger_than_those_of_f32`].
#[test]
fn promotion_and_the_order_of_products_matter() {
    once!(crate::SOURCES);
    const M: usize = 24;
    const N: usize = 8;
    const K: usize = 1024;
    const SMALL_FIRST: [(usize, usize); 6] = [(0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)];
    let great_first = {
        let mut order = SMALL_FIRST;
        order.reverse();
        order
    };
    let mut random = Random::new(7);
    let (a, b) =
        (Kind::Normal.draw(M, K, false, &mut random), Kind::Normal.draw(N, K, true, &mut random));
    let of = |i: usize| (&a[i / N * K..][..K], &b[i % N * K..][..K]);
    let sums = |order: &[(usize, usize)], together: usize| {
        let sum = |i| sum_of_slices(of(i).0, of(i).1, order, together);
        (0..M * N).map(sum).collect::<Vec<_>>()
    };
    let want = (0..M * N).map(|i| {
        let terms = || of(i).0.iter().zip(of(i).1).map(|(a, b)| f64::from(*a) * f64::from(*b));
        (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>())
    });
    let want = want.collect::<Vec<_>>();
    let ours = sums(&SMALL_FIRST, 64);
    let median = |c: &[f32]| errors(c, &want)[0];
    assert!(median(&ours) < 1.5e-7, "{:e}", median(&ours));
    for (order, together) in [(SMALL_FIRST, K), (great_first, 64), (great_first, K)] {
        let error = median(&sums(&order, together));
        assert!(error > 2.5e-7, "{order:?} of {together}: {error:e}");
    }
    let mut count = 3;
    for device in devices() {
        let mut bench = Bench::<f32>::new(&device);
        let case = Case::of([M, N, K], &a, (&b, Order::Columns));
        let c = run(&mut bench, &case, "wgmma_bf16x6_256x128x64_c2_nt");
        assert!(c.iter().zip(&ours).all(|(c, ours)| c.to_bits() == ours.to_bits()), "{device:?}");
        count += 1;
    }
    counted("sliced::promotion_and_the_order_of_products_matter", count - devices().len());
}

/// By default nothing is split. On request it is, on Hopper only, and where it is faster. Other
/// types are not affected.
#[test]
fn only_where_it_is_asked_for() {
    once!(crate::SOURCES);
    let sliced = Gemm::<f32>::new().compute(Compute::Fp32Bf16x6);
    let ampere = Target::gpu((8, 0), 108);
    let mut count = 0;
    for size in [1, 64, 512, 1024, 8192] {
        let request = Request::dense(Shape::new(size, size, size).unwrap());
        let taken = |gemm: &Gemm<f32>, target: &Target| {
            let entry = gemm.choose(&request, target).unwrap().entry;
            (entry.name(), entry.is_emulated())
        };
        assert!(!taken(&Gemm::new(), &Target::H200).1, "{size}");
        assert_eq!(taken(&sliced, &Target::H200).1, size >= 1024, "{size}");
        for target in [&ampere, &Target::cpu(2)] {
            assert_eq!(taken(&sliced, target), taken(&Gemm::new(), target), "{size}");
        }
        count += 4;
    }
    let request = Request::dense(Shape::new(100, 100, 100).unwrap());
    let name = "wgmma_bf16x6_256x128x64_c2_nn";
    let refused = Gemm::<f32>::new().kernel(name).unwrap().choose(&request, &Target::H200);
    let expected =
        format!("kernel = {name}: splits A and B into slices, which compute = fp32-bf16x6 allows");
    assert_eq!(refused.unwrap_err().to_string(), expected);
    let chosen = |gemm: Gemm<f64>| gemm.choose(&request, &Target::H200).unwrap().entry.name();
    assert_eq!(chosen(Gemm::new().compute(Compute::Fp32Bf16x6)), chosen(Gemm::new()));
    counted("sliced::only_where_it_is_asked_for", count + 2);
}

/// Slices that were prepared before give the same bits, for either operand and in either layout.
#[test]
fn prepared_matrices_give_the_same_bits() {
    once!(crate::SOURCES);
    const M: usize = 70;
    const N: usize = 90;
    const K: usize = 130;
    each_device("sliced::prepared_matrices_give_the_same_bits", |device, count| {
        let stream = device.stream().unwrap();
        let mut random = Random::new(7);
        let values = Kind::Normal.draw(M, K, false, &mut random);
        let a = Matrix::from_row_major(&device, M, K, &values).unwrap();
        let values = Kind::Wide.draw(N, K, false, &mut random);
        // B is column-major in the one, row-major in the other.
        let of_columns = Matrix::from_row_major(&device, N, K, &values).unwrap();
        let turned = (0..K * N).map(|i| values[i % N * K + i / N]).collect::<Vec<_>>();
        let of_rows = Matrix::from_row_major(&device, K, N, &turned).unwrap();
        for (b, name, compute) in [
            (of_rows.view(), "wgmma_bf16x6_256x128x64_c2_nn", Compute::Fp32Bf16x6),
            (of_columns.view().t(), "wgmma_bf16x6_64x128x64_nt", Compute::Fp32Bf16x6),
            (of_rows.view(), "wgmma_f16x3_256x128x64_c2_nn", Compute::Fp32F16x3),
            (of_columns.view().t(), "wgmma_f16x3_64x128x64_nt", Compute::Fp32F16x3),
        ] {
            let sliced = Gemm::new().compute(compute);
            let gemm = sliced.kernel(name).unwrap();
            let run = |gemm: Gemm<f32>| {
                let mut c = Matrix::<f32>::zeros(&device, M, N).unwrap();
                gemm.run(&stream, a.view(), b, c.view_mut()).unwrap();
                let c = c.to_row_major().unwrap();
                c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let of_a = PreparedMatrix::for_compute(&stream, a.view().t(), compute).unwrap();
            let of_b = PreparedMatrix::for_compute(&stream, b, compute).unwrap();
            // Slices of the other kind are not used.
            let of_other = match compute {
                Compute::Fp32F16x3 => PreparedMatrix::new(&stream, b),
                _ => PreparedMatrix::for_compute(&stream, b, Compute::Fp32F16x3),
            };
            let of_other = of_other.unwrap();
            let wanted = run(gemm);
            assert!(wanted.iter().any(|bits| *bits != 0));
            for gemm in [
                gemm.prepared(&of_a),
                gemm.prepared(&of_b),
                gemm.prepared(&of_a).prepared(&of_b),
                gemm.prepared(&of_other),
            ] {
                assert!(run(gemm) == wanted, "{device:?}, {name}");
                *count += 1;
            }
            // Other kernels use the matrix itself.
            let mut c = Matrix::<f32>::zeros(&device, M, N).unwrap();
            let plain = Gemm::new().prepared(&of_b).run(&stream, a.view(), b, c.view_mut());
            assert!(!plain.unwrap().entry.is_emulated());
            let mut c = Matrix::<f32>::zeros(&device, M, M).unwrap();
            let refused = sliced.prepared(&of_b).run(&stream, a.view(), a.view().t(), c.view_mut());
            let refused = refused.unwrap_err().to_string();
            assert_eq!(refused, format!("prepared = {K}x{N}: must be A or B, or its transpose"));
        }
        let elements = device.zeros::<f32>(50).unwrap();
        let every_second = MatrixView::new(elements.view(..).unwrap(), 5, 5, [10, 2]).unwrap();
        let refused = PreparedMatrix::new(&stream, every_second).unwrap_err().to_string();
        assert!(refused.starts_with("matrix = strides [10, 2]: must have"), "{refused}");
    });
}
