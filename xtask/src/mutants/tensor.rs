//! Runs one mutant of a product by tensor copies in check mode: f32, and bf16 on tensor cores. What the checker finds is
//! told, and where C is not the exact product of small integers.

use std::fmt;

use gpu::kernels::gemm_wgmma::beside::WORDS;
use gpu::problem::{COL_BIAS, IDENTITY, Matrices, NO_BIAS, Problem, RELU};
use gpu::registry::{
    CheckedClassesParams, CheckedGemmParams, CheckedShiftedParams, CheckedTensorParams,
    Contract, Entry, TensorKernel, TensorProduct,
};
use simt::check::{self, CheckableParams, Options, Order};
use simt::checked::{In, Out, TensorMap, TensorMaps};
use simt::device::BoxShape;
use simt::{Bf16, Declaration, Kernel, LaunchConfig, Tf32};

use crate::general::Number;

/// What the registry says of a kernel.
struct Layout {
    declaration: &'static Declaration,
    tile: [usize; 2],
    most_splits: u32,
    walkers: Option<u32>,
    boxes: [BoxShape; 2],
    along_k: [bool; 2],
    shifts_a: bool,
    gathers: bool,
    copies_beside: bool,
}

impl Layout {
    fn of(entry: &Entry) -> Self {
        fn layout<T, O>(product: &TensorProduct<T, O>) -> Layout {
            Layout {
                declaration: product.kernel.declaration(),
                tile: product.tile.map(|size| size as usize),
                most_splits: product.most_splits,
                walkers: product.walkers,
                boxes: [product.a, product.b],
                along_k: product.along_k,
                shifts_a: product.kernel.shifts_a(),
                gathers: product.kernel.gathers(),
                copies_beside: product.kernel.copies_beside(),
            }
        }
        match &entry.contract {
            Contract::TensorProduct(product) => layout(product),
            Contract::TensorProductBf16(product) => layout(product),
            Contract::TensorProductBf16F32(product) => layout(product),
            _ => panic!("this driver knows products by tensor copies of f32 and bf16"),
        }
    }
}

/// `C = activation(2 A B + beta C + bias)`, so many times; with `full` a bias of the columns, ReLU and beta = -1, else
/// beta = 0 and nothing else.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// m, n, k.
    sizes: [usize; 3],
    count: usize,
    /// Of a kernel whose blocks go on to further tiles: how many blocks (or how many clusters) there are.
    blocks: u32,
    /// Blocks that split k.
    parts: u32,
    full: bool,
    /// Elements between C's rows, which nobody writes.
    between: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Case { sizes: [m, n, k], count, blocks, parts, full, between } = self;
        write!(f, "{count} of m, n, k = {m}, {n}, {k}, by {blocks} in {parts}")?;
        if *between > 0 {
            write!(f, ", {between} between C's rows")?;
        }
        f.write_str(if *full { ", beta -1, bias, ReLU" } else { "" })
    }
}

