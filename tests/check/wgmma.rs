//! Products of bf16 and f16 on tensor cores, as the kernels are launched: operands that lie either way, tiles that are whole and
//! not, several of them a block.

mod operand;

use gpu::{
    kernels::{gemm::stored::Stored, gemm_wgmma::beside::WORDS},
    problem::{COL_BIAS, Problem, RELU},
    registry::{Contract, KERNELS, TensorKernel, TensorProduct},
};
use simt::{
    Bf16, F16, LaunchConfig, Taken,
    check::{self, Order},
    checked, cpu, device,
};
use tests::Turns;

use self::operand::{Beside, INTEGERS, Operand, integer};

/// Tile shapes, times ways in which operands lie, and two of an A whose rows begin anywhere: there is a kernel for each of every pair
/// of types, whose texts differ in the types alone.
const TEXTS: usize = 9 * 4 + 2;

type Case<T, O> = TensorProduct<T, O>;

/// How a product's work is shared.
#[derive(Clone, Copy)]
enum Work {
    /// So many blocks, or clusters, have all tiles.
    Walkers(u32),
    /// Each tile has a cluster, whose so many blocks split k.
    Parts(u32),
}
use Work::{Parts, Walkers};
use tests::passed::once;

/// What these tests are of.
const SOURCES: &[&str] = &["gpu/src/kernels/gemm_wgmma", "tests/check"];

/// A type of A and B, with a type of C.
trait With<O: Taken>: Stored<Real = f32> + Taken {
    /// The kernels that compute it, in an order that is the same for all types.
    fn cases() -> Vec<&'static Case<Self, O>>;
}

macro_rules! cases {
    ($($t:ty, $c:ty: $contract:ident;)*) => {$(
        impl With<$c> for $t {
            fn cases() -> Vec<&'static Case<$t, $c>> {
                let cases = KERNELS.iter().filter_map(|entry| match &entry.contract {
                    // Those that gather are another text: `gathered` has them.
                    Contract::$contract(product) if !product.kernel.gathers() => Some(product),
                    _ => None,
                });
                let cases = cases.collect::<Vec<_>>();
                assert_eq!(cases.len(), TEXTS);
                cases
            }
        }
    )*};
}

cases! {
    Bf16, Bf16: TensorProductBf16;
    Bf16, f32: TensorProductBf16F32;
    F16, F16: TensorProductF16;
    F16, f32: TensorProductF16F32;
}

fn name<T: Taken, O: Taken>(case: &Case<T, O>) -> &'static str {
    case.name()
}

/// C, and its operands in f64.
struct Given<T, O> {
    problem: Problem,
    a: Operand<T>,
    b: Operand<T>,
    c: Vec<O>,
    bias: Vec<O>,
    /// Before it is rounded to the type of C.
    expected: Vec<f64>,
    /// The sum of the absolute values of what is added.
    magnitudes: Vec<f64>,
}

/// Launches, fast or checked, a kernel that takes classes of A's rows and copies B's last columns beside the product.
macro_rules! classes {
    (
        $kernel:ident, ($half:ident, $map:ident, $launch:ident), $given:ident, $case:ident, ($out:ident, $bias:ident),
        ($config:expr, $options:expr)
    ) => {{
        let map = |(first, extents, strides)| {
            $half::TensorMap::new(first, extents, strides, $given.a.shape).unwrap().cast()
        };
        let a = $half::TensorMaps::new($given.a.classes().map(map));
        let mut beside = Beside::new(&$given.b, $case.tile[1]);
        let (matrix, (to, to_len)) = (beside.matrix(), beside.place());
        let (from, len) = beside.from.memory();
        let (from, to) = ($half::In::new(from.cast(), len), $half::Out::new(to.cast(), to_len));
        let words = $half::Out::new(beside.words.as_mut_ptr(), WORDS);
        let b = beside.b.$map().cast();
        let problem = Problem { b: [beside.b.pitch as u64, 1], ..$given.problem };
        let params = (problem, a, b, matrix, from, to, words, $out, $bias);
        let launched = $launch::launch($kernel, $config, params, $options);
        beside.is_copied(&$given.b, name($case));
        launched
    }};
}

