//! A product over several devices: its plan, which is plain data, and its run.
//!
//! * [`build`] makes the steps of each [`Algorithm`] that the layouts allow. The whole product's
//!   choice fixes kernel, split of k and operand plan, so the bits are those of one device.
//! * [`complete`] refuses a plan in which something is used that nothing has brought.
//! * [`order`] finds which step waits for which, from what each reads and writes.
//! * [`predict`] gives each step a time, and simulates the plan on devices and links.
//! * [`run`] runs the steps in one loop.
//! * [`scales`] brings each place the scales of its products.
//! * [`starts`] refuses parts that would change bits.
//! * [`prepared`] keeps what a run needs for the next one.
//!
//! docs/design/several-devices.md has the reasons.

mod build;
mod complete;
mod order;
mod pieces;
mod plan;
mod predict;
mod prepared;
mod run;
mod scales;
mod scatter;
mod starts;
#[cfg(test)]
mod tests;

use simt::Limits;

use self::{build::Places, predict::Link};
pub use self::{
    plan::{Algorithm, ShardedPlan, ShardedScalar},
    prepared::PreparedSharded,
};
use super::{Gemm, Output, Target};
use crate::{
    devices::{Devices, ShardLayout, Sharded, check_places},
    error::{Error, Result},
    shape::Shape,
};

impl<'a, T, O> Gemm<'a, T, O>
where
    T: ShardedScalar<O>,
    O: Output,
{
    /// The product of matrices in shards, over their devices. C has the bits that the first
    /// device would compute from dense row-major matrices, whatever the layouts. Waits for the
    /// product, and returns its plan: the one with the shortest predicted time.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices whose sizes or devices do not fit together; for a bias,
    /// prepared matrices and emulated fp32, which are for one device; for scales that are not on
    /// the first device; and for shards that begin within an alignment class of the kernel, or
    /// within a block of scales. Then C is as it was. [`Error::Device`] says which device has
    /// failed. If it has no memory for the panels, C is as it was; later C may be half-written.
    pub fn run_sharded(
        &self,
        devices: &Devices,
        a: &Sharded<T>,
        b: &Sharded<T>,
        c: &mut Sharded<O>,
    ) -> Result<ShardedPlan> {
        let shape = run::check(devices, a, b, c)?;
        let layouts = [a.layout(), b.layout(), c.layout()];
        let mut prepared = self.prepare_sharded(devices, shape, layouts)?;
        prepared.run(a, b, c)?;
        Ok(prepared.into_plan())
    }

    /// A product that is run more than once: its plan, its streams and the buffers of its panels
    /// are made here, and kept. What [`run_sharded`](Self::run_sharded) makes anew takes the host
    /// up to a millisecond.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_sharded(
        &self,
        devices: &Devices,
        shape: Shape,
        layouts: [&ShardLayout; 3],
    ) -> Result<PreparedSharded<'a, T, O>> {
        PreparedSharded::of(self, devices, self.plan_sharded(devices, shape, layouts)?)
    }

    /// All plans of a product over these devices, by their predicted times. An algorithm may have
    /// several, with few panels and with many.
    ///
    /// # Errors
    /// As [`run_sharded`](Self::run_sharded).
    pub fn plan_sharded(
        &self,
        devices: &Devices,
        shape: Shape,
        layouts: [&ShardLayout; 3],
    ) -> Result<Vec<ShardedPlan>> {
        build::all(self, Places::of(devices), shape, layouts)
    }

    /// As [`plan_sharded`](Self::plan_sharded), for so many places of a kind of device, connected
    /// as those that were measured. No device is needed.
    ///
    /// ```
    /// use gpu_gemm::{Gemm, Shape, ShardLayout, gemm::Target, simt::cpu::LIMITS};
    ///
    /// let (rows, cols) = (ShardLayout::rows(8192, 4), ShardLayout::cols(8192, 4));
    /// let (shape, layouts) = (Shape::new(8192, 8192, 8192)?, [&rows, &cols, &rows]);
    /// let plans = Gemm::<f32>::new().plan_sharded_for(&Target::H200, &LIMITS, 4, shape, layouts)?;
    /// println!("{}", plans[0]);
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run_sharded`](Self::run_sharded).
    pub fn plan_sharded_for(
        &self,
        target: &Target,
        limits: &Limits,
        places: usize,
        shape: Shape,
        layouts: [&ShardLayout; 3],
    ) -> Result<Vec<ShardedPlan>> {
        check_places("places", places)?;
        let (count, target, limits) = (places, *target, *limits);
        let link = Link::between(&target);
        build::all(self, Places { count, target, limits, link }, shape, layouts)
    }

    /// As [`run_sharded`](Self::run_sharded), by that algorithm.
    ///
    /// # Errors
    /// As there; [`Error::Argument`] for an algorithm that the layouts do not allow.
    pub fn run_sharded_by(
        &self,
        algorithm: Algorithm,
        devices: &Devices,
        a: &Sharded<T>,
        b: &Sharded<T>,
        c: &mut Sharded<O>,
    ) -> Result<ShardedPlan> {
        let shape = run::check(devices, a, b, c)?;
        let plans = self.plan_sharded(devices, shape, [a.layout(), b.layout(), c.layout()])?;
        let Some(plan) = plans.into_iter().find(|plan| plan.algorithm == algorithm) else {
            let limit = "must be one that the layouts and the choice of the product allow";
            return Err(Error::argument("algorithm", algorithm, limit));
        };
        let mut prepared = PreparedSharded::of(self, devices, [plan])?;
        prepared.run(a, b, c)?;
        Ok(prepared.into_plan())
    }
}