/// The first is run in every order of the threads, each of the others in one.
fn cases(layout: &Layout) -> Vec<Case> {
    let [rows, cols] = layout.tile;
    let case =
        |sizes, blocks, full| Case { sizes, count: 1, blocks, parts: 1, full, between: 0 };
    // Of a further tile there are so many columns, and C's rows begin anywhere.
    let few = |width, between| Case { between, ..case([19, cols + width, 8], 1, false) };
    let mut cases = match layout.walkers {
        // Several tiles of a block, and parts of tiles; more stages than a ring has, the last in part.
        Some(walkers) => vec![
            case([rows + 9, cols + 12, 136], 1, true),
            case([rows, cols - 3, 472], 1, false),
            // Two rows of two tiles for three blocks; C's rows begin anywhere, also where all of a tile is inside.
            case([rows + 1, 2 * cols - 3, 72], 3, false),
            // Of sixteen bytes that begin a row's last one is outside.
            case([rows, cols - 1, 8], 1, false),
            // C's rows begin at multiples of sixteen bytes.
            case([rows + 1, 2 * cols - 4, 72], 3, false),
            // More tiles of a block than a ring has stages, and several stages of each.
            case([3 * rows, 3 * cols, 72], 1, false),
            // More than a band of tiles: 2048 rows.
            case([2048 + rows / walkers as usize - 5, cols + 4, 8], 3, false),
        ],
        // Parts of tiles; more slabs than there are stages, of one ring and of four of them.
        None => vec![
            case([rows + 5, cols + 10, 110], 1, true),
            case([rows, cols, 332], 1, false),
            // Of one tile all elements are inside, of another not; C's rows begin anywhere.
            case([rows + 2, cols + 3, 129], 1, false),
            // Slabs that are whole. A row of A is 163 elements further than the one before: each of four is shifted in
            // another way.
            case([rows - 3, cols / 2, 160], 1, true),
        ],
    };
    // Not where A is of classes, each of which has tiles of its own for so few rows: what they write is others' text.
    if layout.walkers.is_some() && !layout.shifts_a {
        // Sixteen bytes of f32 and of bf16, one element less, and one more than is put down at a time.
        cases.extend([few(4, 1), few(3, 0), few(8, 1), few(7, 0), few(129, 0)]);
    }
    // As few slabs as leave one of four rings without any.
    cases.push(Case { count: 2, ..case([4, 6, 96], 1, true) });
    cases.push(case([1, 1, 1], 1, false));
    // As many steps as warps have before others begin.
    cases.push(case([3, 5, 16], 1, false));
    if layout.gathers {
        // One stage more than there are teams, the last in part.
        cases.push(case([rows - 1, cols, 203], 1, false));
    }
    if layout.most_splits > 1 {
        cases.push(Case { parts: 2, ..case([rows - 1, cols + 4, 333], 1, true) });
        // Rows of a tile that are no multiple of the parts, and others below it.
        cases.push(Case { count: 2, parts: 3, ..case([rows + 5, cols, 100], 1, false) });
        cases.push(Case { parts: 8, ..case([rows, cols, 90], 1, false) });
    }
    cases
}

/// Sixteen bytes, where the accelerator's matrices begin.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Sixteen([u8; 16]);

/// A batch of matrices whose rows lie along `inner`. They begin at multiples of sixteen bytes, or anywhere. What lies
/// between them is NaN: nobody is to read it, or it is to count for nothing.
struct Operand {
    values: Vec<Sixteen>,
    count: usize,
    outer: usize,
    inner: usize,
    pitch: usize,
    step: usize,
    /// Elements before its first, from a multiple of sixteen bytes on.
    start: usize,
    shape: BoxShape,
}

impl Operand {
    fn new<T: Number>(
        [count, outer, inner]: [usize; 3],
        (between, start): (Option<usize>, usize),
        shape: BoxShape,
        value: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let together = 16 / size_of::<T>();
        let pitch = match between {
            Some(between) => inner + between,
            None => inner.next_multiple_of(together),
        };
        let step = (pitch * outer).next_multiple_of(together);
        let mut values = vec![Sixteen([0; 16]); (start + step * count).div_ceil(together)];
        // SAFETY: as many elements of T as the sixteens have bytes for, aligned for each of them.
        let elements = unsafe {
            let first = values.as_mut_ptr().cast::<T>().add(start);
            std::slice::from_raw_parts_mut(first, step * count)
        };
        for (at, element) in elements.iter_mut().enumerate() {
            let (i, row, col) = (at / step, at % step / pitch, at % step % pitch);
            let is_inside = row < outer && col < inner;
            *element = if is_inside { T::of(value(i, row, col).into()) } else { T::UNTOUCHED };
        }
        Operand { values, count, outer, inner, pitch, step, start, shape }
    }

