//! Every product of the registry on every device.
//!
//! | module | what it holds them to |
//! |---|---|
//! | `shapes` | exact results at sizes chosen for where kernels go wrong |
//! | `random` | exact results and bounded errors at random sizes |
//! | `special` | NaN and infinities reach exactly the elements that they should |
//! | `same_bits` | the same bits from every run, number of cores, tile size and device |
//! | `tensor` | the ladder of bf16 on tensor cores: exact results at ragged sizes |
//! | `panels` | more rows than one launch can have |
//! | `oracle` | nalgebra against three plain loops |

mod check;
mod oracle;
mod panels;
mod random;
mod same_bits;
mod shapes;
mod special;
mod tensor;
