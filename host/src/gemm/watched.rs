//! A product by tensor copies, or by a general kernel, on the CPU, with every access watched.

use gpu::{
    kernels::gemm_sliced::board,
    problem::{Matrices, Problem},
    registry::{CheckedClassesParams, Entry, GemmKernel, TensorKernel},
};
use simt::{
    Bf16, F16, LaunchConfig,
    check::{Finding, Kind, Options, Report},
    checked::{In, Out, TensorMap, TensorMaps},
    cpu::Stop,
};

use super::{
    Choice, Compute, Gemm, Output, Request, Scalar, Target,
    choice::choose_kernel,
    classes::Class,
    launch::{Panel, Work, panels},
    scalar::{Kernel, Text},
    sliced::{self, Slice, Slices, Uncut},
    tensor::{self, Sides},
};
use crate::{
    baseline::DenseBatch,
    boxes::{BoxElement, all},
    buffer::{Buffer, BufferView, BufferViewMut, Pod},
    device::Device,
    error::{Error, Result},
    product::Shape,
};

/// The choice of a kernel for dense matrices, whatever workspace it needs: with k split as on an H200. A and B lie row by row
/// or by columns.
fn choose<T: Scalar<O>, O: Output>(
    entry: &Entry,
    shape: Shape,
    by_columns: [bool; 2],
) -> Result<(Request, Kernel<T, O>, Choice)> {
    let dense = DenseBatch { transposed: by_columns, ..DenseBatch::one(shape) };
    let request = Request::new(shape, dense.strides());
    // Whoever names a kernel of tf32 or of slices wants it.
    let compute = match entry.is_sliced() {
        true if entry.is_f16x3() => Compute::Fp32F16x3,
        true => Compute::Fp32Bf16x6,
        false => Compute::Tf32,
    };
    let request = Request { workspace_limit: u64::MAX, compute, ..request };
    let (kernel, choice) = choose_kernel(&request, &Target::H200, Some(entry.name()))?;
    Ok((request, kernel, choice))
}

/// Bytes of the copies that the product of such a kernel takes; none of one that there is not.
pub(crate) fn workspace_bytes<T: Scalar<O>, O: Output>(
    entry: &Entry,
    shape: Shape,
    by_columns: [bool; 2],
) -> u64 {
    choose::<T, O>(entry, shape, by_columns).map_or(0, |(.., choice)| choice.workspace_bytes)
}

