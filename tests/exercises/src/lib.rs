//! The exercises of `docs/course`: kernels to correct with the checked launch, and questions whose answers are
//! counted.
//!
//! ```console
//! cargo run -p exercises                   # the list
//! cargo run -p exercises -- 3              # what is wrong with src/kernels/toy_table.rs
//! cargo run -p exercises -- 3 --answer     # the same of src/answers/toy_table.rs
//! cargo run -p exercises -- 12 8           # is 8 the answer to question 12?
//! ```
//!
//! Every kernel computes `C = A B`. A is `m x k`, B is `k x n`, C is `m x n`, row-major. The repository's tests check
//! that each kernel of [`kernels`] is wrong in the way of its exercise, and that each of [`answers`] is right. If you
//! have corrected one and want to run the tests, restore the wrong one with `git restore tests/exercises`.

// Each pair is compiled once, for the checked launch. Nothing here runs on a GPU.
use simt::checked as device;

pub mod answers;
pub mod attempt;
mod counted;
pub mod kernels;
pub mod list;
pub mod questions;
