//! Products on the CPU device with every access of the kernel checked.
//!
//! ```
//! use gpu_gemm::{Device, Shape, gemm::checked, product, simt::check::Options};
//!
//! let device = Device::cpu();
//! let (a, b) = (device.upload(&[1.0f32; 6])?, device.upload(&[2.0f32; 6])?);
//! let mut c = device.zeros::<f32>(4)?;
//! let (entry, shape) = (product::find("tiled16")?, Shape::new(2, 2, 3)?);
//! let operands = [a.all(), b.all()];
//! let options = |_: &_| Options::default();
//! let reports = checked::multiply(entry, shape, [false; 2], operands, None, c.all_mut(), options)?;
//! assert!(reports.iter().all(|report| report.is_clean()));
//! assert_eq!(c.to_vec()?, [6.0; 4]);
//! # Ok::<(), gpu_gemm::Error>(())
//! ```

use std::{cell::RefCell, ops::Range};

use gpu::registry::{Entry, KERNELS, PointerParams, Scheme};
use simt::{
    AnyCheckedKernel, Bound, LaunchConfig,
    check::{Finding, Memory, Options, Report},
};

use super::{check, executor::Executor, memories::Matrices3, steps::execute};
use crate::{
    buffer::{AnyView, Buffer, BufferView, BufferViewMut},
    device::Device,
    error::{Error, Result},
    gemm::{
        Batch, BatchMut, Choice, Compute, Gemm, Output, Request, Scalar, Scales, Target,
        operands::{check_scales, is_aligned},
        plan::{
            Plan, Task,
            binding::{Argument, Binding, Input, Launched, Map, Part, Purpose, Target as Written},
        },
        scalar::Kernel,
        scales::{self, NAMES, ScalePlan},
        select::choice_of,
    },
    launch::NamedArguments,
    shape::Shape,
    stream::Stream,
};

/// Selects the named kernel for dense matrices as an H200 would, with all the workspace that it
/// needs. `by_columns`: A, and B, are stored column by column. `scales`: their kind.
fn choose(
    entry: &'static Entry,
    shape: Shape,
    by_columns: [bool; 2],
    aligned: [bool; 3],
    scales: u32,
) -> Result<(Request, Kernel, Choice)> {
    let (m, n, k) = (shape.m(), shape.n(), shape.k());
    let a = if by_columns[0] { [1, m] } else { [k, 1] };
    let b = if by_columns[1] { [1, k] } else { [n, 1] };
    let request = Request::new(shape, [a, b, [n, 1]]);
    let compute = match entry.scheme() {
        Scheme::F16x3 => Compute::Fp32F16x3,
        Scheme::Bf16x6 => Compute::Fp32Bf16x6,
        Scheme::Native | Scheme::Tf32 => Compute::Tf32,
    };
    let request = Request { aligned, workspace_limit: u64::MAX, compute, scales, ..request };
    let Some(product) = &entry.product else {
        return Err(Error::argument("kernel", entry.name(), "must compute a product"));
    };
    let kernel = Kernel { entry, product };
    Ok((request, kernel, choice_of(kernel, &request, &Target::H200)?))
}

/// Bytes of workspace of a product of 16-byte aligned matrices. 0 if the kernel cannot compute it.
pub fn workspace_bytes(
    entry: &'static Entry,
    shape: Shape,
    by_columns: [bool; 2],
    scales: Option<Scales>,
) -> u64 {
    let chosen = choose(entry, shape, by_columns, [true; 3], ScalePlan::of(scales).kind);
    chosen.map_or(0, |(.., choice)| choice.workspace_bytes)
}

