//! Products whose operands TMA copies to tensor cores, as their kernels are launched.

use std::num::NonZeroU32;

use gpu::{
    collective::{background::COUNTERS, real::Real, stored::Stored},
    params::{COL_BIAS, GemmParams, MatrixBatch, RELU, ScaleStrides},
};
use host::gemm::Output;
use simt::{
    Bound, Elements, LaunchConfig, Named,
    check::{Options, Order, Profile, Report},
};
use tests::kernels::{Kernel, read, run, watch, write};

use super::operand::{Operand, number};

/// How the work of a product is divided.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// This many persistent blocks, or clusters, compute all tiles.
    Walkers(u32),
    /// Each tile has a cluster, whose blocks, this many, split k.
    Parts(u32),
}
use Work::{Parts, Walkers};

/// The types of A and B, and of C.
pub(super) trait Number: Stored<Real: Into<f64> + std::fmt::Debug> + Output {}

impl<T: Stored<Real: Into<f64> + std::fmt::Debug> + Output> Number for T {}

fn name((entry, _): Kernel) -> &'static str {
    entry.name()
}

/// C, and its operands.
pub(super) struct Given<T, O> {
    pub(super) problem: GemmParams,
    pub(super) a: Operand<T>,
    pub(super) b: Operand<T>,
    pub(super) c: Vec<O>,
    pub(super) bias: Vec<O>,
    /// The result before it is rounded to the type of C.
    pub(super) expected: Vec<f64>,
    /// The sum of the absolute values of the terms.
    pub(super) magnitudes: Vec<f64>,
}

impl<T: Number, O: Number> Given<T, O> {
    /// A product of elements that `value` gives by row, column, and 1 for A, 2 for B, 3 for C. Rows
    /// of A repeat after `period` rows, and columns of B after `period` columns.
    pub(super) fn new(
        case: Kernel,
        sizes: [usize; 3],
        scales: (f64, f64),
        full: bool,
        values: (impl Fn(usize, usize, usize) -> f32, usize),
    ) -> Self {
        Self::with_pitch(pitch::<T>(19), case, sizes, scales, full, values)
    }

