//! Runs one mutant of the general product in check mode: matrices that lie in any way, batches of them, and all that
//! is done to C at the end. What the checker finds is told, and where C is not what float64 says.

use std::fmt;

use gpu::problem::{COL_BIAS, GELU, IDENTITY, NO_BIAS, Problem, RELU, ROW_BIAS};
use gpu::registry::{CheckedGemmParams, Contract, Entry};
use simt::check::{self, Options, Order};
use simt::checked::{In, Out};
use simt::{Bf16, Element, Kernel, LaunchConfig, Tf32};

/// f32, f64 or bf16.
pub trait Number: Element + Into<f64> + 'static {
    /// The unit roundoff of what it is computed in.
    const ROUNDOFF: f64;
    /// A NaN that no arithmetic makes.
    const UNTOUCHED: Self;

    fn of(value: f64) -> Self;

    fn is_untouched(self) -> bool;
}

macro_rules! numbers {
    ($($number:ident, $untouched:expr;)*) => {$(
        impl Number for $number {
            const ROUNDOFF: f64 = $number::EPSILON as f64 / 2.0;
            const UNTOUCHED: $number = $number::from_bits($untouched);

            fn of(value: f64) -> $number {
                value as $number
            }

            fn is_untouched(self) -> bool {
                self.to_bits() == $untouched
            }
        }
    )*};
}

numbers! {
    f32, 0x7fed_cba9;
    f64, 0x7ffe_dcba_9876_5432;
}

impl Number for Tf32 {
    const ROUNDOFF: f64 = f32::ROUNDOFF;
    const UNTOUCHED: Tf32 = Tf32::from_bits(0x7fff_e001);

    fn of(value: f64) -> Tf32 {
        Tf32::from_f32(value as f32)
    }

    fn is_untouched(self) -> bool {
        self.to_bits() == Tf32::UNTOUCHED.to_bits()
    }
}

impl Number for Bf16 {
    const ROUNDOFF: f64 = f32::ROUNDOFF;
    const UNTOUCHED: Bf16 = Bf16::from_bits(0x7fed);

    fn of(value: f64) -> Bf16 {
        Bf16::from_f32(value as f32)
    }

    fn is_untouched(self) -> bool {
        self.to_bits() == Bf16::UNTOUCHED.to_bits()
    }
}

/// `C = activation(alpha A B + beta C + bias)`, so many times.
#[derive(Clone, Copy)]
struct Case {
    /// m, n, k.
    sizes: [usize; 3],
    count: usize,
    a: Place,
    b: Place,
    c: Place,
    alpha: f64,
    beta: f64,
    bias: u32,
    activation: u32,
    data: Data,
}

/// What matrices hold.
#[derive(Clone, Copy, PartialEq)]
enum Data {
    /// Integers, none of them zero.
    Integers,
    /// And infinities and a NaN in A and B.
    Special,
    /// C before: what GELU's error function ends at, or rounds past its end.
    Ends,
}

/// Where the elements of a matrix lie.
#[derive(Clone, Copy)]
struct Place {
    strides: [usize; 2],
    /// From a multiple of sixteen bytes to the first.
    offset: usize,
    /// From one product's first to the next one's.
    step: usize,
}

impl Place {
    fn strided(strides: [usize; 2]) -> Self {
        Place { strides, offset: 0, step: 0 }
    }

    fn at(self, offset: usize) -> Self {
        Place { offset, ..self }
    }

    fn step(self, step: usize) -> Self {
        Place { step, ..self }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Case { sizes: [m, n, k], count, alpha, beta, bias, activation, .. } = self;
        write!(f, "{count} of m, n, k = {m}, {n}, {k}, alpha {alpha}, beta {beta}, ")?;
        write!(f, "bias {bias}, activation {activation}")?;
        for (name, place) in [("A", self.a), ("B", self.b), ("C", self.c)] {
            let Place { strides, offset, step } = place;
            write!(f, ", {name} {strides:?} at {offset} by {step}")?;
        }
        Ok(())
    }
}