/// Multiplies dense matrices in the CPU device's memory, in the clusters of an H200; persistent
/// CTAs run as one cluster. C is row-major. The workspace is NaN, except for copies of operands.
/// `scales`: of A and B, if there are any. `options` are those of each launch.
///
/// # Errors
/// [`Error::Argument`] for a matrix or scales of another size or on a GPU, and for a kernel that
/// cannot compute the product; those of a launch.
pub fn multiply<'o, T: Scalar<O>, O: Output>(
    entry: &'static Entry,
    shape: Shape,
    by_columns: [bool; 2],
    [a, b]: [BufferView<T>; 2],
    scales: Option<Scales>,
    c: BufferViewMut<O>,
    options: impl Fn(&LaunchConfig) -> Options<'o>,
) -> Result<Vec<Report>> {
    shape.check_lens([a.len(), b.len(), c.len()])?;
    let of_scales = scales::elements(scales);
    let devices = [("a", a.device()), ("b", b.device()), ("c", c.device())];
    let more = NAMES.into_iter().zip(of_scales.iter().flatten().map(BufferView::device));
    for (name, on) in devices.into_iter().chain(more) {
        if on.is_cuda() {
            return Err(Error::argument(name, on.name(), "must be on the CPU device"));
        }
    }
    let aligned = [a, b].map(|operand| is_aligned(operand, 1, 0));
    let aligned = [aligned[0], aligned[1], is_aligned(c.as_view(), 1, 0)];
    let scaled = ScalePlan::of(scales);
    let (request, kernel, choice) = choose(entry, shape, by_columns, aligned, scaled.kind)?;
    if let Some(scales) = scales {
        check_scales(&Gemm::<T, O>::of_types().scales(scales), &request)?;
    }
    let mut task = Task::plain(request);
    task.scales = scaled;
    let on = (&simt::cpu::LIMITS, 1);
    let plan =
        Plan::new([T::TYPE, O::TYPE], kernel, choice.operands, [choice.split_k, 1], task, on)?;
    let (operands, of_scales) = match choice.operands.swap_ab {
        true => ([b, a], of_scales.map(|[a, b]| [b, a])),
        false => ([a, b], of_scales),
    };
    let matrices = Matrices3::new::<T, O, T::Sums>(operands, c.into());
    let matrices = Matrices3 { scales: of_scales.map(|both| both.map(AnyView::from)), ..matrices };
    let executor = Checked {
        stream: Device::cpu().stream()?,
        operands: matrices.operands,
        c: matrices.c,
        options: &options,
        reports: RefCell::default(),
    };
    // SAFETY:
    // 1. A and B are borrowed, C mutably, and the kernel keeps inside them: an access outside is a
    //    finding.
    // 2. A kernel's pointers are its operands.
    // 3. and 4. hold for every kernel of the registry.
    unsafe { execute(&executor, &plan, matrices)? };
    Ok(executor.reports.into_inner())
}

/// Checks the kernel that multiplies. The plan's other launches run unchecked.
struct Checked<'m, 'o> {
    stream: Stream,
    operands: [AnyView<'m>; 2],
    c: AnyView<'m>,
    options: &'m dyn Fn(&LaunchConfig) -> Options<'o>,
    reports: RefCell<Vec<Report>>,
}

/// What a kernel's pointers point to: a view knows its elements, a pointer does not.
fn memory(step: &Launched, operands: [AnyView; 2], c: AnyView) -> Vec<Memory> {
    if step.kernel.of_params::<PointerParams>().is_none() {
        return Vec::new();
    }
    let memory = |of: AnyView, start: usize, len: usize, written: bool| {
        let bytes = of.element().bytes;
        Memory::of(of.address().wrapping_add(start * bytes).addr(), bytes, len, written)
    };
    let memories = step.arguments.iter().filter_map(|argument| match argument.binding {
        Binding::Read(Input::Operand(i), Part { start, len }) => {
            Some(memory(operands[i], start, len?, true))
        }
        Binding::Write(Written::C, Part { start, len }) => Some(memory(c, start, len?, false)),
        _ => None,
    });
    memories.collect()
}

impl Executor for Checked<'_, '_> {
    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn prepare(&self, workspace: &mut Buffer<u8>) -> Result<()> {
        // NaN, in every type.
        workspace.fill_bytes(0xff)
    }

