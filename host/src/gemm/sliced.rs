//! Products of slices: what the pass that cuts them takes, and the launches.
//!
//! A and B are cut by one launch ([`slices`](gpu::kernels::gemm_sliced::slices)), and multiplied by the next. The workspace
//! holds, one behind the other, A's planes, B's planes, and the ranges of A's and of B's numbers; all of them begin at
//! multiples of sixteen bytes.

use gpu::{
    kernels::gemm_sliced::{
        SLICES,
        slices::{patches, plane_pitch},
    },
    problem::{Matrices, Problem},
    registry::{CutParams, SlicedParams},
};
use simt::{Bf16, Kernel, LaunchConfig, device::BoxShape};

use super::tensor::Sides;
use crate::{
    boxes::Boxes,
    buffer::{BufferView, Pod, Written},
    error::{Error, Result},
    launch::Stream,
};

/// Microseconds of the launch that cuts, and of a byte that it reads or writes. Measured elsewhere, of 4096 x 4096 and more.
const CUT_US: f64 = 4.0;
/// See [`CUT_US`].
const BYTE_US: f64 = 1e-6 / 4.0;

/// Elements of the workspace that an operand's planes take, and its ranges: of so many matrices.
fn elements(sides: &Sides, matrices: usize) -> [usize; 2] {
    let (rows, cols) = (sides.outer.0, sides.inner.1);
    let planes = [SLICES, rows, plane_pitch(cols)];
    let ranges = 2 * patches_of(rows, cols).saturating_mul(matrices);
    let planes = planes.into_iter().fold(matrices, usize::saturating_mul);
    // What comes next begins at a line of the second-level cache.
    [planes, ranges.next_multiple_of(64)]
}

/// Patches of a matrix.
fn patches_of(rows: usize, cols: usize) -> usize {
    let (down, across) = patches(rows as u32, cols as u32);
    (down as usize).saturating_mul(across as usize)
}

/// Bytes of workspace for so many matrices.
pub(super) fn workspace_bytes(sides: &Sides, matrices: usize) -> u64 {
    let [planes, ranges] = elements(sides, matrices);
    (planes as u64).saturating_add(ranges as u64).saturating_mul(size_of::<Bf16>() as u64)
}

/// Microseconds that cutting takes, whose planes are so many bytes: six for four that are read.
pub(super) fn cut_us(bytes: u64) -> f64 {
    CUT_US + bytes as f64 * 10.0 / 6.0 * BYTE_US
}

/// The launch that cuts so many matrices of A and of B.
///
/// # Errors
/// [`Error::Argument`] for more patches than a grid has blocks.
pub(super) fn cut_config(sides: &[Sides; 2], matrices: usize) -> Result<LaunchConfig> {
    let blocks = sides.iter().fold(0usize, |blocks, sides| {
        let of_it = patches_of(sides.outer.0, sides.inner.1).saturating_mul(matrices);
        blocks.saturating_add(of_it)
    });
    match u32::try_from(blocks) {
        Ok(blocks) if blocks <= i32::MAX as u32 => {
            Ok(LaunchConfig::new([blocks, 1, 1], [32, 8, 1]))
        }
        _ => {
            let limit =
                format!("must be at most {} patches of slices: fewer products at once", i32::MAX);
            Err(Error::argument("A and B", format!("{blocks} patches"), limit))
        }
    }
}

/// A and B as they are cut: their elements, and how they lie, from one matrix to the next.
pub(super) type Uncut<'a, T> = (BufferView<'a, T>, Sides, usize);

/// What a product of slices is given of A, or of B.
pub(super) struct Slices<'a> {
    planes: BufferView<'a, Bf16>,
    pub(super) ranges: BufferView<'a, Bf16>,
    /// Planes, rows, elements of a row.
    pub(super) extents: [usize; 3],
    /// Elements from plane to plane and from row to row.
    pub(super) strides: [usize; 2],
    pub(super) shape: BoxShape,
}

