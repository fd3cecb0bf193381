//! The operands of a product. Sizes, devices and aliasing are checked here, and only here.

use std::{collections::BTreeMap, ops::Range};

use gpu::params::BLOCKS;

use super::{
    Batch, BatchMut, Bias, Gemm, Invariant, Output, Request, Scalar, Scales, scalar,
    scales::{self, NAMES, ScalePlan},
};
use crate::{
    buffer::{BufferView, Pod},
    error::{Error, Result},
    memory,
    shape::Shape,
    stream::Stream,
};

/// Operands that fit together. C is row-major where a swap of A and B makes it so.
pub(super) struct Operands<'a, T, O> {
    pub(super) shape: Shape,
    pub(super) count: usize,
    pub(super) a: Batch<'a, T>,
    pub(super) b: Batch<'a, T>,
    pub(super) c: BatchMut<'a, O>,
    /// Its elements. The product says to which side of C they are added.
    pub(super) bias: Option<BufferView<'a, O>>,
    /// Those of A and of B.
    pub(super) scales: Option<[BufferView<'a, f32>; 2]>,
    /// Whether A and B are swapped: C is the transpose of the product's.
    pub(super) is_swapped: bool,
}

impl<T: Pod, O: Pod> Operands<'_, T, O> {
    /// `C^T = B^T A^T`.
    pub(super) fn swapped(self) -> Self {
        let (a, b, c) = (self.b.t(), self.a.t(), self.c.t());
        let (shape, is_swapped) = (self.shape.transposed(), !self.is_swapped);
        let scales = self.scales.map(|[a, b]| [b, a]);
        Operands { shape, a, b, c, is_swapped, scales, ..self }
    }
}

/// The error of one product of an array.
pub(super) fn of_product(index: usize, error: Error) -> Error {
    error.renamed(|argument| format!("product {index}: {argument}"))
}

/// The request of a product, by which its kernel is selected.
pub(super) fn request<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    operands: &Operands<T, O>,
) -> Request {
    let Operands { shape, count, a, b, c, .. } = operands;
    let request = Request::new(*shape, [a.strides, b.strides, c.strides]);
    let of_c = is_aligned(c.elements.as_view(), c.count, c.step);
    let of = |operand: &Batch<T>| is_aligned(operand.elements, operand.count, operand.step);
    let aligned = [of(a), of(b), of_c];
    // Slices are of one matrix.
    let has_slices = |operand| gemm.planes_of(operand, gemm.compute.scheme()).is_some();
    let prepared = [a, b].map(|operand| *count == 1 && has_slices(operand));
    let request = gemm.request(&Request { batch: *count, aligned, prepared, ..request });
    // Its rows are those of the product before A and B were swapped.
    let invariant = match operands.is_swapped {
        true => request.invariant.map(Invariant::transposed),
        false => request.invariant,
    };
    Request { invariant, ..request }
}

/// Whether each of `count` matrices is 16-byte aligned.
pub(super) fn is_aligned<T: Pod>(elements: BufferView<T>, count: usize, step: usize) -> bool {
    let step = if count > 1 { step.wrapping_mul(size_of::<T>()) } else { 0 };
    (elements.address().addr() | step).is_multiple_of(16)
}

/// Checks devices, sizes and counts.
pub(super) fn check<'a, T: Scalar<O>, O: Output>(
    gemm: &Gemm<'a, T, O>,
    stream: &Stream,
    a: Batch<'a, T>,
    b: Batch<'a, T>,
    c: BatchMut<'a, O>,
) -> Result<Operands<'a, T, O>> {
    let bias = gemm.bias.map(|bias| match bias {
        Bias::PerRow(elements) => (elements, "C.rows", c.size.0),
        Bias::PerCol(elements) => (elements, "C.cols", c.size.1),
    });
    let device = stream.device();
    let bias_device = bias.map(|(elements, ..)| ("bias", elements.device()));
    let devices =
        [("A", a.elements.device()), ("B", b.elements.device()), ("C", c.elements.device())];
    for (name, other) in devices.into_iter().chain(bias_device) {
        device.refuse_elsewhere(name, other, "the stream's device")?;
    }
    let shape = Shape::of_matrices([a.size, b.size, c.size])?;
    for (name, count) in [("B.count", b.count), ("C.count", c.count)] {
        if count != a.count {
            return Err(Error::argument(name, count, format!("must be A.count = {}", a.count)));
        }
    }
    if let Some((elements, side, size)) = bias
        && elements.len() != size
    {
        let limit = format!("must be {side} = {size}");
        return Err(Error::argument("bias.len()", elements.len(), limit));
    }
    for prepared in gemm.prepared.iter().flatten() {
        let matrix = prepared.view();
        if ![&a, &b].into_iter().any(|operand| operand.is(&matrix)) {
            let value = format!("{}x{}", matrix.rows(), matrix.cols());
            return Err(Error::argument("prepared", value, "must be A or B, or its transpose"));
        }
    }
    let count = a.count;
    let strides = [a.strides, b.strides, c.strides];
    let swaps = scalar::swaps(strides, c.size, ScalePlan::of(gemm.scales).kind);
    check_scales(gemm, &Request { batch: count, ..Request::new(shape, strides) })?;
    for (name, of) in NAMES.into_iter().zip(scales::elements(gemm.scales).iter().flatten()) {
        device.refuse_elsewhere(name, of.device(), "the stream's device")?;
    }
    let (bias, scales) = (gemm.bias.map(Bias::elements), scales::elements(gemm.scales));
    let operands = Operands { shape, count, a, b, c, bias, scales, is_swapped: false };
    Ok(if swaps { operands.swapped() } else { operands })
}