    unsafe fn launch(&self, step: &Launched, arguments: &mut NamedArguments) -> Result<()> {
        let Purpose::Multiply { entry, pitches, .. } = step.purpose else {
            // SAFETY: the caller's.
            return unsafe { self.stream.launch_named(step.kernel, &step.config, arguments) };
        };
        crate::check_interrupt()?;
        let Some(kernel) = entry.checked else {
            return Err(Error::argument("kernel", entry.name(), "must compute a product"));
        };
        let (config, mut bound) =
            self.stream.bound_by_name(entry.kernel, &step.config, arguments)?;
        for (bound, param) in bound.iter_mut().zip(kernel.declaration().params) {
            match (param.name, bound) {
                ("c", Bound::Elements(elements)) => *elements = elements.uninit(),
                ("c", Bound::Maps(maps)) => maps.iter_mut().for_each(|map| *map = map.uninit()),
                _ => {}
            }
        }
        let mut options = (self.options)(&config);
        options.memory = memory(step, self.operands, self.c);
        // SAFETY: the caller's.
        let report = unsafe { kernel.check(&config, &bound, &options) };
        let mut report = report.map_err(|stop| Error::from_stop(entry.name(), stop))?;
        report.findings.retain(|finding| !is_expected(step, finding));
        // A finding names an element of a matrix by its row and column.
        for (name, columns) in ["a", "b", "c"].into_iter().zip(pitches) {
            let memory = Some(format!("buffer {name}"));
            let of_it = report.findings.iter_mut().filter(|finding| finding.memory == memory);
            of_it.for_each(|finding| finding.columns = Some(columns));
        }
        self.reports.borrow_mut().push(report);
        Ok(())
    }
}

/// Whether a finding is no fault: an element that the launch need not access. Nobody reads the
/// padding between the rows of an operand, and a sparse argument has elements that are not needed.
fn is_expected(step: &Launched, finding: &Finding) -> bool {
    let Some(untouched) = finding.untouched else { return false };
    let memory = finding.memory.as_deref().and_then(|memory| memory.strip_prefix("buffer "));
    let argument = step.arguments.iter().find(|argument| Some(argument.parameter) == memory);
    argument.is_some_and(|argument| {
        let padding = match &argument.binding {
            Binding::Maps(maps) => maps.first().map(Map::padding),
            Binding::Read(Input::Workspace, Part { len, .. }) => packed(step, argument, *len),
            _ => None,
        };
        argument.is_sparse || padding == Some((untouched.count, untouched.first))
    })
}

/// Elements of a packed operand, of so many elements, that are not in a row, and the place of the
/// first of them.
fn packed(step: &Launched, operand: &Argument, len: Option<usize>) -> Option<(usize, usize)> {
    let problem = step.arguments.iter().find_map(|argument| match &argument.binding {
        Binding::Problem(problem) => Some(problem),
        _ => None,
    })?;
    let (outer, between) = match operand.parameter {
        "a" => (problem.m, [problem.a[0], problem.batch[0]]),
        _ => (problem.n, [problem.b[1], problem.batch[1]]),
    };
    let [outer, products, k] = [outer, problem.products, problem.k].map(|size| size as usize);
    let rows = outer * products * k;
    let has_gaps = between[usize::from(outer <= 1)] > problem.k.into();
    Some((len?.saturating_sub(rows), if has_gaps { k } else { rows }))
}

/// Computes a product in the CPU device's memory as [`Gemm::launch_batch`] does. Every launch is
/// checked, also those that prepare operands and those that add partial products; and an access to
/// what is between the elements of A, B and C is a finding. `options` are those of each launch. C
/// holds values before.
///
/// # Errors
/// As [`Gemm::launch_batch`], and [`Error::Argument`] for a launch that cannot be checked.
pub fn product<'o, T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
    options: impl Fn(&LaunchConfig) -> Options<'o>,
) -> Result<Vec<Report>> {
    let stream = Device::cpu().stream()?;
    super::check_apart(&a, &b, &c, gemm.bias.map(super::Bias::elements), gemm.scales)?;
    let operands = check(gemm, &stream, a, b, c)?;
    let (choice, plan) = super::plan(gemm, &stream, &operands)?;
    let operands = if choice.operands.swap_ab { operands.swapped() } else { operands };
    let super::Operands { a, b, c, bias, scales, .. } = operands;
    let layouts = [
        (a.size, a.strides, (a.count, a.step)),
        (b.size, b.strides, (b.count, b.step)),
        (c.size, c.strides, (c.count, c.step)),
    ];
    let matrices = Matrices3::new::<T, O, T::Sums>([a.elements, b.elements], c.elements);
    let (bias, scales) = (bias.map(AnyView::from), scales.map(|both| both.map(AnyView::from)));
    let matrices = Matrices3 { bias, scales, ..matrices };
    let [a, b] = matrices.operands;
    let views = [a, b, matrices.c].into_iter().zip(layouts);
    let of_scales = gemm
        .scales
        .map(Scales::both)
        .into_iter()
        .flatten()
        .map(|of| (AnyView::from(of.elements), (of.size, of.strides, (of.count, of.step))));
    let executor = Every {
        operands: matrices.operands,
        c: matrices.c,
        gaps: gaps(
            &views.chain(of_scales).map(|(view, layout)| runs(view, layout)).collect::<Vec<_>>(),
        ),
        stream,
        options: &options,
        reports: RefCell::default(),
    };
    // SAFETY: as in `multiply`; `check_apart` has seen to foreign memory.
    unsafe { execute(&executor, &plan, matrices)? };
    Ok(executor.reports.into_inner())
}

