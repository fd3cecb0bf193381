//! A device with room for operands.

use host::{
    Batch, BatchMut, Bias, Buffer, Device, Error, Gemm, MatrixView, MatrixViewMut, Result,
    SliceView, SliceViewMut, Stream, gemm::Scalar,
};

use super::{Case, Number, Operand, Place, Side};

/// A device, a stream, and memory for A, B, C and a bias that is reused.
#[derive(Debug)]
pub struct Bench<T, O = T> {
    device: Device,
    stream: Stream,
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<O>,
    bias: Buffer<O>,
}

impl<T: Number> Bench<T> {
    /// One on that device.
    ///
    /// # Panics
    /// If the device refuses a stream.
    pub fn new(device: &Device) -> Self {
        Bench::of_types(device)
    }
}

impl<T: Number + Scalar<O>, O: Number> Bench<T, O> {
    /// One on that device. C and the bias have a type of their own.
    ///
    /// # Panics
    /// If the device refuses a stream.
    pub fn of_types(device: &Device) -> Self {
        let stream = device.stream().unwrap();
        Bench {
            device: device.clone(),
            stream,
            a: device.zeros(0).unwrap(),
            b: device.zeros(0).unwrap(),
            c: device.zeros(0).unwrap(),
            bias: device.zeros(0).unwrap(),
        }
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Runs a case with that kernel, or with the one that the library selects. Returns C's
    /// elements: product by product, row by row.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Panics
    /// If a bit of A, B, the bias, a guard band or padding has changed.
    pub fn run(&mut self, case: &Case<T, O>, kernel: Option<&str>) -> Result<Vec<O>> {
        self.run_as(case, |gemm| match kernel {
            Some(kernel) => gemm.kernel(kernel),
            None => Ok(gemm),
        })
    }

    /// As [`run`](Self::run). `choose` changes the product before it runs.
    ///
    /// # Errors
    /// As [`run`](Self::run), and those of `choose`.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_as(
        &mut self,
        case: &Case<T, O>,
        choose: impl for<'a> FnOnce(Gemm<'a, T, O>) -> Result<Gemm<'a, T, O>>,
    ) -> Result<Vec<O>> {
        self.fill(case)?;
        self.go(case, choose)
    }

    /// Runs a case with those of these kernels that can compute it, at most `most`. Returns their
    /// indices, each with C's elements.
    ///
    /// # Errors
    /// As [`run`](Self::run), except for a kernel that cannot compute the case.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_takers(
        &mut self,
        case: &Case<T, O>,
        kernels: impl IntoIterator<Item = &'static str>,
        most: usize,
    ) -> Result<Vec<(usize, Vec<O>)>> {
        let mut results = Vec::new();
        let mut filled = false;
        for (number, kernel) in kernels.into_iter().enumerate() {
            if results.len() == most {
                break;
            }
            // A refused call has written nothing.
            if !filled {
                self.fill(case)?;
            }
            match self.go(case, |gemm| gemm.kernel(kernel)) {
                Err(Error::Argument { argument, .. }) if argument == "kernel" => filled = true,
                c => {
                    results.push((number, c?));
                    filled = false;
                }
            }
        }
        Ok(results)
    }

    /// Copies a case's operands to the memory.
    fn fill(&mut self, case: &Case<T, O>) -> Result<()> {
        fill(&mut self.a, &case.a)?;
        fill(&mut self.b, &case.b)?;
        fill(&mut self.c, &case.c)?;
        fill(&mut self.bias, &bias(case).1)
    }

    /// Runs a case whose operands are in the memory, and reads C.
    fn go(
        &mut self,
        case: &Case<T, O>,
        choose: impl for<'a> FnOnce(Gemm<'a, T, O>) -> Result<Gemm<'a, T, O>>,
    ) -> Result<Vec<O>> {
        let (side, bias) = bias(case);
        let elements = self.bias.view(bias.range())?;
        let gemm = Gemm::of_types().alpha(case.alpha).beta(case.beta);
        let gemm = gemm.activation(case.activation);
        let gemm = match side {
            None => gemm,
            Some(Side::Row) => gemm.bias(Bias::PerRow(elements)),
            Some(Side::Col) => gemm.bias(Bias::PerCol(elements)),
        };
        let gemm = choose(gemm)?;
        let stream = &self.stream;
        match case.c.place.count {
            None => {
                let (a, b) = (matrix(&self.a, &case.a)?, matrix(&self.b, &case.b)?);
                gemm.run(stream, a, b, matrix_mut(&mut self.c, &case.c)?)?;
            }
            Some(_) => {
                let (a, b) = (batch(&self.a, &case.a)?, batch(&self.b, &case.b)?);
                gemm.launch_batch(stream, a, b, batch_mut(&mut self.c, &case.c)?)?;
                stream.synchronize()?;
            }
        }

        let changed = |name: &str, changed: std::result::Result<(), String>| {
            changed.unwrap_or_else(|at| panic!("{name}, which is read, has changed: {at}: {case}"));
        };
        changed("A", case.a.unchanged(&read(&self.a, &case.a)?));
        changed("B", case.b.unchanged(&read(&self.b, &case.b)?));
        changed("the bias", bias.unchanged(&read(&self.bias, &bias)?));
        let c = case.c.written(&read(&self.c, &case.c)?);
        Ok(c.unwrap_or_else(|changed| panic!("around C: {changed}: {case}")))
    }
}

