//! One product of any types on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gpu_gemm::{Bf16, Device, F16, Result};

use crate::{
    product::{Product, Types},
    run::{Bench, Outcome},
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
    pub fn check(&mut self, product: &Product) -> std::result::Result<Outcome, String> {
        let outcome = catch_unwind(AssertUnwindSafe(|| match product.types {
            Types::F32 => self.f32.check(product),
            Types::F64 => self.f64.check(product),
            Types::Bf16 => self.bf16.check(product),
            Types::Bf16F32 => self.bf16_f32.check(product),
            Types::F16 => self.f16.check(product),
            Types::F16F32 => self.f16_f32.check(product),
        }));
        outcome.unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", words.unwrap_or("without words")))
        })
    }
}