/// The runs of elements of matrices, as addresses: each starts where no element ends. They are
/// sorted.
fn runs(
    view: AnyView,
    ((rows, cols), [between_rows, between_cols], (count, step)): (
        (usize, usize),
        [usize; 2],
        (usize, usize),
    ),
) -> Vec<Range<usize>> {
    let (first, bytes) = (view.address(), view.element().bytes);
    let mut starts = Vec::with_capacity(count * rows * cols);
    for (matrix, row) in (0..count).flat_map(|matrix| (0..rows).map(move |row| (matrix, row))) {
        let start = matrix * step + row * between_rows;
        let address = |col| first.wrapping_add((start + col * between_cols) * bytes).addr();
        starts.extend((0..cols).map(address));
    }
    starts.sort_unstable();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for start in starts {
        let end = start + bytes;
        match runs.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => runs.push(start..end),
        }
    }
    runs
}

/// What is between the runs of each view, and in no other view.
fn gaps(views: &[Vec<Range<usize>>]) -> Vec<Memory> {
    let mut gaps = Vec::new();
    for (number, view) in views.iter().enumerate() {
        let others = views.iter().enumerate().filter(|(other, _)| *other != number);
        let mut taken: Vec<_> = others.flat_map(|(_, runs)| runs.clone()).collect();
        taken.sort_unstable_by_key(|run| run.start);
        for two in view.windows(2) {
            let mut start = two[0].end;
            let within =
                taken.iter().filter(|run| run.end > two[0].end && run.start < two[1].start);
            for run in within.cloned().chain([two[1].clone()]) {
                if start < run.start {
                    let address = std::ptr::without_provenance::<u8>(start);
                    gaps.push(Memory::new(address, run.start - start, true));
                }
                start = start.max(run.end);
            }
        }
    }
    gaps
}

/// Checks every launch of a plan.
struct Every<'m, 'o> {
    stream: Stream,
    operands: [AnyView<'m>; 2],
    c: AnyView<'m>,
    gaps: Vec<Memory>,
    options: &'m dyn Fn(&LaunchConfig) -> Options<'o>,
    reports: RefCell<Vec<Report>>,
}

impl Every<'_, '_> {
    /// Checks a launch.
    ///
    /// # Safety
    /// As for [`Stream::launch`].
    unsafe fn check(
        &self,
        kernel: &'static dyn AnyCheckedKernel,
        config: &LaunchConfig,
        arguments: &mut NamedArguments,
        memory: Vec<Memory>,
    ) -> Result<()> {
        crate::check_interrupt()?;
        let (config, bound) = self.stream.bound_by_name(kernel, config, arguments)?;
        let mut options = (self.options)(&config);
        options.memory = memory;
        options.gaps.clone_from(&self.gaps);
        // SAFETY: the caller's.
        let report = unsafe { kernel.check(&config, &bound, &options) };
        let name = kernel.declaration().name;
        self.reports.borrow_mut().push(report.map_err(|stop| Error::from_stop(name, stop))?);
        Ok(())
    }
}

impl Executor for Every<'_, '_> {
    fn stream(&self) -> &Stream {
        &self.stream
    }

