//! Runs one mutant of a product of slices in check mode, or of a kernel that makes the slices. What the checker finds is told, and
//! where the result is wrong: of small integers, where C is not the exact product; else, where C, and how many of its elements have
//! been computed again, are not to the bit what the kernel makes as it is, which `tests/check` holds to be right.

use std::{fmt, marker::PhantomData};

use gpu::kernels::gemm_sliced::{self, board, halves, slices};
use gpu::problem::{COL_BIAS, IDENTITY, Matrices, NO_BIAS, Problem, RELU};
use gpu::registry::{CheckedSlicedParams, Contract, CutParams, Entry, SlicedParams, TensorKernel};
use simt::check::{self, CheckableParams, Options, Order};
use simt::device::BoxShape;
use simt::{Bf16, Declaration, Element, F16, Kernel, LaunchConfig, checked, device};

/// What a kernel that makes slices takes, as views that report every access.
type CheckedCutParams<S> = (
    Matrices,
    Matrices,
    checked::In<f32>,
    checked::In<f32>,
    checked::Out<S>,
    checked::Out<S>,
    checked::Out<S>,
    checked::Out<S>,
);

/// The parameters of a kernel of this module.
pub trait Runs: CheckableParams {
    /// Stops at the first launch in which the checker finds something: the kinds of what it found, and what was wrong until then.
    fn run(kernel: &Kernel<Self>, entry: &Entry) -> (Vec<String>, Option<String>);
}

/// What slices are of.
pub trait Slice: Element + 'static {
    /// Slices of a number.
    const SLICES: usize;
    /// What is written of a patch beside its slices, in elements.
    const WORDS: usize;
    /// What matrices hold whose launches are to find what is doubted: numbers at the ends of what these slices hold, and such of all
    /// sizes.
    const DOUBTED: [Numbers; 2];

    fn patches(rows: u32, cols: u32) -> (u32, u32);

    fn bits(self) -> u16;

    /// The kernel that makes them, as it is.
    fn cuts() -> &'static Kernel<CutParams<f32, Self>>;

    /// The kernel that multiplies them, as it is.
    fn multiplies(
        kernel: &TensorKernel<f32>,
    ) -> Option<&'static Kernel<SlicedParams<f32, f32, Self>>>;
}

impl Slice for Bf16 {
    const SLICES: usize = gemm_sliced::SLICES;
    const WORDS: usize = 2;
    const DOUBTED: [Numbers; 2] = [Numbers::Small, Numbers::Tiny];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        slices::patches(rows, cols)
    }

    fn bits(self) -> u16 {
        self.to_bits()
    }

    fn cuts() -> &'static Kernel<CutParams<f32, Self>> {
        &slices::cut_bf16x3
    }

    fn multiplies(
        kernel: &TensorKernel<f32>,
    ) -> Option<&'static Kernel<SlicedParams<f32, f32, Self>>> {
        match kernel {
            TensorKernel::Sliced { kernel, .. } => Some(kernel),
            _ => None,
        }
    }
}

impl Slice for F16 {
    const SLICES: usize = halves::SLICES;
    const WORDS: usize = halves::WORDS;
    const DOUBTED: [Numbers; 2] = [Numbers::Far, Numbers::Scaled];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        halves::patches(rows, cols)
    }

    fn bits(self) -> u16 {
        self.to_bits()
    }

    fn cuts() -> &'static Kernel<CutParams<f32, Self>> {
        &halves::cut_f16x2
    }

    fn multiplies(
        kernel: &TensorKernel<f32>,
    ) -> Option<&'static Kernel<SlicedParams<f32, f32, Self>>> {
        match kernel {
            TensorKernel::SlicedF16 { kernel, .. } => Some(kernel),
            _ => None,
        }
    }
}

