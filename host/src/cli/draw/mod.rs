//! Pictures: what the ladder's and the benchmarks' have in common.
//!
//! | module | its one idea |
//! |---|---|
//! | `pen` | lines, boxes and words, the same for SVG and PNG |
//! | `axis` | where a value stands along a logarithmic axis, and names beside it |
//! | `roof` | the roof of a roofline |

pub(super) mod axis;
pub(super) mod pen;
pub(super) mod roof;
