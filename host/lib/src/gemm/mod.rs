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
//! // C = A B^T / 2. A transpose is a view.
//! let choice = Gemm::new().alpha(0.5).run(&stream, a.view(), b.view().t(), c.view_mut())?;
//! assert_eq!(c.to_row_major()?, [2.0f32, 2.5, 5.0, 5.5]);
//! println!("{choice}");
//! # Ok::<(), gpu_gemm::Error>(())
//! ```
//!
//! # Rules
//! As in BLAS:
//!
//! * With `beta = 0` C is not read and may hold any values. With `alpha = 0` or `k = 0` A and B are
//!   not read.
//! * Any size may be 0.
//! * C does not overlap A, B or the bias, and the matrices C of an array do not overlap each other.
//!   For [foreign](crate::Device::foreign) memory this is checked; otherwise the borrow checker
//!   ensures it.
//!
//! Nothing is launched if C would not change: `beta = 1`, and `alpha = 0` or `k = 0`, without bias
//! and activation.
//!
//! # Numerics
//! An element of C is one sum in the order of k, by fused multiply-adds in the operands' type. Then
//! follow `fma(beta, c, alpha * sum)`, the bias and the activation, each rounded.
//! [`Bf16`](simt::Bf16) and [`F16`](simt::F16) are converted to f32 first. A C of 16 bits is
//! rounded once, at the end, to the nearest. In f16 a value of 65520 or more becomes infinite.
//! Subnormal numbers are kept.
//!
//! Every kernel gives the same bits in every run. Most kernels give the same bits as each other, on
//! every device. These differ:
//!
//! | kernels | difference |
//! |---|---|
//! | all | the sign of a zero after an underflow: tiles are padded with zeros, and `-0 + 0` is 0 |
//! | `rust_cuda_tiled16`, by name only | each product is rounded |
//! | `tma_..` | warps or blocks split k ([`Gemm::split_k`]) and add their parts in a fixed order |
//! | any, as [partial products](Gemm::partials) | the partial products are added in a fixed order |
//! | `wgmma_..`, `mma_..` | tensor cores add several products at a time and truncate |
//! | `wgmma_bf16x6_..`, `wgmma_f16x3_..` | emulated fp32; sums are rounded after at most 64 k-steps |
//!
//! The kernels `wgmma_bf16x6_256x192x64_c2_..` and `wgmma_f16x3_256x192x64_c2_..` choose the widths
//! of their tiles by the number of SMs. So on another device, in a batch or for a part of C, some
//! bits differ, within the same bound.
//!
//! docs/design/numerics.md has the error bounds.

mod batch;
mod card;
mod compute;
mod counters;
mod epilogue;
pub(crate) mod execute;
mod host_slices;
mod operands;
mod plan;
mod planes;
mod planned;
mod prepared;
mod product;
mod run;
mod scalar;
mod scales;
mod select;
mod sharded;
mod split;
mod target;
mod tune;

pub use batch::{Batch, BatchMut};
pub use card::{CARDS, Card};
pub use compute::Compute;
pub use epilogue::{Activation, Bias};
#[cfg(feature = "cpu")]
pub use execute::checked;
pub use plan::{Launch, Plan, Role};
pub use planned::PlannedGemm;
pub use prepared::PreparedMatrix;
pub use product::Gemm;
pub(crate) use run::Whole;
#[doc(hidden)]
pub use scalar::Kernel;
pub use scalar::{Output, Scalar};
pub use scales::Scales;
pub use select::{
    Candidate, Choice, DEFAULT_WORKSPACE_LIMIT, Ineligible, Invariant, Reason, Request,
    SLICES_WORKSPACE_LIMIT, Times, candidates, choose, predict, runs_on,
};
pub use sharded::{Algorithm, PreparedSharded, ShardedPlan, ShardedScalar};
pub use target::{Target, Unit};
pub use tune::TuningCache;