/// What matrices hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers {
    /// Small integers, none of them zero.
    Integers,
    /// Numbers of 24 bits, so that no slice is zero; larger ones in each further patch.
    Full,
    /// And infinities, NaN, zeros, and rows of A of another size: of a warp's elements a few are doubted, or many.
    Special,
    /// A few numbers that slices of bf16 do not hold, one of 2^100, and columns of zeros, which are doubted with them.
    Tiny,
    /// Each product of a batch is about one end of what bf16 and f32 hold.
    Small,
    /// Of each patch of f16 another size, and within some of them all sizes.
    Scaled,
    /// Each product of a batch is about one end of what a factor of scaled slices can be, or of what is exact.
    Far,
    /// What is doubted is so for the last steps of k alone.
    Last,
    /// Zeros of either sign.
    Zeros,
    /// Multiples of 8, but for single numbers, each of which alone says something of its patch of f16; and numbers of another size in
    /// the rows behind the patch.
    Lonely,
}

impl Numbers {
    /// That of A (0) or B (1), of product `i`, in row (column of B) `outer` of so many, at step `p` of so many.
    fn at(
        self,
        which: usize,
        i: usize,
        (outer, size): (usize, usize),
        (p, k): (usize, usize),
    ) -> f32 {
        let hash =
            (((which * 5 + i) * 4099 + outer) * 8209 + p).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let full = f32::from_bits((hash >> 32) as u32 & 0x807f_ffff | 0x3f80_0000);
        let times = |exponent: i32| full * 2f32.powi(exponent);
        match self {
            Numbers::Integers => [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0][(hash >> 40) as usize % 6],
            Numbers::Full => times((outer / 128) as i32),
            Numbers::Special => match (which, outer + i, p) {
                (0, 5, 3) => f32::INFINITY,
                (0, 9, _) | (1, 6, _) => 0.0,
                (0, 11 | 16..32, _) => times(-40),
                (0, 13, 2) => f32::MAX,
                (1, 3, 1) => f32::NAN,
                (1, 69, 0) => f32::NEG_INFINITY,
                _ => full,
            },
            Numbers::Tiny => match (which, outer, p) {
                _ if which == 0 && outer + 1 == size => times(100),
                (1, 5, _) => 0.0,
                (0, 40, 0) if i == 0 => times(-120),
                (1, 70 | 256, _) if i == 0 => times(-112),
                _ => full,
            },
            Numbers::Small => match (i, which, outer, p) {
                (_, 1, 5, _) => 0.0,
                (0, 0, 3, _) | (1, 1, 3, _) => times(-112),
                // The least that slices hold, of A and of B; and the least product whose last digit is an f32's.
                (2, 0, 3, 0) | (3, 1, 3, 0) => 2f32.powi(-110),
                (2, 1, ..) | (3, 0, ..) => times(10),
                (4, 0, 3, 0) => 2f32.powi(-50),
                (4, 1, 3, 0) => 2f32.powi(-51),
                _ => full,
            },
            Numbers::Scaled => match (which, outer, p) {
                (0, 128.., 0..128) => 0.0,
                (0, 33, 0..64) => 0.0,
                _ if which == 0 && outer % 16 == 9 || which == 1 && outer % 32 == 20 => 0.0,
                _ if which == 0 && outer % 64 == 13 => times(-30),
                // In no slice of the only patch where it is not zero.
                _ if which == 0 && outer % 64 == 40 => match p {
                    64..128 => times(-60),
                    _ => 0.0,
                },
                // Rows that are ever smaller: of which sums can be relied on is said by few.
                (0, 48..64, _) => times(-2 * (outer as i32 - 48)),
                // A patch that loses much, beside tiles without it.
                (1, 258, 3) => times(40),
                _ if p % 32 == 21 => 0.0,
                _ => times((outer / 64 * 7 + p / 64 * 3 + which * 5) as i32 % 9 * 3 - 12),
            },
            Numbers::Far => match (i, which, outer, p) {
                // Their exponents are as large together as a factor cannot be, or can be at most;
                (0 | 1, 0, 3, 0) => 2f32.powi(73),
                (0, 1, 4, 1) => 2f32.powi(72),
                (1, 1, 4, 1) => 2f32.powi(71),
                (0 | 1, ..) => 0.0,
                // as small, or nearly;
                (2 | 3, 0, ..) => times(-40),
                (2, 1, ..) => times(-33),
                (3, 1, ..) => times(-32),
                // and integers of 13 bits by such of 5, and of 6.
                (4 | 5, 0, ..) => (4096 + (hash >> 40) % 4096) as f32,
                (4, 1, ..) => (16 + (hash >> 40) % 16) as f32,
                (5, 1, ..) => (32 + (hash >> 40) % 32) as f32,
                // Of 15 bits by such of 3; and a patch of zeros beside exact ones.
                (6, 0, ..) => (16385 + (hash >> 40) % 8192 * 2) as f32,
                (6, 1, ..) => (5 + (hash >> 40) % 2 * 2) as f32,
                (7, 0, _, 64..) | (8, 1, _, 64..) => 0.0,
                (7 | 8, ..) => (1 + (hash >> 40) % 3) as f32,
                _ => full,
            },
            Numbers::Zeros => 0.0f32.copysign(full),
            Numbers::Lonely => match (outer, p) {
                (2, 11) => 0.0,
                (11, 9) => 1.0,
                (0..11 | 12..64, 17) => 0.0,
                (7, 5) => f32::INFINITY,
                (53, 174) => times(20),
                // Small beside the others, and held exactly.
                (65, 13) => 2f32.powi(22),
                (64.., _) => times(40),
                _ => (8 + (hash >> 40) % 3 * 8) as f32,
            },
            Numbers::Last => match (which, outer) {
                (1, 1) => 0.0,
                (0, 2) if p + 52 < k => 0.0,
                (0, 2) => times(-50),
                (1, _) if p + 3 >= k => times(-112),
                _ => full,
            },
        }
    }
}

