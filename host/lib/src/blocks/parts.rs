//! The products of blocks, each as a part of the whole product.
//!
//! The whole product's choice fixes the kernel, the split of k and the operands' plan. So the bits
//! depend neither on the blocks nor on the number of devices, as long as k is not cut elsewhere.

use super::{plan::BlockPlan, product::Product};
use crate::{
    device::Device,
    error::Result,
    gemm::{Choice, Gemm, PlannedGemm, Request, Scalar, Whole},
    matrix::{Layout, MatrixView, MatrixViewMut},
    shape::Shape,
    stream::Stream,
};

/// Plans of blocks that are kept. There are eight sizes at most: the last blocks along m, n and k
/// may be smaller.
type Kept<'a, T> = Vec<([usize; 3], PlannedGemm<'a, T>)>;

/// The products of a device.
pub(super) struct Parts<'a, T> {
    device: Device,
    /// For the first block of k, and for the others, if there are.
    gemm: Vec<(Gemm<'a, T>, Whole)>,
    kept: [Kept<'a, T>; 2],
}

impl<'a, T: Scalar> Parts<'a, T> {
    pub(super) fn new(
        product: &Product<T>,
        device: &Device,
        plan: &BlockPlan,
        layouts: [Layout; 3],
    ) -> Result<Self> {
        let gemm = Gemm::new().alpha(product.alpha).kernel(product.kernel)?;
        let gemm = gemm.compute(product.compute).workspace_limit(product.workspace_limit);
        let (shape, depth) = (plan.shape(), plan.block()[2]);
        let (m, n) = (shape.m(), shape.n());
        let shape = Shape::new(m as u64, n as u64, depth as u64)?;
        let sizes = [(m, depth), (depth, n), (m, n)];
        let at = |operand: usize| strides(layouts[operand], sizes[operand].0, sizes[operand].1);
        let request = Request::new(shape, [0, 1, 2].map(at));
        let of = |gemm: Gemm<'a, T>| gemm.choose_whole(device, &request).map(|whole| (gemm, whole));
        let mut gemms = vec![of(gemm.beta(product.beta))?];
        if plan.blocks()[2] > 1 {
            gemms.push(of(gemm.beta(1.0))?);
        }
        Ok(Parts { device: device.clone(), gemm: gemms, kept: [Vec::new(), Vec::new()] })
    }

    /// Launches the product of a block. `first`: it is the first along k.
    pub(super) fn launch(
        &mut self,
        first: bool,
        stream: &Stream,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<T>,
    ) -> Result<Choice> {
        let (gemm, whole) = &self.gemm[usize::from(!first)];
        let kept = &mut self.kept[usize::from(!first)];
        // Strides follow from the sizes.
        let size @ [m, n, k] = [a.rows(), b.cols(), a.cols()];
        let index = match kept.iter().position(|(known, _)| *known == size) {
            Some(index) => index,
            None => {
                let strides = [a.strides(), b.strides(), c.strides()];
                let request = Request::new(Shape::new(m as u64, n as u64, k as u64)?, strides);
                kept.push((size, gemm.plan_part(&self.device, &request, whole)?));
                kept.len() - 1
            }
        };
        let planned = &kept[index].1;
        planned.launch(stream, a, b, c)?;
        Ok(*planned.choice())
    }
}

pub(super) fn strides(layout: Layout, rows: usize, cols: usize) -> [usize; 2] {
    match layout {
        Layout::RowMajor => [cols, 1],
        Layout::ColMajor => [1, rows],
    }
}
