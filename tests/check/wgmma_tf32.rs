//! Products of f32 as tf32 on tensor cores, as the kernels are launched: whole and partial tiles,
//! several of them for each block. Factors are rounded to the nearest as they are copied.

use std::num::NonZeroU32;

use gpu::{
    params::{COL_BIAS, GemmParams, RELU},
    registry::{Family, Scheme},
};
use simt::{
    Bound, LaunchConfig, Named, Tf32,
    check::{self, Operation, Order, Profile, Report},
};
use tests::{
    Turns,
    kernels::{Kernel, kernels, read, run, watch, write},
    once,
};

use super::operand::{Operand, integer, real};

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/collective", "gpu/src/kernels/wgmma_tf32", "tests/check"];

fn cases() -> Vec<Kernel> {
    let cases = kernels(|product| {
        let of = product.variant;
        of.family == Family::Wgmma && of.scheme == Scheme::Tf32
    });
    assert!(!cases.is_empty());
    cases
}

fn name((entry, _): Kernel) -> &'static str {
    entry.name()
}

fn is_of_classes((_, product): &Kernel) -> bool {
    product.variant.access.classes() > 1
}

/// The distance between rows: 16-byte aligned with padding, or contiguous.
fn pitch(anywhere: bool) -> impl Fn(usize) -> usize {
    move |cols| if anywhere { cols } else { cols.next_multiple_of(4) }
}

/// How a launch is divided: persistent blocks, or this many blocks for each tile that split k.
#[derive(Clone, Copy)]
enum Split {
    Blocks(u32),
    Parts(u32),
}

/// C and its operands.
struct Given {
    problem: GemmParams,
    a: Operand<f32>,
    b: Operand<f32>,
    c: Vec<f32>,
    bias: Vec<f32>,
}

impl Given {
    fn new(
        case: Kernel,
        [m, n, k]: [usize; 3],
        (alpha, beta): (f64, f64),
        full: bool,
        value: fn(usize, usize, usize) -> f32,
    ) -> Self {
        let mut problem =
            GemmParams { alpha, beta, ..GemmParams::dense(m as u32, n as u32, k as u32) };
        if full {
            (problem.bias, problem.activation) = (COL_BIAS, RELU);
        }
        let [shape_a, shape_b] = case.1.boxes;
        let pitch_a = pitch(is_of_classes(&case));
        let a = Operand::new([1, m, k], true, pitch_a, shape_a, |_, row, p| value(row, p, 1));
        let b = Operand::new([1, n, k], false, pitch(false), shape_b, |_, col, p| value(p, col, 2));
        problem.a[0] = a.pitch as u64;
        // With beta = 0 it is not read.
        let c_at = |i: usize| if beta == 0.0 { f32::NAN } else { value(i / n, i % n, 3) };
        let c = (0..m * n).map(c_at).collect();
        let bias = (0..n).map(|col| if full { col as f32 - 7.0 } else { 0.0 }).collect();
        Given { problem, a, b, c, bias }
    }

    fn config(&self, case: Kernel, split: Split) -> LaunchConfig {
        let (entry, product) = case;
        let dynamic_shared = entry.declaration().dynamic_shared.unwrap();
        let GemmParams { m, n, .. } = self.problem;
        let [rows, cols] = product.tile();
        let (blocks, parts) = match split {
            Split::Blocks(blocks) => (blocks, 1),
            Split::Parts(parts) => (m.div_ceil(rows) * n.div_ceil(cols), parts),
        };
        let together = product.sharing().unwrap();
        let config = LaunchConfig::new([blocks * together, 1, parts], product.block);
        LaunchConfig { dynamic_shared, cluster: [together, 1, parts], ..config }
    }

    fn run(&self, case: Kernel, split: Split) -> Vec<f32> {
        let mut c = self.c.clone();
        // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
        unsafe { run(case.0, &self.config(case, split), self.arguments(case, &mut c)) };
        c
    }

