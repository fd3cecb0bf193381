//! Emulated fp32: A and B are split into slices by one launch ([`slices`](gpu::kernels::emulated::split_bf16x3)), which the next one
//! multiplies. The workspace holds A's planes, B's planes, and the ranges of A's and of B's values, each from a multiple of sixteen bytes.

use gpu::{
    kernels::emulated::{planes::plane_pitch, scales, split_bf16x3, value_range},
    params::MatrixBatch,
};
use simt::{AnyKernel, Bf16, F16, LaunchConfig};

use super::{
    Target,
    plan::{Map, Memory, Multiply, Operand, Plan, Split, Step, Task},
    select::layout::OperandLayout,
};
use crate::{
    boxes::BoxElement,
    buffer::{Buffer, BufferView, Pod, Written},
    error::{Error, Result},
    launch::{Named, Stream},
    matrix::MatrixView,
};

/// Microseconds of the launch that splits, and of a byte that it reads or writes. Measured for 4096 x 4096 and more.
const SPLIT_US: f64 = 4.0;
const BYTE_US: f64 = 1e-6 / 4.0;

/// The type of a slice.
pub(super) trait Slice: BoxElement + Pod {
    /// Slices of a number.
    const SLICES: usize;
    /// Elements that describe a patch's values: their range, or their scale.
    const WORDS: usize;
    /// Threads of a block that splits.
    const BLOCK: [u32; 3];

    /// Patches of a matrix, down and across.
    fn patches(rows: u32, cols: u32) -> (u32, u32);
}

impl Slice for Bf16 {
    const SLICES: usize = split_bf16x3::SLICES;
    const WORDS: usize = 2;
    const BLOCK: [u32; 3] = [32, 8, 1];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        value_range::patches(rows, cols)
    }
}

impl Slice for F16 {
    const SLICES: usize = scales::SLICES;
    const WORDS: usize = scales::WORDS;
    const BLOCK: [u32; 3] = [32, 8, 1];

    fn patches(rows: u32, cols: u32) -> (u32, u32) {
        scales::patches(rows, cols)
    }
}

/// Elements of the planes, and of the ranges, of `matrices` matrices with `rows` rows of `cols` contiguous elements.
fn elements<S: Slice>((rows, cols): (usize, usize), matrices: usize) -> [usize; 2] {
    let planes = [S::SLICES, rows, plane_pitch(cols)];
    let ranges = S::WORDS.saturating_mul(patches::<S>((rows, cols))).saturating_mul(matrices);
    let planes = planes.into_iter().fold(matrices, usize::saturating_mul);
    // The next part begins at an L2 line.
    [planes, ranges.next_multiple_of(64)]
}

/// Patches of a matrix.
fn patches<S: Slice>((rows, cols): (usize, usize)) -> usize {
    let (down, across) = S::patches(rows as u32, cols as u32);
    (down as usize).saturating_mul(across as usize)
}

/// The rows of an operand, and the contiguous elements of each.
fn rows_of(layout: &OperandLayout) -> (usize, usize) {
    (layout.strided.0, layout.contiguous.1)
}

/// Bytes of workspace for `matrices` matrices.
pub(super) fn workspace_bytes<S: Slice>(layout: &OperandLayout, matrices: usize) -> u64 {
    let [planes, ranges] = elements::<S>(rows_of(layout), matrices);
    (planes as u64).saturating_add(ranges as u64).saturating_mul(size_of::<S>() as u64)
}

/// Microseconds in which `bytes` bytes of planes are made.
pub(super) fn split_us<S: Slice>(bytes: u64) -> f64 {
    SPLIT_US + bytes as f64 * (1.0 + 2.0 / S::SLICES as f64) * BYTE_US
}

