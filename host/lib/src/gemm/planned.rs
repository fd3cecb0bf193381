//! Products that are planned before their operands exist.

use super::{
    Batch, BatchMut, Choice, Gemm, Output, Plan, Request, Scalar, counters, execute,
    operands::is_aligned,
};
use crate::{
    buffer::{BufferView, Pod},
    device::Device,
    error::{Error, Result},
    matrix::{MatrixView, MatrixViewMut},
    stream::Stream,
};

/// A product whose kernel is selected and whose launches are known, for one device and one
/// [`Request`].
///
/// [`Gemm::launch`] selects and plans at each launch. Here both are done once, by
/// [`Gemm::plan_on`]: a program can read the choice and the workspace before it allocates the
/// operands, and every launch is the one that it read.
///
/// ```
/// use gpu_gemm::{Device, Gemm, Matrix, Shape, gemm::Request};
///
/// let device = Device::best().device;
/// let product = Gemm::<f32>::new().plan_on(&device, &Request::dense(Shape::new(2, 1, 3)?))?;
/// println!("{}", product.choice()); // the kernel, why, and the workspace
///
/// let a = Matrix::from_row_major(&device, 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = Matrix::from_row_major(&device, 3, 1, &[1.0, 0.0, 1.0])?;
/// let mut c = Matrix::zeros(&device, 2, 1)?;
/// product.launch(&device.stream()?, a.view(), b.view(), c.view_mut())?;
/// assert_eq!(c.to_row_major()?, [4.0, 10.0]);
///
/// // Other operands are refused.
/// let error = product.launch(&device.stream()?, a.view(), a.view().t(), c.view_mut());
/// assert_eq!(error.unwrap_err().to_string(), "B = 3x2: must be 3x1, as planned");
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
#[derive(Debug)]
pub struct PlannedGemm<'a, T, O = T> {
    pub(super) gemm: Gemm<'a, T, O>,
    pub(super) device: Device,
    /// As it was given: not swapped.
    pub(super) request: Request,
    /// Whether it is launched as `C^T = B^T A^T`.
    pub(super) is_swapped: bool,
    pub(super) choice: Choice,
    pub(super) plan: Plan,
}

