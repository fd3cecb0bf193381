//! The arithmetic of a product.

/// How a product is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compute {
    /// Products and sums in the operands' own type; of bf16 and f16 in f32.
    #[default]
    Native,
    /// Factors of f32 may be rounded to tf32, with 10 bits of fraction in place of 23, to the nearest; their sums are f32's.
    /// Hopper's tensor cores multiply these several times as fast, those of other GPUs from Ampere on as fast as they can; C's
    /// relative error is about 3e-4. Where no such kernel is predicted to be the fastest, on the CPU device unless one is named,
    /// and of other types, it is as [`Native`](Compute::Native).
    Tf32,
    /// Factors of f32 may be cut into three slices of bf16 each, which Hopper's tensor cores multiply: six products of bf16
    /// for one of f32, and more than twice as fast as f32 on CUDA cores. C is as accurate as f32's, and more so where k is
    /// not small: an element is within `(k / 32 + 48) 2^-24` of the exact sum, relative to the sum of the terms' absolute
    /// values, where k fused multiply-adds have k in place of `k / 32 + 48`. NaN, infinities, overflow and subnormal numbers
    /// come out as f32 has them: such elements are computed by fused multiply-adds.
    ///
    /// It takes six bytes of workspace for each element of A and B: [`SLICES_WORKSPACE_LIMIT`](crate::gemm::SLICES_WORKSPACE_LIMIT) where nothing else is said.
    /// Where there is no such kernel, where another is faster, and of other types, it is as [`Native`](Compute::Native).
    Fp32Bf16x6,
    /// Factors of f32 may be cut into two slices of f16 each, scaled by a power of two for every 64 x 128 elements: three
    /// products for one, and about four times as fast as f32 on CUDA cores. An element is within `(k / 32 + 58) 2^-24` of the
    /// exact sum, as of [`Fp32Bf16x6`](Compute::Fp32Bf16x6). What scaling may have made less accurate than that is computed by
    /// fused multiply-adds, and so are NaN, infinities and overflow; of numbers that differ by 2^17 and more within such a patch
    /// these may be many, and slow: there the other is the better choice.
    ///
    /// It takes four bytes of workspace for each element of A and B: [`SLICES_WORKSPACE_LIMIT`](crate::gemm::SLICES_WORKSPACE_LIMIT) where nothing else is said.
    /// Where there is no such kernel, where another is faster, and of other types, it is as [`Native`](Compute::Native).
    Fp32F16x3,
}

impl Compute {
    /// May A and B be split into slices?
    pub(crate) fn is_emulated(self) -> bool {
        matches!(self, Compute::Fp32Bf16x6 | Compute::Fp32F16x3)
    }
}