/// Elements from a multiple of sixteen bytes on, where the accelerator's matrices begin. All their bits are set at first: NaN.
struct Aligned<T> {
    sixteens: Vec<u128>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Element> Aligned<T> {
    fn new(len: usize) -> Self {
        let sixteens = vec![u128::MAX; (len * size_of::<T>()).div_ceil(16)];
        Aligned { sixteens, len, of: PhantomData }
    }

    fn pointer(&mut self) -> *mut T {
        self.sixteens.as_mut_ptr().cast()
    }

    fn elements(&self) -> &[T] {
        // SAFETY: so many elements are there, of which every pattern is one.
        unsafe { std::slice::from_raw_parts(self.sixteens.as_ptr().cast(), self.len) }
    }
}

/// A or B of a batch, as it lies, and its slices.
struct Operand<S> {
    source: Matrices,
    /// Elements before its first, from a multiple of sixteen bytes on.
    start: usize,
    numbers: Aligned<f32>,
    planes: Aligned<S>,
    ranges: Aligned<S>,
}

impl<S: Slice> Operand<S> {
    /// Rows, and beside that matrices, that are so much further apart than they must be; `start` elements behind a multiple of
    /// sixteen bytes.
    fn new(
        [count, rows, cols]: [usize; 3],
        ([of_rows, of_matrices], start): ([usize; 2], usize),
        value: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let pitch = cols + of_rows;
        let step = rows * pitch + of_matrices;
        let mut numbers =
            Aligned::<f32>::new(start + (count - 1) * step + (rows - 1) * pitch + cols);
        for (i, row, col) in places([count, rows, cols]) {
            // SAFETY: it has this element.
            unsafe {
                *numbers.pointer().add(start + i * step + row * pitch + col) = value(i, row, col)
            };
        }
        let (down, across) = S::patches(rows as u32, cols as u32);
        let source = Matrices {
            rows: rows as u32,
            cols: cols as u32,
            count: count as u32,
            patches: down * across * count as u32,
            pitch: pitch as u64,
            step: step as u64,
        };
        let planes = Aligned::new(count * S::SLICES * rows * slices::plane_pitch(cols));
        let ranges = Aligned::new(S::WORDS * source.patches as usize);
        Operand { source, start, numbers, planes, ranges }
    }

    /// Its first element, and how many there are.
    fn numbers(&mut self) -> (*const f32, usize) {
        // SAFETY: there are more.
        (unsafe { self.numbers.pointer().add(self.start) }, self.numbers.len - self.start)
    }