    /// From its first element to its last.
    fn view<T: Number>(&self) -> In<T> {
        let len = (self.count - 1) * self.step + (self.outer - 1) * self.pitch + self.inner;
        // SAFETY: so many elements at least, and nobody writes them.
        unsafe { In::new(self.values.as_ptr().cast::<T>().add(self.start), len) }
    }

    fn element<T: Number>(&self, row: usize, col: usize) -> f64 {
        let at = self.start + row * self.pitch + col;
        // SAFETY: one of its elements, which nobody writes.
        unsafe { *self.values.as_ptr().cast::<T>().add(at) }.into()
    }

    fn map<T: Number>(&self) -> TensorMap<T> {
        let (extents, strides) = ([self.count, self.outer, self.inner], [self.step, self.pitch]);
        // SAFETY: so many elements, and nobody writes them.
        unsafe { TensorMap::new(self.values.as_ptr().cast(), extents, strides, self.shape) }
            .expect("what the accelerator takes")
    }

    /// Of every row that begins as far behind a multiple of `N` elements, or of sixteen bytes at least, as one of the first `N`: from
    /// that multiple on.
    fn shifted_maps<T: Number, const N: usize>(&self) -> TensorMaps<T, N> {
        TensorMaps::new(std::array::from_fn(|first| {
            let (start, rows) = match self.outer.saturating_sub(first) {
                0 => (0, 1),
                rows => (first * self.pitch, rows.div_ceil(N)),
            };
            let extents = [self.count, rows, self.inner + start % N];
            let base = self.values.as_ptr().cast::<T>().wrapping_add(start / N * N);
            // SAFETY: as in `map`.
            unsafe { TensorMap::new(base, extents, [self.step, N * self.pitch], self.shape) }
                .expect("what the accelerator takes")
        }))
    }
}

/// The parameters of a kernel.
pub trait Parameters: CheckableParams {
    type Operand: Number;
    type C: Number;

    fn new(problem: Problem, a: &mut Operands, c: Out<Self::C>, bias: In<Self::C>) -> Self;
}

/// A and B; and B's last columns, which are copied beside the product of those before.
pub struct Operands([Operand; 2], LastColumns);

/// Columns of B in rows that begin anywhere, from that one on, and the words that their copy is counted by.
struct LastColumns {
    from: Operand,
    first: usize,
    words: [u32; WORDS],
}

impl<T: Number, O: Number> Parameters for CheckedTensorParams<T, O>
where
    CheckedTensorParams<T, O>: CheckableParams,
{
    type Operand = T;
    type C = O;

    fn new(
        problem: Problem,
        Operands([a, b], _): &mut Operands,
        c: Out<O>,
        bias: In<O>,
    ) -> Self {
        (problem, a.map(), b.map(), c, bias)
    }
}

impl Parameters for CheckedGemmParams<Bf16, f32> {
    type Operand = Bf16;
    type C = f32;

    fn new(
        problem: Problem,
        Operands([a, b], _): &mut Operands,
        c: Out<f32>,
        bias: In<f32>,
    ) -> Self {
        (problem, a.view(), b.view(), c, bias)
    }
}

impl Parameters for CheckedShiftedParams<f32, f32, 4> {
    type Operand = f32;
    type C = f32;

    fn new(
        problem: Problem,
        Operands([a, b], _): &mut Operands,
        c: Out<f32>,
        bias: In<f32>,
    ) -> Self {
        (problem, a.shifted_maps(), b.map(), c, bias)
    }
}

impl Parameters for CheckedShiftedParams<Tf32, f32, 8> {
    type Operand = Tf32;
    type C = f32;

    fn new(
        problem: Problem,
        Operands([a, b], _): &mut Operands,
        c: Out<f32>,
        bias: In<f32>,
    ) -> Self {
        (problem, a.shifted_maps(), b.map(), c, bias)
    }
}

impl<const CLASSES: usize> Parameters for CheckedClassesParams<Bf16, f32, CLASSES> {
    type Operand = Bf16;
    type C = f32;

