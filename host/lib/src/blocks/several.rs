//! A product by one device or by several. Each has its own buffers and threads, and computes its
//! own blocks of C.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    pipeline::{Stage, weight},
    plan::BlockPlan,
    product::Product,
    source::Sink,
};
use crate::{
    device::Device,
    devices::Devices,
    error::{Error, Result},
    gemm::{Choice, Scalar},
    matrix::Layout,
    parallel, progress,
};

impl<T: Scalar> Product<'_, T> {
    /// Computes the product on a device by a plan. Returns when every block is written, with the
    /// kernel's choice. `None` if nothing was multiplied. In emulated fp32 an element that is
    /// recomputed in several blocks of k [counts](Choice::recomputed) for each.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices that do not have the plan's sizes, and for a kernel that
    /// cannot multiply the blocks; [`Error::OutOfMemory`]; [`Error::Interrupted`]; errors of
    /// sources, sink and device. After an error some blocks may be written.
    pub fn run(
        &self,
        device: &Device,
        plan: &BlockPlan,
        out: &mut dyn Sink<T>,
    ) -> Result<Option<Choice>> {
        self.run_on(&Devices::from(device.clone()), plan, out)
    }

    /// As [`run`](Self::run), on several devices of one kind. The bits are those of one device with
    /// the plan's [`device_limit`](super::Job::device_limit). A sink writes for one device at a
    /// time.
    ///
    /// ```
    /// use gpu_gemm::{
    ///     Devices, Layout, Shape,
    ///     blocks::{BlockPlan, Dense, Job, Product},
    /// };
    ///
    /// // On a machine with GPUs: Devices::all().
    /// let devices = Devices::cpu(2)?;
    /// let (a, b) = (vec![1f32; 300 * 200], vec![2f32; 200 * 100]);
    /// let a = Dense::new(300, 200, Layout::RowMajor, a.as_slice())?;
    /// let b = Dense::new(200, 100, Layout::RowMajor, b.as_slice())?;
    /// let mut job = Job::new(Shape::new(300, 100, 200)?, 4, [64, 64], 1 << 20);
    /// job.devices = devices.len();
    /// let plan = BlockPlan::new(&job)?;
    /// assert_eq!(plan.blocks(), [2, 1, 1]);
    ///
    /// let mut values = vec![0f32; 300 * 100];
    /// let mut c = Dense::new(300, 100, Layout::RowMajor, values.as_mut_slice())?;
    /// Product::new("gemm_f32_64x64x16", &a, &b).run_on(&devices, &plan, &mut c)?;
    /// assert!(values.iter().all(|&x| x == 400.0));
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there. [`Error::Argument`] for another number of devices than the plan's, and for
    /// emulated fp32, whose bits depend on the blocks. [`Error::Device`] names the device that has
    /// failed. The others end with the blocks that they have begun.
    pub fn run_on(
        &self,
        devices: &Devices,
        plan: &BlockPlan,
        out: &mut dyn Sink<T>,
    ) -> Result<Option<Choice>> {
        if devices.len() != plan.devices() {
            let limit = format!("must be {}, as planned", plan.devices());
            return Err(Error::argument("devices.len()", devices.len(), limit));
        }
        if devices.len() > 1 && self.compute.is_emulated() {
            let limit = "must be native or tf32 over several devices: bits of emulated sums depend on the part of C";
            return Err(Error::argument("compute", format!("{:?}", self.compute), limit));
        }
        self.check(plan)?;
        let (layout, stop) = (out.layout(), AtomicBool::new(false));
        // Each has buffers for A and B before a block is written.
        let stage = |number: usize| {
            let stage = Stage::new(self, devices.at(number), (plan, number, &stop), layout);
            stage.map_err(devices.failed(number)).map(|stage| (number, stage))
        };
        let used = (0..devices.len()).filter(|&number| !plan.share(number).is_empty());
        let stages = used.map(stage).collect::<Result<Vec<_>>>()?;
        let total = weight(plan.shape().m(), plan.shape().n(), plan.shape().k());
        let _work = progress::begin_work(total);
        let (out, choice) = (Mutex::new(out), Mutex::new(None));
        parallel::for_each(stages.into_iter(), |(number, mut stage)| {
            let mut out = Shared { out: &out, layout };
            let halt = StopOthers(&stop);
            match self.part(devices.at(number), &mut stage, &mut out) {
                Ok(made) => {
                    std::mem::forget(halt);
                    let mut choice = choice.lock().unwrap_or_else(PoisonError::into_inner);
                    *choice = choice.take().or(made);
                    Ok(())
                }
                Err(error) => Err(devices.failed(number)(error)),
            }
        })?;
        Ok(choice.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Stops the other devices when it is dropped: after an error, and when a source or a sink panics.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A sink for several writers.
struct Shared<'a, 'o, T> {
    out: &'a Mutex<&'o mut dyn Sink<T>>,
    layout: Layout,
}

impl<T> Sink<T> for Shared<'_, '_, T> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn write(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        layout: Layout,
        values: &[T],
    ) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write(rows, cols, layout, values)
    }
}