/// Multiplies dense matrices on the CPU, of which A and B lie by columns or else, like C, by rows, as an H200 would: in its clusters
/// (but of blocks that go on from tile to tile there is one cluster), and from copies where the kernel needs them, whose padding is
/// NaN here. `options` are of each launch. Where k is 0 it is a general kernel that writes C.
///
/// # Errors
/// [`Error::Argument`] for a kernel that does not take such matrices; those of a launch.
pub(crate) fn multiply<'o, T: Scalar<O>, O: Output>(
    entry: &Entry,
    shape: Shape,
    by_columns: [bool; 2],
    [a, b]: [BufferView<T>; 2],
    mut c: BufferViewMut<O>,
    options: impl Fn(&LaunchConfig) -> Options<'o>,
) -> Result<Vec<Report>> {
    let (request, kernel, choice) = choose::<T, O>(entry, shape, by_columns)?;
    let way = choice.orientation;
    let given = way.apply(&request);
    let [a, b] = if way.exchanged { [b, a] } else { [a, b] };
    let gemm = Gemm::<T, O>::of_types();
    let Some(work) = Work::new(&gemm, &kernel, &choice, given.shape, 1)? else {
        return Ok(Vec::new());
    };
    let mut reports = Vec::new();
    let (c_len, c) = (c.len(), c.address());
    for panel in panels(&work.kernel, given.shape, 1, work.split_k, (&simt::cpu::LIMITS, 1)) {
        crate::check_interrupt()?;
        let Panel { first_row, rows, wide, config, .. } = panel;
        let sizes = [rows, given.shape.n(), work.k];
        let [a_strides, b_strides, c_strides] = given.strides;
        let a_start = first_row * a_strides[0];
        let a = a.view(a_start, a.len() - a_start)?;
        let c_start = first_row * c_strides[0];
        let problem = Problem {
            m: rows as u32,
            n: given.shape.n() as u32,
            k: work.k as u32,
            products: 1,
            wide: wide as u64,
            alpha: 1.0,
            a: a_strides.map(|stride| stride as u64),
            b: b_strides.map(|stride| stride as u64),
            c: c_strides.map(|stride| stride as u64),
            ..Problem::default()
        };
        let product = match work.kernel.text {
            Text::Tensor(product) => product,
            Text::General(GemmKernel { checked, .. }) => {
                // SAFETY: as below, of A and B themselves.
                let report = unsafe {
                    let no_bias = In::new(c.cast_const().cast(), 0);
                    let c = Out::uninit(c.wrapping_add(c_start).cast(), c_len - c_start);
                    let [a, b] = [a, b].map(|of| In::new(of.address().cast(), of.len()));
                    let parameters = (problem, a, b, c, no_bias);
                    simt::check::launch(checked, &config, parameters, &options(&config))
                };
                let report = report.map_err(|stop| Error::from_stop(entry.name(), stop))?;
                let [of_a, of_b] = [a_strides, b_strides].map(|strides| strides[0]);
                reports.push(with_columns(report, [of_a, of_b, shape.n()]));
                continue;
            }
            Text::Lesson => {
                let limit = "must be a general one, or take its operands by tensor copies";
                return Err(Error::argument("kernel", entry.name(), limit));
            }
        };
        let [of_a, of_b] = tensor::sides(product, way, sizes, [a_strides, b_strides]);
        if let TensorKernel::Sliced { cut, checked, .. } = product.kernel {
            let c = c.wrapping_add(c_start);
            let operands = [(a, of_a), (b, of_b)].map(|(elements, sides)| Uncut {
                elements,
                sides,
                step: 0,
                planes: None,
            });
            let (stream, mut board) = (Device::cpu().stream()?, [0; board::LEN]);
            let report = sliced::with_slices(&stream, cut, 1, &operands, |slices| {
                // SAFETY: as below.
                let report = unsafe {
                    let no_bias = In::new(c.cast_const().cast(), 0);
                    let c = Out::uninit(c.cast(), c_len - c_start);
                    let [a, b] = [a, b].map(|of| In::new(of.address().cast(), of.len()));
                    let ranges = |of: &Slices<Bf16>| In::new(of.ranges.address(), of.ranges.len());
                    let [of_a, of_b] = &slices;
                    let (planes_a, planes_b) = (planes(of_a)?, planes(of_b)?);
                    let (ranges_a, ranges_b) = (ranges(of_a), ranges(of_b));
                    let board = Out::new(board.as_mut_ptr(), board.len());
                    let parameters =
                        (problem, planes_a, planes_b, a, b, ranges_a, ranges_b, c, no_bias, board);
                    simt::check::launch(checked, &config, parameters, &options(&config))
                };
                report.map_err(|stop| Error::from_stop(entry.name(), stop))
            });
            let mut report = report?;
            report.findings.retain(of_slices);
            reports.push(with_columns(report, [a_strides[0], b_strides[0], shape.n()]));
            continue;
        }
        if let TensorKernel::SlicedF16 { cut, checked, .. } = product.kernel {
            let c = c.wrapping_add(c_start);
            let operands = [(a, of_a), (b, of_b)].map(|(elements, sides)| Uncut {
                elements,
                sides,
                step: 0,
                planes: None,
            });
            let (stream, mut board) = (Device::cpu().stream()?, [0; board::LEN]);
            let report = sliced::with_slices(&stream, cut, 1, &operands, |slices| {
                // SAFETY: as below.
                let report = unsafe {
                    let no_bias = In::new(c.cast_const().cast(), 0);
                    let c = Out::uninit(c.cast(), c_len - c_start);
                    let [a, b] = [a, b].map(|of| In::new(of.address().cast(), of.len()));
                    let ranges = |of: &Slices<F16>| In::new(of.ranges.address(), of.ranges.len());
                    let [of_a, of_b] = &slices;
                    let (planes_a, planes_b) = (planes(of_a)?, planes(of_b)?);
                    let (ranges_a, ranges_b) = (ranges(of_a), ranges(of_b));
                    let board = Out::new(board.as_mut_ptr(), board.len());
                    let parameters =
                        (problem, planes_a, planes_b, a, b, ranges_a, ranges_b, c, no_bias, board);
                    simt::check::launch(checked, &config, parameters, &options(&config))
                };
                report.map_err(|stop| Error::from_stop(entry.name(), stop))
            });
            let mut report = report?;
            report.findings.retain(of_slices);
            reports.push(with_columns(report, [a_strides[0], b_strides[0], shape.n()]));
            continue;
        }
        let (a, b) = (Rows::new(a, of_a)?, Rows::new(b, of_b)?);
        // SAFETY:
        // 1. A and B are borrowed or copies, and the maps keep inside them. Of C the kernel writes the elements that
        //    the problem speaks of, from the panel's first on; it is borrowed mutably.
        // 2. It takes no pointers.
        // 3. and 4. hold for every kernel of the registry.
        let report = unsafe {
            let no_bias = In::new(c.cast_const().cast(), 0);
            let c = Out::uninit(c.wrapping_add(c_start).cast(), c_len - c_start);
            let options = options(&config);
            match product.kernel {
                TensorKernel::Boxes { checked, .. } => {
                    let parameters = (problem, a.map()?, b.map()?, c, no_bias);
                    simt::check::launch(checked, &config, parameters, &options)
                }
                TensorKernel::Gathered { checked, .. } => {
                    let [a, b] =
                        [&a, &b].map(|of| In::new(of.elements.address().cast(), of.elements.len()));
                    simt::check::launch(checked, &config, (problem, a, b, c, no_bias), &options)
                }
                TensorKernel::Tf32 { checked, .. } => {
                    let parameters = (problem, a.map()?, b.map()?, c, no_bias);
                    simt::check::launch(checked, &config, parameters, &options)
                }
                TensorKernel::Tf32ClassesOfA { checked, .. } => {
                    let problem = Problem { a: [a.pitch as u64, 1], ..problem };
                    let parameters = (problem, a.classes()?, b.map()?, c, no_bias);
                    simt::check::launch(checked, &config, parameters, &options)
                }
                TensorKernel::Sliced { .. } | TensorKernel::SlicedF16 { .. } => continue,
                TensorKernel::ShiftedA { checked, .. } => {
                    let problem = Problem { a: [a.pitch as u64, 1], ..problem };
                    let parameters = (problem, a.classes()?, b.map()?, c, no_bias);
                    simt::check::launch(checked, &config, parameters, &options)
                }
                TensorKernel::ClassesOfA { checked, .. } => {
                    launch_classes(checked, &config, (problem, &a, &b, c, no_bias), &options)?
                }
                TensorKernel::SectorClassesOfA { checked, .. } => {
                    launch_classes(checked, &config, (problem, &a, &b, c, no_bias), &options)?
                }
            }
        };
        let mut report = report.map_err(|stop| Error::from_stop(entry.name(), stop))?;
        report
            .findings
            .retain(|finding| !a.is_padding("a", finding) && !b.is_padding("b", finding));
        reports.push(with_columns(report, [a.pitch, b.pitch, shape.n()]));
    }
    Ok(reports)
}

