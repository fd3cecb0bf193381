//! Products of slices: what the pass that cuts them takes, and the launches.
//!
//! A and B are cut by one launch ([`slices`](gpu::kernels::gemm_sliced::slices)), and multiplied by the next. The workspace
//! holds, one behind the other, A's planes, B's planes, and the ranges of A's and of B's numbers; all of them begin at
//! multiples of sixteen bytes.

use gpu::{
    kernels::gemm_sliced::{self, halves, slices, slices::plane_pitch},
    problem::{Matrices, Problem},
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig, device::BoxShape};

use super::{Target, scalar::Output, tensor::Sides};
use crate::{
    boxes::{BoxElement, Boxes},
    buffer::{Buffer, BufferView, Pod, Written},
    error::{Error, Result},
    launch::{Named, Stream},
    matrix::MatrixView,
};

/// Microseconds of the launch that cuts, and of a byte that it reads or writes. Measured elsewhere, of 4096 x 4096 and more.
const CUT_US: f64 = 4.0;
/// See [`CUT_US`].
const BYTE_US: f64 = 1e-6 / 4.0;

/// What slices are of.
pub(super) trait Slice: BoxElement + Pod {
    /// Slices of a number.
    const SLICES: usize;
    /// What is written of a patch beside its planes, in elements.
    const WORDS: usize;
    /// Threads of a block that cuts.
    const BLOCK: [u32; 3];

    /// Patches of a matrix, down and across.
    fn patches(rows: u32, cols: u32) -> (u32, u32);
}

impl Slice for Bf16 {
    const SLICES: usize = gemm_sliced::SLICES;
    const WORDS: usize = 2;
    const BLOCK: [u32; 3] = [32, 8, 1];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        slices::patches(rows, cols)
    }
}

impl Slice for F16 {
    const SLICES: usize = halves::SLICES;
    const WORDS: usize = halves::WORDS;
    const BLOCK: [u32; 3] = [32, 8, 1];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        halves::patches(rows, cols)
    }
}

/// Elements of the workspace that an operand's planes take, and its ranges: of so many matrices.
fn elements<S: Slice>(sides: &Sides, matrices: usize) -> [usize; 2] {
    elements_of::<S>((sides.outer.0, sides.inner.1), matrices)
}

/// The same of so many rows and columns, as they lie.
fn elements_of<S: Slice>((rows, cols): (usize, usize), matrices: usize) -> [usize; 2] {
    let planes = [S::SLICES, rows, plane_pitch(cols)];
    let ranges = S::WORDS.saturating_mul(patches_of::<S>(rows, cols)).saturating_mul(matrices);
    let planes = planes.into_iter().fold(matrices, usize::saturating_mul);
    // What comes next begins at a line of the second-level cache.
    [planes, ranges.next_multiple_of(64)]
}

/// Patches of a matrix.
fn patches_of<S: Slice>(rows: usize, cols: usize) -> usize {
    let (down, across) = S::patches(rows as u32, cols as u32);
    (down as usize).saturating_mul(across as usize)
}

/// Bytes of workspace for so many matrices.
pub(super) fn workspace_bytes<S: Slice>(sides: &Sides, matrices: usize) -> u64 {
    let [planes, ranges] = elements::<S>(sides, matrices);
    (planes as u64).saturating_add(ranges as u64).saturating_mul(size_of::<S>() as u64)
}

/// Microseconds that cutting takes, whose planes are so many bytes: of three slices six for four that are read.
pub(super) fn cut_us<S: Slice>(bytes: u64) -> f64 {
    CUT_US + bytes as f64 * (1.0 + 2.0 / S::SLICES as f64) * BYTE_US
}

/// The launch that cuts so many matrices of A and of B.
///
/// # Errors
/// [`Error::Argument`] for more patches than a grid has blocks.
pub(super) fn cut_config<S: Slice>(sides: &[Sides; 2], matrices: usize) -> Result<LaunchConfig> {
    let patches = sides.each_ref().map(|sides| patches_of::<S>(sides.outer.0, sides.inner.1));
    config_of::<S>(patches.map(|patches| patches.saturating_mul(matrices)))
}

/// The launch that cuts so many patches of A and of B.
fn config_of<S: Slice>([of_a, of_b]: [usize; 2]) -> Result<LaunchConfig> {
    let blocks = of_a.saturating_add(of_b);
    match u32::try_from(blocks) {
        Ok(blocks) if blocks <= i32::MAX as u32 => Ok(LaunchConfig::new([blocks, 1, 1], S::BLOCK)),
        _ => {
            let limit =
                format!("must be at most {} patches of slices: fewer products at once", i32::MAX);
            Err(Error::argument("A and B", format!("{blocks} patches"), limit))
        }
    }
}

/// A or B as it is cut.
pub(super) struct Uncut<'a, T, S: Slice = Bf16> {
    pub(super) elements: BufferView<'a, T>,
    pub(super) sides: Sides,
    /// From one matrix to the next.
    pub(super) step: usize,
    /// What was cut of it before.
    pub(super) planes: Option<&'a Planes<S>>,
}

