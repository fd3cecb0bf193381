//! A product by tensor copies, or by a general kernel, on the CPU, with every access watched.

use gpu::{
    kernels::gemm_sliced::board,
    problem::{Matrices, Problem},
    registry::{Access, Entry, Scheme},
};
use simt::{
    Bf16, Bound, Elements, F16, LaunchConfig, Map, Named,
    check::{Finding, Kind, Options, Report},
    device::TensorMap,
};

use super::{
    Choice, Compute, Gemm, Output, Request, Scalar, Target,
    choice::choose_kernel,
    classes::Class,
    launch::{Panel, Work, panels},
    scalar::Kernel,
    sliced::{self, Slice, Slices, Uncut},
    tensor::{self, Sides},
};
use crate::{
    baseline::DenseBatch,
    boxes::BoxElement,
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
) -> Result<(Request, Kernel, Choice)> {
    let dense = DenseBatch { transposed: by_columns, ..DenseBatch::one(shape) };
    let request = Request::new(shape, dense.strides());
    // Whoever names a kernel of tf32 or of slices wants it.
    let compute = match entry.scheme() {
        Scheme::F16x3 => Compute::Fp32F16x3,
        Scheme::Bf16x6 => Compute::Fp32Bf16x6,
        Scheme::Native | Scheme::Tf32 => Compute::Tf32,
    };
    let request = Request { workspace_limit: u64::MAX, compute, ..request };
    let (kernel, choice) = choose_kernel::<T, O>(&request, &Target::H200, Some(entry.name()))?;
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
    let Some(work) = Work::new(&gemm, kernel, &choice, given.shape, 1)? else {
        return Ok(Vec::new());
    };
    let mut reports = Vec::new();
    let (c_len, c) = (c.len(), c.address());
    for panel in panels(work.kernel, given.shape, 1, work.split_k, (&simt::cpu::LIMITS, 1)) {
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
        let Kernel { entry, product } = work.kernel;
        let config = LaunchConfig { constants: entry.constants_of(&problem), ..config };
        // SAFETY: of C the kernel writes the elements that the problem speaks of, from the panel's first on; it is borrowed mutably.
        // A and B are borrowed, or copies.
        let (c, no_bias) = unsafe {
            let c_here = c.wrapping_add(c_start);
            (Elements::write(c_here, c_len - c_start).uninit(), Elements::read(c_here, 0))
        };
        let launch = |operands: Vec<Named>, problem: &Problem| {
            let common = [
                ("problem", Bound::Value(problem)),
                ("c", Bound::Elements(c)),
                ("bias", Bound::Elements(no_bias)),
            ];
            // SAFETY:
            // 1. As above, and the maps keep inside A and B.
            // 2. It takes no pointers.
            // 3. and 4. hold for every kernel of the registry.
            unsafe {
                launch_named(entry, &config, operands.into_iter().chain(common), &options(&config))
            }
        };
        if product.is_lesson() {
            let limit = "must be a general one, or take its operands by tensor copies";
            return Err(Error::argument("kernel", entry.name(), limit));
        }
        if product.is_general() {
            let report =
                launch(views("a", &a).into_iter().chain(views("b", &b)).collect(), &problem)?;
            let [of_a, of_b] = [a_strides, b_strides].map(|strides| strides[0]);
            reports.push(with_columns(report, [of_a, of_b, shape.n()]));
            continue;
        }
        let [of_a, of_b] = tensor::sides(product, way, sizes, [a_strides, b_strides]);
        if let Some(split) = product.split {
            let operands = ([a, b], [of_a, of_b], [0; 2]);
            let stream = Device::cpu().stream()?;
            let launch: &dyn Fn(Vec<Named>) -> Result<Report> =
                &|operands| launch(operands, &problem);
            let mut report = match product.variant.scheme {
                Scheme::F16x3 => {
                    let operands = Uncut::<_, F16>::of(operands, [None; 2]);
                    sliced::with_slices(&stream, split, 1, &operands, |slices| {
                        of_slices(&operands, &slices, launch)
                    })?
                }
                _ => {
                    let operands = Uncut::<_, Bf16>::of(operands, [None; 2]);
                    sliced::with_slices(&stream, split, 1, &operands, |slices| {
                        of_slices(&operands, &slices, launch)
                    })?
                }
            };
            report.findings.retain(may_be_of_slices);
            reports.push(with_columns(report, [a_strides[0], b_strides[0], shape.n()]));
            continue;
        }
        let (a, b) = (Rows::new(a, of_a)?, Rows::new(b, of_b)?);
        let (mut problem, access) = (problem, product.variant.access);
        if access.classes() > 1 {
            // It asks where rows begin.
            problem.a = [a.pitch as u64, 1];
        }
        let mut operands = match access {
            Access::Ldg => [views("a", &a.elements), views("b", &b.elements)].concat(),
            // SAFETY: the rows outlive the launch.
            _ => unsafe {
                let of_a = match access {
                    Access::UnalignedA(classes) => a.classes(classes as usize)?,
                    _ => vec![a.map()?],
                };
                vec![("a", Bound::Maps(of_a)), ("b", Bound::Maps(vec![b.map()?]))]
            },
        };
        let nothing = Matrices::default();
        if product.packs_tail {
            // B is copied whole beforehand, and nothing in the background.
            let nowhere = a.elements.address();
            // SAFETY: of no element.
            let (from, to, words) = unsafe {
                let words = nowhere.cast_mut().cast::<u32>();
                let to = Elements::write(nowhere.cast_mut(), 0);
                (Elements::read(nowhere, 0), to, Elements::write(words, 0))
            };
            operands.push(("last", Bound::Value(&nothing)));
            let of_tail = [("from", from), ("to", to), ("words", words)];
            operands.extend(of_tail.map(|(name, elements)| (name, Bound::Elements(elements))));
        }
        let mut report = launch(operands, &problem)?;
        report
            .findings
            .retain(|finding| !a.is_padding("a", finding) && !b.is_padding("b", finding));
        reports.push(with_columns(report, [a.pitch, b.pitch, shape.n()]));
    }
    Ok(reports)
}