/// Launches a kernel that takes so many classes of A's rows. B is copied whole beforehand, and nothing beside.
///
/// # Safety
/// As for [`simt::check::launch`].
unsafe fn launch_classes<T: BoxElement, E: BoxElement, O: Pod, const CLASSES: usize>(
    kernel: &simt::Kernel<CheckedClassesParams<E, O, CLASSES>>,
    config: &LaunchConfig,
    (problem, a, b, c, bias): (Problem, &Rows<T>, &Rows<T>, Out<O>, In<O>),
    options: &Options,
) -> Result<std::result::Result<Report, Stop>> {
    let problem = Problem { a: [a.pitch as u64, 1], ..problem };
    let nowhere = a.elements.address();
    // SAFETY: of no element; the rest is the caller's.
    unsafe {
        let (from, to) = (In::new(nowhere.cast(), 0), Out::new(nowhere.cast_mut().cast(), 0));
        let words = Out::new(nowhere.cast_mut().cast(), 0);
        let (a, b, rest) = (a.classes()?, b.map()?, Matrices::default());
        let parameters = (problem, a, b, rest, from, to, words, c, bias);
        Ok(simt::check::launch(kernel, config, parameters, options))
    }
}

/// May it be said of a product of slices? Operands are there for what is computed again, and behind planes' rows and the ranges there
/// may be some more. Of the board few words are used, and fewer where nothing is computed again.
fn of_slices(finding: &Finding) -> bool {
    let is_board = finding.memory.as_deref() == Some("buffer board");
    finding.kind != Kind::NeverRead && !(is_board && finding.kind == Kind::NeverWritten)
}