    fn new(
        problem: Problem,
        Operands([a, b], LastColumns { from, first, words }): &mut Operands,
        c: Out<f32>,
        bias: In<f32>,
    ) -> Self {
        let last = Matrices {
            rows: from.outer as u32,
            cols: from.inner as u32,
            count: 1,
            pitch: from.pitch as u64,
            ..Matrices::default()
        };
        // SAFETY: so many elements, and words, which nobody else reads or writes but the kernel.
        let (to, words) = unsafe {
            let first_of_last = b.values.as_mut_ptr().cast::<Bf16>().add(*first);
            (
                Out::new(first_of_last, b.outer * b.pitch - *first),
                Out::new(words.as_mut_ptr(), words.len()),
            )
        };
        (problem, a.shifted_maps(), b.map(), last, from.view(), to, words, c, bias)
    }
}

/// Stops at the first launch in which the checker finds something, or C is wrong: the kinds of what it found, and what was
/// wrong.
pub fn run<P: Parameters>(kernel: &Kernel<P>, entry: &Entry) -> (Vec<String>, Option<String>) {
    let layout = Layout::of(entry);
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let mut wrong = None;
    for (number, case) in cases(&layout).iter().enumerate() {
        let orders = match number {
            0 => &orders[..],
            _ => &orders[number % 4..][..1],
        };
        for &order in orders {
            let (found, off) = launch(kernel, &layout, case, order);
            wrong = wrong.or_else(|| off.map(|off| format!("{case}: {off}")));
            if !found.is_empty() {
                return (found, wrong);
            }
        }
    }
    (vec![], wrong)
}

/// A small integer that is not zero, for each element another.
fn integer(salt: usize, i: usize, outer: usize, p: usize) -> f32 {
    let hash = (((salt * 5 + i) * 4099 + outer) * 8209 + p).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0][(hash >> 40) % 6]
}

