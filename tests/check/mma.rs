//! Products of 16-bit numbers, of f32 as tf32, and of f64, on every GPU's tensor cores: right and
//! clean in every order, for K-major and MN-major unaligned operands. Nothing outside of them is
//! read.

use std::{collections::HashSet, num::NonZeroU32};

use gpu::{
    collective::stored::Stored,
    params::{COL_BIAS, GemmParams, RELU},
    registry::{Access, Family, Product, Type},
};
use host::{Shape, check::Data, scaling::ScaleKind};
use simt::{
    Bf16, Bound, Element, Elements, F16, LaunchConfig, Named, Tf32,
    check::{self, Operation, Order, Profile},
};
use tests::{
    Turns,
    kernels::{Kernel, kernels, read, run, watch, write},
    once,
};

use super::operand::{Unaligned, Way, number, real};

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/kernels/mma", "tests/check"];

/// m, n, k, products, A, B.
type Case = (usize, usize, usize, usize, Way, Way);

const CASES: [Case; 13] = [
    // Whole tiles, sixteen bytes at a time, in either layout.
    (128, 192, 128, 1, Way(true, 0, 0), Way(false, 0, 0)),
    (128, 192, 64, 1, Way(false, 8, 8), Way(true, 0, 16)),
    // Eight and four bytes at a time.
    (70, 100, 100, 1, Way(true, 4, 4), Way(true, 0, 2)),
    (66, 68, 132, 2, Way(false, 2, 0), Way(false, 6, 0)),
    // Rows that end within sixteen and within eight bytes.
    (66, 100, 100, 1, Way(true, 0, 4), Way(false, 8, 4)),
    (98, 35, 70, 1, Way(false, 0, 2), Way(false, 4, 2)),
    // Every other row, or the first one, is misaligned; in either layout.
    (65, 97, 129, 1, Way(true, 0, 0), Way(false, 0, 0)),
    (67, 99, 131, 1, Way(true, 3, 0), Way(false, 1, 0)),
    (67, 99, 131, 2, Way(false, 1, 0), Way(true, 0, 0)),
    (65, 33, 35, 1, Way(true, 0, 0), Way(true, 1, 0)),
    // All rows are misaligned, or none.
    (64, 96, 64, 1, Way(true, 1, 0), Way(false, 3, 0)),
    // One of everything; fewer steps than a stage has.
    (1, 1, 1, 2, Way(true, 1, 0), Way(false, 0, 0)),
    (3, 130, 17, 1, Way(false, 5, 2), Way(true, 7, 3)),
];

/// The kernels for these operands, and this C.
fn kernels_of(operands: Type, c: Type) -> Vec<Kernel> {
    let kernels = kernels(|product| {
        let of = product.variant;
        // Those by TMA take aligned operands: `registry` has them. So do those of i8.
        let is_general = !product.requires_layouts();
        of.family == Family::Mma && is_general && (of.operands, of.c) == (operands, c)
    });
    assert!(!kernels.is_empty(), "{operands} with C of {c}");
    kernels
}

/// The arguments of a kernel.
///
/// # Safety
/// All of it outlives the launch.
unsafe fn arguments<'a, T: Stored, C: Element>(
    problem: &'a GemmParams,
    [a, b]: [&Unaligned<T>; 2],
    c: Bound<'a>,
    bias: &[C],
) -> [Named<'a>; 5] {
    // SAFETY: the caller's.
    unsafe {
        let (problem, a, b) = (Bound::Value(problem), a.elements(), b.elements());
        [("problem", problem), ("a", a), ("b", b), ("c", c), ("bias", read(bias))]
    }
}

/// Small integers, whose sums are exact.
fn integer(product: usize, row: usize, col: usize, salt: usize) -> f32 {
    ((product * 5 + row * 7 + col * 3 + salt) % 11) as f32 - 5.0
}

