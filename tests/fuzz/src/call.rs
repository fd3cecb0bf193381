//! Asks the library for a product, in each of the ways there are.

use std::ops::Range;

use gpu::registry::{Entry, Type};
use gpu_gemm::{
    Batch, BatchMut, Bias, Buffer, BufferView, Gemm, MatrixView, MatrixViewMut, Pod,
    PreparedMatrix, Result, Shape, SliceView, SliceViewMut, Stream,
    gemm::{Choice, Request, Scalar, Target},
};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, ShapeBuilder};
use tests::gemm::{Number, Place, Side};

use crate::{
    filled::Filled,
    memory::Memory,
    product::{Form, Kernel, Product, Way, Wrong},
};

/// A number whose matrices can be split into slices, if any can.
pub trait Operand: Number {
    /// The slices of a matrix. `None` of other numbers than f32.
    fn split<'a>(
        stream: &Stream,
        matrix: MatrixView<'a, Self>,
        product: &Product,
    ) -> Result<Option<PreparedMatrix<'a, Self>>> {
        let _ = (stream, matrix, product);
        Ok(None)
    }
}

impl Operand for f32 {
    fn split<'a>(
        stream: &Stream,
        matrix: MatrixView<'a, f32>,
        product: &Product,
    ) -> Result<Option<PreparedMatrix<'a, f32>>> {
        PreparedMatrix::for_compute(stream, matrix, product.compute).map(Some)
    }
}

impl Operand for f64 {}
impl Operand for gpu_gemm::Bf16 {}
impl Operand for gpu_gemm::F16 {}

/// A product's operands in a device's memory, which is used again.
#[derive(Debug)]
pub struct Room<T, O> {
    /// A, and B where it is in A's memory.
    pub a: Buffer<T>,
    /// B.
    pub b: Buffer<T>,
    /// C.
    pub c: Buffer<O>,
    /// The bias.
    pub bias: Buffer<O>,
}

/// The memories of A, B and C in this machine's memory.
#[derive(Clone, Debug)]
pub struct Host<T, O> {
    /// A.
    pub a: Vec<T>,
    /// B.
    pub b: Vec<T>,
    /// C.
    pub c: Vec<O>,
}

/// The streams of a call: that of the device, and where its launches go. These are two where it is
/// prepared.
#[derive(Clone, Copy, Debug)]
pub struct On<'a> {
    /// The device's.
    pub stream: &'a Stream,
    /// For the launches.
    pub launches: &'a Stream,
}

