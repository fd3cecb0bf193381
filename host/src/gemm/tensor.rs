//! Products by tensor copies: which operands they take, how k is split, and the launches.

use gpu::{kernels::gemm::pad::pad_rows, problem::Problem, registry::TensorProduct};
use simt::{LaunchConfig, device::BoxShape};

use super::choice::{Request, Target};
use crate::{
    boxes::Boxes,
    buffer::{BufferView, BufferViewMut, Written},
    error::Result,
    launch::Stream,
};

/// Blocks of a cluster that every device allows which has clusters.
pub(super) const MOST_SPLITS: u32 = 8;

/// Rows or columns of an operand: coordinates are signed numbers of 32 bits.
const MOST: usize = 1 << 31;

/// Stages that a block should have at least, or it is over before its copies are under way.
const FEWEST_STAGES: u32 = 4;

/// Blocks that run on a multiprocessor at once, of all these kernels.
const AT_ONCE: u32 = 2;

/// Elements to whose multiples rows and matrices are padded: sixteen bytes.
const UNIT: usize = 16 / size_of::<f32>();

/// An operand as it is copied.
struct Sides {
    operand: &'static str,
    /// The side along which its elements are to lie: its name, size and stride.
    inner: (&'static str, usize, usize),
    /// The other's size and stride.
    outer: (usize, usize),
    shape: BoxShape,
}

impl Sides {
    /// Do rows begin at multiples of sixteen bytes, if the first does? And one behind the other: of rows that overlap, or are
    /// all one, NVIDIA's documentation does not say that the accelerator takes them.
    fn is_even(&self) -> bool {
        let (count, pitch) = self.outer;
        count <= 1 || (pitch.is_multiple_of(UNIT) && pitch >= self.inner.1)
    }

    /// Elements from one row to the next of a copy.
    fn padded_pitch(&self) -> usize {
        self.inner.1.next_multiple_of(UNIT)
    }

    /// Elements of the copies of so many matrices that it takes, where these begin at multiples of sixteen bytes or not.
    fn copied(&self, matrices: usize, aligned: bool) -> usize {
        match aligned && self.is_even() {
            true => 0,
            false => matrices.saturating_mul(self.outer.0).saturating_mul(self.padded_pitch()),
        }
    }
}

/// A and B as a kernel reads them.
fn sides(product: &TensorProduct, [m, n, k]: [usize; 3], strides: [[usize; 2]; 2]) -> [Sides; 2] {
    let sides = |operand, shape: BoxShape, outer: (&'static str, usize, usize), k_stride| {
        // Along k the boxes are swizzled.
        let (inner, outer) = match shape.swizzle > 0 {
            true => (("k", k, k_stride), (outer.1, outer.2)),
            false => (outer, (k, k_stride)),
        };
        Sides { operand, inner, outer, shape }
    };
    let [a, b] = strides;
    [sides("A", product.a, ("m", m, a[0]), a[1]), sides("B", product.b, ("n", n, b[1]), b[0])]
}

fn sides_of(product: &TensorProduct, request: &Request) -> [Sides; 2] {
    let (shape, [a, b, _]) = (request.shape, request.strides);
    sides(product, [shape.m(), shape.n(), shape.k()], [a, b])
}

/// The operand that does not lie the way a kernel reads it, and along which side it should.
pub(super) fn lies_across(
    product: &TensorProduct,
    request: &Request,
) -> Option<(&'static str, &'static str)> {
    sides_of(product, request).into_iter().find_map(|Sides { operand, inner, .. }| {
        let (side, len, stride) = inner;
        (len > 1 && stride != 1).then_some((operand, side))
    })
}

/// A size beyond what the accelerator counts to.
pub(super) fn too_long(product: &TensorProduct, request: &Request) -> Option<usize> {
    let sides = sides_of(product, request);
    let sizes = sides.into_iter().flat_map(|Sides { inner, outer, .. }| [inner.1, outer.0]);
    sizes.into_iter().find(|&size| size > MOST)
}

/// Bytes of the copies of those operands whose rows, or matrices, do not begin at multiples of sixteen bytes.
pub(super) fn workspace_bytes(product: &TensorProduct, request: &Request) -> u64 {
    let sides = sides_of(product, request).into_iter().zip(request.aligned);
    let copied = sides.map(|(sides, aligned)| sides.copied(request.batch, aligned) as u64);
    copied.fold(0, u64::saturating_add).saturating_mul(size_of::<f32>() as u64)
}

/// Blocks that split k between them: as many as were asked for, or as find room on the device beside those of the other
/// tiles, as long as each has something to do.
pub(super) fn split_k(product: &TensorProduct, request: &Request, target: &Target) -> u32 {
    if let Some(blocks) = request.split_k {
        return blocks.clamp(1, MOST_SPLITS);
    }
    let shape = request.shape;
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize).max(1) as u64;
    let tiles = tiles(shape.m(), product.tile[0]) * tiles(shape.n(), product.tile[1]);
    let tiles = tiles.saturating_mul(request.batch.max(1) as u64);
    let room = u64::from(target.multiprocessors) * u64::from(AT_ONCE) / tiles;
    let stages = (shape.k() as u64).div_ceil(product.steps.into());
    let most = (stages / u64::from(FEWEST_STAGES)).min(MOST_SPLITS.into());
    room.min(most).max(1) as u32
}