/// The launch that splits `patches` patches of A and of B.
///
/// # Errors
/// [`Error::Argument`] for more patches than a grid has blocks.
fn config<S: Slice>([of_a, of_b]: [usize; 2]) -> Result<LaunchConfig> {
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

/// Adds the launch that splits A and B, as far as they were not split before, and the one that multiplies their slices.
///
/// # Errors
/// As [`config`].
pub(super) fn plan<S: Slice>(
    plan: &mut Plan,
    kernel: &'static dyn AnyKernel,
    task: &Task,
    layouts: &[OperandLayout; 2],
    mut multiply: Multiply,
) -> Result<()> {
    let (products, starts) = (multiply.params.products as usize, multiply.starts());
    let rows = layouts.each_ref().map(rows_of);
    // Slices are prepared for one matrix.
    let is_prepared = [0, 1].map(|i| products == 1 && task.prepared[i] == Some(rows[i]));
    let [[planes_a, ranges_a], [planes_b, ranges_b]] =
        [0, 1].map(|i: usize| match is_prepared[i] {
            true => [0, 0],
            false => elements::<S>(rows[i], products),
        });
    let mut end = 0;
    let [planes_a, planes_b, ranges_a, ranges_b] =
        [planes_a, planes_b, ranges_a, ranges_b].map(|len: usize| {
            end += len;
            end - len..end
        });
    plan.workspace = plan.workspace.max(end);
    let (planes, ranges) = ([planes_a, planes_b], [ranges_a, ranges_b]);
    if is_prepared != [true; 2] {
        let operands = [0, 1].map(|i: usize| {
            let patches = patches::<S>(rows[i]).saturating_mul(products);
            MatrixBatch {
                rows: rows[i].0 as u32,
                cols: rows[i].1 as u32,
                count: products as u32,
                patches: if is_prepared[i] { 0 } else { patches as u32 },
                pitch: layouts[i].strided.1 as u64,
                step: task.steps[i] as u64,
            }
        });
        let config = config::<S>(operands.map(|operand| operand.patches as usize))?;
        let (planes, ranges) = (planes.clone(), ranges.clone());
        let split = Split { kernel, config, starts, operands, planes, ranges };
        plan.steps.push(Step::Split(split));
    }
    multiply.operands = [0, 1].map(|i: usize| {
        let pitch = plane_pitch(rows[i].1);
        let (from, start) = match is_prepared[i] {
            true => (Memory::Prepared, 0),
            false => (Memory::Workspace, planes[i].start),
        };
        let planes = Map {
            from,
            start,
            extents: [S::SLICES * products, rows[i].0, rows[i].1],
            strides: [rows[i].0 * pitch, pitch],
            shape: layouts[i].shape,
            rows: [rows[i].0, rows[i].1, pitch],
        };
        Operand::Slices { start: starts[i], planes, ranges: ranges[i].clone() }
    });
    plan.steps.push(Step::Multiply(Box::new(multiply)));
    Ok(())
}

/// The slices of a matrix, split once for many products.
#[derive(Debug)]
pub(super) struct Planes<S: Slice = Bf16> {
    pub(super) planes: Buffer<S>,
    pub(super) ranges: Buffer<S>,
    /// The matrix's rows, and the contiguous elements of each.
    pub(super) rows: (usize, usize),
}

impl<S: Slice> Planes<S> {
    /// Splits a matrix. `None` for an empty one, and on a GPU that has no kernel for slices.
    ///
    /// # Errors
    /// [`Error::Argument`] for a matrix that is contiguous neither along rows nor along columns; those of the launch.
    pub(super) fn split<T: Pod>(
        stream: &Stream,
        kernel: &dyn AnyKernel,
        matrix: MatrixView<T>,
    ) -> Result<Option<Self>> {
        let (size, strides) = ((matrix.rows(), matrix.cols()), matrix.strides());
        let (device, elements_of) = (stream.device(), matrix.elements());
        if elements_of.device() != device {
            let limit = format!("must lie on the stream's device, {}", device.name());
            return Err(Error::argument("matrix", elements_of.device().name(), limit));
        }
        let (rows, pitch) = match (size, strides) {
            (size, [pitch, 1]) => (size, pitch),
            ((rows, cols), [1, pitch]) => ((cols, rows), pitch),
            _ => {
                let limit = "must have the elements of a row or of a column side by side";
                return Err(Error::argument("matrix", format!("strides {strides:?}"), limit));
            }
        };
        let target = Target::of(device);
        if rows.0 * rows.1 == 0 || target.cuda && target.capability != (9, 0) {
            return Ok(None);
        }
        let [of_planes, of_ranges] = elements::<S>(rows, 1);
        let (mut planes, mut ranges) = (device.uninit(of_planes)?, device.uninit(of_ranges)?);
        let (mut no_planes, mut no_ranges) = (device.uninit(0)?, device.uninit(0)?);
        let patches = patches::<S>(rows);
        let config = config::<S>([patches, 0])?;
        let source = MatrixBatch {
            rows: rows.0 as u32,
            cols: rows.1 as u32,
            count: 1,
            patches: patches as u32,
            pitch: pitch as u64,
            step: 0,
        };
        let nothing = MatrixBatch { patches: 0, ..source };
        let to = [
            planes.view_mut(..)?.into(),
            no_planes.view_mut(..)?.into(),
            ranges.view_mut(..)?.into(),
            no_ranges.view_mut(..)?.into(),
        ];
        // SAFETY: it reads the matrix, and writes its planes and ranges, each element by a thread of its own.
        unsafe { launch(stream, kernel, &config, [source, nothing], [elements_of; 2], to)? };
        Ok(Some(Planes { planes, ranges, rows }))
    }
}

/// Launches a kernel that splits A and B. `to`: the planes of A and of B, then the ranges.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn launch<T: Pod, S: Pod>(
    stream: &Stream,
    kernel: &dyn AnyKernel,
    config: &LaunchConfig,
    [mut of_a, mut of_b]: [MatrixBatch; 2],
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
    unsafe { stream.launch_named(kernel, config, arguments) }
}
