//! Times by part, and the measured figures that are no kernel's own: of the host, and of the
//! launches beside it (docs/log/selection.md, "Random shapes").

use gpu::kernels::reduce;
#[cfg(feature = "serde")]
use serde::Serialize;

use crate::shape::Shape;

/// Microseconds of the host: for a call, for each launch of it, and for each tensor map that it
/// encodes. Measured on an H100, for products that take the GPU less.
const CALL_US: f64 = 1.3;
pub(super) const LAUNCH_US: f64 = 5.5;
pub(super) const MAP_US: f64 = 0.6;

/// Fraction of the shorter time, the host's or the GPU's, that does not overlap the longer. It
/// decides between kernels that wait for the host equally long.
const HOST_APART: f64 = 0.1;

/// Microseconds of the GPU for a launch that copies an operand, and for each byte that it writes,
/// of 32-bit and of 16-bit elements. Short rows count more
/// ([`timed_bytes`](super::layout::timed_bytes)).
pub(super) const COPY_US: f64 = 2.5;
const COPY_BYTE_US: f64 = 0.7e-6;
const COPY_HALF_BYTE_US: f64 = 0.55e-6;

/// Microseconds of the GPU for the launch that adds partial products, for each of them, which a
/// thread waits for, for each of their bytes, and for each block, of one row and some columns.
/// Fitted to 78 products of bf16 on an H200 (docs/log/selection.md, "All candidates").
const REDUCE_US: f64 = 3.5;
const REDUCE_PARTIAL_US: f64 = 0.005;
const REDUCE_BYTE_US: f64 = 0.8e-6;
const REDUCE_BLOCK_US: f64 = 0.0022;

/// A predicted time by part, in microseconds: of one of many such products that are launched
/// without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Times {
    /// The host: the call, its launches, and the tensor maps that it encodes.
    pub host_us: f64,
    /// The device: all parts below together.
    pub device_us: f64,
    /// Operands are transposed, packed, or split into slices.
    pub copies_us: f64,
    /// The kernel's start and end.
    pub fixed_us: f64,
    /// The operations of the fullest SM.
    pub multiply_us: f64,
    /// How much longer it waits for operands from L2.
    pub l2_us: f64,
    /// The epilogues of its tiles: start and end of each after the first, sums that are staged, and
    /// a strided C.
    pub epilogue_us: f64,
    /// How much longer memory takes for A, B and C.
    pub memory_us: f64,
    /// The parts of k of a cluster, or of partial products, are added.
    pub sum_us: f64,
}

impl Times {
    /// Both, one after the other.
    pub(super) fn and(self, next: Times) -> Times {
        self.with(next, |us, next_us| us + next_us)
    }

    /// The same so many times.
    pub(super) fn repeated(self, count: usize) -> Times {
        self.with(self, |us, _| us * count as f64)
    }

    /// Part by part.
    fn with(self, other: Times, of: impl Fn(f64, f64) -> f64) -> Times {
        Times {
            host_us: of(self.host_us, other.host_us),
            device_us: of(self.device_us, other.device_us),
            copies_us: of(self.copies_us, other.copies_us),
            fixed_us: of(self.fixed_us, other.fixed_us),
            multiply_us: of(self.multiply_us, other.multiply_us),
            l2_us: of(self.l2_us, other.l2_us),
            epilogue_us: of(self.epilogue_us, other.epilogue_us),
            memory_us: of(self.memory_us, other.memory_us),
            sum_us: of(self.sum_us, other.sum_us),
        }
    }

    /// The host's time for a launch.
    pub(super) fn of_launch() -> Times {
        Times { host_us: LAUNCH_US, ..Times::default() }
    }

    /// The launch that adds `count` partial products of C, whose sums have so many bytes each.
    pub(super) fn of_sum(count: usize, c: Shape, bytes: usize) -> Times {
        let (count, len) = (count as f64, c.c_len() as f64);
        let blocks = c.m() as f64 * c.n().div_ceil(reduce::COLS) as f64;
        let sum_us = REDUCE_US
            + count * REDUCE_PARTIAL_US
            + count * len * bytes as f64 * REDUCE_BYTE_US
            + blocks * REDUCE_BLOCK_US;
        Times { host_us: LAUNCH_US, device_us: sum_us, sum_us, ..Times::default() }
    }

    /// At least that many microseconds of the device, which its memory needs, if it does anything.
    pub(super) fn at_least(self, us: f64) -> Times {
        let more = if self.device_us > 0.0 { (us - self.device_us).max(0.0) } else { 0.0 };
        let (device_us, memory_us) = (self.device_us + more, self.memory_us + more);
        Times { device_us, memory_us, ..self }
    }

    /// The same with the host's time for the call, if there is a host beside the device.
    pub(super) fn called(self) -> Times {
        match self.host_us > 0.0 {
            true => Times { host_us: CALL_US + self.host_us, ..self },
            false => self,
        }
    }

    /// All together: a program waits for the slower of host and device.
    pub fn us(&self) -> f64 {
        let Times { host_us, device_us, .. } = *self;
        host_us.max(device_us) + HOST_APART * host_us.min(device_us)
    }
}

/// Microseconds for a byte of a copy of elements of so many bytes.
pub(super) fn copy_byte_us(element: usize) -> f64 {
    if element == 2 { COPY_HALF_BYTE_US } else { COPY_BYTE_US }
}
