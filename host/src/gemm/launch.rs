//! From a general product to launches: what must fit together is checked here, and nowhere else.

use std::ops::Range;

use gpu::{
    kernels::gemm_sliced::widths::wide_across,
    problem::{COL_BIAS, GELU, IDENTITY, NO_BIAS, Problem, RELU, ROW_BIAS},
};
use simt::{LaunchConfig, Limits};

use super::{
    Activation, Batch, BatchMut, Bias, Choice, Gemm, Output, Request, Scalar, Target,
    recent::choose_again,
    scalar::{self, Kernel},
    tensor::{self, TensorOperands},
};
use crate::{
    buffer::{BufferView, Pod, Written},
    error::{Error, Result},
    launch::{Named, Stream},
    matrix::{MatrixView, MatrixViewMut},
    product::{self, Shape},
};

/// Operands whose C has its rows' elements side by side, where that can be had.
struct Operands<'a, T, O> {
    shape: Shape,
    count: usize,
    a: Batch<'a, T>,
    b: Batch<'a, T>,
    c: BatchMut<'a, O>,
    bias: Option<Bias<'a, O>>,
}

impl<T: Pod, O: Pod> Operands<'_, T, O> {
    /// The same product as `C^T = B^T A^T`.
    fn exchanged(self) -> Self {
        let bias = self.bias.map(|bias| match bias {
            Bias::PerRow(elements) => Bias::PerCol(elements),
            Bias::PerCol(elements) => Bias::PerRow(elements),
        });
        let (a, b, c) = (self.b.t(), self.a.t(), self.c.t());
        Operands { shape: self.shape.transposed(), a, b, c, bias, ..self }
    }
}

/// [`Gemm::launch_batch`].
pub(super) fn batch<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
) -> Result<Choice> {
    let bias = gemm.bias.map(Bias::elements);
    check_apart(&a, &b, &c, bias)?;
    batch_of_borrows(gemm, stream, a, b, c)
}

/// The same of operands that are known to share no element with C.
pub(super) fn batch_of_borrows<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    a: Batch<T>,
    b: Batch<T>,
    c: BatchMut<O>,
) -> Result<Choice> {
    let operands = check(gemm, stream, a, b, c)?;
    let (kernel, choice) = choose(gemm, stream, &operands)?;
    launch(gemm, stream, kernel, &choice, operands)?;
    Ok(choice)
}

/// [`Gemm::launch_array`].
pub(super) fn array<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    inputs: &[(MatrixView<T>, MatrixView<T>)],
    outputs: &mut [MatrixViewMut<O>],
) -> Result<Vec<Choice>> {
    if inputs.len() != outputs.len() {
        let limit = format!("must be outputs.len() = {}", outputs.len());
        return Err(Error::argument("inputs.len()", inputs.len(), limit));
    }
    let mut ready = Vec::with_capacity(inputs.len());
    for (index, (&(a, b), c)) in inputs.iter().zip(outputs).enumerate() {
        let (a, b, c) = (Batch::one(a), Batch::one(b), BatchMut::one(c.reborrow()));
        let bias = gemm.bias.map(Bias::elements);
        let fits = check_apart(&a, &b, &c, bias).and_then(|()| check(gemm, stream, a, b, c));
        let one = fits.and_then(|operands| {
            let (kernel, choice) = choose(gemm, stream, &operands)?;
            Ok((kernel, choice, operands))
        });
        ready.push(one.map_err(|error| of_product(index, error))?);
    }
    ready
        .into_iter()
        .map(|(kernel, choice, operands)| {
            launch(gemm, stream, kernel, &choice, operands)?;
            Ok(choice)
        })
        .collect()
}

/// The error of one product of several.
fn of_product(index: usize, error: Error) -> Error {
    match error {
        Error::Argument { argument, value, limit } => {
            Error::Argument { argument: format!("product {index}: {argument}"), value, limit }
        }
        other => other,
    }
}

