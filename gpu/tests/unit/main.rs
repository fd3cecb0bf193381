//! Tests of the crate. With tests inside, all kernels would be compiled once more, and that takes
//! more than a minute.

mod names;

// What these files import.
use cuda_std::device;
use gpu::{collective, params};

#[path = "../../src/kernels/emulated/two_widths.rs"]
#[allow(dead_code, reason = "kernels use the rest")]
mod two_widths;