    /// Planes, and their rows and columns; and from one to the next.
    fn extents(&self) -> ([usize; 3], [usize; 2]) {
        let Matrices { rows, cols, count, .. } = self.source;
        let pitch = slices::plane_pitch(cols as usize);
        let extents = [count as usize * S::SLICES, rows as usize, cols as usize];
        (extents, [rows as usize * pitch, pitch])
    }
}

/// Matrix, row and column of all elements.
fn places([count, rows, cols]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..count * rows * cols).map(move |at| (at / (rows * cols), at / cols % rows, at % cols))
}

/// The parameters of a kernel that makes slices, as views of one vocabulary.
macro_rules! cut_params {
    ($device:ident, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        let ((of_a, len_a), (of_b, len_b)) = (a.numbers(), b.numbers());
        (
            a.source,
            b.source,
            $device::In::new(of_a, len_a),
            $device::In::new(of_b, len_b),
            $device::Out::uninit(a.planes.pointer(), a.planes.len),
            $device::Out::uninit(b.planes.pointer(), b.planes.len),
            $device::Out::uninit(a.ranges.pointer(), a.ranges.len),
            $device::Out::uninit(b.ranges.pointer(), b.ranges.len),
        )
    }};
}

/// A block for each patch.
fn cut_config<S>(a: &Operand<S>, b: &Operand<S>) -> LaunchConfig {
    LaunchConfig::new([a.source.patches + b.source.patches, 1, 1], [32, 8, 1])
}

/// Makes the slices by the kernel as it is.
fn cut<S: Slice>(a: &mut Operand<S>, b: &mut Operand<S>) {
    let config = cut_config(a, b);
    // SAFETY: the operands outlive the launch, and nobody else uses them.
    let cut = unsafe {
        simt::cpu::launch(
            S::cuts(),
            &config,
            cut_params!(device, &mut *a, &mut *b),
            &Default::default(),
        )
    };
    cut.expect("a launch");
}

const ORDERS: [Order; 4] = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];

impl<S: Slice> Runs for CheckedCutParams<S>
where
    CheckedCutParams<S>: CheckableParams,
{
    fn run(kernel: &Kernel<Self>, _: &Entry) -> (Vec<String>, Option<String>) {
        // One element, part of a patch, more than one of each; whole ones, whose rows begin at multiples of sixteen bytes or do not.
        let shapes = [
            ([1, 1, 1], [1, 3, 300]),
            ([2, 65, 40], [1, 33, 256]),
            ([2, 32, 512], [2, 31, 7]),
            ([1, 66, 255], [1, 2, 1]),
        ];
        let [ends, sizes] = S::DOUBTED;
        let all = [
            Numbers::Full,
            Numbers::Special,
            ends,
            sizes,
            Numbers::Last,
            sizes,
            Numbers::Zeros,
            Numbers::Lonely,
        ];
        let mut wrong = None;
        let mut number = 0;
        for (of_a, of_b) in shapes {
            for (gaps, start) in [([0, 0], 0), ([1, 1], 1), ([1, 0], 0), ([0, 1], 0), ([3, 3], 2)] {
                let of_numbers = [all[number % 8], all[(number + 3) % 8]];
                let operand = |which: usize, size: [usize; 3], start: usize| {
                    Operand::<S>::new(size, (gaps, start), |i, row, col| {
                        of_numbers[which].at(which, i, (row, size[1]), (col, size[2]))
                    })
                };
                let [mut a, mut wanted_a] = [0, 1].map(|_| operand(0, of_a, start));
                let [mut b, mut wanted_b] = [0, 1].map(|_| operand(1, of_b, 3 - start));
                cut(&mut wanted_a, &mut wanted_b);
                let mut options = Options::default();
                options.order = ORDERS[number % 4];
                let config = cut_config(&a, &b);
                // SAFETY: as in `cut`; what a mutant does beyond that is refused, and reported.
                let report = unsafe {
                    check::launch(kernel, &config, cut_params!(checked, &mut a, &mut b), &options)
                };
                let report = report.expect("a launch");
                for (name, of, wanted) in [("A", &a, &wanted_a), ("B", &b, &wanted_b)] {
                    let case = format!(
                        "{of_a:?} and {of_b:?}, {gaps:?} apart, {start} behind, {of_numbers:?}"
                    );
                    wrong = wrong.or(off(of, wanted).map(|off| format!("{case}: {name}, {off}")));
                }
                if !report.findings.is_empty() {
                    return (kinds(&report), wrong);
                }
                number += 1;
            }
        }
        (vec![], wrong)
    }
}

