//! One product of any types on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gpu_gemm::{Bf16, Device, F16, Result, gemm::Target};

use crate::{
    product::{Product, Types},
    run::{Bench, Checked, Outcome},
};

/// A device with room for operands of every type.
#[derive(Debug)]
pub struct Benches {
    device: Device,
    f32: Bench<f32, f32>,
    f64: Bench<f64, f64>,
    bf16: Bench<Bf16, Bf16>,
    bf16_f32: Bench<Bf16, f32>,
    f16: Bench<F16, F16>,
    f16_f32: Bench<F16, f32>,
}

/// Calls a method of the bench for the product's types.
macro_rules! by_types {
    ($benches:ident, $product:ident, $method:ident($($argument:expr),*)) => {
        match $product.types {
            Types::F32 => $benches.f32.$method($product, $($argument),*),
            Types::F64 => $benches.f64.$method($product, $($argument),*),
            Types::Bf16 => $benches.bf16.$method($product, $($argument),*),
            Types::Bf16F32 => $benches.bf16_f32.$method($product, $($argument),*),
            Types::F16 => $benches.f16.$method($product, $($argument),*),
            Types::F16F32 => $benches.f16_f32.$method($product, $($argument),*),
        }
    };
}

impl Benches {
    /// On that device. On the CPU device a product is computed in this thread alone, and the second
    /// time by two.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(device: &Device) -> Result<Self> {
        let (device, other) = match device.is_cuda() {
            true => (device.clone(), device.clone()),
            false => (Device::cpu_with_workers(1), Device::cpu_with_workers(2)),
        };
        Ok(Benches {
            f32: Bench::new(&device, &other)?,
            f64: Bench::new(&device, &other)?,
            bf16: Bench::new(&device, &other)?,
            bf16_f32: Bench::new(&device, &other)?,
            f16: Bench::new(&device, &other)?,
            f16_f32: Bench::new(&device, &other)?,
            device,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Computes a product twice, or sees it refused.
    ///
    /// # Errors
    /// What is wrong. A panic is.
    pub fn check(&mut self, product: &Product) -> Checked<Outcome> {
        caught(|| by_types!(self, product, check()))
    }

    /// As [`Bench::digest`].
    ///
    /// # Errors
    /// Those of the device. A panic is.
    pub fn digest(&mut self, product: &Product, targets: &[Target]) -> Checked<(String, Vec<u8>)> {
        caught(|| by_types!(self, product, digest(targets)))
    }
}

/// The result, or what it panics with.
fn caught<R>(run: impl FnOnce() -> Checked<R>) -> Checked<R> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", words.unwrap_or("without words")))
    })
}