/// The most products of i8 whose sum is a number of i32: each is at most 2^14.
const MOST_EXACT: usize = 131_071;

/// Checks the scales of a product with that request, which A and B are not swapped in, and that
/// sums of integers are exact before they are converted.
///
/// # Errors
/// [`Error::Argument`].
pub(super) fn check_scales<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    request: &Request,
) -> Result<()> {
    let k = request.shape.k();
    if !T::FORMAT.is_float() && O::FORMAT.is_float() && k > MOST_EXACT {
        // Parts that wrap around, or do not, are not alike once they are converted.
        let limit =
            format!("must be at most {MOST_EXACT} with A and B of i8 and a C of {}", O::NAME);
        return Err(Error::argument("k", k, limit));
    }
    let Some(scales) = gemm.scales else { return Ok(()) };
    let refused = |value: &str, limit: &str| Err(Error::argument("scales", value, limit));
    if T::FORMAT.bits() != 8 || !O::FORMAT.is_float() {
        let limit = "must be of 8-bit numbers with a C of floating-point numbers";
        return refused(&format!("of {}", T::name()), limit);
    }
    let (size, kind) = ((request.shape.m(), request.shape.n()), ScalePlan::of(gemm.scales).kind);
    if kind == BLOCKS && !T::FORMAT.is_float() {
        return refused("of blocks", "must be of rows and columns for integers");
    }
    if kind == BLOCKS && scalar::swaps(request.strides, size, kind) {
        return refused("of blocks", "must be with a C whose rows are contiguous");
    }
    if gemm.partials.is_some_and(|partials| partials > 1) {
        return refused("with partial products", "must be without");
    }
    scales.check_sizes(request.shape, request.batch)
}

/// Checks that C does not overlap A, B, the bias or the scales. Borrows ensure it, except for
/// foreign memory.
pub(super) fn check_apart<T: Pod, O: Pod>(
    a: &Batch<T>,
    b: &Batch<T>,
    c: &BatchMut<O>,
    bias: Option<BufferView<O>>,
    scales: Option<Scales>,
) -> Result<()> {
    let written = c.elements.as_view();
    let to = addresses(&written);
    let operands = [("A", a), ("B", b)]
        .map(|(name, of)| (name, Some(of), of.elements.device(), addresses(&of.elements)));
    let scales = scales::elements(scales);
    let bias = bias.iter().map(|of| ("bias", None, of.device(), addresses(of)));
    let scales = scales.iter().flatten().map(|of| ("scales", None, of.device(), addresses(of)));
    for (name, batch, device, from) in operands.into_iter().chain(bias).chain(scales) {
        if device != written.device() {
            continue;
        }
        let empty = from.is_empty() || to.is_empty();
        let apart = empty || from.end <= to.start || to.end <= from.start;
        if apart || batch.is_some_and(|batch| are_blocks(batch, from.start, c, to.start)) {
            continue;
        }
        let limit = "must not overlap C".to_owned();
        return Err(Error::argument(name, format!("at {:#x}", from.start), limit));
    }
    Ok(())
}

/// The addresses of elements, from the first to the end of the last.
fn addresses<T: Pod>(elements: &BufferView<T>) -> Range<usize> {
    let start = elements.address().addr();
    // Saturating: foreign memory may reach the end of the address space.
    start..start.saturating_add(elements.len() * size_of::<T>())
}