/// Where planes, or what is written beside them, are not as wanted. Of a row's last sixteen bytes what lies behind the row may be any.
fn off<S: Slice>(of: &Operand<S>, wanted: &Operand<S>) -> Option<String> {
    let (extents, [step, pitch]) = of.extents();
    for (plane, row, col) in places(extents) {
        let at = plane * step + row * pitch + col;
        let [got, want] = [of, wanted].map(|of| of.planes.elements()[at].bits());
        if got != want {
            return Some(format!("plane {plane}({row}, {col}) = {got:#x}, not {want:#x}"));
        }
    }
    let mut ranges = of.ranges.elements().iter().zip(wanted.ranges.elements());
    let at = ranges.position(|(got, want)| got.bits() != want.bits())?;
    Some(format!("word {at} of the ranges"))
}

fn kinds(report: &check::Report) -> Vec<String> {
    report.findings.iter().map(|finding| finding.kind.name().into()).collect()
}

/// What the registry says of a kernel.
struct Layout<S: Slice> {
    kernel: &'static Kernel<SlicedParams<f32, f32, S>>,
    declaration: &'static Declaration,
    tile: [usize; 2],
    walkers: u32,
    narrow: Option<usize>,
    boxes: [BoxShape; 2],
    along_k: [bool; 2],
}

impl<S: Slice> Layout<S> {
    fn of(entry: &Entry) -> Self {
        let Contract::TensorProduct(product) = &entry.contract else {
            panic!("no product of f32 by tensor copies")
        };
        Layout {
            kernel: S::multiplies(&product.kernel).expect("a product of such slices"),
            declaration: product.kernel.declaration(),
            tile: product.tile.map(|size| size as usize),
            walkers: product.walkers.expect("its blocks go on to further tiles"),
            narrow: product.narrow.map(|cols| cols as usize),
            boxes: [product.a, product.b],
            along_k: product.along_k,
        }
    }
}

/// `C = activation(2 A B + beta C + bias)`, so many times; with `full` a bias of the columns, ReLU and beta = -1, else beta = 0 and
/// nothing else.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// m, n, k.
    sizes: [usize; 3],
    count: usize,
    /// Clusters, or blocks of a kernel without.
    clusters: u32,
    /// Wide tiles across, of a kernel that has tiles of two widths.
    wide: usize,
    full: bool,
    numbers: Numbers,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Case { sizes: [m, n, k], count, clusters, numbers, full, .. } = self;
        write!(f, "{count} of m, n, k = {m}, {n}, {k}, by {clusters}, {numbers:?}")?;
        f.write_str(if *full { ", beta -1, bias, ReLU" } else { "" })
    }
}

/// The first is run in every order of the threads, each of the others in one.
fn cases<S: Slice>(layout: &Layout<S>) -> Vec<Case> {
    let [rows, cols] = layout.tile;
    let case =
        |sizes, numbers| Case { sizes, count: 1, clusters: 1, wide: 0, full: false, numbers };
    let [ends, of_sizes] = S::DOUBTED;
    // Several patches down and across, either way that an operand may lie: those of f16 have 64 rows and 128 columns, the others 32
    // and 256. Of a block's last tile in C's rows, and in its columns, there is one.
    let patches = match of_sizes {
        Numbers::Scaled => [140, 266, 136],
        _ => [rows + rows / layout.walkers as usize + 1, 257, 40],
    };
    // More slices than the ring has stages, of the last steps a part.
    let k = if layout.walkers == 1 { 136 } else { 72 };
    let mut cases = vec![
        // Several tiles of a block, and parts of tiles.
        Case { wide: 1, full: true, ..case([rows / 2 + 9, cols + 12, k], Numbers::Integers) },
        // Of three clusters one is a tile behind; of two widths it has two narrow ones first, and a further one.
        Case { wide: 1, clusters: 3, ..case([rows + 1, cols + 270, 72], Numbers::Full) },
        Case { count: 2, clusters: 2, full: true, ..case([70, 140, 75], Numbers::Special) },
        Case { count: 9, ..case([20, 20, if ends == Numbers::Far { 72 } else { 40 }], ends) },
        Case { count: 2, wide: 1, ..case(patches, of_sizes) },
        case([1, 1, 1], Numbers::Full),
    ];
    if layout.walkers == 1 {
        // More patches along k than a warp looks at in one go, of f16; of bf16 so many that a lane looks at a third one.
        cases.push(case([3, 5, 2100], Numbers::Last));
    }
    cases
}