impl<'a, T, S: Slice> Uncut<'a, T, S> {
    /// Both operands, with what was cut of them before.
    pub(super) fn of(
        ([a, b], [of_a, of_b], [step_a, step_b]): ([BufferView<'a, T>; 2], [Sides; 2], [usize; 2]),
        [planes_a, planes_b]: [Option<&'a Planes<S>>; 2],
    ) -> [Self; 2] {
        [
            Uncut { elements: a, sides: of_a, step: step_a, planes: planes_a },
            Uncut { elements: b, sides: of_b, step: step_b, planes: planes_b },
        ]
    }
}

/// A matrix that has been cut.
#[derive(Debug)]
pub(super) struct Planes<S: Slice = Bf16> {
    planes: Buffer<S>,
    ranges: Buffer<S>,
    /// Its rows and their elements, as they lie.
    lines: (usize, usize),
}

impl<S: Slice> Planes<S> {
    /// Cuts a matrix; none where there is nothing to cut, or nobody to multiply it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a matrix that lies neither row by row nor column by column; those of the launch.
    pub(super) fn cut<T: Pod>(
        stream: &Stream,
        cut: &dyn AnyKernel,
        matrix: MatrixView<T>,
    ) -> Result<Option<Self>> {
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        let (device, elements) = (stream.device(), matrix.elements());
        if elements.device() != device {
            let limit = format!("must lie on the stream's device, {}", device.name());
            return Err(Error::argument("matrix", elements.device().name(), limit));
        }
        let ((rows, cols), pitch) = match (size, strides) {
            ((rows, cols), [pitch, 1]) => ((rows, cols), pitch),
            ((rows, cols), [1, pitch]) => ((cols, rows), pitch),
            _ => {
                let limit = "must have the elements of a row or of a column side by side";
                return Err(Error::argument("matrix", format!("strides {strides:?}"), limit));
            }
        };
        let target = Target::of(device);
        if rows * cols == 0 || target.cuda && target.capability != (9, 0) {
            return Ok(None);
        }
        let [of_planes, of_ranges] = elements_of::<S>((rows, cols), 1);
        let (mut planes, mut ranges) = (device.uninit(of_planes)?, device.uninit(of_ranges)?);
        let (mut no_planes, mut no_ranges) = (device.uninit(0)?, device.uninit(0)?);
        let patches = patches_of::<S>(rows, cols);
        let config = config_of::<S>([patches, 0])?;
        let source = Matrices {
            rows: rows as u32,
            cols: cols as u32,
            count: 1,
            patches: patches as u32,
            pitch: pitch as u64,
            step: 0,
        };
        let nothing = Matrices { patches: 0, ..source };
        let to = [
            planes.view_mut(..)?.into(),
            no_planes.view_mut(..)?.into(),
            ranges.view_mut(..)?.into(),
            no_ranges.view_mut(..)?.into(),
        ];
        // SAFETY: it reads what the matrix has, and writes its planes and ranges, each element by a thread of its own.
        unsafe { begin(stream, cut, &config, [source, nothing], [elements; 2], to)? };
        Ok(Some(Planes { planes, ranges, lines: (rows, cols) }))
    }
}

/// Launches a kernel that cuts A and B, as these say, to A's and B's planes, and A's and B's ranges.
///
/// # Safety
/// As for [`Stream::launch`].
unsafe fn begin<T: Pod, S: Slice>(
    stream: &Stream,
    cut: &dyn AnyKernel,
    config: &LaunchConfig,
    [mut of_a, mut of_b]: [Matrices; 2],
    [mut a, mut b]: [BufferView<T>; 2],
    [mut planes_a, mut planes_b, mut ranges_a, mut ranges_b]: [Written<S>; 4],
) -> Result<()> {
    let arguments: &mut [(_, &mut dyn Named)] = &mut [
        ("of_a", &mut of_a),
        ("of_b", &mut of_b),
        ("a", &mut a),
        ("b", &mut b),
        ("planes_a", &mut planes_a),
        ("planes_b", &mut planes_b),
        ("patches_a", &mut ranges_a),
        ("patches_b", &mut ranges_b),
    ];
    // SAFETY: the caller's.
    unsafe { stream.launch_named(cut, config, arguments) }
}

/// What a product of slices is given of A, or of B.
pub(super) struct Slices<'a, S: Slice = Bf16> {
    planes: BufferView<'a, S>,
    pub(super) ranges: BufferView<'a, S>,
    /// Planes, rows, elements of a row.
    pub(super) extents: [usize; 3],
    /// Elements from plane to plane and from row to row.
    pub(super) strides: [usize; 2],
    pub(super) shape: BoxShape,
}

impl<'a, S: Slice> Slices<'a, S> {
    fn boxes(&self) -> Result<Boxes<'a, S>> {
        Boxes::new(self.planes, self.extents, self.strides, self.shape)
    }

    /// The first plane's address.
    pub(super) fn address(&self) -> *const S {
        self.planes.address()
    }
}

/// Cuts A and B of so many products, as far as they have not been, and hands `multiply` the slices of both.
///
/// # Errors
/// Those of the launch, and of `multiply`.
pub(super) fn with_slices<T: Output, S: Slice, R>(
    stream: &Stream,
    cut: &dyn AnyKernel,
    products: usize,
    operands: &[Uncut<T, S>; 2],
    multiply: impl FnOnce([Slices<S>; 2]) -> Result<R>,
) -> Result<R> {
    // Of one matrix, whose rows are those that were cut.
    let known = operands.each_ref().map(|Uncut { sides, planes, .. }| {
        planes.filter(|planes| products == 1 && planes.lines == (sides.outer.0, sides.inner.1))
    });
    let [[planes_a, ranges_a], [planes_b, ranges_b]] = [0, 1].map(|operand: usize| {
        let of_it = elements::<S>(&operands[operand].sides, products);
        if known[operand].is_some() { [0, 0] } else { of_it }
    });
    let lens = [planes_a, planes_b, ranges_a, ranges_b];
    let starts = [0, planes_a, planes_a + planes_b, planes_a + planes_b + ranges_a];
    let sources = [0, 1].map(|operand: usize| {
        let Uncut { sides, step, .. } = &operands[operand];
        let ((_, cols, _), (rows, pitch)) = (sides.inner, sides.outer);
        let patches = patches_of::<S>(rows, cols).saturating_mul(products);
        Matrices {
            rows: rows as u32,
            cols: cols as u32,
            count: products as u32,
            patches: if known[operand].is_some() { 0 } else { patches as u32 },
            pitch: pitch as u64,
            step: *step as u64,
        }
    });
    let config = config_of::<S>(sources.map(|source| source.patches as usize))?;
    let [a, b] = operands.each_ref().map(|operand| operand.elements);
    stream.with_workspace(lens.iter().sum(), |workspace| {
        if known.iter().any(Option::is_none) {
            let all = Written::from(workspace.view_mut(..)?);
            // SAFETY: four parts of it are made, none of which has an element of another.
            let [[to_a, to_b], [of_a, of_b]] = unsafe { all.twice().map(|half| half.twice()) };
            let planes_a = to_a.into_part(starts[0], lens[0])?;
            let planes_b = to_b.into_part(starts[1], lens[1])?;
            let ranges_a = of_a.into_part(starts[2], lens[2])?;
            let ranges_b = of_b.into_part(starts[3], lens[3])?;
            let to = [planes_a, planes_b, ranges_a, ranges_b];
            // SAFETY: it reads what the operands have, and writes planes and ranges, each element by a thread of its own.
            unsafe { begin(stream, cut, &config, sources, [a, b], to)? };
        }
        let part = |part: usize| workspace.view(starts[part]..starts[part] + lens[part]);
        let slices = |operand: usize| -> Result<Slices<S>> {
            let Sides { inner: (_, cols, _), outer: (rows, _), shape, .. } =
                operands[operand].sides;
            let pitch = plane_pitch(cols);
            let (extents, strides) = ([S::SLICES * products, rows, cols], [rows * pitch, pitch]);
            let (planes, ranges) = match known[operand] {
                Some(known) => (known.planes.view(..)?, known.ranges.view(..)?),
                None => (part(operand)?, part(2 + operand)?),
            };
            Ok(Slices { planes, ranges, extents, strides, shape })
        };
        multiply([slices(0)?, slices(1)?])
    })
}

/// Cuts A and B of so many products by the first kernel, and launches the second, which multiplies slices.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn launch<T: Output, O: Output, S: Slice>(
    stream: &Stream,
    (cut, kernel): (&dyn AnyKernel, &dyn AnyKernel),
    config: &LaunchConfig,
    (problem, products): (&Problem, usize),
    operands: [Uncut<T, S>; 2],
    (mut c, mut bias): (Written<O>, BufferView<O>),
) -> Result<()> {
    let [mut a, mut b] = operands.each_ref().map(|operand| operand.elements);
    with_slices(stream, cut, products, &operands, |[of_a, of_b]| {
        let (mut problem, mut planes) = (*problem, [of_a.boxes()?, of_b.boxes()?]);
        let mut ranges = [of_a.ranges, of_b.ranges];
        stream.with_board(|board| {
            let ([planes_a, planes_b], [ranges_a, ranges_b]) = (&mut planes, &mut ranges);
            let mut board = Written::from(board.view_mut(..)?);
            let arguments: &mut [(_, &mut dyn Named)] = &mut [
                ("problem", &mut problem),
                ("a", planes_a),
                ("b", planes_b),
                ("a_itself", &mut a),
                ("b_itself", &mut b),
                ("patches_a", ranges_a),
                ("patches_b", ranges_b),
                ("c", &mut c),
                ("bias", &mut bias),
                ("board", &mut board),
            ];
            // SAFETY: the caller's; and planes and ranges are of the operands' size.
            unsafe { stream.launch_named(kernel, config, arguments) }
        })
    })
}