/// The first two are run in every order of the threads, each of the others in one. Tensor cores' operands are copied in more
/// ways than others.
fn cases(tile: usize, on_tensor_cores: bool) -> Vec<Case> {
    // Several blocks of the smallest tile, part of one of another. More phases than there are stages, the last in
    // part.
    let (m, n, k) = match tile {
        32 => (37, 45, 67),
        _ if on_tensor_cores => (tile + 11, tile + 7, 65),
        tile => (tile / 2 + 5, tile / 2 + 11, 35),
    };
    let four = |size: usize| size.next_multiple_of(4);
    // Neighbours in memory are neighbours along k: elements come one by one.
    let plain = Case {
        sizes: [m, n, k],
        count: 1,
        a: Place::strided([k, 1]),
        b: Place::strided([1, k]),
        c: Place::strided([n, 1]),
        alpha: 1.0,
        beta: 0.0,
        bias: NO_BIAS,
        activation: IDENTITY,
        data: Data::Integers,
    };
    // Four elements at a time, where there are four.
    let wide = Case {
        a: Place::strided([1, four(m)]),
        b: Place::strided([four(n), 1]),
        c: Place::strided([four(n), 1]),
        alpha: 2.0,
        beta: -1.0,
        ..plain
    };
    let unaligned = Case { a: wide.a.at(1), b: wide.b.at(1), c: wide.c.at(1), ..wide };
    let small = Case { sizes: [6, 11, 5], ..wide };
    let special = Case { data: Data::Special, ..small };
    let mut cases = vec![
        plain,
        wide,
        unaligned,
        Case { beta: 0.5, bias: ROW_BIAS, activation: RELU, ..wide },
        // Leading dimensions that are no multiples of four.
        Case { a: Place::strided([1, m]), b: Place::strided([n, 1]), c: plain.c, ..wide },
        // Four neighbours are no neighbours in memory, though all else says so; all rows of A are one.
        Case {
            sizes: [m, 11, 5],
            a: Place::strided([0, 4]),
            b: Place::strided([8, 3]),
            c: Place::strided([24, 2]),
            bias: COL_BIAS,
            ..plain
        },
        // Products of a batch begin at multiples of four elements, or do not.
        Case {
            count: 3,
            a: wide.a.step(6 * four(m)),
            b: wide.b.step(5 * four(n)),
            c: wide.c.step(6 * four(n) + 4),
            alpha: 0.0625,
            bias: COL_BIAS,
            activation: GELU,
            ..small
        },
        Case {
            count: 2,
            a: wide.a.step(6 * four(m) + 2),
            b: wide.b.step(5 * four(n) + 1),
            c: wide.c.step(6 * four(n) + 3),
            ..small
        },
        Case { activation: RELU, beta: 0.0, ..special },
        Case { a: Place::strided([5, 1]), b: Place::strided([1, 5]), ..special },
        // No products.
        Case { sizes: [6, 11, 0], bias: ROW_BIAS, ..unaligned },
        Case { sizes: [20, 32, 0], beta: 1.0, activation: GELU, data: Data::Ends, ..wide },
        Case { sizes: [1, 1, 1], ..wide },
        // All of it fits.
        Case {
            sizes: [32, 64, 16],
            a: Place::strided([1, 32]),
            b: Place::strided([64, 1]),
            c: Place::strided([64, 1]),
            ..wide
        },
    ];
    if on_tensor_cores {
        // More stages than the ring has; rows of which each second begins between two copies, of as many elements as a tile
        // has, and one more; and rows of A that are all one.
        cases.extend([
            Case { sizes: [9, 20, 330], a: Place::strided([330, 1]), ..wide },
            Case { sizes: [tile, tile, 64], a: Place::strided([65, 1]), ..unaligned },
            Case { sizes: [tile, tile + 1, 65], b: Place::strided([tile + 1, 1]), ..unaligned },
            Case { sizes: [20, 20, 40], a: Place::strided([0, 1]), ..plain },
            Case { sizes: [20, 20, 40], a: Place::strided([0, 1]).at(1), b: Place::strided([1, 40]), ..plain },
        ]);
    }
    cases
}

/// A batch of matrices, and what lies between and around them.
struct Matrix<T: Number> {
    place: Place,
    /// Products, rows, columns.
    size: [usize; 3],
    /// Leaked: the process is a short one.
    all: &'static mut [T],
    /// The first element.
    start: usize,
    len: usize,
}

/// Elements before and after.
const BAND: usize = 64;