fn choose<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    operands: &Operands<T, O>,
) -> Result<(Kernel, Choice)> {
    let Operands { shape, count, a, b, c, .. } = operands;
    let strides = [a.strides, b.strides, c.strides];
    let request = Request {
        shape: *shape,
        strides,
        batch: *count,
        aligned: [is_aligned(a), is_aligned(b)],
        split_k: gemm.split_k,
        compute: gemm.compute,
        plain: gemm.is_plain(),
        workspace_limit: gemm.most_workspace(),
    };
    choose_again::<T, O>(&request, &Target::of(stream.device()), gemm.kernel)
}

/// Does each of its matrices begin at a multiple of sixteen bytes?
fn is_aligned<T: Pod>(batch: &Batch<T>) -> bool {
    let step = if batch.count > 1 { batch.step.wrapping_mul(size_of::<T>()) } else { 0 };
    (batch.elements.address().addr() | step).is_multiple_of(16)
}

/// Checks all that must fit together, but that C is none of what is read.
fn check<'a, T: Scalar<O>, O: Output>(
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
        if other != device {
            let limit = format!("must lie on the stream's device, {}", device.name());
            return Err(Error::argument(name, other.name(), limit));
        }
    }
    for (name, value, other, wanted) in [
        ("B.rows", b.size.0, "A.cols", a.size.1),
        ("C.rows", c.size.0, "A.rows", a.size.0),
        ("C.cols", c.size.1, "B.cols", b.size.1),
        ("B.count", b.count, "A.count", a.count),
        ("C.count", c.count, "A.count", a.count),
    ] {
        if value != wanted {
            return Err(Error::argument(name, value, format!("must be {other} = {wanted}")));
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
    let shape = Shape::new(a.size.0 as u64, b.size.1 as u64, a.size.1 as u64)?;
    let count = a.count;
    let exchanges = scalar::exchanges([a.strides, b.strides, c.strides], c.size);
    let operands = Operands { shape, count, a, b, c, bias: gemm.bias };
    Ok(if exchanges { operands.exchanged() } else { operands })
}

/// C shares no element with what is read. Between borrows that is so; foreign memory may be anywhere.
fn check_apart<T: Pod, O: Pod>(
    a: &Batch<T>,
    b: &Batch<T>,
    c: &BatchMut<O>,
    bias: Option<BufferView<O>>,
) -> Result<()> {
    let written = c.elements.as_view();
    let to = addresses(&written);
    for (name, batch) in [("A", Some(a)), ("B", Some(b)), ("bias", None)] {
        let (device, from) = match (batch, &bias) {
            (Some(batch), _) => (batch.elements.device(), addresses(&batch.elements)),
            (None, Some(bias)) => (bias.device(), addresses(bias)),
            (None, None) => continue,
        };
        if device != written.device() {
            continue;
        }
        let empty = from.is_empty() || to.is_empty();
        let apart = empty || from.end <= to.start || to.end <= from.start;
        if apart || batch.is_some_and(|batch| side_by_side(batch, from.start, c, to.start)) {
            continue;
        }
        let limit = "must not reach into C".to_owned();
        return Err(Error::argument(name, format!("at {:#x}", from.start), limit));
    }
    Ok(())
}

/// The addresses of elements, from the first one's to behind the last one's.
fn addresses<T: Pod>(elements: &BufferView<T>) -> Range<usize> {
    let start = elements.address().addr();
    // Saturating: somebody may promise foreign memory that ends where addresses do.
    start..start.saturating_add(elements.len() * size_of::<T>())
}

/// Are both column blocks of one row-major matrix, or row blocks of one column-major matrix, next to each other? In
/// bytes: their elements may be of two types.
fn side_by_side<T, O>(a: &Batch<T>, a_start: usize, c: &BatchMut<O>, c_start: usize) -> bool {
    // From one row or column to the next, and how much of that is the block's, from its first element to its last.
    let runs = |strides: [usize; 2], (rows, cols): (usize, usize), bytes: usize| {
        let [between_rows, between_cols] = strides;
        let (leading, inner, run) = match between_cols <= between_rows {
            true => (between_rows, between_cols, cols),
            false => (between_cols, between_rows, rows),
        };
        // Saturating: a stride by which nothing is reached may be any.
        let last = run.saturating_sub(1).saturating_mul(inner);
        (leading.saturating_mul(bytes), last.saturating_add(1).saturating_mul(bytes))
    };
    if a.count != 1 || c.count != 1 {
        return false;
    }
    let (leading, a_width) = runs(a.strides, a.size, size_of::<T>());
    let (leading_of_c, c_width) = runs(c.strides, c.size, size_of::<O>());
    // Where C's columns begin, counted from A's first.
    let offset = (c_start as i128 - a_start as i128).rem_euclid(leading.max(1) as i128) as usize;
    leading == leading_of_c && a_width <= offset && c_width <= leading - offset
}

/// A launch that a product takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// The kernel: the one that was chosen, or one that copies an operand for it.
    pub kernel: &'static str,
    /// Blocks, threads, dynamic shared memory, blocks of a cluster.
    pub config: LaunchConfig,
}

