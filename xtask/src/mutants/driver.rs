//! Runs one mutant of one kernel, in one of two ways:
//!
//! * `check`: in check mode, on shapes that do not fit the tiles, in several orders of the threads. What the
//!   checker finds is printed.
//! * `verify`: as every test runs a kernel, and C is compared with the exact product. The first difference
//!   is printed.
//!
//! Or one mutant of a general product, `both` at once: [`general`], by tensor copies [`tensor`], and of slices [`sliced`].
//!
//! `cargo xtask mutants` compiles this file together with all mutants and starts it once for each. A mutant
//! may end the process, or never end: so whatever was printed counts, and `done` as the last line says that
//! it came to its end.

#![allow(warnings)]

extern crate cuda_std as simt;

mod general;
mod sliced;
mod table;
mod tensor;

use gpu::problem; // the general product imports it as `crate::problem`
use gpu::registry::{self, Contract, Entry};
use simt::LaunchConfig;
use simt::check::{Options, Order, Report};
use simt::cpu::Stop;

/// One mutant of one kernel.
pub enum Runs {
    Product(Product),
    /// What the checker found, and what is wrong with C.
    General(fn(entry: &Entry) -> (Vec<String>, Option<String>)),
}

/// A kernel that takes A, B, C and their sizes.
pub struct Product {
    /// On the CPU device as it always is.
    plain: fn(&LaunchConfig, &Case) -> Result<(), String>,
    /// In check mode: the kinds of what was found.
    checked: fn(&LaunchConfig, &Case, &Options) -> Result<Vec<String>, String>,
}

/// m, n, k: ragged ones of several blocks and phases, one that fits, and small ones; then one of several large
/// blocks, whose rows may be read sixteen bytes at a time, and one where that is so but for where the matrices
/// begin ([`Case::new`]).
const SHAPES: [[usize; 3]; 8] = [
    [33, 17, 49],
    [40, 70, 51],
    [16, 16, 16],
    [1, 1, 1],
    [5, 7, 3],
    [20, 35, 0],
    [132, 260, 8],
    UNALIGNED,
];
const UNALIGNED: [usize; 3] = [12, 20, 8];

/// Operands of a product, and its result so far.
pub struct Case {
    shape: [usize; 3],
    a: Banded,
    b: Banded,
    c: Banded,
}

/// A matrix between bands: what a raw pointer reads or writes outside shows, and hits nobody else's memory.
struct Banded {
    /// Of all three. Leaked: the process is a short one, and a mutant may write there whenever it likes.
    all: *mut f32,
    len: usize,
}

/// Elements of a band: more than a mistake in these shapes is off by.
const BAND: usize = 16384;

/// A NaN that no arithmetic makes.
const UNTOUCHED: u32 = 0x7fed_cba9;

impl Banded {
    /// The matrix begins so many bytes after a multiple of sixteen.
    fn new(matrix: &[f32], bytes: usize) -> Self {
        let band = vec![f32::from_bits(UNTOUCHED); BAND];
        let all = [&[0.0; 4], &*band, matrix, &band].concat().leak();
        let start = (0..4).find(|start| all[*start..].as_ptr().addr() % 16 == bytes);
        let all = all[start.expect("of four elements in a row one begins there")..].as_mut_ptr();
        let banded = Banded { all, len: matrix.len() };
        // SAFETY: bands and matrix, from wherever they begin now.
        let (front, rest) = unsafe { std::slice::from_raw_parts_mut(all, 2 * BAND + matrix.len()) }
            .split_at_mut(BAND);
        front.copy_from_slice(&band);
        rest[..matrix.len()].copy_from_slice(matrix);
        rest[matrix.len()..].copy_from_slice(&band);
        banded
    }

    fn start(&self) -> *mut f32 {
        // SAFETY: after the first band.
        unsafe { self.all.add(BAND) }
    }