impl<T: Number> Matrix<T> {
    fn new(size: [usize; 3], place: Place, mut value: impl FnMut([usize; 3]) -> f64) -> Self {
        let [count, rows, cols] = size;
        let len = match count * rows * cols {
            0 => 0,
            _ => {
                let [between_rows, between_cols] = place.strides;
                let last = (rows - 1) * between_rows + (cols - 1) * between_cols;
                (count - 1) * place.step + last + 1
            }
        };
        let all = vec![T::UNTOUCHED; BAND + 4 + place.offset + len + BAND].leak();
        let aligned = |start: &usize| all[*start..].as_ptr().addr().is_multiple_of(16);
        let start = (BAND..).find(aligned).expect("of four elements one is") + place.offset;
        let mut matrix = Matrix { place, size, all, start, len };
        for at in matrix.places() {
            let index = matrix.index(at);
            matrix.all[index] = T::of(value(at));
        }
        matrix
    }

    fn places(&self) -> impl Iterator<Item = [usize; 3]> + use<T> {
        let [count, rows, cols] = self.size;
        (0..count * rows * cols).map(move |n| [n / (rows * cols), n / cols % rows, n % cols])
    }

    fn index(&self, [i, row, col]: [usize; 3]) -> usize {
        let Place { strides: [between_rows, between_cols], step, .. } = self.place;
        self.start + i * step + row * between_rows + col * between_cols
    }

    fn get(&self, at: [usize; 3]) -> f64 {
        self.all[self.index(at)].into()
    }

    fn pointer(&mut self) -> *mut T {
        self.all[self.start..].as_mut_ptr()
    }

    /// Are there no elements between its own?
    fn is_dense(&self) -> bool {
        self.len == self.size.iter().product()
    }

    /// Has something been written that is no element of it?
    fn is_written_outside(&self) -> bool {
        let mut inside = vec![false; self.all.len()];
        self.places().for_each(|at| inside[self.index(at)] = true);
        self.all.iter().zip(inside).any(|(x, inside)| !inside && !x.is_untouched())
    }
}

/// Stops at the first launch in which the checker finds something: the kinds of what it found, and the first that was
/// wrong with C until then.
pub fn run<T: Number>(
    kernel: &Kernel<CheckedGemmParams<T>>,
    entry: &Entry,
) -> (Vec<String>, Option<String>)
where
    CheckedGemmParams<T>: check::CheckableParams,
{
    // Tiles are as high as wide.
    let (block, [tile, _]) = match &entry.contract {
        Contract::ProductF64(product) => (product.block, product.tile),
        Contract::ProductBf16(product) => (product.block, product.tile),
        Contract::ProductTf32(product) => (product.block, product.tile),
        Contract::Product(product) => (product.block, product.tile),
        _ => panic!("no general product"),
    };
    let tile = tile as usize;
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let mut wrong = None;
    for (number, case) in cases(tile, kernel.declaration.name.starts_with("gemm_mma")).iter().enumerate() {
        let orders = match number {
            0 | 1 => &orders[..],
            _ => &orders[number % 4..][..1],
        };
        for &order in orders {
            let (found, off) = launch(kernel, block, tile, case, order);
            wrong = wrong.or_else(|| off.map(|off| format!("{case}: {off}")));
            if !found.is_empty() {
                return (found, wrong);
            }
        }
    }
    (vec![], wrong)
}

