//! Products of bf16, f16, i8, e4m3 and e5m2 on tensor cores, as the kernels are launched: operands
//! in either layout, whole and partial tiles, several of them for each block.

mod operand;

use gpu::{
    collective::{real::Real, stored::Stored},
    params::{COL_BIAS, GemmParams, RELU, ScaleStrides},
    registry::{Access, Family, Scheme, Type},
};
use host::gemm::Output;
use simt::{
    Bf16, Bound, E4m3, E5m2, F16, LaunchConfig, Named,
    check::{self, Order},
};
use tests::{
    Turns,
    kernels::{Kernel, kernels, read, run, watch, write},
};

use self::operand::{Beside, pitch};
use super::operand::{INTEGERS, Operand, integer, number};

/// How the work of a product is divided.
#[derive(Clone, Copy)]
enum Work {
    /// This many persistent blocks, or clusters, compute all tiles.
    Walkers(u32),
    /// Each tile has a cluster, whose blocks, this many, split k.
    Parts(u32),
}
use Work::{Parts, Walkers};
use tests::once;

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/collective", "gpu/src/kernels/wgmma", "tests/check"];

/// The types of A and B, and of C.
trait Number: Stored<Real: Into<f64> + std::fmt::Debug> + Output {}

impl<T: Stored<Real: Into<f64> + std::fmt::Debug> + Output> Number for T {}

/// The kernels for A and B of the first type, with C of the second one, in an order that is the
/// same for all types.
fn kernels_of(of: [Type; 2]) -> Vec<Kernel> {
    kernels(|product| {
        let variant = product.variant;
        // The `ldg` kernels are tested in `gathered`.
        let is_text = variant.family == Family::Wgmma && variant.access != Access::Ldg;
        is_text && variant.scheme == Scheme::Native && [variant.operands, variant.c] == of
    })
}

/// How many texts there are: kernels that differ in more than the types.
fn texts() -> usize {
    kernels_of([Type::BF16, Type::F32]).len()
}

/// The kernels for A and B of `T`, with C of `O`: one of each text.
fn cases<T: Number, O: Number>() -> Vec<Kernel> {
    let cases = kernels_of([T::TYPE, O::TYPE]);
    let texts = if T::TYPE.bytes() == 1 { cases.len() } else { texts() };
    assert_eq!(cases.len(), texts, "each text has a kernel for each pair of types");
    assert!(!cases.is_empty());
    cases
}

fn name((entry, _): Kernel) -> &'static str {
    entry.name()
}

/// C, and its operands in f64.
struct Given<T, O> {
    problem: GemmParams,
    a: Operand<T>,
    b: Operand<T>,
    c: Vec<O>,
    bias: Vec<O>,
    /// The result before it is rounded to the type of C.
    expected: Vec<f64>,
    /// The sum of the absolute values of the terms.
    magnitudes: Vec<f64>,
}

