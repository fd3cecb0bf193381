//! Emulated fp32, and the pass that splits the operands: right and clean in every order, for whole
//! and partial tiles. Slices are compared bit by bit.

use gpu::{
    checked::kernels::emulated::split_bf16x3::split_bf16x3,
    kernels::emulated::{
        planes::plane_pitch,
        split_bf16x3::SLICES,
        value_range::{PATCH_COLS, PATCH_ROWS, patches},
    },
    params::MatrixBatch,
    registry::{Entry, KERNELS},
};
use host::{Device, Matrix, Shape, check::orders};
use simt::{
    Bf16, Element, Kernel, LaunchConfig,
    check::{self, Options, Order},
    checked::{In, Out},
};
use tests::Turns;
use tests::once;

/// The sources that these tests depend on.
const SOURCES: &[&str] = &["gpu/src/kernels/emulated", "gpu/src/collective", "tests/check"];

fn kernels() -> Vec<&'static Entry> {
    let kernels = KERNELS.iter().filter(|entry| entry.is_emulated()).collect::<Vec<_>>();
    assert!(!kernels.is_empty());
    kernels
}

#[test]
fn products_are_clean_and_right() {
    once!(SOURCES);
    // Whole and partial tiles, several of a block, more slices than the ring has stages.
    let shapes = [[1, 1, 1], [70, 140, 200], [128, 128, 64], [130, 270, 130], [64, 20, 330]];
    // Kernels with one kind of slices and one tile differ in the layouts of A and B.
    let kernels = kernels();
    let tiles = |entry: &Entry| entry.declaration().name;
    for (number, alike) in kernels.chunk_by(|one, other| tiles(one) == tiles(other)).enumerate() {
        let orders = orders(3, number as u64);
        let (mut of_kernels, mut of_orders) = (Turns::of(alike.len()), Turns::of(orders.len()));
        for [m, n, k] in shapes {
            let shape = Shape::new(m, n, k).unwrap();
            for entry in of_kernels.next_case().into_iter().map(|kernel| alike[kernel]) {
                let orders = of_orders.next_case().into_iter().map(|order| orders[order]);
                let orders = orders.collect::<Vec<_>>();
                for checked in host::check::kernel(entry, shape, &orders, 1).unwrap() {
                    let context = format!("{}, {shape}, {}", entry.name(), checked.order);
                    assert!(checked.findings.is_empty(), "{context}: {:#?}", checked.findings);
                    assert!(checked.comparison.passed(), "{context}: {:?}", checked.comparison);
                }
            }
        }
        of_kernels.each_had_one();
    }
}

/// Uncertain elements are recomputed without a race, and right: a few of a warp's elements, many,
/// all; numbers of all sizes, infinities and NaN, next to certain zeros; in whole and partial
/// tiles.
#[test]
fn doubted_elements_are_clean_and_right() {
    once!(SOURCES);
    let device = Device::cpu();
    let hash =
        |i: usize| (i as u32).wrapping_mul(0x9e37_79b1).rotate_left(13).wrapping_mul(0x85eb_ca6b);
    let number = |i: usize| (hash(i) >> 8) as f32 * 2f32.powi(-23) - 1.0;
    let wide = |i: usize| number(i) * 2f32.powi((hash(i + 7) >> 10) as i32 % 41 - 20);
    let kernels = kernels().into_iter().filter(|entry| entry.by_columns() == [false; 2]);
    let sizes = [[70, 140, 75], [20, 300, 9]];
    let mut of_sizes = Turns::of(sizes.len());
    for (number_of_kernel, entry) in kernels.enumerate() {
        let mut of_orders = Turns::of(3);
        for kind in 0..4 {
            for [m, n, k] in of_sizes.next_case().into_iter().map(|number| sizes[number]) {
                let a = |i: usize| match (i / k, kind) {
                    // Of all sizes; or a row with a size of its own; or a row of zeros next to it.
                    (_, 0) => wide(i),
                    (5, 1) => 1e-12 * number(i),
                    (9, 1) => 0.0,
                    _ => number(i),
                };
                let b = |i: usize| match (i % n, i / n, kind) {
                    (_, _, 0) => wide(i + 99),
                    (3, 2, 2) => f32::INFINITY,
                    (_, 4, 3) => f32::NAN,
                    _ => number(i + 99),
                };
                let (a, b) =
                    ((0..m * k).map(a).collect::<Vec<_>>(), (0..k * n).map(b).collect::<Vec<_>>());
                let of_a = Matrix::from_row_major(&device, m, k, &a).unwrap();
                let of_b = Matrix::from_row_major(&device, k, n, &b).unwrap();
                let wanted = (0..m * n).map(|i| {
                    let term = |p: usize| f64::from(a[i / n * k + p]) * f64::from(b[p * n + i % n]);
                    (0..k).map(term).fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
                });
                let wanted = wanted.collect::<Vec<_>>();
                let orders = orders(3, (number_of_kernel + kind) as u64);
                for order in of_orders.next_case().into_iter().map(|order| orders[order]) {
                    let name = format!("{}, {m} x {n} x {k}, {kind}, {order}", entry.name());
                    let mut c = Matrix::zeros(&device, m, n).unwrap();
                    c.buffer_mut().fill_bytes(0xff).unwrap();
                    let watched =
                        host::check::multiply(entry, &of_a, &of_b, &mut c, order).unwrap();
                    assert!(watched.findings.is_empty(), "{name}: {:#?}", watched.findings);
                    for (i, c) in c.to_row_major().unwrap().into_iter().enumerate() {
                        let (sum, size) = wanted[i];
                        let bound = (k as f64 / 32.0 + 58.0) * 2f64.powi(-24) * size;
                        let c = f64::from(c);
                        let right = match sum.is_finite() {
                            true => (c - sum).abs() <= bound,
                            false => c == sum || c.is_nan() && sum.is_nan(),
                        };
                        assert!(right, "{name}: {:?}: {c:e}, should be {sum:e}", (i / n, i % n));
                    }
                }
            }
        }
    }
}