    fn matrix(&self) -> &[f32] {
        // SAFETY: it is there, and no launch goes on while it is looked at.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }

    fn bands_untouched(&self) -> bool {
        // SAFETY: as above.
        let all = unsafe { std::slice::from_raw_parts(self.all, BAND + self.len + BAND) };
        let untouched = |band: &[f32]| band.iter().all(|x| x.to_bits() == UNTOUCHED);
        untouched(&all[..BAND]) && untouched(&all[BAND + self.len..])
    }
}

impl Case {
    /// Small integers, none of them zero, so that the product is exact. With `special`, infinities and a NaN
    /// at the ends of A's and B's rows: where a zero is missing, or a load is from the wrong row, C has more
    /// of them. The matrices begin at a multiple of sixteen bytes, but for the shape that is there for that.
    fn new(shape: [usize; 3], special: bool) -> Self {
        let [m, n, k] = shape;
        let mut state = 12345u32;
        let mut draw = |len: usize| {
            let next = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0][(state >> 16) as usize % 6]
            };
            (0..len).map(next).collect::<Vec<f32>>()
        };
        let (mut a, mut b) = (draw(m * k), draw(k * n));
        if special && k > 0 {
            a[k - 1] = f32::INFINITY;
            a[(m - 1) * k] = f32::NAN;
            b[0] = f32::INFINITY;
            b[k * n - 1] = f32::NEG_INFINITY;
        }
        let c = vec![f32::from_bits(UNTOUCHED); m * n];
        let bytes = if shape == UNALIGNED { 4 } else { 0 };
        let [a, b, c] = [a, b, c].map(|matrix| Banded::new(&matrix, bytes));
        Case { shape, a, b, c }
    }

    /// Where C is not what it should be.
    fn wrong(&self) -> Option<String> {
        let [m, n, k] = self.shape;
        let at = format!("m, n, k = {m}, {n}, {k}");
        let (a, b, c) = (self.a.matrix(), self.b.matrix(), self.c.matrix());
        for i in 0..m {
            for j in 0..n {
                // Integers below 2^24, or infinities and NaN: exact in any order.
                let want = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
                let got = c[i * n + j];
                let same = got == want || (got.is_nan() && want.is_nan());
                if !same || got.to_bits() == UNTOUCHED {
                    return Some(format!("{at}: C({i}, {j}) = {got}, not {want}"));
                }
            }
        }
        let untouched = [&self.a, &self.b, &self.c].iter().all(|matrix| matrix.bands_untouched());
        (!untouched).then(|| format!("{at}: written outside of a matrix"))
    }
}

/// Launches a kernel that takes its matrices as views.
#[macro_export]
macro_rules! views {
    ($plain:path, $checked:path) => {
        $crate::Runs::Product($crate::Product {
            plain: |config, case| {
                use simt::device::{In, Out};
                let [m, n, k] = case.shape.map(|size| size as u32);
                let (a, b, c) = (&case.a, &case.b, &case.c);
                // SAFETY: the views are of the case's matrices; what a mutant does beyond that is caught,
                // or ends this process, which is there for nothing else.
                unsafe {
                    let a = In::new(a.start(), a.len);
                    let b = In::new(b.start(), b.len);
                    let c = Out::new(c.start(), c.len);
                    simt::cpu::launch(&$plain, config, (m, n, k, a, b, c), &Default::default())
                }
                .map_err(|stop| stop.to_string())
            },
            checked: |config, case, options| {
                use simt::checked::{In, Out};
                let [m, n, k] = case.shape.map(|size| size as u32);
                let (a, b, c) = (&case.a, &case.b, &case.c);
                // SAFETY: as above.
                unsafe {
                    let a = In::new(a.start(), a.len);
                    let b = In::new(b.start(), b.len);
                    let c = Out::new(c.start(), c.len);
                    $crate::found(simt::check::launch(&$checked, config, (m, n, k, a, b, c), options))
                }
            },
        })
    };
}