impl<T: Scalar<O>, O: Output> PlannedGemm<'_, T, O> {
    /// The selected kernel, and why.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The launches.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// As [`Gemm::launch`], without selection and planning.
    ///
    /// # Errors
    /// As [`Gemm::launch`]. [`Error::Argument`] for a stream of another device, and for operands
    /// whose sizes, strides or alignment are not those of the request: nothing is launched.
    pub fn launch(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<()> {
        self.launch_batch(stream, Batch::one(a), Batch::one(b), BatchMut::one(c))
    }

    /// As [`Gemm::prepare`], for [`PlannedGemm::launch`].
    ///
    /// # Errors
    /// As [`PlannedGemm::launch`].
    pub fn prepare(
        &self,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<()> {
        stream.prepare(|stream| self.launch(stream, a, b, c))
    }

    /// As [`Gemm::launch_batch`], without selection and planning.
    ///
    /// # Errors
    /// As [`PlannedGemm::launch`]. [`Error::Argument`] for a batch of another count, or one that is
    /// not dense.
    pub fn launch_batch(
        &self,
        stream: &Stream,
        a: Batch<T>,
        b: Batch<T>,
        c: BatchMut<O>,
    ) -> Result<()> {
        self.check(stream, &a, &b, &c)?;
        counters::uncounted(stream, self.choice.entry.is_emulated(), || {
            let planned = (&self.choice, &self.plan, self.is_swapped);
            execute::planned(&self.gemm, stream, planned, a, b, c)
        })
    }

    /// Refuses operands for which the plan was not made.
    fn check(&self, stream: &Stream, a: &Batch<T>, b: &Batch<T>, c: &BatchMut<O>) -> Result<()> {
        if *stream.device() != self.device {
            let limit = format!("must be of {}, as planned", self.device.name());
            return Err(Error::argument("stream", stream.device().name(), limit));
        }
        let Request { shape, strides, batch, .. } = self.request;
        let (m, n, k) = (shape.m(), shape.n(), shape.k());
        let steps = self.request.dense_steps();
        let of_a = ("A", a.size, a.strides, a.count, a.step);
        let of_b = ("B", b.size, b.strides, b.count, b.step);
        let of_c = ("C", c.size, c.strides, c.count, c.step);
        let planned = [(m, k), (k, n), (m, n)].into_iter().zip(strides).zip(steps);
        for ((name, size, its_strides, count, step), ((planned, strides), planned_step)) in
            [of_a, of_b, of_c].into_iter().zip(planned)
        {
            let sizes = |(rows, cols): (usize, usize)| format!("{rows}x{cols}");
            same(name, "", sizes(size), sizes(planned))?;
            let of = |[rows, cols]: [usize; 2]| format!("[{rows}, {cols}]");
            same(name, ".strides", of(its_strides), of(strides))?;
            same(name, ".count", count, batch)?;
            if batch > 1 {
                same(name, ".step", step, planned_step)?;
            }
        }
        let [of_a, of_b, of_c] = self.request.aligned;
        if of_a {
            aligned("A", a.elements, a.count, a.step)?;
        }
        if of_b {
            aligned("B", b.elements, b.count, b.step)?;
        }
        // Any C is right for the other kernels.
        let stores = self.choice.entry.product.as_ref().is_some_and(|it| it.stores.is_some());
        if of_c && stores {
            aligned("C", c.elements.as_view(), c.count, c.step)?;
        }
        Ok(())
    }
}

/// Refuses matrices that are not 16-byte aligned.
fn aligned<T: Pod>(name: &str, elements: BufferView<T>, count: usize, step: usize) -> Result<()> {
    if elements.is_empty() || is_aligned(elements, count, step) {
        return Ok(());
    }
    let address = format!("at {:#x}", elements.address().addr());
    Err(Error::argument(name, address, "must be 16-byte aligned, as planned"))
}

/// Refuses a value that is not the planned one.
fn same<V: PartialEq + ToString>(name: &str, what: &str, value: V, planned: V) -> Result<()> {
    if value == planned {
        return Ok(());
    }
    let limit = format!("must be {}, as planned", planned.to_string());
    Err(Error::argument(format!("{name}{what}"), value.to_string(), limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activation, Bf16, Bias, Compute, Layout, Matrix, PreparedMatrix, Shape};

    fn matrix<T: Scalar + From<f32>>(
        rows: usize,
        cols: usize,
        layout: Layout,
        seed: usize,
    ) -> Matrix<T> {
        let value = |i: usize| T::from(((i * 7 + seed) % 11) as f32 - 5.0);
        let values = (0..rows * cols).map(value).collect::<Vec<_>>();
        let leading = if layout == Layout::RowMajor { cols } else { rows };
        let mut matrix =
            Matrix::with_layout(&Device::cpu(), rows, cols, layout, leading.max(1)).unwrap();
        matrix.write_row_major(&values).unwrap();
        matrix
    }

    /// A planned launch is the launch: the same choice, and the same bits.
    #[test]
    fn a_planned_launch_gives_the_bits_of_a_launch() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let mut count = 0;
        for (layout, kernel) in [
            (Layout::RowMajor, "wgmma_bf16x6_64x128x64_nn"),
            (Layout::ColMajor, "wgmma_bf16x6_64x128x64_nt"),
        ] {
            for (m, n, k) in [(37, 29, 41), (1, 5, 300), (64, 64, 64), (5, 3, 0), (0, 3, 5)] {
                let a = matrix::<f32>(m, k, Layout::RowMajor, 1);
                let b = matrix::<f32>(k, n, layout, 2);
                let bias = device.upload(&vec![0.5f32; m]).unwrap();
                let plain = Gemm::<f32>::new();
                let partials = if k > 64 { plain.partials(4).unwrap() } else { plain };
                let emulated = plain.compute(Compute::Fp32Bf16x6);
                let emulated = emulated.kernel(kernel).unwrap();
                let scaled = plain.alpha(0.5).beta(2.0).activation(Activation::Relu);
                for gemm in [plain, scaled.bias(Bias::PerRow(bias.all())), partials, emulated] {
                    let [mut one, mut other] = [0; 2].map(|_| matrix::<f32>(m, n, layout, 3));
                    let strides = [a.view().strides(), b.view().strides(), one.view().strides()];
                    let shape = Shape::new(m as u64, n as u64, k as u64).unwrap();
                    let planned = gemm.plan_on(&device, &Request::new(shape, strides)).unwrap();
                    planned.launch(&stream, a.view(), b.view(), one.view_mut()).unwrap();
                    let chosen =
                        gemm.launch(&stream, a.view(), b.view(), other.view_mut()).unwrap();
                    stream.synchronize().unwrap();
                    assert_eq!(format!("{:?}", planned.choice()), format!("{chosen:?}"));
                    let bits = |c: &Matrix<f32>| {
                        c.to_row_major().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
                    };
                    assert_eq!(bits(&one), bits(&other), "{m}x{n}x{k} {layout:?} {gemm:?}");
                    count += 1;
                }
            }
        }
        assert_eq!(count, 40);
    }

    /// A product of 4 x 6 and 6 x 5, planned, and matrices for it.
    fn planned() -> (PlannedGemm<'static, f32>, [Matrix<f32>; 3]) {
        let request = Request::dense(Shape::new(4, 5, 6).unwrap());
        let planned = Gemm::<f32>::new().plan_on(&Device::cpu(), &request).unwrap();
        let of = |rows, cols| matrix::<f32>(rows, cols, Layout::RowMajor, 0);
        (planned, [of(4, 6), of(6, 5), of(4, 5)])
    }

    #[test]
    fn operands_that_the_plan_was_not_made_for_are_refused() {
        let (planned, [a, b, mut c]) = planned();
        let stream = Device::cpu().stream().unwrap();
        let refused = |a: MatrixView<f32>, b: MatrixView<f32>, c: MatrixViewMut<f32>| {
            planned.launch(&stream, a, b, c).unwrap_err().to_string()
        };
        let of = |rows, cols| matrix::<f32>(rows, cols, Layout::RowMajor, 0);
        // Sizes: a larger and a smaller matrix, and a transpose.
        for (name, wrong, size) in
            [("A", of(5, 6), "5x6"), ("A", of(4, 5), "4x5"), ("A", of(6, 4), "6x4")]
        {
            let error = refused(wrong.view(), b.view(), c.view_mut());
            assert_eq!(error, format!("{name} = {size}: must be 4x6, as planned"));
        }
        let error = refused(a.view(), of(6, 4).view(), c.view_mut());
        assert_eq!(error, "B = 6x4: must be 6x5, as planned");
        let error = refused(a.view(), b.view(), of(3, 5).view_mut());
        assert_eq!(error, "C = 3x5: must be 4x5, as planned");
        // Strides.
        let error = refused(of(6, 4).view().t(), b.view(), c.view_mut());
        assert_eq!(error, "A.strides = [1, 4]: must be [6, 1], as planned");
        let mut by_columns = matrix::<f32>(4, 5, Layout::ColMajor, 0);
        let error = refused(a.view(), b.view(), by_columns.view_mut());
        assert_eq!(error, "C.strides = [1, 4]: must be [5, 1], as planned");
        // Alignment.
        let buffer = Device::cpu().upload(&[1.0f32; 40]).unwrap();
        let view = MatrixView::new(buffer.view(1..25).unwrap(), 4, 6, [6, 1]).unwrap();
        let error = refused(view, b.view(), c.view_mut());
        assert!(error.starts_with("A = at 0x"), "{error}");
        assert!(error.ends_with("must be 16-byte aligned, as planned"), "{error}");
        // Nothing was launched: C is as it was.
        assert_eq!(c.to_row_major().unwrap(), of(4, 5).to_row_major().unwrap());
        planned.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
    }

    /// A plan for unaligned operands serves aligned ones, too.
    #[test]
    fn a_plan_for_unaligned_operands() {
        let (_, [a, b, mut c]) = planned();
        let stream = Device::cpu().stream().unwrap();
        let request = Request::dense(Shape::new(4, 5, 6).unwrap());
        let request = Request { aligned: [false; 3], ..request };
        let gemm = Gemm::<f32>::new();
        let planned = gemm.plan_on(&Device::cpu(), &request).unwrap();
        planned.launch(&stream, a.view(), b.view(), c.view_mut()).unwrap();
        let mut other = Matrix::zeros(&Device::cpu(), 4, 5).unwrap();
        gemm.run(&stream, a.view(), b.view(), other.view_mut()).unwrap();
        assert_eq!(c.to_row_major().unwrap(), other.to_row_major().unwrap());
    }

    #[test]
    fn batches_have_the_planned_count_and_are_dense() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let request = Request::dense(Shape::new(2, 2, 2).unwrap());
        let request = Request { batch: 3, ..request };
        let gemm = Gemm::<Bf16, f32>::of_types();
        let planned = gemm.plan_on(&device, &request).unwrap();
        let a = device.upload(&[Bf16::from_f32(1.0); 16]).unwrap();
        let mut c = device.zeros::<f32>(16).unwrap();
        let of_a = |count, step| Batch::new(a.all(), (2, 2), [2, 1], count, step).unwrap();
        for (a_count, a_step, expected) in [
            (3, 4, None),
            (2, 4, Some("A.count = 2: must be 3, as planned")),
            (3, 0, Some("A.step = 0: must be 4, as planned")),
        ] {
            let to = BatchMut::new(c.all_mut(), (2, 2), [2, 1], 3, 4).unwrap();
            let done = planned.launch_batch(&stream, of_a(a_count, a_step), of_a(3, 4), to);
            assert_eq!(done.map_err(|error| error.to_string()).err().as_deref(), expected);
        }
        let values = [[2.0f32; 12].as_slice(), &[0.0; 4]].concat();
        assert_eq!(c.to_vec().unwrap(), values);
    }

    #[test]
    fn a_product_with_prepared_matrices_is_refused() {
        let device = Device::cpu();
        let a = matrix::<f32>(2, 2, Layout::RowMajor, 0);
        let prepared = PreparedMatrix::new(&device.stream().unwrap(), a.view()).unwrap();
        let gemm = Gemm::<f32>::new().prepared(&prepared);
        let request = Request::dense(Shape::new(2, 2, 2).unwrap());
        let error = gemm.plan_on(&device, &request).unwrap_err().to_string();
        assert!(error.starts_with("prepared = "), "{error}");
    }
}