    /// The same, where A's rows have that distance if they are unaligned.
    pub(super) fn with_pitch(
        unaligned: impl Fn(usize) -> usize,
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
        let pitch_a = |cols| if of_classes { unaligned(cols) } else { pitch::<T>(0)(cols) };
        let a = Operand::new([1, m, k], a_k_major, pitch_a, a_boxes, |_, row, p| value(row, p, 1));
        let b = Operand::new([1, n, k], b_k_major, pitch::<T>(0), b_boxes, |_, col, p| {
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

    pub(super) fn run(&self, case: Kernel, work: Work) -> Vec<O> {
        let mut c = self.c.clone();
        let config = self.config(case, work);
        // SAFETY: as `launch` says.
        self.launch(case, &mut c, |arguments| unsafe { run(case.0, &config, arguments) });
        c
    }

    pub(super) fn run_watched(&self, case: Kernel, work: Work, order: Order) -> Vec<O> {
        let mut options = Options::default();
        options.order = order;
        self.watch(case, work, options).0
    }

    /// The counts of all blocks.
    pub(super) fn profile(&self, case: Kernel, work: Work) -> Profile {
        let mut options = Options::default();
        options.profile = NonZeroU32::new(1);
        self.watch(case, work, options).1.profile.expect("it was asked for")
    }

    fn watch(&self, case: Kernel, work: Work, mut options: Options) -> (Vec<O>, Report) {
        // C is 128-byte aligned, as the counts assume.
        let mut memory = vec![O::nearest(O::Real::from_f64(0.0)); self.c.len() + 128];
        let start = memory.as_ptr().align_offset(128);
        let c = &mut memory[start..][..self.c.len()];
        c.copy_from_slice(&self.c);
        // Padding between rows of an operand is not read.
        let is_whole = |of: &Operand<T>| of.pitch == of.extents[2];
        options.complete =
            [&self.a, &self.b].into_iter().all(is_whole) && case.1.variant.access.classes() == 1;
        let config = self.config(case, work);
        let report = self.launch(case, c, |arguments| {
            // SAFETY: as `launch` says.
            unsafe { watch(case.0, &config, arguments, &options) }
        });
        assert!(report.is_clean(), "{}, {}: {report}", name(case), options.order);
        (c.to_vec(), report)
    }

    /// Checks exact results of integers. 16-bit elements of C are rounded once.
    pub(super) fn is_exact(&self, case: Kernel, c: &[O]) {
        let n = self.problem.n as usize;
        for (i, (&got, &want)) in c.iter().zip(&self.expected).enumerate() {
            let [got, want] = [got, number(want as f32)].map(|of: O| of.widened().into());
            assert_eq!(got, want, "{}: element ({}, {})", name(case), i / n, i % n);
        }
    }
}

/// The distance between rows: a multiple of 16 bytes, and so many elements. With 19 those of each
/// alignment class have another misalignment, and there is padding between all rows.
fn pitch<T>(gap: usize) -> impl Fn(usize) -> usize {
    move |cols| cols.next_multiple_of(16 / size_of::<T>()) + gap
}

/// A B whose tail, from the last tile on, is not packed yet. The kernel packs it in the background
/// from unaligned rows, `from`.
struct Beside<T> {
    from: Operand<T>,
    b: Operand<T>,
    first: usize,
    words: [u32; COUNTERS],
}

impl<T: Stored<Real: std::fmt::Debug>> Beside<T> {
    fn new(whole: &Operand<T>, tile_cols: u32) -> Self {
        let ([_, k, n], tile_cols) = (whole.extents, tile_cols as usize);
        let first = (n - 1) / tile_cols * tile_cols;
        let sizes = [1, n - first, k];
        let from = Operand::new(sizes, false, pitch::<T>(19), whole.shape, |_, col, p| {
            whole.element(p, first + col)
        });
        let b = Operand::new([1, n, k], false, pitch::<T>(0), whole.shape, |_, col, p| {
            if col < first { whole.element(p, col) } else { number(f32::NAN) }
        });
        Beside { from, b, first, words: [0; COUNTERS] }
    }

    fn matrix(&self) -> MatrixBatch {
        let [_, rows, cols] = self.from.extents.map(|extent| extent as u32);
        MatrixBatch {
            rows,
            cols,
            count: 1,
            pitch: self.from.pitch as u64,
            ..MatrixBatch::default()
        }
    }

    /// All elements of the unaligned rows, with the padding between them.
    fn memory(&self) -> Bound<'static> {
        let [_, rows, len] = self.from.extents;
        let len = (rows - 1) * self.from.pitch + len;
        // SAFETY: this many elements exist, and nobody writes them.
        Bound::Elements(unsafe { Elements::read(self.from.values.as_ptr().cast::<T>(), len) })
    }

    /// The place of the packed columns, with the padding after each row.
    fn place(&mut self) -> Bound<'static> {
        let first = self.b.values.as_mut_ptr().cast::<T>().wrapping_add(self.first);
        let len = self.b.extents[1] * self.b.pitch - self.first;
        // SAFETY: this many elements exist, and only the kernel uses them.
        Bound::Elements(unsafe { Elements::write(first, len) })
    }

    fn is_copied(&self, whole: &Operand<T>, name: &str) {
        let [_, k, n] = whole.extents;
        for (p, col) in (0..k).flat_map(|p| (self.first..n).map(move |col| (p, col))) {
            let (got, want) = (self.b.element(p, col).widened(), whole.element(p, col).widened());
            assert_eq!(got, want, "{name}: beside, ({p}, {col})");
        }
        assert_eq!(self.words, [0; COUNTERS], "{name}");
    }
}
