//! Random products beside exact integers: docs/testing/fuzz.md.
//!
//! ```text
//! draw       a product as plain data, from a seed
//! filled     its operands among noise, and the right C by integers
//! call       asks the library for it
//! run        twice, and compares everything
//! refusal    what may be refused
//! campaign   many of them, by several threads
//! invariant  pairs of products with common rows: the same bits
//! sharded    products over several CPU devices, beside one
//! digest     what is planned for products, and C's bits: the same after a change of structure
//! ```

pub mod benches;
pub mod call;
pub mod campaign;
pub mod digest;
pub mod draw;
pub mod filled;
pub mod invariant;
pub mod memory;
pub mod product;
pub mod refusal;
pub mod run;
pub mod sharded;
pub mod shrink;
pub mod tally;
pub mod want;