impl<T: Number, O: Number> Given<T, O> {
    /// A product of elements that `value` gives by row, column, and 1 for A, 2 for B, 3 for C. Rows
    /// of A repeat after `period` rows, and columns of B after `period` columns.
    fn new(
        case: Kernel,
        [m, n, k]: [usize; 3],
        (alpha, beta): (f64, f64),
        full: bool,
        (value, period): (impl Fn(usize, usize, usize) -> f32, usize),
    ) -> Self {
        let full = full && !O::Real::IS_SCALED_SUM;
        let value = |row, col, salt| number::<T>(value(row, col, salt));
        let mut problem =
            GemmParams { alpha, beta, ..GemmParams::dense(m as u32, n as u32, k as u32) };
        if full {
            (problem.bias, problem.activation) = (COL_BIAS, RELU);
        }
        let (_, product) = case;
        let ([a_k_major, b_k_major], [a_boxes, b_boxes]) =
            (product.variant.k_major(), product.boxes);
        let of_classes = product.variant.access.classes() > 1;
        let a = Operand::new([1, m, k], a_k_major, pitch::<T>(of_classes), a_boxes, |_, row, p| {
            value(row, p, 1)
        });
        let b = Operand::new([1, n, k], b_k_major, pitch::<T>(false), b_boxes, |_, col, p| {
            value(p, col, 2)
        });
        problem.a[0] = a.pitch as u64;
        // With beta = 0 it is not read.
        let c_at = |row, col| match beta == 0.0 {
            true => O::Real::from_f64(f64::NAN),
            false => O::Real::from_f64(value(row, col, 3).widened().into()),
        };
        let c = (0..m * n).map(|i| O::nearest(c_at(i / n, i % n))).collect::<Vec<_>>();
        // Without a bias it has no elements, because unread elements would be a finding.
        let cols = if full { 0..n } else { 0..0 };
        let bias = cols.map(|col| number::<O>(col as f32 - 7.0)).collect::<Vec<_>>();
        // Rounded before, not in the innermost loop: without optimisation that would take longer
        // than the launch.
        let wide = |row, col, salt| -> f64 { value(row, col, salt).widened().into() };
        let (rows, cols) = (m.min(period), n.min(period));
        let a_rows = (0..rows * k).map(|i| wide(i / k, i % k, 1)).collect::<Vec<_>>();
        let b_cols = (0..cols * k).map(|i| wide(i % k, i / k, 2)).collect::<Vec<_>>();
        let sums = (0..rows * cols).map(|i| {
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for (x, y) in a_rows[i / cols * k..][..k].iter().zip(&b_cols[i % cols * k..][..k]) {
                sum += x * y;
                magnitude += (x * y).abs();
            }
            (sum, magnitude)
        });
        let sums = sums.collect::<Vec<_>>();
        let (mut expected, mut magnitudes) = (Vec::new(), Vec::new());
        for (i, c) in c.iter().enumerate() {
            let (row, col) = (i / n, i % n);
            let (sum, magnitude) = sums[row % period * cols + col % period];
            let before = if beta == 0.0 { 0.0 } else { beta * c.widened().into() };
            let sum =
                alpha * sum + before + bias.get(col).map_or(0.0, |bias| bias.widened().into());
            expected.push(if full { sum.max(0.0) } else { sum });
            magnitudes.push(alpha.abs() * magnitude);
        }
        Given { problem, a, b, c, bias, expected, magnitudes }
    }

    /// Persistent blocks (or clusters), or a cluster for each tile, whose blocks split k.
    fn config(&self, case: Kernel, work: Work) -> LaunchConfig {
        let (entry, product) = case;
        let dynamic_shared = entry.declaration().dynamic_shared.unwrap();
        let (grid, cluster) = match work {
            Walkers(blocks) => ([blocks * product.sharing().unwrap(), 1, 1], [1; 3]),
            Parts(parts) => {
                let GemmParams { m, n, .. } = self.problem;
                let [rows, cols] = product.tile();
                ([m.div_ceil(rows) * n.div_ceil(cols), 1, parts], [1, 1, parts])
            }
        };
        LaunchConfig { dynamic_shared, cluster, ..LaunchConfig::new(grid, product.block) }
    }

