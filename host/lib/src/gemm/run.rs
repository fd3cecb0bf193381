//! `Gemm`: selection, plan and launch.

use simt::Limits;

use super::{
    Batch, BatchMut, Candidate, Choice, Gemm, Output, Plan, PlannedGemm, Request, Scalar, Target,
    counters, execute, host_slices,
    operands::check_scales,
    plan::Task,
    scalar::Kernel,
    select::{self, Ineligible, choose_kernel},
    tune::ask,
};
use crate::{
    device::Device,
    error::{Error, Result},
    matrix::{MatrixView, MatrixViewMut, SliceView, SliceViewMut},
    stream::Stream,
};

/// The choice for a whole product, of which parts are computed.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    chosen: (Kernel, Choice),
    is_swapped: bool,
}

impl<'a, T: Scalar<O>, O: Output> Gemm<'a, T, O> {
    /// Queues the product on a stream. A is `m x k`, B is `k x n`, C is `m x n`, in any layout. On
    /// the CPU device the product has ended when this returns.
    ///
    /// Later uses of the matrices wait for it: launches on this stream and on others, and methods
    /// that read or write the matrices.
    ///
    /// # Errors
    /// [`Error::Argument`] for operands whose sizes, devices or memory do not fit together, and for
    /// a kernel that cannot compute the product: nothing is launched. [`Error::OutOfMemory`] for
    /// the workspace. As [`Stream::launch`].
    pub fn launch(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<Choice> {
        self.launch_batch(stream, Batch::one(a), Batch::one(b), BatchMut::one(c))
    }

    /// Loads the kernels of a launch of these operands, sets their attributes and reserves their
    /// workspace, and launches nothing. After that the launch can be [captured](Stream::capture) on
    /// this stream, for a [graph](crate::Graph).
    ///
    /// For a batch, and for anything else that is launched: [`Stream::prepare`].
    ///
    /// # Errors
    /// As [`Gemm::launch`].
    pub fn prepare(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<Choice> {
        stream.prepare(|stream| self.launch(stream, a, b, c))
    }

    /// As [`Gemm::launch`], and waits for the product.
    ///
    /// For emulated fp32 the result has the number of elements that were recomputed
    /// ([`Choice::recomputed`]). To count them this waits for the device's other streams, too, and
    /// other threads that launch emulated fp32 on this stream wait for this call.
    ///
    /// # Errors
    /// As [`Gemm::launch`]; errors of kernels on this stream.
    pub fn run(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<Choice> {
        let (a, b, c) = (Batch::one(a), Batch::one(b), BatchMut::one(c));
        counters::counted(stream, self.may_be_sliced(stream), || {
            let choice = execute::batch(self, stream, a, b, c)?;
            stream.synchronize()?;
            Ok(choice)
        })
    }

    /// The product of matrices in host memory: slices, or matrices of nalgebra or ndarray. Waits
    /// for the product. On a GPU A and B are copied to the device, and C back. C is copied to the
    /// device, too, if `beta` is not 0. On the CPU device nothing is copied.
    ///
    /// ```
    /// use gpu_gemm::{Device, Gemm, SliceView, SliceViewMut};
    ///
    /// let stream = Device::best().device.stream()?;
    /// let (a, mut c) = ([1.0f64, 2.0, 3.0, 4.0], [0.0f64; 4]);
    /// let a = SliceView::row_major(&a, 2, 2)?;
    /// Gemm::new().run_slices(&stream, a, a.t(), SliceViewMut::row_major(&mut c, 2, 2)?)?;
    /// assert_eq!(c, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gemm::run`]; [`Error::OutOfMemory`].
    pub fn run_slices<'s, A, B, C>(&self, stream: &Stream, a: A, b: B, c: C) -> Result<Choice>
    where
        A: TryInto<SliceView<'s, T>, Error: Into<Error>>,
        B: TryInto<SliceView<'s, T>, Error: Into<Error>>,
        C: TryInto<SliceViewMut<'s, O>, Error: Into<Error>>,
    {
        let a = a.try_into().map_err(|error| host_slices::of_operand("A", error.into()))?;
        let b = b.try_into().map_err(|error| host_slices::of_operand("B", error.into()))?;
        let c = c.try_into().map_err(|error| host_slices::of_operand("C", error.into()))?;
        counters::counted(stream, self.may_be_sliced(stream), || {
            host_slices::run(self, stream, a, b, c)
        })
    }

    /// Queues a batch of products, in as few launches as the device's limits allow. Product i
    /// multiplies the i-th matrices of A and B into the i-th of C. All have the same scalars, bias
    /// and activation. The batches have equal counts.
    ///
    /// # Errors
    /// As [`Gemm::launch`].
    pub fn launch_batch(
        &self,
        stream: &Stream,
        a: Batch<T>,
        b: Batch<T>,
        c: BatchMut<O>,
    ) -> Result<Choice> {
        counters::uncounted(stream, self.may_be_sliced(stream), || {
            execute::batch(self, stream, a, b, c)
        })
    }

    /// Queues products of separate matrices, one after another. All are checked before the first is
    /// launched.
    ///
    /// # Errors
    /// As [`Gemm::launch`]; [`Error::Argument`] if `inputs` and `outputs` have different lengths,
    /// and for two outputs in [foreign](Device::foreign) memory that share an element, or whose
    /// rows alternate and are not blocks of one matrix.
    pub fn launch_array(
        &self,
        stream: &Stream,
        inputs: &[(MatrixView<T>, MatrixView<T>)],
        outputs: &mut [MatrixViewMut<O>],
    ) -> Result<Vec<Choice>> {
        counters::uncounted(stream, self.may_be_sliced(stream), || {
            execute::array(self, stream, inputs, outputs)
        })
    }

    /// The kernel that this product would use for a request. No device is needed. This product's
    /// arithmetic, workspace limit and split of k replace the request's. That of a
    /// [tuned](Gemm::tuned) product is the one that is predicted: what was timed is of a device.
    ///
    /// # Errors
    /// [`Error::Argument`] if a kernel was named that cannot compute the product.
    pub fn choose(&self, request: &Request, target: &Target) -> Result<Choice> {
        let request = self.request(request);
        check_scales(self, &request)?;
        choose_kernel::<T, O>(&request, target, self.kernel).map(|(_, choice)| choice)
    }

    /// All kernels for these types, in the order of the registry.
    pub fn candidates(&self, request: &Request, target: &Target) -> Vec<Candidate> {
        select::candidates_of::<T, O>(&self.request(request), target)
    }

    /// The kernel that this product would use, and all its launches on a device with these limits.
    /// No device is needed. Batches are dense.
    ///
    /// ```
    /// use gpu_gemm::{
    ///     Gemm, Shape,
    ///     gemm::{Request, Target},
    ///     simt::cpu::LIMITS,
    /// };
    ///
    /// let request = Request::dense(Shape::new(1000, 700, 513)?);
    /// let (choice, plan) = Gemm::<f32>::new().plan(&request, &Target::gpu((8, 0), 108), &LIMITS)?;
    /// // As `gemm_f32_64x64x16: predicted to take 92 us, ..`.
    /// assert!(choice.to_string().starts_with(&format!("{}: predicted", choice.entry.name())));
    /// for launch in plan.launches() {
    ///     println!("{}: grid {:?}", launch.kernel, launch.config.grid);
    /// }
    /// # Ok::<(), gpu_gemm::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gemm::choose`]. [`Error::Argument`] for matrices that cannot be addressed, and for more
    /// than 65536 launches.
    pub fn plan(
        &self,
        request: &Request,
        target: &Target,
        limits: &Limits,
    ) -> Result<(Choice, Plan)> {
        let request = &self.request(request);
        request.check()?;
        check_scales(self, request)?;
        let chosen = choose_kernel::<T, O>(request, target, self.kernel)?;
        self.plan_of(request, request.is_swapped(), chosen, (target, limits))
    }

    /// The plan of a choice. `is_swapped`: it is launched as `C^T = B^T A^T`.
    fn plan_of(
        &self,
        request: &Request,
        is_swapped: bool,
        (kernel, choice): (Kernel, Choice),
        (target, limits): (&Target, &Limits),
    ) -> Result<(Choice, Plan)> {
        let launched = if is_swapped { request.swapped() } else { *request };
        let task = Task::new(self, launched, launched.dense_steps(), is_swapped)?;
        let on = (limits, target.sms);
        let split = [choice.split_k, choice.partials];
        let plan = Plan::new([T::TYPE, O::TYPE], kernel, choice.operands, split, task, on)?;
        Ok((choice, plan))
    }

    /// The choice for a whole product whose parts [`plan_part`](Self::plan_part) plans. The limit
    /// of the workspace is for each part, not for the whole.
    ///
    /// # Errors
    /// As [`Gemm::choose`].
    pub(crate) fn choose_whole(&self, device: &Device, request: &Request) -> Result<Whole> {
        let request = Request { workspace_limit: u64::MAX, ..self.request(request) };
        request.check()?;
        let chosen = choose_kernel::<T, O>(&request, &Target::of(device), self.kernel)?;
        Ok(Whole { chosen, is_swapped: request.is_swapped() })
    }

    /// Plans a part of C, with all of k, by the choice of the whole product. A part of one row or
    /// column is launched as its transpose only if the whole is.
    ///
    /// # Errors
    /// [`Error::Argument`] for a part that needs more workspace than the limit, and as
    /// [`Gemm::plan`].
    pub(crate) fn plan_part(
        &self,
        device: &Device,
        request: &Request,
        whole: &Whole,
    ) -> Result<PlannedGemm<'a, T, O>> {
        let (request, target) = (self.request(request), Target::of(device));
        let (is_swapped, on) = (whole.is_swapped, (&target, &device.limits()));
        let (mut choice, plan) = self.plan_of(&request, is_swapped, whole.chosen, on)?;
        // Another plan of the operands might need less, and give other bits.
        let (needed, limit) = (plan.workspace_bytes::<T, O>(), request.workspace_limit);
        if needed > limit {
            let limit = Ineligible::Workspace { needed, limit }.to_string();
            return Err(Error::argument("kernel", choice.entry.name(), limit));
        }
        choice.workspace_bytes = needed;
        Ok(PlannedGemm { gemm: *self, device: device.clone(), request, is_swapped, choice, plan })
    }

    /// Selects the kernel for a request, and plans the launches on a device. This product's
    /// arithmetic, workspace limit and split of k replace the request's. Batches are dense, and
    /// aligned only if a whole matrix is a multiple of 16 bytes. For a [tuned](Gemm::tuned) product
    /// nothing is timed: its choice is the one that its cache has for the request, otherwise the
    /// predicted one.
    ///
    /// # Errors
    /// As [`Gemm::choose`]. [`Error::Argument`] for a product with [prepared](Gemm::prepared)
    /// matrices: a request does not name them.
    pub fn plan_on(&self, device: &Device, request: &Request) -> Result<PlannedGemm<'a, T, O>> {
        if self.prepared.iter().any(Option::is_some) {
            let limit = "must be none of a product that is planned before its launch";
            return Err(Error::argument("prepared", "a matrix", limit));
        }
        let mut request = self.request(request);
        let sizes = [size_of::<T>(), size_of::<T>(), size_of::<O>()];
        let steps = request.dense_steps().into_iter().zip(sizes);
        for (aligned, (step, bytes)) in request.aligned.iter_mut().zip(steps) {
            // Wrapping: a multiple of 2^64 is one of sixteen.
            *aligned &= request.batch <= 1 || step.wrapping_mul(bytes).is_multiple_of(16);
        }
        request.check()?;
        check_scales(self, &request)?;
        let target = Target::of(device);
        let cache = self.tuned.filter(|_| self.kernel.is_none());
        let known = cache.and_then(|cache| ask::planned(self, cache, device, &request));
        let chosen = match known {
            Some(known) => known,
            None => choose_kernel::<T, O>(&request, &target, self.kernel)?,
        };
        let (is_swapped, on) = (request.is_swapped(), (&target, &device.limits()));
        let (choice, plan) = self.plan_of(&request, is_swapped, chosen, on)?;
        Ok(PlannedGemm { gemm: *self, device: device.clone(), request, is_swapped, choice, plan })
    }
}

#[cfg(test)]
mod tests {
    use gpu::registry::Scheme;