impl<T: With<O>, O: Stored<Real = f32> + Taken> Given<T, O> {
    /// A product of elements that `value` gives by row, column and 1 for A, 2 for B, 3 for C. So many rows of A further on they
    /// are the same, and so many columns of B.
    fn new(
        case: &Case<T, O>,
        [m, n, k]: [usize; 3],
        (alpha, beta): (f64, f64),
        full: bool,
        (value, period): (impl Fn(usize, usize, usize) -> f32, usize),
    ) -> Self {
        let value = |row, col, salt| T::nearest(value(row, col, salt));
        let mut problem = Problem { alpha, beta, ..Problem::dense(m as u32, n as u32, k as u32) };
        if full {
            (problem.bias, problem.activation) = (COL_BIAS, RELU);
        }
        let a = Operand::new([m, k], case.along_k[0], case.kernel.shifts_a(), case.a, |row, p| {
            value(row, p, 1)
        });
        let b = Operand::new([n, k], case.along_k[1], false, case.b, |col, p| value(p, col, 2));
        problem.a[0] = a.pitch as u64;
        // With beta = 0 it is not looked at.
        let c_at = |row, col| if beta == 0.0 { f32::NAN } else { value(row, col, 3).widened() };
        let c = (0..m * n).map(|i| O::nearest(c_at(i / n, i % n))).collect::<Vec<_>>();
        // Where there is none, no element that nobody reads.
        let cols = if full { 0..n } else { 0..0 };
        let bias = cols.map(|col| O::nearest(col as f32 - 7.0)).collect::<Vec<_>>();
        // Rounded beforehand, not in the innermost loop: without optimisation that would take longer than the launch.
        let wide = |row, col, salt| f64::from(value(row, col, salt).widened());
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
            let before = if beta == 0.0 { 0.0 } else { beta * f64::from(c.widened()) };
            let sum =
                alpha * sum + before + bias.get(col).map_or(0.0, |bias| bias.widened().into());
            expected.push(if full { sum.max(0.0) } else { sum });
            magnitudes.push(alpha.abs() * magnitude);
        }
        Given { problem, a, b, c, bias, expected, magnitudes }
    }

    /// So many blocks (or clusters) that go on from tile to tile; or one for each tile, whose k so many share.
    fn config(&self, case: &Case<T, O>, work: Work) -> LaunchConfig {
        let declaration = case.kernel.declaration();
        let dynamic_shared = declaration.dynamic_shared.unwrap();
        let (grid, cluster) = match work {
            Walkers(blocks) => ([blocks * case.walkers.unwrap(), 1, 1], [1; 3]),
            Parts(parts) => {
                let Problem { m, n, .. } = self.problem;
                let [rows, cols] = case.tile;
                ([m.div_ceil(rows) * n.div_ceil(cols), 1, parts], [1, 1, parts])
            }
        };
        let config = LaunchConfig::new(grid, declaration.block.unwrap());
        LaunchConfig { dynamic_shared, cluster, constants: case.constants, ..config }
    }

    fn run(&self, case: &Case<T, O>, work: Work) -> Vec<O> {
        let mut c = self.c.clone();
        // SAFETY: the operands and `c` outlive the launch, and nobody else uses them.
        unsafe {
            let (out, bias) = (
                device::Out::new(c.as_mut_ptr().cast(), c.len()),
                device::In::new(self.bias.as_ptr().cast(), self.bias.len()),
            );
            let (config, options) = (self.config(case, work), cpu::Options::default());
            match case.kernel {
                TensorKernel::Boxes { kernel, .. } => {
                    let params =
                        (self.problem, self.a.map().cast(), self.b.map().cast(), out, bias);
                    cpu::launch(kernel, &config, params, &options)
                }
                TensorKernel::ClassesOfA { kernel, .. } => {
                    classes!(
                        kernel,
                        (device, map, cpu),
                        self,
                        case,
                        (out, bias),
                        (&config, &options)
                    )
                }
                TensorKernel::SectorClassesOfA { kernel, .. } => {
                    classes!(
                        kernel,
                        (device, map, cpu),
                        self,
                        case,
                        (out, bias),
                        (&config, &options)
                    )
                }
                _ => panic!("{}", name(case)),
            }
            .unwrap();
        }
        c
    }

    fn run_watched(&self, case: &Case<T, O>, work: Work, order: Order) -> Vec<O> {
        let mut c = self.c.clone();
        let mut options = check::Options::default();
        options.order = order;
        // Where rows begin anywhere, nobody reads what lies between those of an operand.
        options.complete = self.problem.n.is_multiple_of(8) && !case.kernel.shifts_a();
        // SAFETY: as in `run`.
        let report = unsafe {
            let (out, bias) = (
                checked::Out::new(c.as_mut_ptr().cast(), c.len()),
                checked::In::new(self.bias.as_ptr().cast(), self.bias.len()),
            );
            let (config, b) = (self.config(case, work), self.b.checked_map());
            match case.kernel {
                TensorKernel::Boxes { checked, .. } => {
                    let params = (self.problem, self.a.checked_map().cast(), b.cast(), out, bias);
                    check::launch(checked, &config, params, &options)
                }
                TensorKernel::ClassesOfA { checked, .. } => {
                    classes!(
                        checked,
                        (checked, checked_map, check),
                        self,
                        case,
                        (out, bias),
                        (&config, &options)
                    )
                }
                TensorKernel::SectorClassesOfA { checked, .. } => {
                    classes!(
                        checked,
                        (checked, checked_map, check),
                        self,
                        case,
                        (out, bias),
                        (&config, &options)
                    )
                }
                _ => panic!("{}", name(case)),
            }
        };
        let report = report.unwrap();
        assert!(report.is_clean(), "{}, {order}: {report}", name(case));
        c
    }

    /// Of integers whose sums f32 holds: C of 16 bits is these, rounded once.
    fn is_exact(&self, case: &Case<T, O>, c: &[O]) {
        let n = self.problem.n as usize;
        for (i, (&got, &want)) in c.iter().zip(&self.expected).enumerate() {
            let (got, want) = (got.widened(), O::nearest(want as f32).widened());
            assert_eq!(got, want, "{}: element ({}, {})", name(case), i / n, i % n);
        }
    }
}

