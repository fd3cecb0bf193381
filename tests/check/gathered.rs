//! Products of bf16 and f16 on tensor cores, with operands that threads load (`ldg`): unaligned
//! rows, of any number and length, with NaN before, between and after them.

use gpu::{
    collective::stored::Stored,
    params::{COL_BIAS, GemmParams, RELU},
    registry::{Access, Type},
};
use host::gemm::Output;
use simt::{
    Bf16, Bound, F16, LaunchConfig,
    check::{self, Order},
};
use tests::{
    Turns,
    kernels::{Kernel, kernels, read, run, watch, write},
    once,
};

use super::operand::{Unaligned, Way, integer};

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/collective", "gpu/src/kernels/wgmma", "tests/check"];

/// The kernels for A and B of the first type, with C of the second one, in an order that is the
/// same for all types.
fn kernels_of(of: [Type; 2]) -> Vec<Kernel> {
    kernels(|product| {
        let variant = product.variant;
        variant.access == Access::Ldg && [variant.operands, variant.c] == of
    })
}

/// How many texts there are: kernels that differ in more than the types.
fn texts() -> usize {
    kernels_of([Type::BF16, Type::F32]).len()
}

/// The kernels for A and B of `T`, with C of `O`: one of each text.
fn cases<T: Output, O: Output>() -> Vec<Kernel> {
    let cases = kernels_of([T::TYPE, O::TYPE]);
    assert_eq!(cases.len(), texts(), "each text has a kernel for each pair of types");
    assert!(!cases.is_empty());
    cases
}

/// A launch of `blocks` blocks, for `count` equal products.
#[derive(Clone, Copy)]
struct Launch {
    sizes: [usize; 3],
    count: usize,
    blocks: u32,
    /// Elements before A and B, and between their rows.
    offsets: [(usize, usize); 2],
    full: bool,
    /// On the checked device, in that order.
    order: Option<Order>,
}

fn is_exact<T: Stored<Real = f32>, O: Stored<Real = f32>>(
    (entry, product): Kernel,
    launch: Launch,
) {
    let Launch { sizes: [m, n, k], count, blocks, offsets, full, order } = launch;
    let (name, k_major) = (entry.name(), product.variant.k_major());
    let [way_a, way_b] = [0, 1].map(|i| Way(k_major[i], offsets[i].0, offsets[i].1));
    let a = Unaligned::<T>::new([count, m, k], way_a, |_, row, p| integer(row, p, 1));
    let b = Unaligned::<T>::new([count, n, k], way_b, |_, col, p| integer(p, col, 2));
    let mut problem = GemmParams::dense(m as u32, n as u32, k as u32);
    problem.products = count as u32;
    problem.alpha = 2.0;
    problem.a = a.strides;
    problem.b = [b.strides[1], b.strides[0]];
    problem.batch = [a.step, b.step, (m * n) as u64];
    if full {
        (problem.bias, problem.activation, problem.beta) = (COL_BIAS, RELU, 1.0);
    }
    // With beta = 0 it is not read.
    let before = |i: usize| if full { integer(i / n % m, i % n, 3) } else { f32::NAN };
    let mut c = (0..count * m * n).map(|i| O::nearest(before(i))).collect::<Vec<_>>();
    let cols = if full { 0..n } else { 0..0 };
    let bias = cols.map(|col| O::nearest(col as f32 - 7.0)).collect::<Vec<_>>();
    let config = LaunchConfig::new([blocks, 1, 1], product.block);
    let dynamic_shared = entry.declaration().dynamic_shared.unwrap();
    let config = LaunchConfig { dynamic_shared, ..config };
    // SAFETY: the operands, the bias and `c` outlive the launch, and nobody else uses them.
    unsafe {
        let arguments = [
            ("problem", Bound::Value(&problem)),
            ("a", a.elements()),
            ("b", b.elements()),
            ("c", write(&mut c)),
            ("bias", read(&bias)),
        ];
        match order {
            None => run(entry, &config, arguments),
            Some(order) => {
                let mut options = check::Options::default();
                options.order = order;
                // Padding between the rows need not be read.
                options.complete = offsets[0].1 + offsets[1].1 == 0;
                let report = watch(entry, &config, arguments, &options);
                assert!(report.is_clean(), "{name}, {order}: {report}");
            }
        }
    }
    // Every eleventh row of A is the same, and every eleventh column of B.
    let sum = |row, col| (0..k).map(|p| integer(row, p, 1) * integer(p, col, 2)).sum::<f32>();
    let sums = (0..121).map(|at| sum(at / 11, at % 11)).collect::<Vec<_>>();
    for (i, got) in c.iter().enumerate() {
        let (row, col) = (i / n % m, i % n);
        let sum = sums[row % 11 * 11 + col % 11];
        let want = match full {
            true => (2.0 * sum + integer(row, col, 3) + col as f32 - 7.0).max(0.0),
            false => 2.0 * sum,
        };
        let want = O::nearest(want).widened();
        assert_eq!(got.widened(), want, "{name}, {m} x {n} x {k}: element ({row}, {col})");
    }
}

