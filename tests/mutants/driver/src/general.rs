//! Products that take their operands as views or as pointers: the lessons, and general products on CUDA cores and by `mma`.

use std::hash::{DefaultHasher, Hasher};

use gpu::{
    problem::{COL_BIAS, GELU, IDENTITY, NO_BIAS, Problem, RELU, ROW_BIAS},
    registry::{GemmKernel, GeneralProduct, Product, ProductKernel},
};
use simt::{
    Kernel, LaunchConfig,
    check::{CheckableParams, Memory, Order},
    checked::{In, Out},
};

use crate::{
    memory::{Matrix, Number, Place, integer},
    trial::{self, Outcome, Trial},
};

/// `C = activation(alpha A B + beta C + bias)`, so many times.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    /// Integers, none of them zero.
    Integers,
    /// And infinities and a NaN in A and B, at the ends of rows and columns: where a zero is missing, or a load is from the wrong
    /// place, C has more of them.
    Special,
    /// C before: where GELU's error function ends, or rounds past its end.
    Ends,
}

impl Case {
    /// Dense row-major matrices, and nothing but their product.
    fn dense([m, n, k]: [usize; 3], offset: usize, data: Data) -> Self {
        let row_major = |cols| Place::strided([cols, 1]).at(offset);
        Case {
            sizes: [m, n, k],
            count: 1,
            a: row_major(k),
            b: row_major(n),
            c: row_major(n),
            alpha: 1.0,
            beta: 0.0,
            bias: NO_BIAS,
            activation: IDENTITY,
            data,
        }
    }
}

/// Of a lesson. Those without special values are run in every order.
fn lessons() -> Vec<Case> {
    let all = [Data::Integers, Data::Special].map(|data| {
        let aligned = |sizes| Case::dense(sizes, 0, data);
        [
            // Ragged: several blocks and phases.
            aligned([33, 17, 49]),
            aligned([40, 70, 51]),
            // It fits.
            aligned([16, 16, 16]),
            // Small, and empty.
            aligned([1, 1, 1]),
            aligned([5, 7, 3]),
            aligned([20, 35, 0]),
            // Several large blocks, with rows that may be read sixteen bytes at a time; and such rows of unaligned matrices.
            aligned([132, 260, 8]),
            Case::dense([12, 20, 8], 1, data),
        ]
    });
    all.concat()
}

/// Of a general product. The first two are run in every order.
fn cases(tile: usize, on_tensor_cores: bool) -> Vec<Case> {
    // Several blocks of the smallest tile, part of one of another. More phases than there are stages, the last in part.
    let (m, n, k) = match tile {
        32 => (37, 45, 67),
        _ if on_tensor_cores => (tile + 11, tile + 7, 65),
        tile => (tile / 2 + 5, tile / 2 + 11, 35),
    };
    let four = |size: usize| size.next_multiple_of(4);
    // Contiguous along k: elements are loaded one by one.
    let plain = Case { b: Place::strided([1, k]), ..Case::dense([m, n, k], 0, Data::Integers) };
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
        // Four neighbours are not contiguous, though alignment suits; all rows of A are the same one.
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
        // k = 0.
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
        // Their operands are copied in more ways. More stages than the ring has; rows of which every second begins between two
        // copies, of as many elements as a tile has, and one more; and rows of A that are all the same one.
        let one_row = Case { sizes: [20, 20, 40], a: Place::strided([0, 1]), ..plain };
        cases.extend([
            Case { sizes: [9, 20, 330], a: Place::strided([330, 1]), ..wide },
            Case { sizes: [tile, tile, 64], a: Place::strided([65, 1]), ..unaligned },
            Case { sizes: [tile, tile + 1, 65], b: Place::strided([tile + 1, 1]), ..unaligned },
            one_row,
            Case { a: one_row.a.at(1), b: Place::strided([1, 40]), ..one_row },
        ]);
    }
    cases
}

pub fn of_product(product: &'static Product) -> Vec<Trial> {
    let blocks = (product.block, product.tile);
    match product.kernel {
        ProductKernel::Views { checked, .. } => {
            let params = |Problem { m, n, k, .. }, a, b, c, _| (m, n, k, a, b, c);
            let run = Run::<_, f32, f32> { kernel: checked, blocks, by_pointers: false, params };
            trial::trials(lessons(), 8, move |case, order| run.launch(case, order))
        }
        ProductKernel::Pointers(kernel) => {
            let params = |Problem { m, n, k, .. }, a: In<f32>, b: In<f32>, c: Out<f32>, _| {
                (m, n, k, a.as_ptr(), b.as_ptr(), c.as_ptr())
            };
            let run = Run::<_, f32, f32> { kernel, blocks, by_pointers: true, params };
            trial::trials(lessons(), 8, move |case, order| run.launch(case, order))
        }
        ProductKernel::Gemm(kernel) => of_gemm(kernel, blocks),
    }
}

