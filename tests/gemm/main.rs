//! The general product on every device, with every general kernel. docs/testing/gemm.md lists the tests, and how many cases
//! each has.
//!
//! | module | what it holds the product to |
//! |---|---|
//! | `verification` | the reference and the comparison: every kind of wrong result is refused |
//! | `cube` | every small size with every pair of scalars and every transposition |
//! | `shapes` | exact results at sizes chosen for where kernels go wrong |
//! | `empty` | sizes of 0: what is done to C, and that nothing is launched |
//! | `partials` | split-K over the grid: every layout, kernels by name |
//! | `places` | leading dimensions, any strides, any distance from a 16-byte boundary |
//! | `wide` | strides beyond 2^31, more rows and products than one launch has |
//! | `scalars` | alpha and beta: what is not read, and what stays |
//! | `sliced` | operands that are split into slices: every layout, special values, errors |
//! | `sliced_f16` | factors that are cut into scaled slices of f16: numbers of all sizes, sums to the bit |
//! | `special` | NaN, infinities, overflow, subnormal numbers, the sign of zero |
//! | `epilogue` | bias and activation |
//! | `batches` | batches and arrays of products |
//! | `choice` | which kernel is taken, and that it is the one that was said |
//! | `arguments` | what is refused, with which words, and that C and the device are left alone |
//! | `overlap` | C and what is read in one memory |
//! | `memory` | memory that runs out |
//! | `recomputed` | elements that emulated fp32 recomputes: which, how many, and that they are right |
//! | `same_bits` | from every run, number of cores, order of fibers, kernel and device |
//! | `tensor` | products by TMA: operands as they take them, k split over clusters |
//! | `tf32` | factors that may be rounded to tf32 |
//! | `threads` | from several threads at once |
//! | `algebra` | what holds of products whatever the numbers |
//! | `random` | anything at all |
//! | `table` | docs/testing/gemm.md names every test |

mod algebra;
mod arguments;
mod batches;
mod choice;
mod cube;
mod empty;
mod epilogue;
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

/// What the general product is made of, beside what every test depends on. Tests that draw at random are not in it: each run of
/// theirs is another.
const SOURCES: &[&str] = &[
    "gpu/src/kernels/tma",
    "gpu/src/kernels/mma",
    "gpu/src/kernels/wgmma",
    "gpu/src/kernels/wgmma_tf32",
    "gpu/src/kernels/emulated",
    "tests/gemm",
];
