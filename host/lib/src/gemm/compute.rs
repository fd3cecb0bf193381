//! The arithmetic of a product.

use gpu::registry::Scheme;

/// The arithmetic of a product. All but [`Native`](Compute::Native) are for f32, and permissions,
/// no orders: the kernels of `Native` remain candidates, and the shortest predicted time decides.
/// So a permission makes no product slower by this prediction. At few rows, where slices cost more
/// than they gain, `Native` is taken: on an H200 for up to 64 rows times 4096 x 4096. On other GPUs
/// than Hopper, and for other types, there are no kernels for slices. On the CPU device kernels of
/// tf32 and for slices are used by name only.
///
/// The error of C is that of the kernel which is taken. The bounds below are of kernels that use
/// the permission; otherwise it is f32's, `k 2^-24` times the sum of the terms' absolute values. So
/// the larger of both holds for every m, n and k. [`Gemm::kernel`](crate::Gemm::kernel) names a
/// kernel where the other one must not be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compute {
    /// Products and sums in the operands' type. For bf16 and f16 in f32.
    #[default]
    Native,
    /// A and B may be rounded to tf32, which has 10 bits of fraction instead of 23. Sums are f32.
    /// The relative error of C is about 3e-4. Tensor cores multiply tf32 on Ampere and later; on
    /// Hopper this is several times as fast as f32.
    Tf32,
    /// Emulated fp32: A and B may be split into three slices of bf16 each. Hopper's tensor cores
    /// multiply the slices, six products of bf16 for one of f32. This is more than twice as fast as
    /// f32 on CUDA cores.
    ///
    /// With slices C is as accurate as in f32, and more accurate for a large k. The error of an
    /// element is at most `(k / 32 + 48) 2^-24` times the sum of its terms' absolute values. For
    /// f32 it is at most `k 2^-24` times that. Elements with NaN, infinities, overflow or subnormal
    /// numbers are recomputed by fused multiply-adds, so they are as in f32.
    ///
    /// It needs six bytes of workspace for each element of A and B. The default limit is
    /// [`SLICES_WORKSPACE_LIMIT`](crate::gemm::SLICES_WORKSPACE_LIMIT).
    Fp32Bf16x6,
    /// Emulated fp32: A and B may be split into two slices of f16 each. Each patch of 64 x 128
    /// elements is scaled by a power of two. Hopper's tensor cores compute three products of f16
    /// for one of f32. This is about four times as fast as f32 on CUDA cores.
    ///
    /// With slices the error of an element is at most `(k / 32 + 58) 2^-24` times the sum of its
    /// terms' absolute values. Elements whose error might be larger, and those with NaN, infinities
    /// or overflow, are recomputed by fused multiply-adds. There are many of them, and the product
    /// is slow, if the exponents in a patch span 17 bits or more.
    /// [`Fp32Bf16x6`](Compute::Fp32Bf16x6) is better then.
    ///
    /// It needs four bytes of workspace for each element of A and B. The default limit is
    /// [`SLICES_WORKSPACE_LIMIT`](crate::gemm::SLICES_WORKSPACE_LIMIT).
    Fp32F16x3,
}

impl Compute {
    /// The scheme of the kernels that it allows besides those of `Native`.
    pub(crate) fn scheme(self) -> Scheme {
        match self {
            Compute::Native => Scheme::Native,
            Compute::Tf32 => Scheme::Tf32,
            Compute::Fp32Bf16x6 => Scheme::Bf16x6,
            Compute::Fp32F16x3 => Scheme::F16x3,
        }
    }

    /// Whether it is emulated fp32.
    pub(crate) fn is_emulated(self) -> bool {
        matches!(self, Compute::Fp32Bf16x6 | Compute::Fp32F16x3)
    }
}