impl<'a> Slices<'a> {
    fn boxes(&self) -> Result<Boxes<'a, Bf16>> {
        Boxes::new(self.planes, self.extents, self.strides, self.shape)
    }

    /// The first plane's address.
    pub(super) fn address(&self) -> *const Bf16 {
        self.planes.address()
    }
}

/// Cuts A and B of so many products, and hands `multiply` the slices of both.
///
/// # Errors
/// Those of the launch, and of `multiply`.
pub(super) fn with_slices<T: Pod, R>(
    stream: &Stream,
    cut: &Kernel<CutParams<T>>,
    products: usize,
    [(a, of_a, a_step), (b, of_b, b_step)]: [Uncut<T>; 2],
    multiply: impl FnOnce([Slices; 2]) -> Result<R>,
) -> Result<R> {
    let sides = [of_a, of_b];
    let [[planes_a, ranges_a], [planes_b, ranges_b]] =
        [0, 1].map(|operand: usize| elements(&sides[operand], products));
    let lens = [planes_a, planes_b, ranges_a, ranges_b];
    let starts = [0, planes_a, planes_a + planes_b, planes_a + planes_b + ranges_a];
    let config = cut_config(&sides, products)?;
    let [source_a, source_b] = [(&sides[0], a_step), (&sides[1], b_step)].map(|(sides, step)| {
        let ((_, cols, _), (rows, pitch)) = (sides.inner, sides.outer);
        Matrices {
            rows: rows as u32,
            cols: cols as u32,
            count: products as u32,
            patches: (patches_of(rows, cols) * products) as u32,
            pitch: pitch as u64,
            step: step as u64,
        }
    });
    stream.with_workspace(lens.iter().sum(), |workspace| {
        let all = Written::from(workspace.view_mut(..)?);
        // SAFETY: four parts of it are made, none of which has an element of another.
        let [[to_a, to_b], [of_a, of_b]] = unsafe { all.twice().map(|half| half.twice()) };
        let planes_a = to_a.into_part(starts[0], lens[0])?;
        let planes_b = to_b.into_part(starts[1], lens[1])?;
        let ranges_a = of_a.into_part(starts[2], lens[2])?;
        let ranges_b = of_b.into_part(starts[3], lens[3])?;
        let arguments = (&source_a, &source_b, a, b, planes_a, planes_b, ranges_a, ranges_b);
        // SAFETY: it reads what the operands have, and writes planes and ranges, each element by a thread of its own.
        unsafe { stream.launch(cut, &config, arguments)? };

        let part = |part: usize| workspace.view(starts[part]..starts[part] + lens[part]);
        let slices = |operand: usize| -> Result<Slices> {
            let Sides { inner: (_, cols, _), outer: (rows, _), shape, .. } = sides[operand];
            let pitch = plane_pitch(cols);
            let (extents, strides) = ([SLICES * products, rows, cols], [rows * pitch, pitch]);
            let (planes, ranges) = (part(operand)?, part(2 + operand)?);
            Ok(Slices { planes, ranges, extents, strides, shape })
        };
        multiply([slices(0)?, slices(1)?])
    })
}

/// Cuts A and B of so many products, and launches the kernel that multiplies slices.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn launch<T: Pod, O: Pod>(
    stream: &Stream,
    (cut, kernel): (&Kernel<CutParams<T>>, &Kernel<SlicedParams<T, O>>),
    config: &LaunchConfig,
    (problem, products): (&Problem, usize),
    operands: [Uncut<T>; 2],
    (c, bias): (Written<O>, BufferView<O>),
) -> Result<()> {
    let [(a, ..), (b, ..)] = operands;
    with_slices(stream, cut, products, operands, |[of_a, of_b]| {
        let (planes_a, planes_b) = (of_a.boxes()?, of_b.boxes()?);
        let arguments = (problem, planes_a, planes_b, a, b, of_a.ranges, of_b.ranges, c, bias);
        // SAFETY: the caller's; and planes and ranges are of the operands' size.
        unsafe { stream.launch(kernel, config, arguments) }
    })
}