impl<T: Operand + Scalar<O>, O: Number> Room<T, O> {
    /// Computes the product, of operands in this room; or of A, B and C in this machine's memory.
    ///
    /// # Errors
    /// Those of the library.
    pub fn call(
        &mut self,
        product: &Product,
        it: &Filled<T, O>,
        on: On,
        host: &mut Host<T, O>,
    ) -> Result<Option<Choice>> {
        let [of_a, of_b, _] = [0, 1, 2].map(|i| part(product, i));
        let from_a = self.a.view(it.a.range())?;
        let from_b = if product.shared { from_a } else { self.b.view(it.b.range())? };
        let bias = bias(product, &self.bias, it)?;
        let mut slices = [None, None];
        for (i, from) in [from_a, from_b].into_iter().enumerate() {
            if let Some(form) = product.prepared[i] {
                slices[i] =
                    T::split(on.stream, form_of(form, one(from, &part(product, i), 0)?)?, product)?;
            }
        }
        let gemm = settings(product, bias, &slices)?;
        if matches!(product.way, Way::Slices | Way::Arrays) {
            return on_host(product, &gemm, on.launches, it, host).map(Some);
        }
        let mut shared = match product.wrong {
            Some(wrong @ (Wrong::Shares | Wrong::SharesLast)) => {
                let last = if wrong == Wrong::Shares { 0 } else { it.a.range().len() - 1 };
                let first = from_a.view(last, 1)?.address_on(on.stream)? as u64;
                let first = first - first % size_of::<O>() as u64;
                // SAFETY: A's memory has room for C, and the product is refused before anything is
                // written. If it is not, the bytes are numbers all the same.
                Some(unsafe { on.stream.device().foreign::<O>(first, it.c.range().len()) }?)
            }
            _ => None,
        };
        let (c_all, c_range) = match &mut shared {
            Some(shared) => (shared, 0..it.c.range().len()),
            None => (&mut self.c, it.c.range()),
        };
        let of_c = part(product, 2);
        match product.way {
            Way::Run | Way::Launch => {
                let (a, b) = (one(from_a, &of_a, 0)?, one(from_b, &of_b, 0)?);
                let c = one_mut(c_all, c_range, &of_c)?;
                match product.way {
                    Way::Run => gemm.run(on.launches, a, b, c),
                    _ => gemm.launch(on.launches, a, b, c),
                }
                .map(Some)
            }
            Way::Batch => {
                let (a, b) = (batch(from_a, &of_a)?, batch(from_b, &of_b)?);
                gemm.launch_batch(on.launches, a, b, batch_mut(c_all, c_range, &of_c)?).map(Some)
            }
            Way::Array => {
                let count = product.count();
                let products =
                    (0..count).map(|i| Ok((one(from_a, &of_a, i)?, one(from_b, &of_b, i)?)));
                let products = products.collect::<Result<Vec<_>>>()?;
                let first = c_all.view_mut(c_range)?.address_on(on.stream)? as u64;
                let len = of_c.place.extent(of_c.size);
                let parts = (0..count).map(|i| {
                    let at = if len == 0 { 0 } else { i * of_c.place.step * size_of::<O>() };
                    // SAFETY: C's memory, which nobody else uses meanwhile. No part has an element
                    // of another: `draw` and `shrink` see to it.
                    unsafe { on.stream.device().foreign::<O>(first + at as u64, len) }
                });
                let mut parts = parts.collect::<Result<Vec<_>>>()?;
                let views = parts.iter_mut().map(|part| one_mut(part, 0..len, &of_c));
                let mut views = views.collect::<Result<Vec<_>>>()?;
                let choices = gemm.launch_array(on.launches, &products, &mut views)?;
                Ok(choices.first().copied())
            }
            Way::Slices | Way::Arrays => Ok(None),
            Way::Planned => {
                let planned =
                    gemm.plan_on(on.stream.device(), &request(product, &of_a, &of_b, &of_c)?)?;
                // Once more with operands at other addresses: the same numbers, so C is the same.
                let is_repeated = product.again && product.beta == 0.0 && product.wrong.is_none();
                let copy = |of: &Memory<T>| match is_repeated {
                    true => on.stream.device().upload(&of.stored).map(Some),
                    false => Ok(None),
                };
                let (a_copy, b_copy) = match product.prepares {
                    true => (None, None),
                    false => (copy(&it.a)?, copy(&it.b)?),
                };
                let mut operands = vec![(from_a, from_b)];
                if let (Some(a), Some(b)) = (&a_copy, &b_copy) {
                    let a = a.view(it.a.range())?;
                    let b = if product.shared { a } else { b.view(it.b.range())? };
                    operands.push((a, b));
                }
                for (from_a, from_b) in operands {
                    if product.places[2].count.is_some() {
                        let (a, b) = (batch(from_a, &of_a)?, batch(from_b, &of_b)?);
                        let c = batch_mut(c_all, c_range.clone(), &of_c)?;
                        planned.launch_batch(on.launches, a, b, c)?;
                        continue;
                    }
                    let (a, b) = (one(from_a, &of_a, 0)?, one(from_b, &of_b, 0)?);
                    planned.launch(on.launches, a, b, one_mut(c_all, c_range.clone(), &of_c)?)?;
                }
                on.stream.synchronize()?;
                Ok(Some(*planned.choice()))
            }
        }
    }
}

/// What is planned for the product on a target, or the library's error, in words. The
/// launches are named by what they are given to the driver, not by how the plan is written.
pub fn planned<T: Scalar<O>, O: Number>(product: &Product, target: &Target) -> String {
    let [a, b, c] = [0, 1, 2].map(|i| part(product, i));
    let plan = settings::<T, O>(product, None, &[None, None])
        .and_then(|gemm| gemm.plan(&request(product, &a, &b, &c)?, target, &simt::cpu::LIMITS));
    match plan {
        Err(error) => error.to_string(),
        Ok((choice, plan)) => {
            let Choice { entry, reason, workspace_bytes, split_k, partials, .. } = choice;
            let launches = plan.launches().collect::<Vec<_>>();
            let name = entry.name();
            format!("{name} {reason:?} {workspace_bytes} {split_k} {partials} {launches:?}")
        }
    }
}

/// An operand's size and place, as it is asked for: perhaps wrong.
#[derive(Clone, Copy, Debug)]
struct Part {
    size: (usize, usize),
    place: Place,
}

fn part(product: &Product, i: usize) -> Part {
    let (mut size, mut place) = (product.sizes()[i], product.places[i]);
    match product.wrong {
        Some(Wrong::Size) if i == 1 => size.0 -= 1,
        Some(Wrong::Count) if i == 1 => place.count = place.count.map(|count| count - 1),
        _ => {}
    }
    Part { size, place }
}