    use super::*;
    use crate::{Compute, Shape};

    /// The operands' plan of the whole product may need more than one that a part would choose.
    #[test]
    fn no_part_has_more_workspace_than_the_limit() {
        let (device, mut copied, mut chosen_otherwise) = (Device::cpu(), 0, 0);
        for (kernel, layouts) in
            f32::kernels().flat_map(|kernel| (0..8).map(move |layouts| (kernel, layouts)))
        {
            let request = |m: usize, n: usize, k: usize| {
                let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
                let sizes = [(0, m, k), (1, k, n), (2, m, n)];
                Request::new(
                    shape,
                    sizes.map(|(operand, rows, cols)| match layouts >> operand & 1 {
                        0 => [cols, 1],
                        _ => [1, rows],
                    }),
                )
            };
            let compute = match kernel.entry.scheme() {
                Scheme::F16x3 => Compute::Fp32F16x3,
                Scheme::Bf16x6 => Compute::Fp32Bf16x6,
                Scheme::Native | Scheme::Tf32 => Compute::Tf32,
            };
            let name = kernel.entry.name();
            let gemm = Gemm::<f32>::new().kernel(name).unwrap().compute(compute);
            let (of_all, of_part) = (request(192, 136, 64), request(61, 57, 64));
            // Some kernels do not take these layouts.
            let Ok(whole) = gemm.choose_whole(&device, &of_all) else { continue };
            let bytes = |limit: u64, request: &Request| {
                let part = gemm.workspace_limit(limit).plan_part(&device, request, &whole);
                part.map(|part| part.choice().workspace_bytes).map_err(|error| error.to_string())
            };
            // The plan has the bytes that selection has predicted.
            assert_eq!(bytes(u64::MAX, &of_all), Ok(whole.chosen.1.workspace_bytes), "{name}");
            let needed = bytes(u64::MAX, &of_part).unwrap();
            assert_eq!(bytes(needed, &of_part), Ok(needed), "{name}");
            let Some(limit) = needed.checked_sub(1) else { continue };
            let error = format!(
                "kernel = {name}: needs {needed} bytes of workspace, and the limit is {limit}"
            );
            assert_eq!(bytes(limit, &of_part), Err(error));
            copied += 1;
            chosen_otherwise +=
                usize::from(gemm.workspace_limit(limit).plan_on(&device, &of_part).is_ok());
        }
        assert!(copied > 50 && chosen_otherwise > 0, "{copied} {chosen_otherwise}");
    }
}
