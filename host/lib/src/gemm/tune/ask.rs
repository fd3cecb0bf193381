//! The answer of a product.

use super::{
    TuningCache, measure,
    question::{Factor, Question, Side},
};
use crate::{
    device::Device,
    error::Result,
    gemm::{
        Bias, Choice, Gemm, Output, Request, Scalar, Target, operands::Operands, scalar::Kernel,
        select::choose_kernel,
    },
    stream::Stream,
};

/// The choice of a tuned product, whose request has A and B swapped where C is column-major: the
/// one that is known, or the fastest of its candidates. `None`: nothing is known, and nothing can
/// be timed now.
///
/// # Errors
/// Those of the launches, of the memory for a second C, and of the file.
pub(in crate::gemm) fn launched<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    cache: &TuningCache,
    stream: &Stream,
    operands: &Operands<T, O>,
    request: &Request,
) -> Result<Option<(Kernel, Choice)>> {
    let question = question(gemm, stream.device(), *request, operands.is_swapped);
    if let Some(known) = cache.known(&question, choose_kernel::<T, O>) {
        return Ok(Some(known));
    }
    let is_nothing = request.batch == 0 || request.shape.c_len() == 0;
    if is_nothing || !stream.may_be_waited_for()? {
        return Ok(None);
    }
    let answer = measure::fastest(gemm, stream, operands, request)?;
    cache.count();
    cache.remember(&question, answer, choose_kernel::<T, O>)
}

/// The choice of a tuned product for a request, if it is known.
pub(in crate::gemm) fn planned<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    cache: &TuningCache,
    device: &Device,
    request: &Request,
) -> Option<(Kernel, Choice)> {
    let question = question(gemm, device, request.as_launched(), request.is_swapped());
    cache.known(&question, choose_kernel::<T, O>)
}

/// The question of a product. `is_swapped`: the request's A and B are the
/// product's B and A.
fn question<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    device: &Device,
    request: Request,
    is_swapped: bool,
) -> Question {
    let bias = match (gemm.bias, is_swapped) {
        (None, _) => Side::Nothing,
        (Some(Bias::PerRow(_)), false) | (Some(Bias::PerCol(_)), true) => Side::Rows,
        (Some(Bias::PerCol(_)), false) | (Some(Bias::PerRow(_)), true) => Side::Cols,
    };
    Question {
        device: device.clone(),
        target: Target::of(device),
        types: [T::TYPE, O::TYPE],
        request,
        alpha: Factor::of(gemm.alpha),
        beta: Factor::of(gemm.beta),
        bias,
        activation: gemm.activation,
    }
}
