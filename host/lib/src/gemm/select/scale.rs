//! How the measured figures of a kernel hold on another GPU.
//!
//! What a block does besides its multiply-adds takes as many clocks there. The multiply-adds take
//! what the GPU's rate says. The SMs load as many bytes in a clock, and the memory gives the share
//! of its bandwidth that an H200's gives. So only published figures of the GPU enter ([`Target`]),
//! and no measurement of it.

use gpu::registry::{Family, H200_BYTE_US, Product, Scheme, Speed, Type};

use crate::gemm::{Target, Unit};

/// A kernel's figures on a GPU. On GPUs with Hopper's compute capability they are the measured
/// ones.
pub(super) struct Scale {
    /// GFLOP/s of one SM, and the fraction that a single block reaches.
    pub(super) gflops: f64,
    pub(super) alone: f64,
    /// The bytes that all SMs load in a time: the ratio to an H200's.
    pub(super) loads: f64,
    /// The bandwidth of the memory: the ratio to an H200's.
    memory: f64,
}

impl Scale {
    pub(super) fn new(product: &Product, speed: &Speed, target: &Target) -> Self {
        if !target.cuda || target.capability == Target::H200.capability {
            return Scale { gflops: speed.gflops, alone: speed.alone, loads: 1.0, memory: 1.0 };
        }
        let unit = unit_of(product);
        let of = |measured| gflops(measured, unit, (&Target::H200, target));
        let clocks = |of: &Target| f64::from(of.sms.max(1)) * f64::from(of.clock_mhz);
        Scale {
            gflops: of(speed.gflops),
            alone: of(speed.alone * speed.gflops) / of(speed.gflops),
            loads: clocks(target) / clocks(&Target::H200),
            memory: f64::from(target.gb_per_s) / f64::from(Target::H200.gb_per_s),
        }
    }

    /// Microseconds for a byte of memory where it takes a kernel that many on an H200: the SMs load
    /// no faster, and the memory gives no more.
    pub(super) fn byte_us(&self, on_h200_us: f64) -> f64 {
        (on_h200_us / self.loads).max(H200_BYTE_US / self.memory)
    }
}

/// GFLOP/s of one SM, from those that were measured on one GPU, for another.
fn gflops(measured: f64, unit: Unit, (measured_on, target): (&Target, &Target)) -> f64 {
    // Of a FLOP, in nanoseconds.
    let beside = (1.0 / measured - 1.0 / measured_on.gflops_of_sm(unit)).max(0.0);
    let clock = f64::from(target.clock_mhz) / f64::from(measured_on.clock_mhz);
    1.0 / (1.0 / target.gflops_of_sm(unit) + beside / clock)
}

/// What multiplies. The kernels of Hopper's `wgmma` and TMA are not scaled.
fn unit_of(product: &Product) -> Unit {
    let variant = &product.variant;
    match (variant.family, variant.operands == Type::F64, variant.scheme) {
        (Family::Mma, true, _) => Unit::TensorF64,
        (Family::Mma, _, Scheme::Tf32) => Unit::MmaTf32,
        (Family::Mma, ..) if variant.operands == Type::I8 => Unit::MmaInt8,
        (Family::Mma, ..) => Unit::MmaHalf,
        (_, true, _) => Unit::F64,
        _ => Unit::F32,
    }
}

#[cfg(test)]
mod tests;