/// Launches a kernel of the registry, of arguments by name.
///
/// # Safety
/// As for [`simt::check::launch`].
pub(crate) unsafe fn launch_named<'a>(
    entry: &Entry,
    config: &LaunchConfig,
    arguments: impl IntoIterator<Item = Named<'a>>,
    options: &Options,
) -> Result<Report> {
    let Some(kernel) = entry.checked else {
        return Err(Error::argument("kernel", entry.name(), "must compute a product"));
    };
    // SAFETY: the caller's.
    let report = unsafe { kernel.check_named(config, arguments, options) };
    report.map_err(|stop| Error::from_stop(entry.name(), stop))
}

/// An operand as a view.
fn views<T: Pod>(name: &'static str, of: &BufferView<T>) -> Vec<Named<'static>> {
    // SAFETY: the elements are borrowed until the launch has ended.
    vec![(name, Bound::Elements(unsafe { Elements::read(of.address(), of.len()) }))]
}

/// Launches a product of slices.
fn of_slices<T: Pod, S: Slice>(
    operands: &[Uncut<T, S>; 2],
    slices: &[Slices<S>; 2],
    launch: &dyn Fn(Vec<Named>) -> Result<Report>,
) -> Result<Report> {
    let mut words = [0u32; board::LEN];
    let [of_a, of_b] = slices;
    // SAFETY: planes and ranges outlive the launch, and so do the words.
    let (maps, board) = unsafe {
        ([planes(of_a)?, planes(of_b)?], Elements::write(words.as_mut_ptr(), words.len()))
    };
    let [a, b] = maps.map(|map| Bound::Maps(vec![map]));
    let mut arguments = vec![("a", a), ("b", b), ("board", Bound::Elements(board))];
    arguments.extend(views("a_itself", &operands[0].elements));
    arguments.extend(views("b_itself", &operands[1].elements));
    arguments.extend(views("patches_a", &of_a.ranges));
    arguments.extend(views("patches_b", &of_b.ranges));
    launch(arguments)
}

/// May it be said of a product of slices? Operands are there for what is computed again, and behind planes' rows and the ranges there
/// may be some more. Of the board few words are used, and fewer where nothing is computed again.
fn may_be_of_slices(finding: &Finding) -> bool {
    let is_board = finding.memory.as_deref() == Some("buffer board");
    finding.kind != Kind::NeverRead && !(is_board && finding.kind == Kind::NeverWritten)
}

/// The slices of an operand as the accelerator copies them.
///
/// # Safety
/// 1. They outlive the launch.
unsafe fn planes<S: Slice>(of: &Slices<S>) -> Result<Map> {
    // SAFETY: so many elements, which nobody writes.
    let map = unsafe { TensorMap::new(of.address(), of.extents, of.strides, of.shape) };
    Ok(map.map_err(|what| Error::argument("A or B", "its slices", what))?.erased())
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
        let mut to = crate::memory::filled(T::zeroed(), copied)?;
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
    /// 1. The rows outlive the launch.
    unsafe fn map(&self) -> Result<Map> {
        // SAFETY: the caller's.
        unsafe { self.part(0, [1, self.count, self.len], self.pitch) }
    }

    /// A map for each class of rows, of so many.
    ///
    /// # Safety
    /// 1. The rows outlive the launch.
    unsafe fn classes(&self, count: usize) -> Result<Vec<Map>> {
        let of_class = |class| {
            let Class { start, rows, len } =
                Class::new((class, count), self.count, self.len, self.pitch);
            // SAFETY: the caller's.
            unsafe { self.part(start, [1, rows, len], self.pitch.saturating_mul(count)) }
        };
        (0..count).map(of_class).collect()
    }

    /// # Safety
    /// 1. The rows outlive the launch.
    unsafe fn part(&self, start: usize, extents: [usize; 3], pitch: usize) -> Result<Map> {
        let base = self.address().wrapping_add(start);
        // SAFETY: so many elements, which nobody writes.
        let map = unsafe { TensorMap::new(base, extents, [0, pitch], self.sides.shape) };
        Ok(map.map_err(|what| Error::argument(self.sides.operand, "a matrix", what))?.erased())
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
