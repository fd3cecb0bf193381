//! The matrices of a product, and parts of them.

use crate::{
    buffer::{BufferView, Pod, Written},
    error::Result,
    gemm::prepared::Prepared,
};

/// The matrices of a product, as its plan counts them: A and B are the kernel's.
pub(in crate::gemm) struct Matrices3<'a, T, O> {
    pub(super) operands: [BufferView<'a, T>; 2],
    pub(super) prepared: [Option<&'a Prepared>; 2],
    pub(super) c: Written<'a, O>,
    pub(super) bias: BufferView<'a, O>,
}

/// The elements of C from `start` on, or `len` of them.
pub(super) fn rest<T: Pod>(
    c: Written<'_, T>,
    (start, len): (usize, Option<usize>),
) -> Result<Written<'_, T>> {
    let len = len.unwrap_or(c.len().saturating_sub(start));
    c.into_part(start, len)
}

/// `len` elements from `start` on, or all. Nothing where the view ends before: an operand that is
/// not read may be empty.
pub(super) fn part<T: Pod>(
    elements: BufferView<T>,
    start: usize,
    len: Option<usize>,
) -> Result<BufferView<T>> {
    let start = start.min(elements.len());
    elements.view(start, len.unwrap_or(elements.len() - start))
}
