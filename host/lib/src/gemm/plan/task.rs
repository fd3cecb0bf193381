//! A product without its matrices: what a plan is made of.

use gpu::params::{COL_BIAS, GELU, GELU_TANH, IDENTITY, NO_BIAS, RELU, ROW_BIAS, SILU};

use crate::{
    error::Result,
    gemm::{Activation, Bias, Gemm, Output, Request, Scalar, scales::ScalePlan},
};

/// A product without its matrices. C is row-major where a swap of A and B makes it so.
pub(in crate::gemm) struct Task {
    pub(in crate::gemm) request: Request,
    /// Elements from one matrix of a batch to the next.
    pub(in crate::gemm) steps: [usize; 3],
    /// The first elements of A, B and C.
    pub(super) starts: [usize; 3],
    pub(super) is_partial: bool,
    /// K of all partial products, if one launch computes them though the last has fewer k-steps.
    pub(super) all_k: Option<usize>,
    /// Factors, rounded to the type of the sums.
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) bias: u32,
    pub(super) activation: u32,
    pub(in crate::gemm) scales: ScalePlan,
    /// Rows and columns of the slices that there are of A, and of B.
    pub(in crate::gemm) prepared: [Option<(usize, usize)>; 2],
}

impl Task {
    /// The task of a product. `is_swapped`: the request's A and B are the product's B and A.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for factors, a bias or an activation that sums
    /// of integers do not have.
    pub(in crate::gemm) fn new<T: Scalar<O>, O: Output>(
        gemm: &Gemm<T, O>,
        request: Request,
        steps: [usize; 3],
        is_swapped: bool,
    ) -> Result<Self> {
        gemm.check_epilogue()?;
        let (bias, activation) = (
            match gemm.bias {
                None => NO_BIAS,
                Some(Bias::PerRow(_)) => ROW_BIAS,
                Some(Bias::PerCol(_)) => COL_BIAS,
            },
            match gemm.activation {
                Activation::Identity => IDENTITY,
                Activation::Relu => RELU,
                Activation::Gelu => GELU,
                Activation::GeluTanh => GELU_TANH,
                Activation::Silu => SILU,
            },
        );
        let [alpha, beta] = [gemm.alpha, gemm.beta].map(T::rounded);
        let bias = if is_swapped { transposed(bias) } else { bias };
        let scales = ScalePlan::of(gemm.scales);
        let scales = if is_swapped { scales.swapped() } else { scales };
        Ok(Task { steps, alpha, beta, bias, activation, scales, ..Task::plain(request) })
    }

    /// `C = A B`, once.
    pub(in crate::gemm) fn plain(request: Request) -> Self {
        Task {
            request,
            steps: [0; 3],
            starts: [0; 3],
            is_partial: false,
            all_k: None,
            alpha: 1.0,
            beta: 0.0,
            bias: NO_BIAS,
            activation: IDENTITY,
            scales: ScalePlan::default(),
            prepared: [None; 2],
        }
    }

    /// Some rows of one of its products, for which A and B are read.
    pub(super) fn part(&self, product: usize, first_row: usize, rows: usize) -> Self {
        let Request { shape, strides: [a, ..], .. } = self.request;
        let ([of_a, of_b, _], [a_start, b_start, c_start]) = (self.steps, self.starts);
        let starts =
            [a_start + product * of_a + first_row * a[0], b_start + product * of_b, c_start];
        let request = Request { shape: shape.with_m(rows as u32), batch: 1, ..self.request };
        Task { request, starts, ..*self }
    }

    /// `C^T = B^T A^T`.
    pub(super) fn swapped(self) -> Self {
        let ([a, b, c], [of_a, of_b]) = (self.steps, self.prepared);
        let [a_start, b_start, c_start] = self.starts;
        let bias = transposed(self.bias);
        let request = self.request.swapped();
        let (steps, starts) = ([b, a, c], [b_start, a_start, c_start]);
        let scales = self.scales.swapped();
        Task { request, steps, starts, bias, scales, prepared: [of_b, of_a], ..self }
    }

    /// Whether C stays as it is.
    pub(super) fn is_nothing(&self, k: usize) -> bool {
        let Request { shape, batch, .. } = self.request;
        let stays = self.bias == NO_BIAS && self.activation == IDENTITY;
        shape.c_len() == 0 || batch == 0 || k == 0 && self.beta == 1.0 && stays
    }
}

/// The bias of C^T.
fn transposed(bias: u32) -> u32 {
    match bias {
        ROW_BIAS => COL_BIAS,
        COL_BIAS => ROW_BIAS,
        none => none,
    }
}
