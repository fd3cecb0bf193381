//! Tests of checks.

use simt::Bf16;

use super::*;

fn shape(m: u64, n: u64, k: u64) -> Shape {
    Shape::new(m, n, k).unwrap()
}

#[test]
fn real_numbers_once_and_integers_in_each_order() {
    let [first, second] = [Order::Random(3), Order::Reverse];
    let (uniform, integers) = (Data::Uniform, Data::Integers);
    let expected = [(uniform, first), (integers, first), (integers, second)];
    assert_eq!(products(shape(1, 1, 5), None, &[first, second]), expected);
    // No sum of this many integers is sure to be exact.
    let expected = [(uniform, first), (uniform, second)];
    assert_eq!(products(shape(1, 1, 1 << 24), None, &[first, second]), expected);
    assert_eq!(products(shape(1, 1, 5), None, &[]), []);
    // Scales of two make it as large as four times as many.
    let scaled = products(shape(1, 1, 1 << 22), Some(ScaleKind::Blocks), &[first, second]);
    assert_eq!(scaled, expected);
}

#[test]
fn orders_are_counted_from_the_seed() {
    assert_eq!(orders(0, 1), []);
    assert_eq!(orders(1, 1), [Order::Forward]);
    let [last, first] = [Order::Random(u64::MAX), Order::Random(0)];
    assert_eq!(orders(4, u64::MAX), [Order::Forward, Order::Reverse, last, first]);
}

#[test]
fn a_tall_product_takes_several_launches() {
    let entry = gpu_gemm::product::find("basic").unwrap();
    let shape = shape(65535 * 16 + 5, 1, 1);
    let checked = product(entry, shape, Data::Integers, Order::Reverse, 1).unwrap();
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    assert_eq!((checked.comparison.passed(), checked.comparison.elements), (true, 1_048_565));
}

#[test]
fn what_rounds_f64_to_f32_on_the_way_is_wrong() {
    let shape = shape(13, 17, 40);
    let (n, k) = (shape.n(), shape.k());
    // Nothing, the factors, or the sums are rounded.
    let right = [
        |x: f64, _: bool| x,
        |x, is_sum| if is_sum { x } else { x as f32 as f64 },
        |x, is_sum| {
            if is_sum { x as f32 as f64 } else { x }
        },
    ];
    for (data, way) in [Data::Uniform, Data::Integers]
        .into_iter()
        .flat_map(|data| [0, 1, 2].map(|way| (data, way)))
    {
        let rounded = right[way];
        let multiply = |a: &Matrix<f64>, b: &Matrix<f64>, c: &mut Matrix<f64>| {
            let (a, b) = (a.to_row_major()?, b.to_row_major()?);
            let term = |at: usize, p: usize| {
                rounded(a[at / n * k + p], false) * rounded(b[p * n + at % n], false)
            };
            let sum = |at| (0..k).fold(0.0, |sum, p| rounded(sum + term(at, p), true));
            c.buffer_mut().write(0, &(0..shape.c_len()).map(sum).collect::<Vec<_>>())?;
            Ok(Watched::default())
        };
        let given = (shape, data, Order::Forward, 1);
        let found = product_of(given, None, |_| {}, [false; 2], multiply).unwrap().comparison;
        // Small integers and their sums may be numbers of f32: these have up to 20 bits.
        let is_right = way == 0 || way == 1 && data == Data::Integers;
        assert_eq!(found.passed(), is_right, "{data}, way {way}: {found:?}");
        assert!(is_right || found.wrong > 200, "{data}, way {way}: {found:?}");
    }
}

#[test]
fn c_of_bf16_is_compared_too() {
    let given = (shape(5, 4, 3), Data::Integers, Order::Forward, 1);
    let leave = |_: &Matrix<Bf16>, _: &Matrix<Bf16>, _: &mut Matrix<Bf16>| Ok(Watched::default());
    let left = product_of(given, None, |_| {}, [false; 2], leave).unwrap();
    assert_eq!(left.comparison.wrong, 20);
    let mut kernels = gpu::registry::KERNELS.iter();
    let entry = kernels.find(|entry| entry.name() == "wgmma_bf16_128x128x64_nn").unwrap();
    for data in [Data::Uniform, Data::Integers] {
        let checked = product(entry, shape(5, 4, 3), data, Order::Reverse, 1).unwrap();
        assert!(checked.findings.is_empty(), "{:?}", checked.findings);
        assert_eq!((checked.comparison.passed(), checked.comparison.elements), (true, 20));
    }
}

#[test]
fn what_does_not_fit_together_or_into_memory_is_refused() {
    let entry = gpu_gemm::product::find("basic").unwrap();
    let device = Device::cpu();
    let matrix = |rows, cols| Matrix::zeros(&device, rows, cols).unwrap();
    let (a, b, mut c) = (matrix(2, 3), matrix(4, 2), matrix(2, 2));
    let error = multiply(entry, &a, &b, &mut c, Order::Forward).unwrap_err().to_string();
    assert_eq!(error, "B.rows = 4: must be A.cols = 3");
    let huge = shape(1 << 29, 1 << 29, 1);
    let error = product(entry, huge, Data::Uniform, Order::Forward, 1).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    let long = shape(1, 1, 1 << 24);
    let error = product(entry, long, Data::Integers, Order::Forward, 1).unwrap_err();
    assert!(error.to_string().starts_with("k = 16777216: must be below 2^24"), "{error}");
}