/// The launches that a product takes of operands that lie so, under these limits: none where C stays as it is. It is what
/// [`launch`] goes by.
pub(super) fn launches<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    kernel: Kernel,
    choice: &Choice,
    request: &Request,
    on @ (limits, _): (&Limits, u32),
) -> Result<Vec<Launch>> {
    let request = request.as_launched();
    let given = choice.orientation.apply(&request);
    let Some(work) = Work::new(gemm, kernel, choice, given.shape, given.batch)? else {
        return Ok(Vec::new());
    };
    let kernel = work.kernel;
    if kernel.product.is_lesson() {
        let launches = product::launches(kernel.entry, given.shape, limits)?;
        let name = kernel.entry.name();
        return Ok(launches
            .iter()
            .map(|one| Launch { kernel: name, config: one.config })
            .collect());
    }
    let mut launches = Vec::new();
    for panel in panels(kernel, given.shape, given.batch, work.split_k, on) {
        if !kernel.product.is_particular() {
            launches.push(Launch { kernel: kernel.entry.name(), config: panel.config });
            continue;
        }
        let (sizes, way) = ([panel.rows, given.shape.n(), work.k], choice.orientation);
        let on = (limits, panel.config);
        let of_panel = tensor::launches(kernel, way, &given, sizes, panel.products, on)?;
        launches.extend(of_panel.into_iter().map(|(kernel, config)| Launch { kernel, config }));
    }
    Ok(launches)
}

/// What there is to do of a product, whatever its operands.
pub(super) struct Work {
    pub kernel: Kernel,
    /// The factor as it is computed with: what is zero then adds nothing.
    alpha: f64,
    beta: f64,
    /// Zero where nothing is multiplied.
    pub k: usize,
    pub split_k: u32,
}

impl Work {
    /// `None` where C stays as it is.
    pub(super) fn new<T: Scalar<O>, O: Output>(
        gemm: &Gemm<T, O>,
        kernel: Kernel,
        choice: &Choice,
        shape: Shape,
        count: usize,
    ) -> Result<Option<Self>> {
        let alpha = if shape.k() == 0 { 0.0 } else { T::rounded(gemm.alpha) };
        let beta = T::rounded(gemm.beta);
        let k = if alpha == 0.0 { 0 } else { shape.k() };
        let stays = gemm.bias.is_none() && gemm.activation == Activation::Identity;
        if shape.c_len() == 0 || count == 0 || k == 0 && beta == 1.0 && stays {
            return Ok(None);
        }
        // Where nothing is multiplied there is nothing to copy boxes of.
        let kernel = match kernel.product.is_particular() && k == 0 {
            true => scalar::general::<T, O>()?,
            false => kernel,
        };
        let split_k = if k == 0 { 1 } else { choice.split_k };
        Ok(Some(Work { kernel, alpha, beta, k, split_k }))
    }
}

/// Rows of C, and products of a batch, that one launch computes.
pub(super) struct Panel {
    pub first_row: usize,
    pub rows: usize,
    pub first_product: usize,
    pub products: usize,
    /// Columns of C in wide tiles, of a kernel that has two widths.
    pub wide: usize,
    pub config: LaunchConfig,
}