/// The parameters of a kernel that multiplies slices, as views of one vocabulary.
macro_rules! params {
    ($device:ident, $problem:expr, $layout:expr, $operands:expr, $c:expr, $bias:expr, $board:expr) => {{
        let ([a, b], c, bias, board) = ($operands, $c, $bias, $board);
        let ((of_a, len_a), (of_b, len_b)) = (a.numbers(), b.numbers());
        let ((extents_a, strides_a), (extents_b, strides_b)) = (a.extents(), b.extents());
        let [shape_a, shape_b] = $layout.boxes;
        let map = "what the accelerator takes";
        (
            $problem,
            $device::TensorMap::new(a.planes.pointer(), extents_a, strides_a, shape_a).expect(map),
            $device::TensorMap::new(b.planes.pointer(), extents_b, strides_b, shape_b).expect(map),
            $device::In::new(of_a, len_a),
            $device::In::new(of_b, len_b),
            $device::In::new(a.ranges.pointer().cast_const(), a.ranges.len),
            $device::In::new(b.ranges.pointer().cast_const(), b.ranges.len),
            match $problem.beta {
                0.0 => $device::Out::uninit(c.as_mut_ptr(), c.len()),
                _ => $device::Out::new(c.as_mut_ptr(), c.len()),
            },
            $device::In::new(bias.as_ptr(), bias.len()),
            $device::Out::new(board.as_mut_ptr(), board.len()),
        )
    }};
}

/// A NaN that no arithmetic makes.
const UNTOUCHED: f32 = f32::from_bits(0x7fed_cba9);

/// The stream's board before: so that the count is carried.
fn board() -> [u32; board::LEN] {
    let mut words = [0; board::LEN];
    words[board::RECOMPUTED] = u32::MAX - 3;
    words
}

impl<S: Slice> Runs for CheckedSlicedParams<f32, f32, S>
where
    CheckedSlicedParams<f32, f32, S>: CheckableParams,
{
    fn run(kernel: &Kernel<Self>, entry: &Entry) -> (Vec<String>, Option<String>) {
        let layout = Layout::<S>::of(entry);
        let mut wrong = None;
        for (number, case) in cases(&layout).iter().enumerate() {
            let orders = match number {
                0 => &ORDERS[..],
                _ => &ORDERS[number % 4..][..1],
            };
            let (found, off) = launch(kernel, &layout, case, orders);
            wrong = wrong.or_else(|| off.map(|off| format!("{case}: {off}")));
            if !found.is_empty() {
                return (found, wrong);
            }
        }
        (vec![], wrong)
    }
}