/// In every order, with the copies that a plan makes of operands whose rows are not aligned.
#[test]
fn kernels_of_i8_are_right_and_clean() {
    once!(SOURCES);
    let of = |product: &Product| product.variant.access == Access::Pieces;
    let (orders, mut count) = (host::check::orders(6, 1), 0);
    for (entry, product) in kernels(|product| of(product)) {
        let sizes =
            [[1, 1, 1], [130, 70, 81], [64, 129, 64], [1, 65, 100], [67, 1, 15], [3, 5, 16]];
        for ([m, n, k], &order) in sizes.into_iter().zip(&orders) {
            let shape = Shape::new(m, n, k).unwrap();
            let has_scales = entry.has_scales() && product.variant.tile[0] == 64;
            let scales = has_scales.then_some(ScaleKind::RowsCols);
            let data = Data::Integers;
            let checked = host::check::scaled(entry, shape, scales, data, order, m).unwrap();
            let name = format!("{}, {shape}, order {order}", entry.name());
            assert!(checked.findings.is_empty(), "{name}: {:#?}", checked.findings);
            assert!(checked.comparison.passed(), "{name}: {:?}", checked.comparison);
            count += 1;
        }
    }
    assert!(count >= 5 * 6, "{count}");
}

fn every_case_is_right_and_clean<T: Stored, C: Stored<Real: Into<f64>>>(
    kernels: Vec<Kernel>,
    orders: &[Order],
) {
    let mut turns = Turns::of(orders.len());
    for (entry, product) in kernels {
        let name = entry.name();
        let mut checked = HashSet::new();
        for case @ (m, n, k, count, way_a, way_b) in CASES {
            let a = Unaligned::<T>::new([count, m, k], way_a, |i, row, p| integer(i, row, p, 1));
            let b = Unaligned::<T>::new([count, n, k], way_b, |i, col, p| integer(i, col, p, 2));
            // Every other case has the whole epilogue.
            let full = m % 2 == 1;
            let pitch = if full { n + 1 } else { n };
            let before = |i: usize, row: usize, col: usize| integer(i, row, col, 3);
            let bias = (0..if full { n } else { 0 })
                .map(|col| number::<C>(integer(0, 0, col, 4)))
                .collect::<Vec<_>>();
            let c_step = m * pitch;
            let mut expected = vec![number::<C>(77.0); count * c_step];
            let start = expected.clone().into_iter().enumerate().map(|(at, gap)| {
                let (i, row, col) = (at / c_step, at % c_step / pitch, at % pitch);
                if col < n { number(before(i, row, col)) } else { gap }
            });
            let start = start.collect::<Vec<_>>();
            // Every eleventh row of A is the same, and every eleventh column of B.
            let sum = |i, row, col| -> f32 {
                (0..k).map(|p| integer(i, row, p, 1) * integer(i, col, p, 2)).sum()
            };
            let sums = (0..count * 121).map(|at| sum(at / 121, at / 11 % 11, at % 11));
            let sums = sums.collect::<Vec<_>>();
            for (at, expected) in expected.iter_mut().enumerate() {
                let (i, row, col) = (at / c_step, at % c_step / pitch, at % pitch);
                if col < n {
                    let sum = sums[i * 121 + row % 11 * 11 + col % 11];
                    let value = match full {
                        true => (2.0 * sum - before(i, row, col) + integer(0, 0, col, 4)).max(0.0),
                        false => sum,
                    };
                    *expected = number(value);
                }
            }
            let problem = GemmParams {
                a: a.strides,
                b: [b.strides[1], b.strides[0]],
                c: [pitch as u64, 1],
                batch: [a.step, b.step, c_step as u64],
                ..GemmParams::dense(m as u32, n as u32, k as u32)
            };
            let problem = match full {
                true => GemmParams {
                    alpha: 2.0,
                    beta: -1.0,
                    bias: COL_BIAS,
                    activation: RELU,
                    ..problem
                },
                false => problem,
            };
            let [rows, cols] = product.tile();
            let grid = [(n as u32).div_ceil(cols), (m as u32).div_ceil(rows), count as u32];
            let dynamic_shared = entry.declaration().dynamic_shared.unwrap();
            let constants = entry.constants_of(&problem);
            let config = LaunchConfig::new(grid, product.block);
            let config = LaunchConfig { dynamic_shared, constants, ..config };
            let is_right = |c: &[C], by: &str| {
                let value = |of: &[C], at: usize| -> f64 { of[at].widened().into() };
                let differs = |at: &usize| value(c, *at) != value(&expected, *at);
                if let Some(at) = (0..c.len()).find(differs) {
                    let (found, expected) = (value(c, at), value(&expected, at));
                    panic!("{name}, {case:?}, {by}: {found}, not {expected}, at element {at}");
                }
            };
            // With all constants: they choose instructions, not results.
            for constants in entry.specialisations() {
                let mut c = start.clone();
                let config = LaunchConfig { constants, ..config };
                // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
                unsafe { run(entry, &config, arguments(&problem, [&a, &b], write(&mut c), &bias)) };
                is_right(&c, &format!("fast, {constants:?}"));
            }
            checked.insert(constants);
            for order in turns.next_case().into_iter().map(|order| orders[order]) {
                let mut c = start.clone();
                let mut options = check::Options::default();
                options.order = order;
                // If there is no padding, and no bias that is not used.
                options.complete = !full && way_a.2 == 0 && way_b.2 == 0;
                // SAFETY: as above.
                let report = unsafe {
                    let arguments = arguments(&problem, [&a, &b], write(&mut c), &bias);
                    watch(entry, &config, arguments, &options)
                };
                assert!(report.is_clean(), "{name}, {case:?}, {order}: {report}");
                is_right(&c, &order.to_string());
            }
        }
        let all = HashSet::from_iter(entry.specialisations());
        assert_eq!(checked, all, "{name}: a specialisation is never checked");
    }
}