fn integers_are_exact<T: With<f32>>(turns: &mut Turns) {
    for case in T::cases() {
        let shapes = [
            ([200, 300, 130], 1, (1.0, 0.0), false),
            ([200, 304, 64], 3, (2.0, -1.0), false),
            ([128, 256, 192], 1, (1.0, 0.0), false),
            // Rows of C that begin anywhere, in tiles that are whole and not.
            ([200, 301, 64], 2, (2.0, 0.0), false),
            ([37, 9, 8], 2, (1.0, 1.0), true),
        ];
        for (shape, blocks, scales, full) in
            turns.next_case().into_iter().map(|shape| shapes[shape])
        {
            let given = Given::new(case, shape, scales, full, (integer, INTEGERS));
            given.is_exact(case, &given.run(case, Walkers(blocks)));
            if case.most_splits > 1 {
                // By as many as there are stages, and by more.
                given.is_exact(case, &given.run(case, Parts(3)));
            }
        }
    }
}

#[test]
fn integers_are_exact_whatever_way_operands_lie() {
    let Some(_note) = once("check::wgmma::integers_are_exact_whatever_way_operands_lie", SOURCES)
    else {
        return;
    };
    // Each text has another shape with the other type.
    let mut turns = Turns::of(5);
    integers_are_exact::<Bf16>(&mut turns);
    integers_are_exact::<F16>(&mut turns);
}

fn is_clean<T: With<O>, O: Stored<Real = f32> + Taken>(
    text: usize,
    order: Order,
    shape: [usize; 3],
    work: Work,
) {
    let case = T::cases()[text];
    // Rows that begin anywhere are stored in a way of their own if there is nothing but the product.
    let full = shape[1].is_multiple_of(2);
    let scales = if full { (2.0, 1.0) } else { (2.0, 0.0) };
    let given = Given::new(case, shape, scales, full, (integer, INTEGERS));
    given.is_exact(case, &given.run_watched(case, work, order));
}

/// A product of ragged sizes: several tiles of the one block (or cluster), and more stages than the ring has. And of a kernel
/// that can, k split: two tiles, of which one is whole along m or n. By default such a kernel has one of the two in its turn.
fn both_are_clean<T: With<O>, O: Stored<Real = f32> + Taken>(
    text: usize,
    order: Order,
    turns: &mut Turns,
) {
    let case = T::cases()[text];
    let [rows, cols] = case.tile.map(|size| size as usize);
    let launches = if case.most_splits > 1 { &[0, 1][..] } else { &[0] };
    for launch in turns.among(launches) {
        match launch {
            0 => is_clean::<T, O>(text, order, [rows + 72, cols + 48, 136], Walkers(1)),
            _ => {
                let parts = Parts(2 + text as u32 % 3);
                is_clean::<T, O>(text, order, [rows - 24, cols + 24, 200], parts);
            }
        }
    }
}

