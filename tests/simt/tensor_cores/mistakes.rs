//! The mistakes of `kernels::written`.

pub const NONE: u32 = 0;
pub const NO_FENCE: u32 = 1;
pub const FENCE_BEHIND_BARRIER: u32 = 2;
pub const OVERWRITTEN: u32 = 3;
pub const NO_COMMIT: u32 = 4;
pub const PENDING: u32 = 5;
pub const OTHER_OPERANDS: u32 = 6;
pub const ONE_WARP_LESS: u32 = 7;
pub const NOT_WRITTEN: u32 = 8;