/// A grid has so many rows of blocks and so many layers: a taller product, a larger batch takes several launches.
pub(super) fn panels(
    Kernel { entry, product }: Kernel,
    shape: Shape,
    count: usize,
    split_k: u32,
    (limits, multiprocessors): (&Limits, u32),
) -> impl Iterator<Item = Panel> {
    let (tile, block) = (product.tile().map(|size| size as usize), product.block);
    let declared = entry.declaration().dynamic_shared.unwrap_or(0);
    let copies_boxes = product.is_particular();
    let (walkers, narrow) = (product.sharing(), product.narrow.map(|cols| cols as usize));
    let most_rows = match walkers {
        Some(_) => shape.m(),
        None => (limits.grid[1] as usize).saturating_mul(tile[0]),
    };
    let tiles_down = move |rows: usize| product.tiles_down(rows);
    let most_products = match walkers {
        // Tiles of all products are counted by 32 bits. And what copies operands for them has a layer of blocks for each.
        Some(_) => {
            let across = shape.n().div_ceil(narrow.unwrap_or(tile[1]));
            let tiles = across.saturating_mul(tiles_down(shape.m()));
            (limits.grid[0] as usize / tiles).clamp(1, limits.grid[2] as usize)
        }
        None => limits.grid[2] as usize / split_k as usize,
    };
    // Blocks that a multiprocessor has at a time.
    let together = entry.declaration().min_blocks.unwrap_or(1);
    (0..count).step_by(most_products).flat_map(move |first_product| {
        (0..shape.m()).step_by(most_rows).map(move |first_row| {
            let products = most_products.min(count - first_product);
            let rows = most_rows.min(shape.m() - first_row);
            let across = shape.n().div_ceil(tile[1]);
            let down = tiles_down(rows);
            let mut wide = 0;
            let [across, down, layers] = match (walkers.map(|blocks| blocks as usize), narrow) {
                // A cluster that splits k has one tile.
                (Some(_), _) if split_k > 1 => [across * down * products, 1, 1],
                (Some(blocks), Some(narrow)) => {
                    let widths = (tile[1], narrow);
                    let most = ((multiprocessors * together) as usize / blocks).max(1);
                    let of_all = down.saturating_mul(products);
                    let (across, _) = wide_across((of_all, shape.n()), widths, most);
                    wide = across * widths.0;
                    let left = shape.n().saturating_sub(wide).div_ceil(widths.1);
                    let tiles = of_all.saturating_mul(across + left);
                    [tiles.min(most) * blocks, 1, 1]
                }
                // A cluster at least, where the device is smaller than one. Not more of them than it takes to be done in
                // as many rounds: then neighbours stay neighbours, and the power is others'.
                (Some(blocks), None) => {
                    let most = ((multiprocessors * together) as usize / blocks).max(1);
                    let tiles = across.saturating_mul(down).saturating_mul(products);
                    [tiles.div_ceil(tiles.div_ceil(most).max(1)) * blocks, 1, 1]
                }
                (None, _) => [across, down, products],
            };
            let grid = [across as u32, down as u32, layers as u32 * split_k];
            let dynamic_shared = match copies_boxes {
                true => tensor::dynamic_shared(declared, grid, multiprocessors),
                false => declared,
            };
            let cluster = [walkers.unwrap_or(1), 1, split_k];
            let config = LaunchConfig { dynamic_shared, cluster, ..LaunchConfig::new(grid, block) };
            Panel { first_row, rows, first_product, products, wide, config }
        })
    })
}

