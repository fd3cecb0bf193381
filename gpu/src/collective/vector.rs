//! The width of a thread's accesses.

/// Neighbouring elements that a thread moves at once: sixteen bytes of f32.
pub const FOUR: usize = 4;