fn launch<T: Number>(
    kernel: &Kernel<CheckedGemmParams<T>>,
    block: [u32; 3],
    tile: usize,
    case: &Case,
    order: Order,
) -> (Vec<String>, Option<String>)
where
    CheckedGemmParams<T>: check::CheckableParams,
{
    let [m, n, k] = case.sizes;
    let mut state = 12345u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0][(state >> 16) as usize % 6]
    };
    // At the ends of rows and columns: where a zero is missing, or a load is from the wrong one, C has more of them.
    let special = |at: bool, value: f64, otherwise: f64| match at && case.data == Data::Special {
        true => value,
        false => otherwise,
    };
    let mut a = Matrix::<T>::new([case.count, m, k], case.a, |[_, row, p]| {
        let number = special(row == 0 && p + 1 == k, f64::INFINITY, draw());
        special(row + 1 == m && p == 0, f64::NAN, number)
    });
    let mut b = Matrix::<T>::new([case.count, k, n], case.b, |[_, p, col]| {
        let number = special(p == 0 && col == 0, f64::INFINITY, draw());
        special(p + 1 == k && col + 1 == n, f64::NEG_INFINITY, number)
    });
    // With beta = 0 it is not to be read.
    let mut c = Matrix::<T>::new([case.count, m, n], case.c, |[_, row, col]| match case.data {
        _ if case.beta == 0.0 => f64::NAN,
        Data::Ends => match row * n + col {
            // Of f32 and of f64.
            0 => 21551.0 / 4096.0,
            1 => 34099.0 / 4096.0,
            number => number as f64 / -64.0,
        },
        _ => draw(),
    });
    let c_before = c.places().map(|at| c.get(at)).collect::<Vec<_>>();
    let biases = match case.bias {
        ROW_BIAS => m,
        COL_BIAS => n,
        _ => 0,
    };
    // Two are so large that nothing else matters.
    let mut bias = Matrix::<T>::new([1, 1, biases], Place::strided([0, 1]), |at| match at {
        [.., 2] => -4096.0,
        [.., 4] => 4096.0,
        _ => draw(),
    });

    let problem = Problem {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        bias: case.bias,
        activation: case.activation,
        alpha: case.alpha,
        beta: case.beta,
        a: case.a.strides.map(|stride| stride as u64),
        b: case.b.strides.map(|stride| stride as u64),
        c: case.c.strides.map(|stride| stride as u64),
        batch: [case.a, case.b, case.c].map(|place| place.step as u64),
        ..Problem::default()
    };
    let grid = [n.div_ceil(tile) as u32, m.div_ceil(tile) as u32, case.count as u32];
    let dynamic_shared = kernel.declaration.dynamic_shared.unwrap_or(0);
    let config = LaunchConfig { dynamic_shared, ..LaunchConfig::new(grid, block) };
    let mut options = Options::default();
    options.order = order;
    options.complete = k > 0 && a.is_dense() && b.is_dense() && c.is_dense();
    // SAFETY: the views are of the matrices; what a mutant does beyond that is refused, and reported.
    let report = unsafe {
        let views = (In::new(a.pointer(), a.len), In::new(b.pointer(), b.len));
        let written = match case.beta {
            0.0 => Out::uninit(c.pointer(), c.len),
            _ => Out::new(c.pointer(), c.len),
        };
        let bias = In::new(bias.pointer(), bias.len);
        check::launch(kernel, &config, (problem, views.0, views.1, written, bias), &options)
    };
    let report = report.expect("a launch");
    let found = report.findings.iter().map(|finding| finding.kind.name().into()).collect();

    let mut wrong = c.is_written_outside().then(|| "written outside of C".to_owned());
    for (at, before) in c.places().zip(c_before) {
        let [i, row, col] = at;
        // Integers below 2^24, or parts of them, or infinities and NaN: exact in any order.
        let sum = (0..k).map(|p| a.get([i, row, p]) * b.get([i, p, col])).sum::<f64>();
        let scaled = if case.beta == 0.0 { 0.0 } else { case.beta * before };
        let bias = match case.bias {
            ROW_BIAS => bias.get([0, 0, row]),
            COL_BIAS => bias.get([0, 0, col]),
            _ => 0.0,
        };
        let ends = activated::<T>(case.activation, case.alpha * sum + scaled + bias);
        // C's own rounding keeps the order.
        let [low, high] = ends.map(|end| -> f64 { T::of(end).into() });
        let got = c.get(at);
        let right = low <= got && got <= high || low.is_nan() && got.is_nan();
        if !right || c.all[c.index(at)].is_untouched() {
            wrong = wrong.or(Some(format!("C{at:?} = {got}, not from {low} to {high}")));
        }
    }
    (found, wrong)
}

/// The least and the most that it may be.
fn activated<T: Number>(activation: u32, x: f64) -> [f64; 2] {
    match activation {
        RELU if x < 0.0 => [0.0; 2],
        // No number of these types is as near to zero, or to x.
        GELU if x.abs() > 64.0 => [x.max(0.0); 2],
        GELU => {
            // `tests/src/gemm/want.rs` says why so many roundings. It is between 0 and x in any case.
            let gelu = 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
            let bound = 32.0 * T::ROUNDOFF * x.abs();
            [(gelu - bound).max(x.min(0.0)), (gelu + bound).min(x.max(0.0))]
        }
        _ => [x; 2],
    }
}