    /// The arguments of a kernel.
    ///
    /// # Safety
    /// All of it outlives the launch, and nobody else uses `c`.
    unsafe fn arguments(&self, (_, product): Kernel, c: &mut [f32]) -> [Named<'_>; 5] {
        // SAFETY: the caller's.
        let (c, bias) = unsafe { (write(c), read(&self.bias)) };
        let a = self.a.maps(product.variant.access.classes());
        let problem = Bound::Value(&self.problem);
        [("problem", problem), ("a", a), ("b", self.b.maps(1)), ("c", c), ("bias", bias)]
    }

    fn run_watched(&self, case: Kernel, split: Split, order: Order) -> Vec<f32> {
        let mut options = check::Options::default();
        options.order = order;
        self.watch(case, split, options).0
    }

    fn profile(&self, case: Kernel, split: Split) -> Profile {
        let mut options = check::Options::default();
        options.profile = NonZeroU32::new(1);
        self.watch(case, split, options).1.profile.expect("it was asked for")
    }

    fn watch(&self, case: Kernel, split: Split, mut options: check::Options) -> (Vec<f32>, Report) {
        // C is 128-byte aligned, as the counts assume.
        let len = self.c.len();
        let mut memory = vec![0.0; len + 32];
        let start = memory.as_ptr().align_offset(128);
        let c = &mut memory[start..start + len];
        c.copy_from_slice(&self.c);
        // Padding, elements before the first, and an unused bias are not read.
        let GemmParams { n, k, bias, .. } = self.problem;
        options.complete = bias == COL_BIAS && n % 4 == 0 && k % 4 == 0 && !is_of_classes(&case);
        let order = options.order;
        // SAFETY: as in `run`.
        let report =
            unsafe { watch(case.0, &self.config(case, split), self.arguments(case, c), &options) };
        assert!(report.is_clean(), "{}, {order}: {report}", name(case));
        (c.to_vec(), report)
    }

    /// The reference of element `i` of C for these factors, and the sum of the absolute values of
    /// its terms.
    fn expected(&self, i: usize, factor: fn(f32) -> f32) -> (f64, f64) {
        let GemmParams { n, k, alpha, beta, activation, .. } = self.problem;
        let (row, col) = (i / n as usize, i % n as usize);
        let (mut sum, mut magnitude) = (0.0, 0.0);
        for p in 0..k as usize {
            let [a, b] =
                [self.a.element(row, p), self.b.element(p, col)].map(factor).map(f64::from);
            let product = a * b;
            sum += product;
            magnitude += product.abs();
        }
        let before = if beta == 0.0 { 0.0 } else { beta * f64::from(self.c[i]) };
        let sum = alpha * sum + before + f64::from(self.bias[col]);
        (if activation == RELU { sum.max(0.0) } else { sum }, magnitude)
    }

    /// C for [`integer`]s. They repeat from the eleventh row of A and column of B on.
    fn exact(&self) -> Vec<f64> {
        let GemmParams { n, k, alpha, beta, activation, .. } = self.problem;
        let sum = |row, col| -> f64 {
            (0..k as usize).map(|p| f64::from(integer(row, p, 1) * integer(p, col, 2))).sum()
        };
        let sums = (0..121).map(|i| sum(i / 11, i % 11)).collect::<Vec<_>>();
        let element = |(i, before): (usize, &f32)| {
            let (row, col) = (i / n as usize, i % n as usize);
            let before = if beta == 0.0 { 0.0 } else { beta * f64::from(*before) };
            let sum = alpha * sums[row % 11 * 11 + col % 11] + before + f64::from(self.bias[col]);
            if activation == RELU { sum.max(0.0) } else { sum }
        };
        self.c.iter().enumerate().map(element).collect()
    }

    fn is_exact(&self, case: Kernel, c: &[f32], exact: &[f64]) {
        let n = self.problem.n as usize;
        for (i, (&got, &want)) in c.iter().zip(exact).enumerate() {
            assert_eq!(f64::from(got), want, "{}: element ({}, {})", name(case), i / n, i % n);
        }
    }
}