/// Its view, made from its transpose if asked for.
fn viewed(part: &Part) -> ((usize, usize), [usize; 2]) {
    let ((rows, cols), [between_rows, between_cols]) = (part.size, part.place.strides);
    match part.place.transposed {
        true => ((cols, rows), [between_cols, between_rows]),
        false => (part.size, part.place.strides),
    }
}

/// Product `i` of an operand whose elements these are.
fn one<'a, T: Pod>(
    elements: BufferView<'a, T>,
    part: &Part,
    i: usize,
) -> Result<MatrixView<'a, T>> {
    let len = part.place.extent(part.size);
    let start = if len == 0 { 0 } else { i * part.place.step };
    let (size, strides) = viewed(part);
    let view = MatrixView::new(elements.view(start, len)?, size.0, size.1, strides)?;
    Ok(if part.place.transposed { view.t() } else { view })
}

fn one_mut<'a, O: Pod>(
    all: &'a mut Buffer<O>,
    range: Range<usize>,
    part: &Part,
) -> Result<MatrixViewMut<'a, O>> {
    let (size, strides) = viewed(part);
    let view = MatrixViewMut::new(all.view_mut(range)?, size.0, size.1, strides)?;
    Ok(if part.place.transposed { view.t() } else { view })
}

fn batch<'a, T: Pod>(elements: BufferView<'a, T>, part: &Part) -> Result<Batch<'a, T>> {
    let count = part.place.count.unwrap_or(1);
    if part.place.step == 0 && count > 0 {
        return Ok(Batch::repeat(one(elements, part, 0)?, count));
    }
    let (size, strides) = viewed(part);
    let batch = Batch::new(elements, size, strides, count, part.place.step)?;
    Ok(if part.place.transposed { batch.t() } else { batch })
}

fn batch_mut<'a, O: Pod>(
    all: &'a mut Buffer<O>,
    range: Range<usize>,
    part: &Part,
) -> Result<BatchMut<'a, O>> {
    let (size, strides) = viewed(part);
    let count = part.place.count.unwrap_or(1);
    let batch = BatchMut::new(all.view_mut(range)?, size, strides, count, part.place.step)?;
    Ok(if part.place.transposed { batch.t() } else { batch })
}

/// What is split before, of an operand.
fn form_of<T: Pod>(form: Form, operand: MatrixView<T>) -> Result<MatrixView<T>> {
    match form {
        Form::Itself => Ok(operand),
        Form::Transposed => Ok(operand.t()),
        Form::Part => {
            let (rows, cols) = (operand.rows(), operand.cols());
            operand.sub(0..rows.saturating_sub(1), 0..cols)
        }
    }
}

/// The bias, or one of a wrong length.
fn bias<'a, O: Number>(
    product: &Product,
    all: &'a Buffer<O>,
    it: &Filled<impl Number, O>,
) -> Result<Option<Bias<'a, O>>> {
    let [m, n, _] = product.size;
    let start = it.bias.range().start;
    let is_wrong = product.wrong == Some(Wrong::Bias);
    let of = |len: usize| match (is_wrong, len) {
        (false, len) => all.view(start..start + len),
        (true, 0) => all.view(start..start + 1),
        (true, len) => all.view(start..start + len - 1),
    };
    Ok(match product.bias {
        Some(Side::Row) => Some(Bias::PerRow(of(m)?)),
        Some(Side::Col) => Some(Bias::PerCol(of(n)?)),
        None if is_wrong && n != 1 => Some(Bias::PerCol(all.view(start..start + 1)?)),
        None if is_wrong => Some(Bias::PerCol(all.view(start..start)?)),
        None => None,
    })
}

/// The product's settings, with the kernel that it names.
fn settings<'a, T: Scalar<O>, O: Number>(
    product: &Product,
    bias: Option<Bias<'a, O>>,
    slices: &'a [Option<PreparedMatrix<'a, T>>; 2],
) -> Result<Gemm<'a, T, O>> {
    let mut gemm = Gemm::of_types().alpha(product.alpha).beta(product.beta);
    gemm = gemm.activation(product.activation).compute(product.compute);
    if let Some(bias) = bias {
        gemm = gemm.bias(bias);
    }
    let is_odd = product.numbers & 1 == 1;
    let split_k = match product.wrong {
        Some(Wrong::Splits) => Some(if is_odd { 0 } else { 9 }),
        _ => product.split_k,
    };
    let partials = match product.wrong {
        Some(Wrong::Partials) => Some(if is_odd { 0 } else { 4097 }),
        _ => product.partials,
    };
    if let Some(blocks) = split_k {
        gemm = gemm.split_k(blocks)?;
    }
    if let Some(count) = partials {
        gemm = gemm.partials(count)?;
    }
    if let Some(bytes) = product.workspace_limit {
        gemm = gemm.workspace_limit(bytes);
    }
    for slices in slices.iter().flatten() {
        gemm = gemm.prepared(slices);
    }
    match product.kernel {
        Kernel::Chosen => Ok(gemm),
        Kernel::Named(entry) if is_odd => gemm.kernel(entry.name()),
        Kernel::Named(entry) => gemm.entry(entry),
        Kernel::AsOn(target) => {
            let [a, b, c] = [0, 1, 2].map(|i| part(product, i));
            let choice = gemm.choose(&request(product, &a, &b, &c)?, &target)?;
            as_chosen(gemm, &choice)
        }
    }
}