fn launch<S: Slice>(
    kernel: &Kernel<CheckedSlicedParams<f32, f32, S>>,
    layout: &Layout<S>,
    case: &Case,
    orders: &[Order],
) -> (Vec<String>, Option<String>)
where
    CheckedSlicedParams<f32, f32, S>: CheckableParams,
{
    let Case { sizes: [m, n, k], count, clusters, wide, full, numbers } = *case;
    let operand = |which: usize, size: usize| {
        let number = |i, outer, p| numbers.at(which, i, (outer, size), (p, k));
        let place = ([1 + which, 1 + which], 1);
        match layout.along_k[which] {
            true => Operand::<S>::new([count, size, k], place, number),
            false => Operand::<S>::new([count, k, size], place, |i, p, outer| number(i, outer, p)),
        }
    };
    let mut operands = [operand(0, m), operand(1, n)];
    let [a, b] = &mut operands;
    cut(a, b);
    // Rows of A, and of B, and their elements: of an operand across k the other way round.
    let strides = |of: &Operand<S>, by_rows: bool| match by_rows {
        true => [of.source.pitch, 1],
        false => [1, of.source.pitch],
    };
    let problem = Problem {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        bias: if full { COL_BIAS } else { NO_BIAS },
        activation: if full { RELU } else { IDENTITY },
        alpha: 2.0,
        beta: if full { -1.0 } else { 0.0 },
        products: count as u32,
        wide: layout.narrow.map_or(0, |_| (wide * layout.tile[1]) as u64),
        a: strides(a, layout.along_k[0]),
        b: strides(b, !layout.along_k[1]),
        c: [n as u64, 1],
        batch: [a.source.step, b.source.step, (m * n) as u64],
    };
    let config = LaunchConfig {
        dynamic_shared: layout.declaration.dynamic_shared.expect("the ring"),
        cluster: [layout.walkers, 1, 1],
        ..LaunchConfig::new(
            [clusters * layout.walkers, 1, 1],
            layout.declaration.block.expect("a kernel of slices says it"),
        )
    };
    // With beta = 0 it is not to be read, and each element is to be written.
    let before = |at: usize| (at % 5) as f32 - 2.0;
    let first = || {
        let first = |at| if full { before(at) } else { UNTOUCHED };
        (0..count * m * n).map(first).collect::<Vec<_>>()
    };
    let bias = |col: usize| (col % 64) as f32 - 32.0;
    let biases = (0..if full { n } else { 0 }).map(bias).collect::<Vec<_>>();

    let (mut wanted, mut wanted_board) = (first(), board());
    // SAFETY: the operands outlive the launch, and C has as many elements as the problem says.
    let as_it_is = unsafe {
        let params = params!(
            device,
            problem,
            layout,
            &mut operands,
            &mut wanted,
            &biases,
            &mut wanted_board
        );
        simt::cpu::launch(layout.kernel, &config, params, &Default::default())
    };
    as_it_is.expect("a launch");
    if numbers == Numbers::Integers {
        for (at, (i, row, col)) in places([count, m, n]).enumerate() {
            let term =
                |p: usize| numbers.at(0, i, (row, m), (p, k)) * numbers.at(1, i, (col, n), (p, k));
            // Below 2^24: exact in any order.
            let sum = (0..k).map(term).sum::<f32>();
            wanted[at] = match full {
                true => (2.0 * sum - before(at) + bias(col)).max(0.0),
                false => 2.0 * sum,
            };
        }
    }

    let mut wrong = None;
    for &order in orders {
        let mut options = Options::default();
        options.order = order;
        let (mut c, mut board) = (first(), board());
        // SAFETY: as above; what a mutant does beyond that is refused, and reported.
        let report = unsafe {
            let params =
                params!(checked, problem, layout, &mut operands, &mut c, &biases, &mut board);
            check::launch(kernel, &config, params, &options)
        };
        let report = report.expect("a launch");
        // A NaN is any, but not the one that was there.
        let is_nan = |x: f32| x.is_nan() && x.to_bits() != UNTOUCHED.to_bits();
        let is_same =
            |got: f32, want: f32| got.to_bits() == want.to_bits() || is_nan(got) && is_nan(want);
        let off = c.iter().zip(&wanted).position(|(&got, &want)| !is_same(got, want));
        let of_c = off.map(|at| format!("C[{at}] = {:e}, not {:e}", c[at], wanted[at]));
        let off = (0..board::LEN).find(|&word| board[word] != wanted_board[word]);
        let of_board = off.map(|word| {
            format!("word {word} of the board is {}, not {}", board[word], wanted_board[word])
        });
        wrong = wrong.or(of_c).or(of_board);
        if !report.findings.is_empty() {
            return (kinds(&report), wrong);
        }
    }
    (vec![], wrong)
}
