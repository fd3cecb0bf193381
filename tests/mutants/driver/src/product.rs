//! Cases of products, and their launches.

use gpu::problem::{COL_BIAS, GELU, IDENTITY, NO_BIAS, Problem, ROW_BIAS};
use simt::{
    Kernel, LaunchConfig,
    check::{CheckableParams, Memory, Options},
    checked::{In, Out},
};

use crate::{
    memory::{Matrix, Number, Place},
    numbers::{Numbers, integer},
    trial::{self, Outcome},
};

/// `C = activation(alpha A B + beta C + bias)`, so many times.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// m, n, k.
    pub sizes: [usize; 3],
    pub count: usize,
    pub numbers: Numbers,
    /// Are A's rows, and B's columns, the rows of what is in memory? Else it is A's columns, B's rows.
    pub along_k: [bool; 2],
    pub a: Place,
    pub b: Place,
    pub c: Place,
    pub alpha: f64,
    pub beta: f64,
    pub bias: u32,
    pub activation: u32,
    /// Of a persistent kernel: CTAs, or clusters.
    pub blocks: u32,
    /// CTAs of a cluster that splits k.
    pub parts: u32,
    /// Columns in tiles of the greater width, where there are two.
    pub wide: usize,
}

impl Case {
    /// Dense row-major matrices, and nothing but their product.
    pub fn dense([m, n, k]: [usize; 3]) -> Self {
        let row_major = |rows, cols| Place { step: rows * cols, ..Place::strided([cols, 1]) };
        Case {
            sizes: [m, n, k],
            count: 1,
            numbers: Numbers::Integers,
            along_k: [true, false],
            a: row_major(m, k),
            b: row_major(k, n),
            c: row_major(m, n),
            alpha: 1.0,
            beta: 0.0,
            bias: NO_BIAS,
            activation: IDENTITY,
            blocks: 1,
            parts: 1,
            wide: 0,
        }
    }

    /// Matrices, rows and columns of A (0) or B (1) as they are in memory.
    pub fn size(&self, which: usize) -> [usize; 3] {
        let (outer, k) = (self.sizes[which], self.sizes[2]);
        if self.along_k[which] { [self.count, outer, k] } else { [self.count, k, outer] }
    }

    pub fn operand<T: Number>(&self, which: usize) -> Matrix<T> {
        let ([outer_size, k], place) =
            ([self.sizes[which], self.sizes[2]], [self.a, self.b][which]);
        Matrix::new(self.size(which), place).filled(|[i, row, col]| {
            let [outer, p] = if self.along_k[which] { [row, col] } else { [col, row] };
            self.numbers.at(which, [i, outer, p], [outer_size, k]).into()
        })
    }

    /// Launches, with memory for pointers in `options`, if at all, of A and B.
    pub fn launch<P: CheckableParams, O: Number>(
        &self,
        kernel: &Kernel<P>,
        config: &LaunchConfig,
        mut options: Options,
        params: impl FnOnce(Problem, Out<O>, In<O>) -> P,
    ) -> Outcome {
        let Case { sizes: [m, n, k], count, alpha, beta, activation, .. } = *self;
        let mut c = Matrix::<O>::new([count, m, n], self.c);
        // With beta = 0 C is not to be read, and each element is to be written.
        if beta != 0.0 {
            c = c.filled(|at @ [_, row, col]| match (self.numbers, row * n + col) {
                // Where GELU's error function ends, or rounds past its end, of f32 and of f64.
                (Numbers::Ends, 0) => 21551.0 / 4096.0,
                (Numbers::Ends, 1) => 34099.0 / 4096.0,
                (Numbers::Ends, number) => number as f64 / -64.0,
                _ => integer(2, at).into(),
            });
        }
        let biases = match self.bias {
            ROW_BIAS => m,
            COL_BIAS => n,
            _ => 0,
        };
        let mut bias = Matrix::<O>::vector(biases).filled(|[.., at]| match at {
            // So large that nothing else matters.
            2 if activation == GELU => -4096.0,
            4 if activation == GELU => 4096.0,
            _ => (at % 64) as f64 - 32.0,
        });
        let strides = |place: Place, by_rows: bool| {
            let [row, col] = place.strides.map(|stride| stride as u64);
            if by_rows { [row, col] } else { [col, row] }
        };
        let problem = Problem {
            m: m as u32,
            n: n as u32,
            k: k as u32,
            bias: self.bias,
            activation,
            products: count as u32,
            wide: self.wide as u64,
            alpha,
            beta,
            a: strides(self.a, self.along_k[0]),
            b: strides(self.b, !self.along_k[1]),
            c: strides(self.c, true),
            batch: [self.a, self.b, self.c].map(|place| place.step as u64),
        };
        if !options.memory.is_empty() {
            options.memory.push(Memory::new(c.pointer(), c.len, false));
        }
        options.complete &= c.is_dense();
        let params = params(problem, c.out(0, beta != 0.0), bias.view());
        // SAFETY: the caller's operands, C and bias outlive the launch, and nobody else uses them.
        unsafe { trial::launch(kernel, config, params, &options) }.and(&mut c)
    }
}