/// Launches a kernel that takes its matrices as raw pointers.
#[macro_export]
macro_rules! pointers {
    ($both:path) => {
        $crate::pointers!($both, $both)
    };
    ($plain:path, $checked:path) => {
        $crate::Runs::Product($crate::Product {
            plain: |config, case| {
                let [m, n, k] = case.shape.map(|size| size as u32);
                let (a, b, c) = (&case.a, &case.b, &case.c);
                let params = (m, n, k, a.start().cast_const(), b.start().cast_const(), c.start());
                // SAFETY: as for the views; the bands take what goes over the edge.
                unsafe { simt::cpu::launch(&$plain, config, params, &Default::default()) }
                    .map_err(|stop| stop.to_string())
            },
            checked: |config, case, options| {
                use simt::check::Memory;
                let [m, n, k] = case.shape.map(|size| size as u32);
                let (a, b, c) = (&case.a, &case.b, &case.c);
                let params = (m, n, k, a.start().cast_const(), b.start().cast_const(), c.start());
                let mut options = options.clone();
                // A view says of itself what it is a view of.
                let memory = [(a, true), (b, true), (c, false)];
                options.memory = memory
                    .map(|(matrix, written)| Memory::new(matrix.start(), matrix.len, written))
                    .into();
                // SAFETY: as above.
                $crate::found(unsafe { simt::check::launch(&$checked, config, params, &options) })
            },
        })
    };
}

/// Launches a kernel of the general product.
#[macro_export]
macro_rules! general {
    ($checked:path) => {
        $crate::Runs::General(|entry| $crate::general::run(&$checked, entry))
    };
}

/// Launches a kernel of the general product by tensor copies.
#[macro_export]
macro_rules! tensor {
    ($checked:path) => {
        $crate::Runs::General(|entry| $crate::tensor::run(&$checked, entry))
    };
}

/// Launches a kernel that multiplies slices, or makes them.
#[macro_export]
macro_rules! sliced {
    ($checked:path) => {
        $crate::Runs::General(|entry| $crate::sliced::Runs::run(&$checked, entry))
    };
}

/// The kinds of what a checked launch has found.
fn found(report: Result<Report, Stop>) -> Result<Vec<String>, String> {
    let report = report.map_err(|stop| stop.to_string())?;
    Ok(report.findings.iter().map(|finding| finding.kind.name().into()).collect())
}

fn main() {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let [stage, mutant, kernels @ ..] = &*arguments else { panic!("usage: STAGE MUTANT KERNEL..") };
    for kernel in kernels {
        let runs = table::find(mutant, kernel).expect("no such mutant");
        let entry = registry::find(kernel).expect("the kernel is not in the registry");
        let config = |[m, n, _]: [usize; 3]| {
            let Contract::Product(product) = &entry.contract else { panic!("no product of views") };
            let [rows, cols] = product.tile;
            let grid = [(n as u32).div_ceil(cols), (m as u32).div_ceil(rows), 1];
            LaunchConfig::new(grid, product.block)
        };
        match (stage.as_str(), runs) {
            ("check", Runs::Product(product)) => check(&product, config),
            ("verify", Runs::Product(product)) => verify(&product, config),
            ("both", Runs::General(run)) => {
                let (found, wrong) = run(entry);
                found.iter().for_each(|kind| println!("found {kind}"));
                wrong.iter().for_each(|wrong| println!("wrong {kernel}, {wrong}"));
                if !found.is_empty() {
                    break;
                }
            }
            _ => panic!("check, verify or, for a general product, both; not {stage}"),
        }
    }
    println!("done");
}

/// Stops at the first launch that finds something.
fn check(runs: &Product, config: impl Fn([usize; 3]) -> LaunchConfig) {
    for shape in SHAPES {
        for order in [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)] {
            let case = Case::new(shape, false);
            let mut options = Options::default();
            options.complete = true;
            options.order = order;
            let found = (runs.checked)(&config(shape), &case, &options).expect("a launch");
            for kind in &found {
                println!("found {kind}");
            }
            if !found.is_empty() {
                return;
            }
        }
    }
}

/// Stops at the first wrong result.
fn verify(runs: &Product, config: impl Fn([usize; 3]) -> LaunchConfig) {
    for special in [false, true] {
        for shape in SHAPES {
            let case = Case::new(shape, special);
            let outcome = (runs.plain)(&config(shape), &case);
            if let Some(wrong) = outcome.err().or_else(|| case.wrong()) {
                return println!("wrong {wrong}");
            }
        }
    }
}
