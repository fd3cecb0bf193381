//! Pictures: what the ladder's and the benchmarks' have in common.
//!
//! | module | its one idea |
//! |---|---|
//! | `pen` | lines, boxes and words, the same for SVG and PNG |
//! | `axis` | where a value stands along a logarithmic axis, and names beside it |
//! | `numbered` | points by their numbers, and what each number is |
//! | `roof` | the roof of a roofline |
//! | `unit` | one unit for all speeds of a picture |

pub(super) mod axis;
pub(super) mod numbered;
pub(super) mod pen;
pub(super) mod roof;
pub(super) mod unit;
