//! The small programs, on every device.
//!
//! | module | what is tested |
//! |---|---|
//! | `vec_add` | the example adds exactly, also with a partial last block |
//! | `padding` | padded products are exact at ragged sizes, and have the derived cost |
//! | `transposed` | a product with B transposed by the CPU is exact at ragged sizes |
//! | `blur` | every byte of both kernels is that of four plain loops |
//! | `clean` | each kernel is clean, in several orders |
//! | `divergence` | the share of divergent warps is the derived one, and falls with the size |

mod blur;
mod clean;
mod divergence;
mod padding;
mod transposed;
mod vec_add;