/// The slices of an operand as the accelerator copies them.
///
/// # Safety
/// They outlive the launch.
unsafe fn planes<S: Slice>(of: &Slices<S>) -> Result<TensorMap<S>> {
    // SAFETY: so many elements, which nobody writes.
    let map = unsafe { TensorMap::new(of.address(), of.extents, of.strides, of.shape) };
    map.map_err(|what| Error::argument("A or B", "its slices", what))
}

/// An element of A, B or C is known by its row and column: they have so many columns.
fn with_columns(mut report: Report, columns: [usize; 3]) -> Report {
    for (name, columns) in ["a", "b", "c"].into_iter().zip(columns) {
        let memory = Some(format!("buffer {name}"));
        let of_it = report.findings.iter_mut().filter(|finding| finding.memory == memory);
        of_it.for_each(|finding| finding.columns = Some(columns));
    }
    report
}

/// An operand as the accelerator copies it.
struct Rows<'a, T> {
    elements: BufferView<'a, T>,
    /// Where the operand itself does not begin or go on at multiples of sixteen bytes, or is turned over.
    copy: Option<Buffer<T>>,
    count: usize,
    len: usize,
    pitch: usize,
    sides: Sides,
}

impl<'a, T: BoxElement> Rows<'a, T> {
    fn new(elements: BufferView<'a, T>, sides: Sides) -> Result<Self> {
        let ((_, len, stride), (count, step)) = (sides.inner, sides.outer);
        let aligned = elements.address().addr().is_multiple_of(16);
        let copied = sides.copied(1, aligned);
        if copied == 0 {
            return Ok(Rows { elements, copy: None, count, len, pitch: step, sides });
        }
        let (from, pitch) = (elements.to_vec()?, sides.padded_pitch());
        let mut to = vec![T::zeroed(); copied];
        // All bits set: NaN, of every type.
        bytemuck::cast_slice_mut::<T, u8>(&mut to).fill(0xff);
        for (row, to) in to.chunks_exact_mut(pitch).enumerate() {
            let of_row = from.iter().skip(row * step).step_by(stride.max(1));
            to.iter_mut().zip(of_row.take(len)).for_each(|(to, from)| *to = *from);
        }
        let copy = Some(Device::cpu().upload(&to)?);
        Ok(Rows { elements, copy, count, len, pitch, sides })
    }

    fn address(&self) -> *const T {
        match self.copy.as_ref().and_then(|copy| copy.view(..).ok()) {
            Some(copy) => copy.address(),
            None => self.elements.address(),
        }
    }

    /// # Safety
    /// The rows outlive the launch.
    unsafe fn map<U: BoxElement>(&self) -> Result<TensorMap<U>> {
        let (extents, strides) = ([1, self.count, self.len], [0, self.pitch]);
        // SAFETY: so many elements, which nobody writes. (`U` is `T`; or that is f32, and tf32 what it is rounded to.)
        let map =
            unsafe { TensorMap::new(self.address().cast(), extents, strides, self.sides.shape) };
        map.map_err(|what| Error::argument(self.sides.operand, "a matrix", what))
    }

    /// A map for each class of rows, of so many.
    ///
    /// # Safety
    /// The rows outlive the launch.
    unsafe fn classes<U: BoxElement, const COUNT: usize>(&self) -> Result<TensorMaps<U, COUNT>> {
        let maps = all(std::array::from_fn(|class| {
            let Class { start, rows, len } =
                Class::new::<COUNT>(class, self.count, self.len, self.pitch);
            let (base, shape) = (self.address().wrapping_add(start).cast(), self.sides.shape);
            // SAFETY: as in `map`.
            let map = unsafe {
                TensorMap::new(base, [1, rows, len], [0, self.pitch.saturating_mul(COUNT)], shape)
            };
            map.map_err(|what| Error::argument(self.sides.operand, "a matrix", what))
        }));
        Ok(TensorMaps::new(maps?))
    }

    /// Is it said of nothing but what lies between the rows that nobody reads it?
    fn is_padding(&self, name: &str, finding: &Finding) -> bool {
        let between = self.count.saturating_sub(1) * self.pitch.saturating_sub(self.len);
        let memory = finding.memory.as_deref().and_then(|memory| memory.strip_prefix("buffer "));
        between > 0
            && finding.kind == Kind::NeverRead
            && memory == Some(name)
            && finding.detail.starts_with(&format!("{between} of "))
            && finding.detail.ends_with(&format!("; element {} is the first", self.len))
    }
}
