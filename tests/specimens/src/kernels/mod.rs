//! The kernels.

use super::device;

pub mod barriers;
pub mod clean;
pub mod copies;
pub mod memory;
pub mod races;
pub mod warps;
