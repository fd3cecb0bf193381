//! What a product does: it selects a kernel, makes a plan, and runs it.

use simt::Limits;

use super::{
    Batch, BatchMut, Bias, Candidate, Choice, Gemm, Output, Plan, Request, Scalar, Target,
    counters, execute,
    plan::Task,
    select::{self, choose_kernel},
    slices,
};
use crate::{
    error::{Error, Result},
    matrix::{MatrixView, MatrixViewMut, SliceView, SliceViewMut},
    stream::Stream,
};

impl<T: Scalar<O>, O: Output> Gemm<'_, T, O> {
    /// Puts the product on a stream and returns: A is `m x k`, B is `k x n`, C is `m x n`, in any layout. On the CPU
    /// device it has ended then.
    ///
    /// Nothing has to wait for it that uses the same matrices: what is launched on the same stream comes after it,
    /// what is launched on another stream of the device waits, and so does everything that reads or writes them from
    /// here.
    ///
    /// # Errors
    /// [`Error::Argument`] for what does not fit together, naming the argument, before
    /// anything is launched; then as [`Stream::launch`].
    pub fn launch(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<Choice> {
        self.launch_batch(stream, Batch::one(a), Batch::one(b), BatchMut::one(c))
    }

    /// As [`Gemm::launch`], and waits until C is there. Emulated fp32 says how many elements were recomputed
    /// ([`Choice::recomputed`]). For that it waits for the device's other streams, too; other threads that launch emulated fp32 on the
    /// same stream wait meanwhile.
    ///
    /// # Errors
    /// As [`Gemm::launch`], and those of the kernels on this stream.
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

    /// The product of matrices in this machine's memory, slices or nalgebra's or ndarray's, and waits for it. A, B
    /// and, where `beta` is not 0, C are copied to the device as they lie, and C back; on the CPU device nothing is
    /// copied.
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
        let a = a.try_into().map_err(|error| slices::of_operand("A", error.into()))?;
        let b = b.try_into().map_err(|error| slices::of_operand("B", error.into()))?;
        let c = c.try_into().map_err(|error| slices::of_operand("C", error.into()))?;
        counters::counted(stream, self.may_be_sliced(stream), || slices::run(self, stream, a, b, c))
    }

    /// Puts a batch of products on a stream, by one launch: product i is of A's, B's and C's i-th matrix, with the
    /// same scalars, bias and activation. The batches have equal counts.
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

    /// Puts the products of matrices that lie anywhere on a stream, one launch each. All are checked before the first
    /// is launched.
    ///
    /// # Errors
    /// As [`Gemm::launch`]; [`Error::Argument`] where `inputs` and `outputs` are not as many.
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

    /// The choice that would be made for such operands, without a device. What this product says of its computation and
    /// its workspace counts, whatever the request does.
    ///
    /// # Errors
    /// [`Error::Argument`] where a kernel was asked for that may not run.
    pub fn choose(&self, request: &Request, target: &Target) -> Result<Choice> {
        let request = self.request(request);
        choose_kernel::<T, O>(&request, target, self.kernel).map(|(_, choice)| choice)
    }

    /// Every kernel for these types, in the order of the registry.
    pub fn candidates(&self, request: &Request, target: &Target) -> Vec<Candidate> {
        select::candidates_of::<T, O>(&self.request(request), target)
    }

    /// The choice that would be made, and the plan that follows from it, on a device with these limits. Batches are dense.
    ///
    /// # Errors
    /// As [`Gemm::choose`].
    pub fn plan(
        &self,
        request: &Request,
        target: &Target,
        limits: &Limits,
    ) -> Result<(Choice, Plan)> {
        let request = &self.request(request);
        let (kernel, choice) = choose_kernel::<T, O>(request, target, self.kernel)?;
        let launched = request.as_launched();
        let (shape, is_swapped) = (launched.shape, launched != *request);
        let bias = match (self.bias, is_swapped) {
            (Some(Bias::PerRow(elements)), true) => Some(Bias::PerCol(elements)),
            (Some(Bias::PerCol(elements)), true) => Some(Bias::PerRow(elements)),
            (bias, _) => bias,
        };
        let task = Task::new(self, launched, [shape.a_len(), shape.b_len(), shape.c_len()], bias);
        let on = (limits, target.sms);
        let split = [choice.split_k, choice.partials];
        let plan = Plan::new::<T, O>(kernel, choice.operands, split, task, on)?;
        Ok((choice, plan))
    }
}
