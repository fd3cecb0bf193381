//! The smooth activation functions: GELU, its approximation by tanh, and SiLU. Each is `x S(x)`,
//! where S rises from 0 to 1, and is computed as `max(x, 0) - t S(-t)`, where t is |x|. So nothing
//! cancels, and a large negative x keeps its digits.
//!
//! ```text
//!   exact   for a C of f32 or f64: up to two units in the last place
//!   half    for a C of 16 bits, in f32: a few instructions an element
//! ```
//!
//! Every step is an addition, a multiplication, both fused, or a comparison. The GPU's own `ex2`
//! and `tanh` would take fewer, but a CPU does not have their bits.

use super::{device, vector};

pub mod exact;
pub mod half;