    /// Launches, fast or checked. If the kernel packs in the background, the tail of B is packed by
    /// it.
    fn launch<R>(
        &self,
        (entry, product): Kernel,
        c: &mut [O],
        launch: impl FnOnce(Vec<Named>) -> R,
    ) -> R {
        // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
        let (c, bias) = unsafe { (write(c), read(&self.bias)) };
        let a = self.a.maps(product.variant.access.classes());
        let mut arguments = vec![("a", a), ("c", c), ("bias", bias)];
        let strides = ScaleStrides::default();
        if entry.has_scales() {
            // SAFETY: there are no elements.
            let no_scales = || unsafe { read::<f32>(&[]) };
            arguments.extend([("scales_a", no_scales()), ("scales_b", no_scales())]);
            arguments.push(("strides", Bound::Value(&strides)));
        }
        if !product.packs_tail {
            let problem = Bound::Value(&self.problem);
            arguments.extend([("problem", problem), ("b", self.b.maps(1))]);
            return launch(arguments);
        }
        let mut beside = Beside::new(&self.b, product.tile()[1]);
        let (last, from, to, b) =
            (beside.matrix(), beside.memory(), beside.place(), beside.b.maps(1));
        let problem = GemmParams { b: [beside.b.pitch as u64, 1], ..self.problem };
        // SAFETY: as above.
        let words = unsafe { write(&mut beside.words) };
        arguments.extend([("problem", Bound::Value(&problem)), ("last", Bound::Value(&last))]);
        arguments.extend([("b", b), ("from", from), ("to", to), ("words", words)]);
        let launched = launch(arguments);
        beside.is_copied(&self.b, entry.name());
        launched
    }

    fn run(&self, case: Kernel, work: Work) -> Vec<O> {
        let mut c = self.c.clone();
        let config = self.config(case, work);
        // SAFETY: as `launch` says.
        self.launch(case, &mut c, |arguments| unsafe { run(case.0, &config, arguments) });
        c
    }

    fn run_watched(&self, case: Kernel, work: Work, order: Order) -> Vec<O> {
        let mut c = self.c.clone();
        let mut options = check::Options::default();
        options.order = order;
        // Padding between unaligned rows of an operand is not read.
        let of_classes = case.1.variant.access.classes() > 1;
        options.complete = self.problem.n.is_multiple_of(8) && !of_classes;
        let config = self.config(case, work);
        let report = self.launch(case, &mut c, |arguments| {
            // SAFETY: as `launch` says.
            unsafe { watch(case.0, &config, arguments, &options) }
        });
        assert!(report.is_clean(), "{}, {order}: {report}", name(case));
        c
    }

    /// Checks exact results of integers. 16-bit elements of C are rounded once.
    fn is_exact(&self, case: Kernel, c: &[O]) {
        let n = self.problem.n as usize;
        for (i, (&got, &want)) in c.iter().zip(&self.expected).enumerate() {
            let [got, want] = [got, number(want as f32)].map(|of: O| of.widened().into());
            assert_eq!(got, want, "{}: element ({}, {})", name(case), i / n, i % n);
        }
    }
}

fn integers_are_exact<T: Number>(turns: &mut Turns) {
    for case in cases::<T, f32>() {
        let shapes = [
            ([200, 300, 130], 1, (1.0, 0.0), false),
            ([200, 304, 64], 3, (2.0, -1.0), false),
            ([128, 256, 192], 1, (1.0, 0.0), false),
            // Unaligned rows of C, in whole and partial tiles.
            ([200, 301, 64], 2, (2.0, 0.0), false),
            ([37, 9, 8], 2, (1.0, 1.0), true),
        ];
        for (shape, blocks, scales, full) in
            turns.next_case().into_iter().map(|shape| shapes[shape])
        {
            let given = Given::<T, f32>::new(case, shape, scales, full, (integer, INTEGERS));
            given.is_exact(case, &given.run(case, Walkers(blocks)));
            if case.1.most_splits > 1 {
                // By as many blocks as there are stages, and by more.
                given.is_exact(case, &given.run(case, Parts(3)));
            }
        }
    }
}

#[test]
fn integers_are_exact_whatever_way_operands_lie() {
    once!(SOURCES);
    // Each kernel has another shape with the other type.
    let mut turns = Turns::of(5);
    integers_are_exact::<Bf16>(&mut turns);
    integers_are_exact::<F16>(&mut turns);
}

fn is_clean<T: Number, O: Number>(text: usize, order: Order, shape: [usize; 3], work: Work) {
    let case = cases::<T, O>()[text];
    // Unaligned rows have a store of their own if C is only the product.
    let full = shape[1].is_multiple_of(2);
    let scales = if full { (2.0, 1.0) } else { (2.0, 0.0) };
    let given = Given::<T, O>::new(case, shape, scales, full, (integer, INTEGERS));
    given.is_exact(case, &given.run_watched(case, work, order));
}