/// Launches what was checked.
fn launch<T: Scalar<O>, O: Output>(
    gemm: &Gemm<T, O>,
    stream: &Stream,
    kernel: Kernel,
    choice: &Choice,
    operands: Operands<T, O>,
) -> Result<()> {
    let orientation = choice.orientation;
    let operands = if orientation.exchanged { operands.exchanged() } else { operands };
    let Operands { shape, count, a, b, mut c, bias } = operands;
    let Some(Work { kernel, alpha, beta, k, split_k }) =
        Work::new(gemm, kernel, choice, shape, count)?
    else {
        return Ok(());
    };
    if kernel.product.is_lesson() {
        return product::multiply_written(
            stream,
            kernel.entry,
            shape,
            a.elements,
            b.elements,
            c.elements,
        );
    }
    let no_bias = stream.device().uninit(0)?;
    let (bias_kind, bias_elements) = match bias {
        None => (NO_BIAS, no_bias.view(..)?),
        Some(Bias::PerRow(elements)) => (ROW_BIAS, elements),
        Some(Bias::PerCol(elements)) => (COL_BIAS, elements),
    };
    let activation = match gemm.activation {
        Activation::Identity => IDENTITY,
        Activation::Relu => RELU,
        Activation::Gelu => GELU,
    };
    let (a, b) = if k == 0 { (a.unread()?, b.unread()?) } else { (a, b) };
    // A stride by which nothing is reached may be any, and is not multiplied with.
    let words = |[rows, cols]: [usize; 2], strides: [usize; 2]| {
        let reached = |size: usize, stride: usize| if size > 1 { stride as u64 } else { 0 };
        [reached(rows, strides[0]), reached(cols, strides[1])]
    };
    let step = |step: usize| if count > 1 { step as u64 } else { 0 };
    let (m, n) = (shape.m(), shape.n());
    let problem = Problem {
        n: shape.n() as u32,
        k: k as u32,
        bias: bias_kind,
        activation,
        alpha,
        beta,
        a: words([m, k], a.strides),
        b: words([k, n], b.strides),
        c: words([m, n], c.strides),
        batch: [a.step, b.step, c.step].map(step),
        ..Problem::default()
    };

    let strides = [(a.step, a.strides), (b.step, b.strides)];
    let on = (&stream.device().limits(), stream.device().multiprocessors());
    for panel in panels(kernel, shape, count, split_k, on) {
        let Panel { first_row: row, rows, first_product: first, products, wide, config } = panel;
        let (m, wide) = (rows as u32, wide as u64);
        let problem = Problem { m, products: products as u32, wide, ..problem };
        let config = LaunchConfig { constants: kernel.entry.constants_of(&problem), ..config };
        // Of an A that nobody reads there may be no element.
        let a = rest(a.elements, first * a.step + row * a.strides[0])?;
        let b = rest(b.elements, first * b.step)?;
        let c = rest_mut(&mut c.elements, first * c.step + row * c.strides[0])?;
        let bias = match bias_kind {
            ROW_BIAS => rest(bias_elements, row)?,
            _ => bias_elements,
        };
        // SAFETY:
        // 1. A general kernel keeps inside the sizes and strides of its problem, and the views reach from the
        //    first to the last element of those; the tests run each with guard bands.
        // 2. No two elements of C are one, and each is written by the one thread that computes it.
        // 3. A and B are borrowed, C mutably, and `check_apart` has seen to foreign memory. Work on other streams
        //    is waited for.
        // (Of matrices that are copied as boxes, those keep inside them.)
        unsafe {
            match kernel.product.is_particular() {
                false => {
                    let (mut problem, mut a, mut b, mut c, mut bias) = (problem, a, b, c, bias);
                    let arguments: &mut [(_, &mut dyn Named)] = &mut [
                        ("problem", &mut problem),
                        ("a", &mut a),
                        ("b", &mut b),
                        ("c", &mut c),
                        ("bias", &mut bias),
                    ];
                    stream.launch_named(kernel.entry.kernel, &config, arguments)?;
                }
                true => {
                    let operands = TensorOperands {
                        problem: &problem,
                        products,
                        matrices: [a, b],
                        strides,
                        planes: [&a, &b].map(|of| gemm.planes_of(of)),
                        orientation,
                        c,
                        bias,
                    };
                    tensor::launch(stream, kernel, &config, operands)?;
                }
            }
        }
    }
    Ok(())
}

/// What is left of a view from there on; nothing where it ends before.
fn rest<T: Pod>(elements: BufferView<T>, start: usize) -> Result<BufferView<T>> {
    let start = start.min(elements.len());
    elements.view(start, elements.len() - start)
}

fn rest_mut<'a, T: Pod>(elements: &'a mut Written<T>, start: usize) -> Result<Written<'a, T>> {
    let start = start.min(elements.len());
    let len = elements.len() - start;
    elements.reborrow().into_part(start, len)
}

#[cfg(test)]
mod tests;