    unsafe fn launch(&self, step: &Launched, arguments: &mut NamedArguments) -> Result<()> {
        let name = step.kernel.declaration().name;
        let (name, entry) = match step.purpose {
            Purpose::Multiply { entry, .. } => (entry.name(), Some(entry)),
            Purpose::Prepare | Purpose::Reduce => {
                (name, KERNELS.iter().find(|entry| entry.kernel.declaration().name == name))
            }
        };
        let kernel = checked(name, entry.and_then(|entry| entry.checked))?;
        let memory = memory(step, self.operands, self.c);
        // SAFETY: the caller's.
        unsafe { self.check(kernel, &step.config, arguments, memory) }
    }
}

/// The kernel's checked version, if it has one.
fn checked(
    name: &str,
    kernel: Option<&'static dyn AnyCheckedKernel>,
) -> Result<&'static dyn AnyCheckedKernel> {
    kernel.ok_or_else(|| Error::argument("launch", name, "must have a checked version"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The smallest of all limits, and no patience: findings or none, but no kernel is left in the
    /// middle of the checker.
    #[test]
    fn the_smallest_options_are_no_fault() {
        let (device, shape) = (Device::cpu(), Shape::new(33, 17, 40).unwrap());
        let [a, b] = [33 * 40, 40 * 17].map(|len| device.upload(&vec![1.0f32; len]).unwrap());
        for name in ["tiled16", "gemm_f32_64x64x16"] {
            let entry = crate::product::find(name).unwrap();
            for most in [None, Some(0)] {
                let mut c = device.zeros::<f32>(33 * 17).unwrap();
                let reports = multiply(
                    entry,
                    shape,
                    [false; 2],
                    [a.all(), b.all()],
                    None,
                    c.all_mut(),
                    |_| {
                        let mut options = Options::default();
                        options.patience = Some(Duration::ZERO);
                        (options.workers, options.resident) = (Some(0), Some(0));
                        (options.most_accesses, options.most_waits) = (most, most);
                        options
                    },
                );
                let reports = reports.unwrap();
                let is_clean = reports.iter().all(|report| report.is_clean());
                assert_eq!(is_clean, most.is_none(), "{name}");
                assert!(!is_clean || c.to_vec().unwrap() == [40.0; 33 * 17], "{name}");
            }
        }
    }

    #[test]
    fn matrices_of_other_lengths_are_refused() {
        let entry = crate::product::find("tiled16").unwrap();
        let (device, shape) = (Device::cpu(), Shape::new(5, 4, 3).unwrap());
        for (wrong, expected) in [
            ("a", "a.len() = 14: must be m * k = 15 for A 5x3 · B 3x4 = C 5x4"),
            ("b", "b.len() = 11: must be k * n = 12 for A 5x3 · B 3x4 = C 5x4"),
            ("c", "c.len() = 19: must be m * n = 20 for A 5x3 · B 3x4 = C 5x4"),
        ] {
            let len = |name, right| if name == wrong { right - 1 } else { right };
            let [a, b, mut c] = [len("a", 15), len("b", 12), len("c", 20)]
                .map(|len| device.zeros::<f32>(len).unwrap());
            let operands = [a.all(), b.all()];
            let options = |_: &LaunchConfig| Options::default();
            let error = multiply(entry, shape, [false; 2], operands, None, c.all_mut(), options);
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
    }
}