const PLAIN: Launch =
    Launch { sizes: [0; 3], count: 1, blocks: 1, offsets: [(0, 0); 2], full: false, order: None };

/// Every misalignment of rows and of first elements; whole and partial tiles and stages; rows
/// shorter than sixteen bytes; several products. By default each case has one of two types, and
/// `this` is one of them.
fn integers_are_exact<T: Stored<Real = f32> + Output>(this: usize) {
    let mut types = Turns::of(2);
    let sizes = [[64, 128, 64], [67, 131, 129], [70, 150, 65], [37, 9, 8], [3, 5, 2], [1, 1, 1]];
    for (text, case) in cases::<T, f32>().into_iter().enumerate() {
        for (i, sizes) in sizes.into_iter().enumerate() {
            for offset in 0..8 {
                // All pairs of a first element and a padding, distributed over the tiles.
                let offsets = [(offset, (offset + i) % 8), ((offset + text) % 8, i)];
                let launch = Launch { sizes, offsets, full: offset == 3, ..PLAIN };
                if types.next_case().contains(&this) {
                    is_exact::<T, f32>(case, launch);
                }
            }
        }
        let sizes = [100, 260, 200];
        is_exact::<T, f32>(case, Launch { sizes, offsets: [(1, 1), (0, 4)], blocks: 3, ..PLAIN });
        is_exact::<T, f32>(
            case,
            Launch { sizes: [5, 3, 70], count: 3, offsets: [(1, 0), (0, 1)], ..PLAIN },
        );
        is_exact::<T, T>(
            cases::<T, T>()[text],
            Launch { sizes, offsets: [(0, 3), (5, 0)], ..PLAIN },
        );
    }
}

#[test]
fn integers_are_exact_wherever_rows_begin() {
    once!(SOURCES);
    integers_are_exact::<Bf16>(0);
    integers_are_exact::<F16>(1);
}

/// More stages than the ring has, by one block with several tiles.
fn is_clean<T, O>(order: Order, text: usize)
where
    T: Stored<Real = f32> + Output,
    O: Stored<Real = f32> + Output,
{
    let case = cases::<T, O>()[text];
    let is_exact = is_exact::<T, O>;
    let clean = Launch { order: Some(order), ..PLAIN };
    is_exact(case, Launch { sizes: [75, 141, 333], full: true, ..clean });
    is_exact(case, Launch { sizes: [65, 30, 67], offsets: [(3, 0), (1, 0)], count: 2, ..clean });
    is_exact(case, Launch { sizes: [40, 129, 77], offsets: [(0, 1), (2, 2)], ..clean });
}

#[test]
fn checked_launches_are_clean_in_every_order() {
    once!(SOURCES);
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let kernels =
        [is_clean::<Bf16, f32>, is_clean::<F16, F16>, is_clean::<Bf16, Bf16>, is_clean::<F16, f32>];
    for text in 0..texts() {
        // Each kernel of a tile shape has another order.
        let mut turns = Turns::of(kernels.len());
        for order in orders {
            turns.next_case().into_iter().for_each(|kernel| kernels[kernel](order, text));
        }
        turns.each_had_one();
    }
}
