//! A product over several devices that is run more than once.

use std::fmt;

use super::{
    plan::{ShardedPlan, ShardedScalar, Sums},
    run::{self, Reserved},
    scales,
};
use crate::{
    devices::{Devices, Sharded},
    error::{Error, Result},
    gemm::{Gemm, Output},
};

/// A product over several devices with its plan, its streams and the buffers of its panels, from
/// [`Gemm::prepare_sharded`]. What it holds stays allocated as long as it lives.
///
/// ```
/// use gpu_gemm::{Devices, Gemm, Shape, ShardLayout, Sharded};
///
/// let devices = Devices::cpu(2)?;
/// let (rows, cols) = (ShardLayout::rows(3, 2), ShardLayout::cols(2, 2));
/// let a = Sharded::from_row_major(&devices, 3, 2, rows.clone(), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = Sharded::from_row_major(&devices, 2, 2, cols.clone(), &[1.0, 0.0, 1.0, 1.0])?;
/// let mut c = Sharded::zeros(&devices, 3, 2, rows.clone())?;
/// let shape = Shape::new(3, 2, 2)?;
/// let mut product = Gemm::new().prepare_sharded(&devices, shape, [&rows, &cols, &rows])?;
/// for _ in 0..3 {
///     product.run(&a, &b, &mut c)?;
/// }
/// assert_eq!(c.gather()?, [3.0, 2.0, 7.0, 4.0, 11.0, 6.0]);
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
pub struct PreparedSharded<'g, T: ShardedScalar<O>, O: Output = T> {
    gemm: Gemm<'g, T, O>,
    devices: Devices,
    plan: ShardedPlan,
    reserved: Reserved<T, O, Sums<T, O>>,
}

impl<T: ShardedScalar<O>, O: Output> fmt::Debug for PreparedSharded<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let PreparedSharded { devices, plan, .. } = self;
        f.debug_struct("PreparedSharded")
            .field("devices", devices)
            .field("plan", plan)
            .finish_non_exhaustive()
    }
}

impl<'g, T: ShardedScalar<O>, O: Output> PreparedSharded<'g, T, O> {
    /// The first plan for whose buffers there is memory.
    ///
    /// # Errors
    /// [`Error::Argument`] for scales that are not on the first device. That of the first plan,
    /// where there is no memory for any; those of the driver.
    pub(super) fn of(
        gemm: &Gemm<'g, T, O>,
        devices: &Devices,
        plans: impl IntoIterator<Item = ShardedPlan>,
    ) -> Result<Self> {
        scales::check(gemm.scales, devices)?;
        let mut refused = None;
        for plan in plans {
            match run::reserve(gemm, &plan, devices) {
                // Another plan may need less memory.
                Err(Error::Device { device, error })
                    if matches!(*error, Error::OutOfMemory { .. }) =>
                {
                    refused.get_or_insert(Error::Device { device, error });
                }
                reserved => {
                    let (gemm, devices, reserved) = (*gemm, devices.clone(), reserved?);
                    return Ok(PreparedSharded { gemm, devices, plan, reserved });
                }
            }
        }
        Err(refused.unwrap_or_else(|| Error::argument("devices", devices, "must have a plan")))
    }

    /// Computes C, and waits for it.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices of other sizes, layouts or devices than it was prepared
    /// for. [`Error::Device`] says which device has failed; then C may be half-written.
    pub fn run(&mut self, a: &Sharded<T>, b: &Sharded<T>, c: &mut Sharded<O>) -> Result<()> {
        let shape = run::check(&self.devices, a, b, c)?;
        if shape != self.plan.shape {
            return Err(Error::argument("shape", shape, format!("must be {}", self.plan.shape)));
        }
        let [of_a, of_b, of_c] = &self.plan.layouts;
        for (name, layout, wanted) in
            [("A", a.layout(), of_a), ("B", b.layout(), of_b), ("C", c.layout(), of_c)]
        {
            if layout != wanted {
                return Err(Error::argument(name, layout, format!("must be laid out {wanted}")));
            }
        }
        run::run(&self.gemm, (&self.plan, &mut self.reserved), &self.devices, (a, b, c))
    }

    /// The plan.
    pub fn plan(&self) -> &ShardedPlan {
        &self.plan
    }

    /// The plan alone. The rest is freed.
    pub(super) fn into_plan(self) -> ShardedPlan {
        self.plan
    }
}