fn launch<P: Parameters>(
    kernel: &Kernel<P>,
    layout: &Layout,
    case: &Case,
    order: Order,
) -> (Vec<String>, Option<String>) {
    let Case { sizes: [m, n, k], count, blocks, parts, full, between } = *case;
    // Columns of B that are not there yet.
    let last = match layout.copies_beside && count == 1 {
        true => (n - 1) / layout.tile[1] * layout.tile[1]..n,
        false => n..n,
    };
    let operand = |which: usize, outer: usize| {
        let shape = layout.boxes[which];
        // What is gathered begins anywhere, too; boxes at a multiple of sixteen bytes.
        let rows = match layout.gathers {
            true => (Some(3), 1 + which),
            false => ((which == 0 && layout.shifts_a).then_some(3), 0),
        };
        match layout.along_k[which] {
            true => Operand::new::<P::Operand>([count, outer, k], rows, shape, |i, row, p| {
                integer(which, i, row, p)
            }),
            false => Operand::new::<P::Operand>([count, k, outer], rows, shape, |i, p, row| {
                match which == 1 && last.contains(&row) {
                    true => f32::NAN,
                    false => integer(which, i, row, p),
                }
            }),
        }
    };
    let from = Operand::new::<P::Operand>(
        [1, k, last.len()],
        // Its rows are as far apart as B's.
        (Some(last.start + 3), 1),
        layout.boxes[1],
        |_, p, col| integer(1, 0, last.start + col, p),
    );
    let last_columns = LastColumns { from, first: last.start, words: [0; WORDS] };
    let mut operands = Operands([operand(0, m), operand(1, n)], last_columns);
    // Rows of A, and of B, and their elements: of an operand across k the other way round.
    let strides = |which: usize, by_rows: bool| {
        let pitch = operands.0[which].pitch as u64;
        if by_rows { [pitch, 1] } else { [1, pitch] }
    };
    // With beta = 0 it is not to be read, and each element is to be written.
    let before = |at: usize| (at % 5) as f32 - 2.0;
    let pitch = n + between;
    let first = |at| match full && at % pitch < n {
        true => P::C::of(before(at).into()),
        false => P::C::UNTOUCHED,
    };
    let mut c = (0..count * m * pitch).map(first).collect::<Vec<_>>();
    let bias = |col: usize| (col % 64) as f32 - 32.0;
    let biases = (0..n).map(|col| P::C::of(bias(col).into())).collect::<Vec<_>>();
    let problem = Problem {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        bias: if full { COL_BIAS } else { NO_BIAS },
        activation: if full { RELU } else { IDENTITY },
        alpha: 2.0,
        beta: if full { -1.0 } else { 0.0 },
        products: count as u32,
        a: strides(0, layout.along_k[0]),
        b: strides(1, !layout.along_k[1]),
        c: [pitch as u64, 1],
        batch: [operands.0[0].step, operands.0[1].step, m * pitch].map(|step| step as u64),
        ..Problem::default()
    };
    let declaration = layout.declaration;
    let tiles = [n.div_ceil(layout.tile[1]) as u32, m.div_ceil(layout.tile[0]) as u32];
    let grid = match layout.walkers {
        Some(_) if parts > 1 => [tiles[0] * tiles[1] * count as u32, 1, parts],
        Some(together) => [blocks * together, 1, 1],
        None => [tiles[0], tiles[1], count as u32 * parts],
    };
    let config = LaunchConfig {
        dynamic_shared: declaration.dynamic_shared.expect("the stages"),
        cluster: [1, 1, parts],
        ..LaunchConfig::new(grid, declaration.block.expect("a kernel by tensor copies says it"))
    };
    let mut options = Options::default();
    options.order = order;
    // SAFETY: the operands outlive the launch, and C has as many elements as the problem says; what a mutant does beyond
    // that is refused, and reported.
    let report = unsafe {
        let written = match full {
            true => Out::new(c.as_mut_ptr(), c.len()),
            false => Out::uninit(c.as_mut_ptr(), c.len()),
        };
        let biases = In::new(biases.as_ptr(), if full { n } else { 0 });
        check::launch(kernel, &config, P::new(problem, &mut operands, written, biases), &options)
    };
    let report = report.expect("a launch");
    let found = report.findings.iter().map(|finding| finding.kind.name().into()).collect();

    let Operands([_, b], LastColumns { words, .. }) = &operands;
    if *words != [0; WORDS] {
        return (found, Some(format!("the words are {words:?}, not zero")));
    }
    for (p, col) in (0..k).flat_map(|p| last.clone().map(move |col| (p, col))) {
        let (got, want) = (b.element::<P::Operand>(p, col), integer(1, 0, col, p));
        if got != f64::from(want) {
            return (found, Some(format!("copied {:?} = {got}, not {want}", [p, col])));
        }
    }
    for i in 0..count {
        let line = |which, outer| (0..k).map(move |p| integer(which, i, outer, p));
        let columns = (0..n).map(|col| line(1, col).collect::<Vec<_>>()).collect::<Vec<_>>();
        for row in 0..m {
            let behind = (i * m + row) * pitch + n;
            if !c[behind..behind + between].iter().all(|element| element.is_untouched()) {
                return (found, Some(format!("written behind row {row} of C")));
            }
            let a = line(0, row).collect::<Vec<_>>();
            for col in 0..n {
                // Integers below 2^24: exact in any order, and then rounded once.
                let sum = a.iter().zip(&columns[col]).map(|(a, b)| a * b).sum::<f32>();
                let at = (i * m + row) * pitch + col;
                let want = match full {
                    true => (2.0 * sum - before(at) + bias(col)).max(0.0),
                    false => 2.0 * sum,
                };
                let (got, want): (f64, f64) = (c[at].into(), P::C::of(want.into()).into());
                if got != want {
                    return (found, Some(format!("C{:?} = {got}, not {want}", [i, row, col])));
                }
            }
        }
    }
    (found, None)
}
