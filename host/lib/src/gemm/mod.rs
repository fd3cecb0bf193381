//! The general product: `C = activation(alpha op(A) op(B) + beta C + bias)`.
//!
//! ```
//! use gpu_gemm::{Device, Gemm, Layout, Matrix};
//!
//! let device = Device::best().device;
//! let stream = device.stream()?;
//! let a = Matrix::from_row_major(&device, 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = Matrix::from_row_major(&device, 2, 3, &[1.0, 0.0, 1.0, 0.0, 1.0, 1.0])?;
//! let mut c = Matrix::with_layout(&device, 2, 2, Layout::ColMajor, 2)?;
//!
//! // C = A B^T / 2: a transpose is a view, and so is a part of a matrix.
//! let choice = Gemm::new().alpha(0.5).run(&stream, a.view(), b.view().t(), c.view_mut())?;
//! assert_eq!(c.to_row_major()?, [2.0f32, 2.5, 5.0, 5.5]);
//! println!("{}: {}", choice.entry.name(), choice.reason);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```
//!
//! # Rules, as in BLAS
//! * With `beta = 0` C is not read and may hold anything; with `alpha = 0` or `k = 0` A and B are not read.
//! * Any size may be 0. Where C stays as it is (`beta = 1`, and `alpha = 0` or `k = 0`, no bias, no activation)
//!   nothing is launched, and not a bit of it changes.
//! * C shares no element with A, B or the bias. Borrows see to that; of [foreign](crate::Device::foreign) memory it is
//!   checked.
//!
//! # What comes out
//! An element is one sum in the order of k, by fused multiply-adds in the operands' type, then
//! `fma(beta, c, alpha * sum)`, the bias, the activation, each rounded. Operands of [`Bf16`](simt::Bf16) or
//! [`F16`](simt::F16) are widened to f32 first, and everything is computed in that; where C is of their type too, it is
//! rounded once more at the end, to the nearest: of f16 what would be 65520 or more is infinite, though no sum before has
//! overflowed.
//!
//! Every kernel gives the same bits, on every device, in every run, but for four things: a zero's sign where a product
//! underflowed (tiles are filled up with zeros, and -0 + 0 is 0); `rust_cuda_tiled16`, which is taken by name alone and
//! rounds each product; the kernels `tma_..`, which may put a sum together of parts: warps or blocks that split k
//! ([`Gemm::split_k`]; by default as many on every device) add up each its own, and the parts are added in order, as are the partial products
//! of split-K over the grid ([`Gemm::partials`]); and the kernels `wgmma_..` of bf16 and
//! f16, whose tensor cores add 16 products and the sum before at a time, and cut off what is beyond 25 bits behind the
//! greatest and beyond an f32, so that sums are a little too small (of tf32, where [`Compute::Tf32`] allows it, they add 8
//! products of factors that were rounded to it; the kernels `mma_..`, on the tensor cores of other GPUs, add as many as
//! those do, on Ampere and Ada half of it and a bit less of each; of slices, where [`Compute::Fp32Bf16x6`] or [`Compute::Fp32F16x3`]
//! asks for them, up to 64 k-steps go by until a sum is rounded to the nearest). So these give the same bits in every run too, but
//! others. (Those with tiles of two widths, `wgmma_bf16x6_256x192x64_c2_..` and `wgmma_f16x3_256x192x64_c2_..`,
//! have them where it suits the number of SMs: on another device, in a batch or of a part of C some bits may be others, within the same bound.) Subnormal numbers are kept. The sign of a zero is what those operations make of it.

mod batch;
mod compute;
mod counters;
mod epilogue;
pub(crate) mod execute;
mod operands;
mod plan;
mod planes;
mod prepared;
mod product;
mod run;
mod scalar;
mod select;
mod slices;
mod split;
mod target;

pub use batch::{Batch, BatchMut};
pub use compute::Compute;
pub use epilogue::{Activation, Bias};
pub use execute::checked;
pub use plan::{Launch, Plan, Role};
pub use prepared::PreparedMatrix;
pub use product::Gemm;
#[doc(hidden)]
pub use scalar::Kernel;
pub use scalar::{Output, Scalar};
pub use select::{
    Candidate, Choice, DEFAULT_WORKSPACE_LIMIT, Ineligible, Reason, Request,
    SLICES_WORKSPACE_LIMIT, candidates, choose,
};
pub use target::Target;
