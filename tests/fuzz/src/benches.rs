//! One product of any types on one device.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gpu_gemm::{
    Device, Result,
    gemm::{Scalar, Target},
    simt::with_float_types,
};
use tests::gemm::Number;

use crate::{
    call::Operand,
    product::{Product, Types},
    run::{Bench, Checked, Outcome},
};

/// A device with room for operands of every type.
#[derive(Debug)]
pub struct Benches {
    device: Device,
    by_types: Vec<(Types, Box<dyn AnyBench>)>,
}

/// A bench of any types.
trait AnyBench: std::fmt::Debug {
    fn check(&mut self, product: &Product) -> Checked<Outcome>;
    fn digest(&mut self, product: &Product, targets: &[Target]) -> Checked<(String, Vec<u8>)>;
}

impl<T: Operand + Scalar<O>, O: Number> AnyBench for Bench<T, O> {
    fn check(&mut self, product: &Product) -> Checked<Outcome> {
        Bench::check(self, product)
    }

    fn digest(&mut self, product: &Product, targets: &[Target]) -> Checked<(String, Vec<u8>)> {
        Bench::digest(self, product, targets)
    }
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
        let mut by_types = Vec::new();
        for types @ Types(operands, c) in Types::all() {
            let bench = with_float_types!((operands, c), |T, O| {
                Bench::<T, O>::new(&device, &other).map(|it| Box::new(it) as Box<dyn AnyBench>)
            });
            by_types.extend(bench.transpose()?.map(|bench| (types, bench)));
        }
        Ok(Benches { device, by_types })
    }

    fn of(&mut self, product: &Product) -> Checked<&mut dyn AnyBench> {
        let found = self.by_types.iter_mut().find(|(types, _)| *types == product.types);
        let (_, bench) = found.ok_or_else(|| format!("no bench for {:?}", product.types))?;
        Ok(&mut **bench)
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
        caught(|| self.of(product)?.check(product))
    }

    /// As [`Bench::digest`].
    ///
    /// # Errors
    /// Those of the device. A panic is.
    pub fn digest(&mut self, product: &Product, targets: &[Target]) -> Checked<(String, Vec<u8>)> {
        caught(|| self.of(product)?.digest(product, targets))
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