#[test]
fn integers_are_exact_and_no_access_is_out_of_order() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    // By itself, and watched by the checker.
    let mut ways = Turns::of(2);
    for (number, case) in cases().into_iter().enumerate() {
        for (shape, blocks, scales, full) in [
            ([260, 132, 130], 1, (1.0, 0.0), false),
            ([130, 300, 280], 3, (2.0, -1.0), false),
            ([256, 128, 96], 1, (1.0, 0.0), false),
            // C's rows are unaligned.
            ([261, 133, 40], 2, (2.0, 0.0), false),
            ([37, 9, 8], 2, (1.0, 1.0), true),
            ([3, 70, 300], 1, (2.0, 1.0), true),
            // Fewer rows than there are classes; and rows of an odd number of elements, of 4k + 2,
            // and of 8k + 4.
            ([5, 139, 3], 1, (1.0, 0.0), true),
            ([1, 3, 1], 1, (1.0, 0.0), true),
            ([11, 70, 166], 1, (1.0, 0.0), true),
            ([2100, 34, 44], 3, (1.0, 0.0), true),
            // One class has one row more than a tile, so others have tiles without a row.
            ([2049, 10, 9], 2, (1.0, 0.0), true),
        ] {
            let given = Given::new(case, shape, scales, full, integer);
            let exact = given.exact();
            let split = Split::Blocks(blocks);
            let order = orders[(number + shape[0]) % 4];
            for way in ways.next_case() {
                let c = match way {
                    0 => given.run(case, split),
                    _ => given.run_watched(case, split, order),
                };
                given.is_exact(case, &c, &exact);
            }
        }
    }
}

/// With unaligned rows, the elements before a row's first k-step are the end of the row before.
#[test]
fn what_is_no_part_of_a_row_may_be_infinite() {
    once!(SOURCES);
    let shifted = cases().into_iter().filter(is_of_classes).collect::<Vec<_>>();
    assert!(!shifted.is_empty());
    for case in shifted {
        // The last seven elements of every second row of A.
        let value = |row: usize, p: usize, salt: usize| match salt {
            1 if row.is_multiple_of(2) && p >= 30 => f32::INFINITY,
            _ => integer(row, p, salt).abs() + 1.0,
        };
        let given = Given::new(case, [40, 9, 37], (1.0, 0.0), false, value);
        let c = given.run_watched(case, Split::Blocks(1), Order::Random(1));
        for (i, &value) in c.iter().enumerate() {
            let expected = given.expected(i, |value| value).0;
            assert!(f64::from(value) == expected, "{}: element {i}: {value}", name(case));
            assert_eq!(value.is_finite(), i / 9 % 2 == 1);
        }
    }
}

/// As many blocks as there are rows or not, one of them without a k-step; more stages than the ring
/// has.
#[test]
fn blocks_of_a_cluster_split_k() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(3)];
    for case in cases().into_iter().filter(|(_, product)| product.most_splits > 1) {
        for (number, (shape, parts, scales, full)) in [
            ([64, 64, 200], 2, (1.0, 0.0), false),
            ([70, 133, 1200], 2, (2.0, 0.0), false),
            ([21, 70, 300], 3, (2.0, -1.0), true),
            ([7, 9, 40], 8, (1.0, 0.0), true),
        ]
        .into_iter()
        .enumerate()
        {
            let given = Given::new(case, shape, scales, full, integer);
            let (exact, split) = (given.exact(), Split::Parts(parts));
            given.is_exact(case, &given.run(case, split), &exact);
            let order = orders[number % 3];
            given.is_exact(case, &given.run_watched(case, split, order), &exact);
        }
    }
}

