//! Products of `Gemm` on every device, with every general kernel. docs/testing/gemm.md lists the
//! tests, and the number of cases of each.
//!
//! | module | what is tested |
//! |---|---|
//! | `verification` | the reference and the comparison: every kind of wrong result is refused |
//! | `cube` | every small size with every pair of scalars and every transposition |
//! | `shapes` | exact results at sizes where kernels are likely to fail |
//! | `empty` | sizes of 0: the effect on C, and that nothing is launched |
//! | `partials` | split-K over the grid: every layout, kernels by name |
//! | `places` | leading dimensions, any strides, any misalignment |
//! | `wide` | strides beyond 2^31, more rows and products than one launch has |
//! | `scalars` | alpha and beta: what is not read, and what stays |
//! | `sliced` | operands that are split into slices: every layout, special values, errors |
//! | `sliced_f16` | factors that are split into scaled slices of f16: numbers of all sizes, sums to the bit |
//! | `special` | NaN, infinities, overflow, subnormal numbers, the sign of zero |
//! | `epilogue` | bias and activation |
//! | `activation` | the errors of smooth activations |
//! | `batches` | batches and arrays of products |
//! | `choice` | the selected kernel, and that a launch uses it |
//! | `arguments` | refused calls: their messages, and that C and the device are not changed |
//! | `overlap` | C in the memory of an operand |
//! | `memory` | memory that runs out |
//! | `recomputed` | elements that emulated fp32 recomputes: which, how many, and that they are right |
//! | `same_bits` | the same bits in every run, for every number of cores, order of fibers, kernel and device |
//! | `float8` | e4m3 and e5m2: the bound, integers, the bits of tensor cores, NaN and infinities |
//! | `integers` | i8 with sums of i32: every bit, by every kernel |
//! | `invariant` | the same bits for a row, whatever is beside it |
//! | `tensor` | products by TMA: operands in all layouts, k split over clusters |
//! | `tf32` | factors that may be rounded to tf32 |
//! | `threads` | several threads at once |
//! | `algebra` | laws of products for any numbers |
//! | `random` | random cases |
//! | `table` | docs/testing/gemm.md names every test |

mod activation;
mod algebra;
mod arguments;
mod batches;
mod choice;
mod cube;
mod empty;
mod epilogue;
mod float8;
mod integers;
mod invariant;
mod memory;
mod overlap;
mod partials;
mod parts;
mod places;
mod random;
mod recomputed;
mod same_bits;
mod scalars;
mod shapes;
mod sliced;
mod sliced_f16;
mod special;
mod table;
mod tensor;
mod tf32;
mod threads;
mod verification;
mod wide;

/// The sources of products, besides those on which every test depends. Tests with random cases do
/// not use it: each of their runs is different.
const SOURCES: &[&str] = &[
    "gpu/src/kernels/tma",
    "gpu/src/kernels/mma",
    "gpu/src/kernels/wgmma",
    "gpu/src/kernels/wgmma_tf32",
    "gpu/src/kernels/emulated",
    "tests/gemm",
];