/// The same kernel, with k split in the same way.
fn as_chosen<'a, T: Scalar<O>, O: Number>(
    gemm: Gemm<'a, T, O>,
    choice: &Choice,
) -> Result<Gemm<'a, T, O>> {
    let gemm = gemm.partials(choice.partials)?;
    // Partial products are f32: their kernel has another C than the product, and cannot be named.
    let named = |entry: &'static Entry| gemm.entry(entry);
    let Ok(gemm) = named(choice.entry) else { return Ok(gemm) };
    if choice.split_k == 1 { Ok(gemm) } else { gemm.split_k(choice.split_k) }
}

/// What a product is planned by.
fn request(product: &Product, a: &Part, b: &Part, c: &Part) -> Result<Request> {
    let [m, mut n, k] = product.size;
    let mut strides = [a, b, c].map(|part| part.place.strides);
    match product.wrong {
        Some(Wrong::PlannedSize) => n += 1,
        Some(Wrong::PlannedStrides) => strides[0][0] += 1,
        _ => {}
    }
    let mut request = Request::new(Shape::new(m as u64, n as u64, k as u64)?, strides);
    request.batch = product.count();
    // Memory begins at a multiple of sixteen bytes.
    let [bytes, c_bytes] = product.types.of().map(Type::bytes);
    let first = if product.shared { a.place.offset } else { b.place.offset };
    let offsets = [a.place.offset * bytes, first * bytes, c.place.offset * c_bytes];
    request.aligned = offsets.map(|offset| offset.is_multiple_of(16));
    Ok(request)
}

/// The product of matrices in this machine's memory.
fn on_host<T: Number + Scalar<O>, O: Number>(
    product: &Product,
    gemm: &Gemm<T, O>,
    stream: &Stream,
    it: &Filled<T, O>,
    host: &mut Host<T, O>,
) -> Result<Choice> {
    let [of_a, of_b, of_c] = [0, 1, 2].map(|i| part(product, i));
    let (a, b, c) = (&host.a[it.a.range()], &host.b[it.b.range()], &mut host.c[it.c.range()]);
    if product.way == Way::Slices {
        let (size, strides) = viewed(&of_c);
        let c = SliceViewMut::new(c, size.0, size.1, strides)?;
        let c = if of_c.place.transposed { c.t() } else { c };
        return gemm.run_slices(stream, slice(a, &of_a)?, slice(b, &of_b)?, c);
    }
    let [by_a, by_b, by_c] = product.inverted;
    let strided = |part: &Part| {
        let [between_rows, between_cols] = part.place.strides;
        part.size.strides((between_rows, between_cols))
    };
    let axes = |by: [bool; 2]| [0, 1].into_iter().filter(move |&axis| by[axis]).map(Axis);
    let read = |of: &Part, from: &[T], by| {
        // SAFETY: the slice has all elements at that place. Nobody uses the array after the slice.
        let mut array = unsafe { ArrayView2::from_shape_ptr(strided(of), from.as_ptr()) };
        axes(by).for_each(|axis| array.invert_axis(axis));
        array
    };
    let (a, b) = (read(&of_a, a, by_a), read(&of_b, b, by_b));
    // SAFETY: as above, and no two elements of C are one.
    let mut array = unsafe { ArrayViewMut2::from_shape_ptr(strided(&of_c), c.as_mut_ptr()) };
    axes(by_c).for_each(|axis| array.invert_axis(axis));
    gemm.run_slices(stream, a, b, array)
}

fn slice<'a, T>(elements: &'a [T], part: &Part) -> Result<SliceView<'a, T>> {
    let (size, strides) = viewed(part);
    let view = SliceView::new(elements, size.0, size.1, strides)?;
    Ok(if part.place.transposed { view.t() } else { view })
}
