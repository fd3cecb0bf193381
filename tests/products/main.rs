//! Every product of the registry on every device.
//!
//! | module | what is tested |
//! |---|---|
//! | `shapes` | exact results at sizes where kernels are likely to fail |
//! | `random` | exact results and bounded errors at random sizes |
//! | `special` | NaN and infinities reach exactly the elements that depend on them |
//! | `same_bits` | the same bits in every run, for every number of cores, tile size and device |
//! | `tensor` | the ladder of bf16 on tensor cores: exact results at ragged sizes |
//! | `panels` | more rows than one launch can have |
//! | `oracle` | nalgebra compared with three plain loops |

mod check;
mod oracle;
mod panels;
mod random;
mod same_bits;
mod shapes;
mod special;
mod tensor;