/// Sixteen bytes, aligned.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Sixteen(#[allow(dead_code, reason = "only its address is used")] [u8; 16]);

/// A type of slices.
pub(super) trait Slice: Element {
    /// The number of slices of a number.
    const SLICES: usize;
    /// Words that are written for a patch besides its slices.
    const WORDS: usize;
    /// Ones: NaN.
    const UNWRITTEN: Self;

    /// Patches of a matrix, down and across.
    fn patches(rows: u32, cols: u32) -> (u32, u32);
}

impl Slice for Bf16 {
    const SLICES: usize = SLICES;
    const WORDS: usize = 2;
    const UNWRITTEN: Self = Bf16::from_bits(0xffff);

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        patches(rows, cols)
    }
}

/// A source, the misalignment of its first element, and its numbers.
pub(super) struct Given<S> {
    pub(super) source: MatrixBatch,
    start: usize,
    memory: Vec<Sixteen>,
    len: usize,
    planes: Vec<Sixteen>,
    pub(super) ranges: Vec<S>,
}

impl<S: Slice> Given<S> {
    /// Numbers from `of` in order. Rows have a padding of `gap`.
    pub(super) fn new(
        [matrices, rows, cols]: [usize; 3],
        gap: usize,
        start: usize,
        of: &[f32],
    ) -> Self {
        let (pitch, step) = (cols + gap, rows * (cols + gap) + gap);
        let (down, across) = S::patches(rows as u32, cols as u32);
        let source = MatrixBatch {
            rows: rows as u32,
            cols: cols as u32,
            count: matrices as u32,
            patches: down * across * matrices as u32,
            pitch: pitch as u64,
            step: step as u64,
        };
        let len = (matrices - 1) * step + (rows - 1) * pitch + cols;
        let planes = vec![Sixteen([0xff; 16]); matrices * S::SLICES * rows * plane_pitch(cols) / 8];
        let ranges = vec![S::UNWRITTEN; S::WORDS * source.patches as usize];
        let memory = vec![Sixteen([0; 16]); (start + len).div_ceil(4)];
        let mut given = Given { source, start, memory, len, planes, ranges };
        let numbers = given.numbers_mut();
        numbers.iter_mut().enumerate().for_each(|(i, number)| *number = of[i % of.len()]);
        given
    }

    pub(super) fn numbers_mut(&mut self) -> &mut [f32] {
        let first = self.memory.as_mut_ptr().cast::<f32>().wrapping_add(self.start);
        // SAFETY: this many elements exist, and every bit pattern is valid.
        unsafe { std::slice::from_raw_parts_mut(first, self.len) }
    }

    pub(super) fn planes(&self) -> &[S] {
        // SAFETY: the 16-byte units have room for this many elements.
        unsafe { std::slice::from_raw_parts(self.planes.as_ptr().cast(), self.planes.len() * 8) }
    }
}

impl Given<Bf16> {
    /// Checks the planes and ranges.
    fn check(&mut self) {
        let MatrixBatch { rows, cols, count: matrices, pitch, step, .. } = self.source;
        let (rows, cols) = (rows as usize, cols as usize);
        let (down, across) = patches(rows as u32, cols as u32);
        let numbers = self.numbers_mut().to_vec();
        let of_patches = (down * across * matrices) as usize;
        let mut wanted = vec![(f32::INFINITY, 0u32); of_patches];
        for i in 0..matrices as usize {
            for row in 0..rows {
                for col in 0..cols {
                    let x = numbers[i * step as usize + row * pitch as usize + col];
                    let slice = |s: usize| {
                        self.planes()[((i * SLICES + s) * rows + row) * plane_pitch(cols) + col]
                    };
                    holds(x, [slice(0), slice(1), slice(2)]);
                    let patch = (i * down as usize + row / PATCH_ROWS) * across as usize;
                    let (smallest, largest) = &mut wanted[patch + col / PATCH_COLS];
                    if x != 0.0 && !x.is_nan() {
                        *smallest = smallest.min(x.abs());
                    }
                    *largest = x.abs().to_bits().max(*largest);
                }
            }
        }
        for (patch, (smallest, largest)) in wanted.into_iter().enumerate() {
            let upper = |bits: u32| (bits >> 16) as u16;
            assert_eq!(self.ranges[2 * patch].to_bits(), upper(smallest.to_bits()), "{patch}");
            assert_eq!(self.ranges[2 * patch + 1].to_bits(), upper(largest), "{patch}");
        }
    }
}

