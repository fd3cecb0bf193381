//! Parts that the pictures of the ladder and of the benchmarks share.
//!
//! | module | its one idea |
//! |---|---|
//! | `pen` | lines, boxes and words, the same for SVG and PNG |
//! | `axis` | positions along a logarithmic axis, and names next to it |
//! | `frame` | the grid of a chart, its numbers and titles |
//! | `numbered` | numbered points, and the list of their names |
//! | `roof` | the roof of a roofline |
//! | `unit` | one unit for all speeds of a picture |

pub(super) mod axis;
pub(super) mod frame;
pub(super) mod numbered;
pub(super) mod pen;
pub(super) mod roof;
pub(super) mod unit;
