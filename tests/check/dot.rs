//! Products of few rows, whose threads split k: right and clean in every order, alone, as a batch,
//! and as partial products.

use gpu::{
    collective::stored::Stored,
    params::{COL_BIAS, GemmParams, RELU},
    registry::Type,
};
use host::gemm::Output;
use simt::{
    Bf16, F16, LaunchConfig,
    check::{Options, Order},
};
use tests::{
    Turns,
    kernels::{Kernel, kernels, read, watch, write},
    once,
};

use super::operand::{Unaligned, Way, integer, number};

/// What these tests are of.
const SOURCES: &[&str] = &["gpu/src/collective", "gpu/src/kernels/gemm", "tests/check"];

/// Rows, columns, k: one element; a tile and less; several tiles; more k-steps than a block takes
/// at a time.
const SIZES: [[usize; 3]; 6] =
    [[1, 1, 1], [4, 4, 300], [3, 17, 70], [9, 130, 21], [8, 16, 515], [5, 3, 1100]];

/// A launch: its layout (A, B: bits 0 and 1, row by row if 0), and what blocks along z are.
#[derive(Clone, Copy)]
struct Launch {
    sizes: [usize; 3],
    layout: usize,
    /// Equal products, the second of other numbers.
    count: usize,
    /// K-steps of a partial product. C has one partial product after another.
    range: Option<usize>,
    order: Order,
}

fn is_exact<T: Stored, O: Stored<Real = T::Real>>((entry, product): Kernel, launch: Launch) {
    let Launch { sizes: [m, n, k], layout, count, range, order } = launch;
    let way = |bit: usize, along_k| Way((layout >> bit & 1 == 0) == along_k, 0, 0);
    let a = Unaligned::<T>::new([count, m, k], way(0, true), |i, row, p| integer(row + i, p, 0));
    let b = Unaligned::<T>::new([count, n, k], way(1, false), |i, col, p| integer(p + i, col, 1));
    let blocks_z = range.map_or(count, |range| k.div_ceil(range));
    let full = range.is_none() && layout == 3;
    let before = |i: usize| if full { integer(i / n % m, i % n, 3) } else { f32::NAN };
    let mut c = (0..blocks_z * m * n).map(|i| number::<O>(before(i))).collect::<Vec<_>>();
    let cols = if full { 0..n } else { 0..0 };
    let bias = cols.map(|col| number::<O>(col as f32 - 7.0)).collect::<Vec<_>>();

    let mut problem = GemmParams::dense(m as u32, n as u32, range.unwrap_or(k) as u32);
    (problem.a, problem.b) = (a.strides, [b.strides[1], b.strides[0]]);
    let [step_a, step_b] = match range {
        None => [a.step, b.step],
        Some(range) => [a.strides[1], b.strides[1]].map(|stride| range as u64 * stride),
    };
    problem.batch = [step_a, step_b, (m * n) as u64];
    problem.all_k = range.map_or(0, |_| k as u32);
    if full {
        (problem.bias, problem.activation, problem.beta) = (COL_BIAS, RELU, 1.0);
    }
    let [rows, cols] = product.tile().map(|size| size as usize);
    let grid = [n.div_ceil(cols), m.div_ceil(rows), blocks_z].map(|blocks| blocks as u32);
    let config =
        LaunchConfig { constants: entry.constants, ..LaunchConfig::new(grid, product.block) };
    let mut options = Options::default();
    options.order = order;
    let context = format!("{}, {m} x {n} x {k}, layout {layout}, {range:?}, {order}", entry.name());
    // SAFETY: the operands, the bias and `c` outlive the launch, and nobody else uses them.
    let report = unsafe {
        let problem = ("problem", simt::Bound::Value(&problem));
        let arguments = [
            problem,
            ("a", a.elements()),
            ("b", b.elements()),
            ("c", write(&mut c)),
            ("bias", read(&bias)),
        ];
        watch(entry, &config, arguments, &options)
    };
    assert!(report.is_clean(), "{context}: {report}");
    for (i, got) in c.iter().enumerate() {
        let (z, row, col) = (i / (m * n), i / n % m, i % n);
        let (product, steps) = match range {
            None => (z, 0..k),
            Some(range) => (0, z * range..k.min((z + 1) * range)),
        };
        let sum =
            steps.map(|p| integer(row + product, p, 0) * integer(p + product, col, 1)).sum::<f32>();
        let want = match full {
            true => (sum + before(i) + col as f32 - 7.0).max(0.0),
            false => sum,
        };
        assert!(got.widened() == number::<O>(want).widened(), "{context}: element {i}");
    }
}

fn of_types<T, O>(orders: &mut Turns)
where
    T: Stored + Output,
    O: Stored<Real = T::Real> + Output,
{
    let all = host::check::orders(10, 1);
    let cases = kernels(|product| {
        let variant = product.variant;
        product.is_dot() && [variant.operands, variant.c] == [T::TYPE, O::TYPE]
    });
    assert_eq!(cases.len(), gpu::kernels::gemm::dot::TILES.len());
    for kernel in cases {
        for (i, sizes) in SIZES.into_iter().enumerate() {
            for layout in 0..4 {
                for order in orders.next_case().into_iter().map(|number| all[number]) {
                    let launch = Launch { sizes, layout, count: 1, range: None, order };
                    is_exact::<T, O>(kernel, launch);
                    if i % 2 == 1 {
                        is_exact::<T, O>(kernel, Launch { count: 2, ..launch });
                    }
                    if [Type::F32, Type::F64].contains(&O::TYPE) && sizes[2] > 64 {
                        is_exact::<T, O>(kernel, Launch { range: Some(64), ..launch });
                    }
                }
            }
        }
    }
}

/// By default each case has one of ten orders.
#[test]
fn products_and_partial_products_are_clean_and_right_in_every_order() {
    once!(SOURCES);
    let mut orders = Turns::of(10);
    of_types::<f32, f32>(&mut orders);
    of_types::<f64, f64>(&mut orders);
    of_types::<Bf16, Bf16>(&mut orders);
    of_types::<Bf16, f32>(&mut orders);
    of_types::<F16, F16>(&mut orders);
    of_types::<F16, f32>(&mut orders);
    orders.each_had_one();
}