/// Three slices are the number, except for what is below bf16's last digit. Each is the nearest to
/// the rest.
fn holds(x: f32, slices: [Bf16; 3]) {
    let [first, second, third] = slices.map(Bf16::to_f32);
    if !x.is_finite() {
        assert!(is_same(first, x) && second.is_nan() && third.is_nan(), "{x}: {slices:?}");
        return;
    }
    let off = (f64::from(x) - f64::from(first) - f64::from(second) - f64::from(third)).abs();
    let bound = if x.abs() < 2f32.powi(-110) { 2f64.powi(-134) } else { 0.0 };
    assert!(off <= bound, "{x:e}: {slices:?}, {off:e} off");
    let sizes = [first, second, third].map(f32::abs);
    // (At the upper end a slice is truncated, which leaves twice as much.)
    let most = if x.abs() > 3.38e38 { 2.0 } else { 1.0 };
    let lost = 2f32.powi(-134);
    assert!(sizes[1] <= most * 2f32.powi(-8) * x.abs() + lost, "{x:e}: {slices:?}");
    assert!(sizes[2] <= most * 2f32.powi(-17) * x.abs() + lost, "{x:e}: {slices:?}");
}

fn is_same(x: f32, y: f32) -> bool {
    x == y || x.is_nan() && y.is_nan()
}

/// The parameters of such a pass.
pub(super) type CutParams<S> =
    (MatrixBatch, MatrixBatch, In<f32>, In<f32>, Out<S>, Out<S>, Out<S>, Out<S>);

/// Splits both by blocks of `warps` warps, and checks that there are no findings.
pub(super) fn cut<S: Slice>(
    (kernel, warps): (&Kernel<CutParams<S>>, u32),
    [a, b]: [&mut Given<S>; 2],
    order: Order,
) {
    let mut options = Options::default();
    options.order = order;
    let config = LaunchConfig::new([a.source.patches + b.source.patches, 1, 1], [32, warps, 1]);
    // SAFETY: the vectors outlive the launch, and nobody else uses them.
    let report = unsafe {
        let numbers = |of: &mut Given<S>| In::new(of.numbers_mut().as_ptr(), of.len);
        let planes =
            |of: &mut Given<S>| Out::uninit(of.planes.as_mut_ptr().cast(), of.planes.len() * 8);
        let ranges = |of: &mut Given<S>| Out::uninit(of.ranges.as_mut_ptr(), of.ranges.len());
        let params = (
            a.source,
            b.source,
            numbers(a),
            numbers(b),
            planes(a),
            planes(b),
            ranges(a),
            ranges(b),
        );
        check::launch(kernel, &config, params, &options).expect("not cancelled")
    };
    assert!(report.is_clean(), "{:?} {:?}: {report}", a.source, b.source);
}

#[test]
fn slices_are_the_number() {
    once!(SOURCES);
    let mut numbers = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::MAX,
        f32::MIN,
        // The first one that would be rounded to infinity, and the last one that is not.
        f32::from_bits(0x7f7f_8000),
        f32::from_bits(0xff7f_7fff),
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -f32::from_bits(0x7f_ffff),
        2f32.powi(-110) * 1.999_999_9,
        -2f32.powi(-111) * 1.999_999_9,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    // Every exponent, and various bits.
    let spread = (0..2000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b1)));
    numbers.extend(spread.filter(|x| x.is_finite()));
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let shapes = [
        ([1, 1, 1], [1, 3, 300]),
        ([2, 33, 40], [1, 70, 256]),
        ([1, 32, 256], [3, 31, 7]),
        ([1, 65, 515], [1, 8, 2048]),
    ];
    for (number, (of_a, of_b)) in shapes.into_iter().enumerate() {
        for (gap, start) in [(0, 0), (1, 1), (3, 2), (4, 3)] {
            let mut a = Given::new(of_a, gap, start, &numbers);
            let mut b = Given::new(of_b, gap, 3 - start, &numbers[5..]);
            cut((&split_bf16x3, 8), [&mut a, &mut b], orders[(number + gap) % 4]);
            a.check();
            b.check();
        }
    }
}