/// A product of ragged sizes: several tiles of the one block (or cluster), and more stages than the
/// ring has. If the kernel can split k, also two tiles, one of which is whole along m or n. By
/// default such a kernel runs one of the two in turn.
fn both_are_clean<T: Number, O: Number>(text: usize, order: Order, turns: &mut Turns) {
    let case = cases::<T, O>()[text];
    let [rows, cols] = case.1.tile().map(|size| size as usize);
    let launches = if case.1.most_splits > 1 { &[0, 1][..] } else { &[0] };
    // A stage has 128 bytes.
    let longer = 2 / size_of::<T>();
    for launch in turns.among(launches) {
        match launch {
            0 => is_clean::<T, O>(text, order, [rows + 72, cols + 48, 136 * longer], Walkers(1)),
            _ => {
                let parts = Parts(2 + text as u32 % 3);
                is_clean::<T, O>(text, order, [rows - 24, cols + 24, 200 * longer], parts);
            }
        }
    }
}

fn is_clean_in_every_order<T: Number>() {
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let (mut with_f32, mut with_own, mut both) = (Turns::of(2), Turns::of(2), Turns::of(2));
    for (text, order) in (0..texts()).zip(orders.into_iter().cycle()) {
        // With either type of C.
        for which in with_f32.next_case() {
            match which {
                0 => both_are_clean::<T, f32>(text, order, &mut both),
                _ => is_clean::<T, f32>(text, order, [130, 265, 64], Walkers(1)),
            }
        }
        // The first one has a tile below the last row.
        for shape in
            with_own.next_case().into_iter().map(|shape| [[264, 256, 64], [130, 323, 64]][shape])
        {
            is_clean::<T, T>(text, order, shape, Walkers(1));
        }
    }
}

#[test]
fn checked_launches_are_clean_in_every_order() {
    once!(SOURCES);
    is_clean_in_every_order::<Bf16>();
    is_clean_in_every_order::<F16>();
}

#[test]
fn checked_launches_of_integers_are_clean_and_exact() {
    once!(SOURCES);
    let orders = host::check::orders(4, 1);
    let mut both = Turns::of(2);
    let cases = cases::<i8, i32>();
    for ((text, case), order) in cases.iter().enumerate().zip(orders.into_iter().cycle()) {
        both_are_clean::<i8, i32>(text, order, &mut both);
        // Unaligned rows of C, without alpha and beta.
        is_clean::<i8, i32>(text, order, [70, 75, 300], Walkers(1));
        let given =
            Given::<i8, i32>::new(*case, [200, 301, 416], (-3.0, 2.0), false, (integer, INTEGERS));
        given.is_exact(*case, &given.run(*case, Walkers(1)));
    }
}

/// Each kernel of 8-bit floating-point numbers, in orders that continue those of the last type.
fn of_8_bits_are_clean<T: Number, O: Number>(
    both: &mut Turns,
    orders: &mut impl Iterator<Item = Order>,
) {
    for (text, case) in cases::<T, O>().into_iter().enumerate() {
        both_are_clean::<T, O>(text, orders.next().unwrap(), both);
        // Unaligned rows of C.
        let shape = ([70, 75, 300], (2.0, 0.0));
        let given = Given::<T, O>::new(case, shape.0, shape.1, false, (integer, INTEGERS));
        given.is_exact(case, &given.run_watched(case, Walkers(1), orders.next().unwrap()));
    }
}

#[test]
fn checked_launches_of_8_bit_floats_are_clean_and_exact() {
    once!(SOURCES);
    let mut orders = host::check::orders(4, 1).into_iter().cycle();
    let mut both = Turns::of(2);
    of_8_bits_are_clean::<E4m3, f32>(&mut both, &mut orders);
    of_8_bits_are_clean::<E5m2, Bf16>(&mut both, &mut orders);
    of_8_bits_are_clean::<E4m3, F16>(&mut both, &mut orders);
}