fn is_clean_in_every_order<T: With<f32> + With<T>>() {
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let (mut with_f32, mut with_own, mut both) = (Turns::of(2), Turns::of(2), Turns::of(2));
    for (text, order) in (0..TEXTS).zip(orders.into_iter().cycle()) {
        // With either C.
        for which in with_f32.next_case() {
            match which {
                0 => both_are_clean::<T, f32>(text, order, &mut both),
                _ => is_clean::<T, f32>(text, order, [130, 265, 64], Walkers(1)),
            }
        }
        // The first has a tile below the last row.
        for shape in
            with_own.next_case().into_iter().map(|shape| [[264, 256, 64], [130, 323, 64]][shape])
        {
            is_clean::<T, T>(text, order, shape, Walkers(1));
        }
    }
}

#[test]
fn checked_launches_are_clean_in_every_order() {
    let Some(_note) = once("check::wgmma::checked_launches_are_clean_in_every_order", SOURCES)
    else {
        return;
    };
    is_clean_in_every_order::<Bf16>();
    is_clean_in_every_order::<F16>();
}

/// Each text in one of ten orders, or all, with C of f32 in five and of the operands' type in the others.
fn is_clean_in_ten_random_orders<T: With<f32> + With<T>>(texts: impl Iterator<Item = usize>) {
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
    let Some(_note) =
        once("check::wgmma::checked_launches_are_clean_in_ten_random_orders", SOURCES)
    else {
        return;
    };
    is_clean_in_ten_random_orders::<Bf16>(0..TEXTS);
}

#[test]
fn checked_launches_of_f16_are_clean_in_ten_random_orders() {
    let Some(_note) =
        once("check::wgmma::checked_launches_of_f16_are_clean_in_ten_random_orders", SOURCES)
    else {
        return;
    };
    // From the last to the first, so that a text has other orders than with bf16.
    is_clean_in_ten_random_orders::<F16>((0..TEXTS).rev());
}

/// The sum is cut off at each of `k / 16` steps, and each of 16 products once more: 2^-23 of the greatest sum each at
/// most.
fn real_numbers_are_within_the_bound<T: With<f32>>() {
    let case = T::cases()[0];
    let [m, n, k] = [70, 40, 1000];
    let real = |row: usize, col: usize, salt: usize| {
        let bits = (row * 2_654_435_761 + col * 40_503 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let given = Given::new(case, [m, n, k], (1.0, 0.0), false, (real, usize::MAX));
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
    let Some(_note) =
        once("check::wgmma::real_numbers_are_within_the_bound_of_truncated_sums", SOURCES)
    else {
        return;
    };
    real_numbers_are_within_the_bound::<Bf16>();
    real_numbers_are_within_the_bound::<F16>();
}

/// Of f16 a product may have bits down to 2^-48, and subnormal numbers are what they are; C of f16 is infinite from where
/// the nearest number would be 2^16.
#[test]
fn f16_is_subnormal_and_overflows_as_ieee_has_it() {
    let Some(_note) = once("check::wgmma::f16_is_subnormal_and_overflows_as_ieee_has_it", SOURCES)
    else {
        return;
    };
    let case = <F16 as With<f32>>::cases()[0];
    let tiny = 2f32.powi(-24);
    let given = Given::new(
        case,
        [40, 24, 33],
        (1.0, 0.0),
        false,
        (
            |row: usize, col: usize, salt: usize| match salt {
                // Multiples of the least number there is, all of them subnormal.
                1 => tiny * (1 + row * 3 + col) as f32,
                _ => (row % 2 + col + 1) as f32,
            },
            usize::MAX,
        ),
    );
    given.is_exact(case, &given.run(case, Walkers(1)));
    let case = <F16 as With<F16>>::cases()[0];
    // 32 sums of 65504 + 8 i: from i = 2 on, 65520, nearer to 2^16 or as near.
    let given = Given::new(
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