#[test]
fn operands_of_tensor_cores_may_begin_anywhere() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(1)];
    every_case_is_right_and_clean::<Bf16, Bf16>(kernels_of(Type::BF16, Type::BF16), &orders);
    every_case_is_right_and_clean::<F16, F16>(
        kernels_of(Type::F16, Type::F16),
        &[Order::Random(2)],
    );
}

#[test]
fn and_so_they_may_with_c_of_f32() {
    once!(SOURCES);
    every_case_is_right_and_clean::<Bf16, f32>(
        kernels_of(Type::BF16, Type::F32),
        &[Order::Random(3)],
    );
    every_case_is_right_and_clean::<F16, f32>(
        kernels_of(Type::F16, Type::F32),
        &[Order::Random(4)],
    );
}

/// The kernels for f32 that is rounded to tf32.
fn of_tf32() -> Vec<Kernel> {
    kernels_of(Type::F32, Type::F32)
}

#[test]
fn and_so_they_may_of_tf32() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(5), Order::Random(6)];
    every_case_is_right_and_clean::<f32, f32>(of_tf32(), &orders);
}

#[test]
fn and_so_they_may_of_f64() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(7), Order::Random(8)];
    every_case_is_right_and_clean::<f64, f64>(kernels_of(Type::F64, Type::F64), &orders);
}

/// Factors are rounded to the nearest, ties away from zero. The sum is truncated at each of `k / 8`
/// steps, and each of 8 products once more: at most 2^-23 of the largest sum each. The error of C
/// is that of rounded factors, half of that of truncated factors. K-major operands are read by
/// `ldmatrix`, MN-major ones word by word.
#[test]
fn factors_of_tf32_are_rounded_to_the_nearest_and_sums_cut_off() {
    once!(SOURCES);
    let [m, n, k] = [70, 40, 1000];
    let factor = |value: f32| f64::from(Tf32::from_f32(value).to_f32());
    let cut_off = |value: f32| f64::from(Tf32::from_bits(value.to_bits()).to_f32());
    for kernel in of_tf32() {
        for along_k in [true, false] {
            let way = Way(along_k, 0, 0);
            let a = Unaligned::<f32>::new([1, m, k], way, |_, row, p| real(row, p, 1));
            let b = Unaligned::<f32>::new([1, n, k], way, |_, col, p| real(col, p, 2));
            let c = run_tf32(kernel, [m, n, k], &a, &b);
            let (mut error, mut of_cut_off, mut size) = (0.0, 0.0, 0.0);
            for (i, &c) in c.iter().enumerate() {
                let sum = |of: &dyn Fn(f32) -> f64| {
                    let products = (0..k).map(|p| of(real(i / n, p, 1)) * of(real(i % n, p, 2)));
                    products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
                };
                let (want, magnitude) = sum(&factor);
                let bound = (k.div_ceil(8) as f64 + 9.0) * 2f64.powi(-23) * magnitude;
                let off = (f64::from(c) - want).abs();
                assert!(off <= bound, "element {i}: {c} is {off:e} off, over {bound:e}");
                let (exact, _) = sum(&|value| value.into());
                error += (f64::from(c) - exact).powi(2);
                of_cut_off += (sum(&cut_off).0 - exact).powi(2);
                size += exact.powi(2);
            }
            let [error, of_cut_off] = [error, of_cut_off].map(|sum: f64| (sum / size).sqrt());
            let nearest = (1e-4..4e-4).contains(&error) && error < 0.6 * of_cut_off;
            assert!(nearest, "along k {along_k}: {error:e} {of_cut_off:e}");
        }
    }
}