/// Each kernel in one of ten orders, or all: five with C of f32, and five with C of the operands'
/// type.
fn is_clean_in_ten_random_orders<T: Number>(texts: impl Iterator<Item = usize>) {
    let (mut turns, mut both) = (Turns::of(10), Turns::of(2));
    for text in texts {
        for seed in turns.next_case().into_iter().map(|order| order + 1) {
            let order = Order::Random(seed as u64);
            match (seed + text) % 2 {
                0 => both_are_clean::<T, f32>(text, order, &mut both),
                _ => both_are_clean::<T, T>(text, order, &mut both),
            }
        }
    }
    turns.each_had_one();
}

#[test]
fn checked_launches_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    is_clean_in_ten_random_orders::<Bf16>(0..texts());
}

#[test]
fn checked_launches_of_f16_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    // From the last to the first, so that a kernel has other orders than with bf16.
    is_clean_in_ten_random_orders::<F16>((0..texts()).rev());
}

/// The sum is truncated at each of `k / 16` steps, and each of 16 products once more: at most 2^-23
/// of the largest sum each.
fn real_numbers_are_within_the_bound<T: Number>() {
    let case = cases::<T, f32>()[0];
    let [m, n, k] = [70, 40, 1000];
    let real = |row: usize, col: usize, salt: usize| {
        let bits = (row * 2_654_435_761 + col * 40_503 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let given = Given::<T, f32>::new(case, [m, n, k], (1.0, 0.0), false, (real, usize::MAX));
    let c = given.run(case, Walkers(1));
    let steps = k.div_ceil(16) as f64;
    for (i, &c) in c.iter().enumerate() {
        let bound = (steps + 17.0) * 2f64.powi(-23) * given.magnitudes[i];
        let error = (f64::from(c) - given.expected[i]).abs();
        assert!(error <= bound, "element {i}: {c} is {error:e} off, over {bound:e}");
    }
}

#[test]
fn real_numbers_are_within_the_bound_of_truncated_sums() {
    once!(SOURCES);
    real_numbers_are_within_the_bound::<Bf16>();
    real_numbers_are_within_the_bound::<F16>();
}

/// A product of f16 may have bits down to 2^-48, and subnormal numbers are kept. C of f16 is
/// infinite if the nearest number would be 2^16.
#[test]
fn f16_is_subnormal_and_overflows_as_ieee_has_it() {
    once!(SOURCES);
    let case = cases::<F16, f32>()[0];
    let tiny = 2f32.powi(-24);
    let given = Given::<F16, f32>::new(
        case,
        [40, 24, 33],
        (1.0, 0.0),
        false,
        (
            |row: usize, col: usize, salt: usize| match salt {
                // Multiples of the smallest number, all of them subnormal.
                1 => tiny * (1 + row * 3 + col) as f32,
                _ => (row % 2 + col + 1) as f32,
            },
            usize::MAX,
        ),
    );
    given.is_exact(case, &given.run(case, Walkers(1)));
    let case = cases::<F16, F16>()[0];
    // 32 sums of 65504 + 8 i: from i = 2 on, 65520, they are nearer to 2^16 or as near.
    let given = Given::<F16, F16>::new(
        case,
        [32, 8, 2],
        (1.0, 0.0),
        false,
        (
            |row: usize, col: usize, salt: usize| match (salt, col) {
                (1, 0) => 65504.0,
                (1, _) => 8.0 * row as f32,
                _ => 1.0,
            },
            usize::MAX,
        ),
    );
    let c = given.run(case, Walkers(1));
    given.is_exact(case, &c);
    assert_eq!((c[8].to_f32(), c[16].to_f32()), (65504.0, f32::INFINITY));
}
