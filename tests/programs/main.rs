//! The small programs, on every device.
//!
//! | module | what it holds them to |
//! |---|---|
//! | `vec_add` | the example adds exactly, also where the last block is not full |
//! | `padding` | padded products are exact at ragged sizes, and cost what they must |
//! | `transposed` | a product with B transposed by the CPU is exact at ragged sizes |
//! | `blur` | every byte of both kernels is that of four plain loops |
//! | `clean` | each kernel does nothing that it must not, in several orders |
//! | `divergence` | the share of divergent warps is what the boundary checks make it, and shrinks |

mod blur;
mod clean;
mod divergence;
mod padding;
mod transposed;
mod vec_add;