/// A case's bias. Empty if it has none.
fn bias<T, O: Number>(case: &Case<T, O>) -> (Option<Side>, Operand<O>) {
    let (side, bias) = match &case.bias {
        Some((side, bias)) => (Some(*side), &bias[..]),
        None => (None, &[][..]),
    };
    (side, Operand::dense((1, bias.len()), bias))
}

impl<T: Number> Bench<T> {
    /// Runs a case of one product without a bias, on its operands in host memory.
    ///
    /// # Errors
    /// Those of the library.
    ///
    /// # Panics
    /// If a bit of a guard band or padding has changed.
    pub fn run_slices(&self, case: &Case<T>) -> Result<Vec<T>> {
        let mut stored = case.c.stored.clone();
        let ((rows, cols), strides) = viewed(case.c.size, case.c.place);
        let c = SliceViewMut::new(&mut stored[case.c.range()], rows, cols, strides)?;
        let c = if case.c.place.transposed { c.t() } else { c };
        let (a, b) = (slice(&case.a)?, slice(&case.b)?);
        let gemm = Gemm::new().alpha(case.alpha).beta(case.beta).activation(case.activation);
        gemm.run_slices(&self.stream, a, b, c)?;
        Ok(case.c.written(&stored).unwrap_or_else(|changed| panic!("around C: {changed}: {case}")))
    }
}

/// Writes the stored elements to a buffer. If it is too small, to a larger one.
fn fill<T: Number>(buffer: &mut Buffer<T>, operand: &Operand<T>) -> Result<()> {
    if buffer.len() < operand.stored.len() {
        *buffer = buffer.device().uninit(operand.stored.len())?;
    }
    buffer.write(0, &operand.stored)
}

fn read<T: Number>(buffer: &Buffer<T>, operand: &Operand<T>) -> Result<Vec<T>> {
    buffer.view(..operand.stored.len())?.to_vec()
}

/// Its view, made from its transpose if asked for.
fn viewed(size: (usize, usize), place: Place) -> ((usize, usize), [usize; 2]) {
    let [between_rows, between_cols] = place.strides;
    match place.transposed {
        false => (size, place.strides),
        true => ((size.1, size.0), [between_cols, between_rows]),
    }
}

fn slice<T: Number>(operand: &Operand<T>) -> Result<SliceView<'_, T>> {
    let ((rows, cols), strides) = viewed(operand.size, operand.place);
    let view = SliceView::new(&operand.stored[operand.range()], rows, cols, strides)?;
    Ok(if operand.place.transposed { view.t() } else { view })
}

fn matrix<'a, T: Number>(buffer: &'a Buffer<T>, operand: &Operand<T>) -> Result<MatrixView<'a, T>> {
    let ((rows, cols), strides) = viewed(operand.size, operand.place);
    let view = MatrixView::new(buffer.view(operand.range())?, rows, cols, strides)?;
    Ok(if operand.place.transposed { view.t() } else { view })
}

fn matrix_mut<'a, T: Number>(
    buffer: &'a mut Buffer<T>,
    operand: &Operand<T>,
) -> Result<MatrixViewMut<'a, T>> {
    let ((rows, cols), strides) = viewed(operand.size, operand.place);
    let view = MatrixViewMut::new(buffer.view_mut(operand.range())?, rows, cols, strides)?;
    Ok(if operand.place.transposed { view.t() } else { view })
}

fn batch<'a, T: Number>(buffer: &'a Buffer<T>, operand: &Operand<T>) -> Result<Batch<'a, T>> {
    let (size, strides) = viewed(operand.size, operand.place);
    let (count, step) = (operand.count(), operand.place.step);
    let batch = Batch::new(buffer.view(operand.range())?, size, strides, count, step)?;
    Ok(if operand.place.transposed { batch.t() } else { batch })
}

fn batch_mut<'a, T: Number>(
    buffer: &'a mut Buffer<T>,
    operand: &Operand<T>,
) -> Result<BatchMut<'a, T>> {
    let (size, strides) = viewed(operand.size, operand.place);
    let (count, step) = (operand.count(), operand.place.step);
    let batch = BatchMut::new(buffer.view_mut(operand.range())?, size, strides, count, step)?;
    Ok(if operand.place.transposed { batch.t() } else { batch })
}