pub fn of_general<T: Number, O: Number>(product: &'static GeneralProduct<T, O>) -> Vec<Trial> {
    of_gemm(product.kernel, (product.block, product.tile))
}

fn of_gemm<T: Number, O: Number>(
    GemmKernel { checked: kernel, .. }: GemmKernel<T, O>,
    blocks: ([u32; 3], [u32; 2]),
) -> Vec<Trial> {
    let params = |problem, a, b, c, bias| (problem, a, b, c, bias);
    let run = Run { kernel, blocks, by_pointers: false, params };
    let on_tensor_cores = kernel.declaration.name.starts_with("gemm_mma");
    let cases = cases(blocks.1[0] as usize, on_tensor_cores);
    trial::trials(cases, 2, move |case, order| run.launch(case, order))
}

/// A kernel, and how it is launched.
struct Run<P: 'static, T, O> {
    kernel: &'static Kernel<P>,
    /// Threads of a block, and rows and columns of its tile.
    blocks: ([u32; 3], [u32; 2]),
    by_pointers: bool,
    params: fn(Problem, In<T>, In<T>, Out<O>, In<O>) -> P,
}

impl<P: CheckableParams, T: Number, O: Number> Run<P, T, O> {
    fn launch(&self, case: &Case, order: Order) -> Outcome {
        let Case { sizes: [m, n, k], count, alpha, beta, bias, activation, data, .. } = *case;
        let special = |at: bool, value: f64, otherwise: f64| match at && data == Data::Special {
            true => value,
            false => otherwise,
        };
        let mut a = Matrix::<T>::new([count, m, k], case.a).filled(|at @ [_, row, p]| {
            let number = special(row == 0 && p + 1 == k, f64::INFINITY, integer(0, at));
            special(row + 1 == m && p == 0, f64::NAN, number)
        });
        let mut b = Matrix::<T>::new([count, k, n], case.b).filled(|at @ [_, p, col]| {
            let number = special(p == 0 && col == 0, f64::INFINITY, integer(1, at));
            special(p + 1 == k && col + 1 == n, f64::NEG_INFINITY, number)
        });
        let mut c = Matrix::<O>::new([count, m, n], case.c);
        // With beta = 0 it is not to be read.
        if beta != 0.0 {
            c = c.filled(|at @ [_, row, col]| match (data, row * n + col) {
                // Of f32 and of f64.
                (Data::Ends, 0) => 21551.0 / 4096.0,
                (Data::Ends, 1) => 34099.0 / 4096.0,
                (Data::Ends, number) => number as f64 / -64.0,
                _ => integer(2, at),
            });
        }
        let biases = match bias {
            ROW_BIAS => m,
            COL_BIAS => n,
            _ => 0,
        };
        // Two are so large that nothing else matters.
        let mut bias_of = Matrix::<O>::vector(biases).filled(|at| match at {
            [.., 2] => -4096.0,
            [.., 4] => 4096.0,
            _ => integer(3, at),
        });
        let problem = Problem {
            m: m as u32,
            n: n as u32,
            k: k as u32,
            bias,
            activation,
            alpha,
            beta,
            a: case.a.strides.map(|stride| stride as u64),
            b: case.b.strides.map(|stride| stride as u64),
            c: case.c.strides.map(|stride| stride as u64),
            batch: [case.a, case.b, case.c].map(|place| place.step as u64),
            ..Problem::default()
        };
        let (block, [rows, cols]) = self.blocks;
        let grid = [problem.n.div_ceil(cols), problem.m.div_ceil(rows), count as u32];
        let dynamic_shared = self.kernel.declaration.dynamic_shared.unwrap_or(0);
        let config = LaunchConfig { dynamic_shared, ..LaunchConfig::new(grid, block) };
        let mut options = trial::options(order);
        options.complete = a.is_dense() && b.is_dense() && c.is_dense();
        if self.by_pointers {
            // A view says of itself what it is a view of.
            options.memory = vec![
                Memory::new(a.pointer(), a.len, true),
                Memory::new(b.pointer(), b.len, true),
                Memory::new(c.pointer(), c.len, false),
            ];
        }
        let views = (a.view(), b.view(), c.out_from(0, beta != 0.0), bias_of.view());
        let params = (self.params)(problem, views.0, views.1, views.2, views.3);
        // SAFETY: the matrices outlive the launch, and nobody else uses them.
        let found = unsafe { trial::launch(self.kernel, &config, params, &options) };
        let mut hasher = DefaultHasher::new();
        c.hash(&mut hasher);
        Outcome { found, hash: hasher.finish() }
    }
}