/// What a launch is of.
#[doc(hidden)]
#[derive(Debug)]
pub struct TensorOperands<'a, T, O> {
    pub(super) problem: &'a Problem,
    pub(super) products: usize,
    /// A and B.
    pub(super) matrices: [BufferView<'a, T>; 2],
    /// From one matrix to the next, and within one.
    pub(super) strides: [(usize, [usize; 2]); 2],
    pub(super) c: Written<'a, O>,
    pub(super) bias: BufferView<'a, O>,
}

/// An operand of a launch.
struct Source<'a> {
    elements: BufferView<'a, f32>,
    sides: Sides,
    step: usize,
    /// Elements of its copy, where it needs one.
    copied: usize,
}

/// Copies operands that need it, and launches.
///
/// # Safety
/// As for [`Stream::launch`].
pub(super) unsafe fn launch(
    stream: &Stream,
    product: &TensorProduct,
    config: &LaunchConfig,
    operands: TensorOperands<f32, f32>,
) -> Result<()> {
    let TensorOperands { problem, products, matrices, strides, c, bias } = operands;
    let sizes = [problem.m, problem.n, problem.k].map(|size| size as usize);
    let [of_a, of_b] = sides(product, sizes, strides.map(|(_, strides)| strides));
    let a = Source::new(matrices[0], of_a, strides[0].0, products);
    let b = Source::new(matrices[1], of_b, strides[1].0, products);
    let kernel = product.kernel.kernel;
    if a.copied + b.copied == 0 {
        let arguments = (problem, a.boxes(products)?, b.boxes(products)?, c, bias);
        // SAFETY: the caller's.
        return unsafe { stream.launch(kernel, config, arguments) };
    }
    stream.with_workspace(a.copied + b.copied, |workspace| {
        for (source, start) in [(&a, 0), (&b, a.copied)] {
            if source.copied > 0 {
                let to = workspace.view_mut(start..start + source.copied)?;
                source.copy(stream, products, to)?;
            }
        }
        let copies = workspace.view(..)?;
        let boxes =
            (a.boxes_or_copy(products, copies, 0)?, b.boxes_or_copy(products, copies, a.copied)?);
        // SAFETY: the caller's; and the copies are of the operands' size.
        unsafe { stream.launch(kernel, config, (problem, boxes.0, boxes.1, c, bias)) }
    })
}

impl<'a> Source<'a> {
    fn new(elements: BufferView<'a, f32>, sides: Sides, step: usize, matrices: usize) -> Self {
        let even_step = matrices <= 1 || step.is_multiple_of(UNIT);
        let aligned = elements.address().addr().is_multiple_of(16);
        let copied = sides.copied(matrices, aligned && even_step);
        Source { elements, sides, step, copied }
    }

    /// The operand as it lies.
    fn boxes(&self, matrices: usize) -> Result<Boxes<'a, f32>> {
        let Sides { inner: (_, len, _), outer: (count, pitch), shape, .. } = self.sides;
        Boxes::new(self.elements, [matrices, count, len], [self.step, pitch], shape)
    }

    /// The operand, or its copy among others, which begins there.
    fn boxes_or_copy(
        &self,
        matrices: usize,
        copies: BufferView<'a, f32>,
        start: usize,
    ) -> Result<Boxes<'a, f32>> {
        if self.copied == 0 {
            return self.boxes(matrices);
        }
        let Sides { inner: (_, len, _), outer: (count, _), shape, .. } = self.sides;
        let pitch = self.sides.padded_pitch();
        let copy = copies.view(start, self.copied)?;
        Boxes::new(copy, [matrices, count, len], [count * pitch, pitch], shape)
    }

    /// Copies the operand to where its rows begin at multiples of sixteen bytes.
    fn copy(&self, stream: &Stream, matrices: usize, to: BufferViewMut<f32>) -> Result<()> {
        let Sides { inner: (_, len, _), outer: (count, pitch), .. } = self.sides;
        let padded = self.sides.padded_pitch();
        let limit = stream.device().limits().grid[1] as usize;
        // Eight rows a block, 128 elements of each; further rows after these.
        let grid = [len.div_ceil(128), count.div_ceil(8).min(limit), matrices];
        let config = LaunchConfig::new(grid.map(|blocks| blocks as u32), [32, 8, 1]);
        let words = [pitch, self.step, padded, count * padded].map(|elements| elements as u64);
        let [from_pitch, from_step, to_pitch, to_step] = words;
        let (rows, cols) = (count as u32, len as u32);
        let arguments = (rows, cols, from_pitch, from_step, to_pitch, to_step, self.elements, to);
        // SAFETY: it reads what the operand has, and writes a copy of it, each element by a thread of its own.
        unsafe { stream.launch(&pad_rows, &config, arguments) }
    }
}