/// A launch of `C = A B` whose C is dense.
fn dense_launch<T>(
    (entry, product): Kernel,
    [m, n, k]: [usize; 3],
    a: &Unaligned<T>,
    b: &Unaligned<T>,
) -> (GemmParams, LaunchConfig) {
    let problem = GemmParams {
        a: a.strides,
        b: [b.strides[1], b.strides[0]],
        ..GemmParams::dense(m as u32, n as u32, k as u32)
    };
    let [rows, cols] = product.tile();
    let grid = [(n as u32).div_ceil(cols), (m as u32).div_ceil(rows), 1];
    let dynamic_shared = entry.declaration().dynamic_shared.unwrap();
    let constants = entry.constants_of(&problem);
    let config = LaunchConfig::new(grid, product.block);
    (problem, LaunchConfig { dynamic_shared, constants, ..config })
}

fn run_tf32(kernel: Kernel, sizes: [usize; 3], a: &Unaligned<f32>, b: &Unaligned<f32>) -> Vec<f32> {
    let (problem, config) = dense_launch(kernel, sizes, a, b);
    let mut c = vec![f32::NAN; sizes[0] * sizes[1]];
    // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
    unsafe { run(kernel.0, &config, arguments(&problem, [a, b], write(&mut c), &[0f32; 0])) };
    c
}

fn profile<T: Stored>(
    kernel: Kernel,
    sizes: [usize; 3],
    a: &Unaligned<T>,
    b: &Unaligned<T>,
) -> Profile {
    let (problem, config) = dense_launch(kernel, sizes, a, b);
    let mut c = vec![number::<T>(f32::NAN); sizes[0] * sizes[1]];
    let mut options = check::Options::default();
    options.profile = NonZeroU32::new(1);
    // SAFETY: as in `run_tf32`.
    let report = unsafe {
        let c = Bound::Elements(Elements::write(c.as_mut_ptr(), c.len()).uninit());
        watch(kernel.0, &config, arguments::<T, T>(&problem, [a, b], c, &[]), &options)
    };
    assert!(report.is_clean(), "{report}");
    report.profile.expect("it was asked for")
}

/// In every layout, and however it is copied, no accesses of a warp to shared memory are in the
/// same bank.
fn no_bank_conflicts<T: Stored>(kernels: Vec<Kernel>) {
    let sizes @ [m, n, k] = [128, 128, 64];
    for kernel @ (entry, product) in kernels {
        let name = entry.name();
        // The tiles with 64 columns take unaligned rows.
        let copies = if product.tile()[1] == 64 { &[0, 2, 1][..] } else { &[0] };
        for &between in copies {
            for along in [[true, true], [true, false], [false, true], [false, false]] {
                let [a, b] = along.map(|along_k| Way(along_k, 0, between));
                let a = Unaligned::<T>::new([1, m, k], a, |_, row, p| real(row, p, 1));
                let b = Unaligned::<T>::new([1, n, k], b, |_, col, p| real(col, p, 2));
                let profile = profile(kernel, sizes, &a, &b);
                let mut loads = 0;
                for line in &profile.lines {
                    let is_load = line.operation == Operation::SharedLoad;
                    if line.operation.is_shared() {
                        // At most as many wavefronts as 32 lanes' bytes have lines of 128 bytes.
                        let most = line.requests * u64::from(line.width / 4);
                        assert!(line.units <= most, "{name}, {along:?}, {between}: {line:?}");
                    }
                    loads += if is_load { line.requests } else { 0 };
                }
                assert!(loads > 0, "{name}: fragments are loaded");
            }
        }
    }
}

#[test]
fn of_tf32_no_bank_conflicts() {
    once!(SOURCES);
    no_bank_conflicts::<f32>(of_tf32());
}

#[test]
fn of_f64_no_bank_conflicts() {
    once!(SOURCES);
    no_bank_conflicts::<f64>(kernels_of(Type::F64, Type::F64));
}