/// Whether both are disjoint column blocks of one row-major matrix, or disjoint row blocks of one
/// column-major matrix. In bytes: their elements may have two types.
fn are_blocks<T, O>(a: &Batch<T>, a_start: usize, c: &BatchMut<O>, c_start: usize) -> bool {
    if a.count != 1 || c.count != 1 {
        return false;
    }
    let (leading, a_width) = runs(a.strides, a.size, size_of::<T>());
    let (leading_of_c, c_width) = runs(c.strides, c.size, size_of::<O>());
    // C's first column, counted from A's.
    let offset = (c_start as i128 - a_start as i128).rem_euclid(leading as i128) as usize;
    leading == leading_of_c && a_width <= offset && c_width <= leading - offset
}

/// The leading dimension, and how much of it is the block's, in bytes.
fn runs(strides: [usize; 2], (rows, cols): (usize, usize), bytes: usize) -> (usize, usize) {
    let [between_rows, between_cols] = strides;
    let (leading, inner, run) = match between_cols <= between_rows {
        true => (between_rows, between_cols, cols),
        false => (between_cols, between_rows, rows),
    };
    // Saturating: the stride of a side of one element may be any.
    let last = run.saturating_sub(1).saturating_mul(inner);
    (leading.saturating_mul(bytes).max(1), last.saturating_add(1).saturating_mul(bytes))
}

/// A written matrix as bytes of memory: its addresses, the leading dimension, and how much of it is
/// the matrix's.
struct Block {
    index: usize,
    addresses: Range<usize>,
    leading: usize,
    width: usize,
}

/// Checks that no two products of an array write the same element. Borrows ensure it, except for
/// foreign memory. Matrices whose rows alternate must be blocks of one matrix, as for
/// [`check_apart`]. They are taken by their addresses, so that each meets its neighbours alone:
/// there may be many.
pub(super) fn check_written_once<'c, O: Pod>(
    outputs: impl ExactSizeIterator<Item = &'c BatchMut<'c, O>>,
) -> Result<()> {
    let mut blocks = memory::reserved(outputs.len())?;
    blocks.extend(outputs.enumerate().map(|(index, c)| {
        let (leading, width) = runs(c.strides, c.size, size_of::<O>());
        Block { index, addresses: addresses(&c.elements.as_view()), leading, width }
    }));
    blocks.retain(|block| !block.addresses.is_empty());
    blocks.sort_unstable_by_key(|block| (block.addresses.start, block.index));
    // Blocks of one matrix, of which no two share columns, by their first column: a place on a
    // circle of `leading` bytes. Some may have ended before the next block begins.
    let mut columns = BTreeMap::<usize, &Block>::new();
    // The one that ends last.
    let mut last: Option<&Block> = None;
    for block in &blocks {
        let (first, leading) = (block.addresses.start % block.leading, block.leading);
        match last.filter(|last| block.addresses.start < last.addresses.end) {
            None => columns.clear(),
            Some(last) if last.leading != leading => return Err(written_twice(block, last)),
            Some(_) => {}
        }
        let distance = |from: usize, to: usize| match from <= to {
            true => to - from,
            false => leading - (from - to),
        };
        loop {
            let before = columns.range(..=first).next_back().or_else(|| columns.last_key_value());
            let after = columns.range(first..).next().or_else(|| columns.first_key_value());
            let before = before.filter(|&(&at, other)| distance(at, first) < other.width);
            let after = after.filter(|&(&at, _)| distance(first, at) < block.width);
            let Some((&at, &other)) = before.or(after) else { break };
            if block.addresses.start < other.addresses.end {
                return Err(written_twice(block, other));
            }
            columns.remove(&at);
        }
        columns.insert(first, block);
        if last.is_none_or(|last| last.addresses.end < block.addresses.end) {
            last = Some(block);
        }
    }
    Ok(())
}