#[test]
fn checked_launches_are_clean_in_ten_random_orders() {
    once!(SOURCES);
    let mut turns = Turns::of(10);
    for case in cases() {
        let shape = if case.1.most_splits > 1 { [70, 70, 300] } else { [270, 140, 300] };
        let given = Given::new(case, shape, (2.0, 1.0), true, integer);
        let exact = given.exact();
        for seed in turns.next_case().into_iter().map(|order| order as u64 + 1) {
            let parts = 1 + seed as u32 % 3;
            let split = match case.1.most_splits {
                1 => Split::Blocks(1),
                _ => Split::Parts(parts),
            };
            let c = given.run_watched(case, split, Order::Random(seed));
            given.is_exact(case, &c, &exact);
        }
    }
}

/// There is no bank conflict. A row of 64 columns with any start is written in at most nine
/// sectors.
#[test]
fn accesses_are_as_few_as_can_be() {
    once!(SOURCES);
    for case in cases() {
        let splits = case.1.most_splits > 1;
        for n in [128, 133] {
            // Some unaligned rows are cleared first.
            let k = if is_of_classes(&case) { 67 } else { 64 };
            let shape = if splits { [40, n, k] } else { [300, n, k] };
            let given = Given::new(case, shape, (1.0, 0.0), false, integer);
            let profile =
                given.profile(case, if splits { Split::Parts(2) } else { Split::Blocks(1) });
            for line in &profile.lines {
                let is_shared = line.operation.is_shared();
                // At most as many wavefronts as 32 lanes' bytes have lines of 128 bytes.
                let most = line.requests * u64::from(line.width / 4);
                assert!(!is_shared || line.units <= most, "{}: {line:?}", name(case));
            }
            let sectors = profile.total(Operation::GlobalStore, |line| line.units);
            let most = shape[0] * (9 * (n / 64) + n % 64);
            assert!(splits || sectors <= most as f64, "{}: {sectors} of {most}", name(case));
        }
    }
}

/// Sums of real numbers, which depend on the order in which parts are added: the same in every
/// order of the threads.
#[test]
fn parts_are_added_in_the_order_of_ranks() {
    once!(SOURCES);
    for case in cases().into_iter().filter(|(_, product)| product.most_splits > 1) {
        let given = Given::new(case, [20, 70, 700], (1.0, 0.0), false, real);
        for parts in [1, 3] {
            let bits = |c: Vec<f32>| c.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let first = bits(given.run_watched(case, Split::Parts(parts), Order::Forward));
            for order in [Order::Reverse, Order::Random(4), Order::Random(5)] {
                assert_eq!(bits(given.run_watched(case, Split::Parts(parts), order)), first);
            }
        }
    }
}

/// Factors are rounded to the nearest, ties away from zero. The sum is truncated at each of `k / 8`
/// steps, and each of 8 products once more: at most 2^-23 of the largest sum each. The error of C
/// is that of rounded factors, half of that of truncated factors.
#[test]
fn factors_are_rounded_to_the_nearest_and_sums_cut_off() {
    once!(SOURCES);
    let case = cases()[0];
    let k = 1000;
    let given = Given::new(case, [70, 40, k], (1.0, 0.0), false, real);
    let c = given.run(case, Split::Blocks(1));
    let steps = k.div_ceil(8) as f64;
    let (mut error, mut of_cut_off, mut size) = (0.0, 0.0, 0.0);
    for (i, &c) in c.iter().enumerate() {
        let (want, magnitude) = given.expected(i, |value| Tf32::from_f32(value).to_f32());
        let bound = (steps + 9.0) * 2f64.powi(-23) * magnitude;
        let off = (f64::from(c) - want).abs();
        assert!(off <= bound, "element {i}: {c} is {off:e} off, over {bound:e}");
        let (exact, _) = given.expected(i, |value| value);
        let (cut_off, _) = given.expected(i, |value| Tf32::from_bits(value.to_bits()).to_f32());
        error += (f64::from(c) - exact).powi(2);
        of_cut_off += (cut_off - exact).powi(2);
        size += exact.powi(2);
    }
    let [error, of_cut_off] = [error, of_cut_off].map(|sum: f64| (sum / size).sqrt());
    assert!((1e-4..4e-4).contains(&error) && error < 0.6 * of_cut_off, "{error:e} {of_cut_off:e}");
}