/// The error of two products that write the same memory.
fn written_twice(one: &Block, other: &Block) -> Error {
    let (first, second) = if one.index < other.index { (other, one) } else { (one, other) };
    let limit = format!("must not overlap C of product {}", second.index);
    let value = format!("at {:#x}", first.addresses.start);
    of_product(first.index, Error::argument("C", value, limit))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{Device, MatrixView, MatrixViewMut, matrix::view::extent};

    /// Rows of 40 bytes, of which A has five f32 from `a` on and C two f64 from `c` on.
    fn shares(a: u64, c: u64) -> bool {
        let device = Device::cpu();
        let memory = device.zeros::<u64>(20).unwrap();
        // SAFETY: both end before the memory does, and nobody reads or writes it.
        let (a, mut c) = unsafe {
            let a = device.foreign::<f32>(memory.address() + a, 25).unwrap();
            (a, device.foreign::<f64>(memory.address() + c, 12).unwrap())
        };
        let a = Batch::one(MatrixView::new(a.view(..).unwrap(), 3, 5, [10, 1]).unwrap());
        let c = MatrixViewMut::new(c.view_mut(..).unwrap(), 3, 2, [5, 1]).unwrap();
        check_apart(&a, &a, &BatchMut::one(c), None, None).is_err()
    }

    /// Scales of A in foreign memory, `a` floats from C's first on.
    fn scales_share(a: usize) -> bool {
        let device = Device::cpu();
        let memory = device.zeros::<f32>(20).unwrap();
        let ones = device.zeros::<f32>(4).unwrap();
        // SAFETY: both end before the memory does, and nobody reads or writes it.
        let (of_a, mut c) = unsafe {
            let of_a = device.foreign::<f32>(memory.address() + 4 * a as u64, 2).unwrap();
            (of_a, device.foreign::<f32>(memory.address(), 8).unwrap())
        };
        let other = Batch::one(MatrixView::new(ones.all(), 2, 2, [2, 1]).unwrap());
        let c = MatrixViewMut::new(c.view_mut(..).unwrap(), 2, 4, [4, 1]).unwrap();
        let a = MatrixView::new(of_a.view(..).unwrap(), 2, 1, [1, 1]).unwrap();
        let b = MatrixView::new(ones.all(), 1, 4, [4, 1]).unwrap();
        let scales = Some(Scales::RowsCols { a: a.into(), b: b.into() });
        check_apart(&other, &other, &BatchMut::one(c), None, scales).is_err()
    }

    #[test]
    fn scales_are_beside_c() {
        assert_eq!([0, 7, 8, 18].map(scales_share), [true, true, false, false]);
    }

    /// A and C may be of types of different sizes: they are compared by bytes.
    #[test]
    fn blocks_of_columns_of_two_types() {
        // A's bytes are 0 to 20 of each row; C's are 16.
        assert_eq!([0, 8, 16, 24].map(|c| shares(0, c)), [true, true, true, false]);
        assert_eq!([4, 8, 20, 24].map(|a| shares(a, 24)), [false, true, true, true]);
    }

    /// Whether these matrices of f32 are taken as outputs: size, strides and first element of each.
    fn taken(parts: &[([usize; 2], [usize; 2], usize)]) -> bool {
        let device = Device::cpu();
        let memory = device.zeros::<f32>(400).unwrap();
        let mut buffers = parts
            .iter()
            .map(|&([rows, cols], strides, first)| {
                let len = extent(rows, cols, strides).unwrap();
                // SAFETY: it ends before the memory does, and nobody reads or writes it.
                unsafe { device.foreign::<f32>(memory.address() + 4 * first as u64, len) }.unwrap()
            })
            .collect::<Vec<_>>();
        let views = buffers.iter_mut().zip(parts).map(|(buffer, &([rows, cols], strides, _))| {
            BatchMut::one(MatrixViewMut::new(buffer.all_mut(), rows, cols, strides).unwrap())
        });
        check_written_once(views.collect::<Vec<_>>().iter()).is_ok()
    }

    /// Of blocks of one matrix those are refused that share an element, and no others. Of any
    /// matrices those are refused that share one.
    #[test]
    fn outputs_that_share_elements() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = |from: usize, to: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            from + (random >> 11) as usize % (to - from)
        };
        let mut seen = [0; 4];
        for round in 0..20_000 {
            // Element by element, with gaps, by rows or by columns.
            let (inner, leading) = (draw(1, 3), draw(12, 16));
            let (by_columns, of_one) = (draw(0, 2) == 1, round % 2 == 0);
            let parts = (0..draw(2, 6)).map(|_| {
                let (inner, leading, first) = match of_one {
                    true => (inner, leading, 3),
                    false => (draw(1, 3), draw(12, 16), draw(0, 30)),
                };
                let (row, col) = (draw(0, 8), draw(0, 6));
                let size = [draw(1, 4), draw(1, 7 - col)];
                let first = first + row * leading + col * inner;
                match by_columns {
                    true => ([size[1], size[0]], [inner, leading], first),
                    false => (size, [leading, inner], first),
                }
            });
            let parts = parts.collect::<Vec<_>>();
            let mut elements = parts.iter().flat_map(|&([rows, cols], [down, across], first)| {
                let of_row = move |row| (0..cols).map(move |col| first + row * down + col * across);
                (0..rows).flat_map(of_row)
            });
            let mut all = HashSet::new();
            let shares = !elements.all(|element| all.insert(element));
            let is_taken = taken(&parts);
            assert!(!(shares && is_taken), "{parts:?}");
            assert!(!of_one || shares != is_taken, "{parts:?}");
            seen[usize::from(of_one) + 2 * usize::from(is_taken)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 500), "{seen:?}");
    }
}
