//! Matrices rounded to 8 bits, with their scales.

use std::ops::Range;

use gpu::{
    kernels::quantise::{EACH, INTEGERS, SIDE, THREADS, quantise_f32, quantise_half},
    params::{MOST_PITCH, QuantiseParams},
};
use simt::{AnyKernel, Half, LaunchConfig, types::Type};

use crate::{
    boxes::BoxElement,
    buffer::AnyView,
    error::{Error, Result},
    gemm::Scales,
    launch::{NamedArguments, Value},
    matrix::{MatrixView, MatrixViewMut},
    stream::Stream,
};

const _: () = assert!(SIDE == Scales::BLOCK, "scales of a product are of such blocks");

/// What has a scale of its own, in [`quantise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granularity {
    /// Each row: for A of [`Scales::RowsCols`], and for the transpose of B.
    Row,
    /// Each 1 x 128, the last of a row of less: for A of [`Scales::Blocks`].
    Block1x128,
    /// Each 128 x 128, at the ends of less: for B of [`Scales::Blocks`].
    Block128x128,
}

impl Granularity {
    /// The sizes of the scales, (rows, columns), of a `rows x cols` matrix.
    pub fn scales(self, rows: usize, cols: usize) -> (usize, usize) {
        match self {
            Granularity::Row => (rows, 1),
            Granularity::Block1x128 => (rows, cols.div_ceil(SIDE)),
            Granularity::Block128x128 => (rows.div_ceil(SIDE), cols.div_ceil(SIDE)),
        }
    }
}

/// Queues on a stream: `q` is `x`, divided by scales and rounded to 8 bits. `x` is of f32,
/// [`Bf16`](crate::Bf16) or [`F16`](crate::F16), `q` of [`E4m3`](crate::E4m3),
/// [`E5m2`](crate::E5m2) or i8. With these scales [`Gemm::scales`](crate::Gemm::scales) multiplies
/// what `q` stands for.
///
/// `x` and `q` are m x k, and `scales` is as [`Granularity::scales`] says: m x 1,
/// m x ceil(k / 128), or ceil(m / 128) x ceil(k / 128). With k = 0 each row's scale is 1. No two of
/// them share memory.
///
/// The rows of `x` and `q` are contiguous; for blocks of 128 x 128 they may both be column-major
/// instead. Rows at multiples of sixteen bytes are read fastest. Scales may have any strides.
///
/// ```
/// use gpu_gemm::{Bf16, Device, E4m3, Gemm, Granularity, Matrix, gemm::Scales, quantise};
///
/// let device = Device::cpu();
/// let stream = device.stream()?;
/// // A, and B^T: a scale for each row of A, and for each column of B.
/// let a = Matrix::from_row_major(&device, 2, 3, &[1.0f32, 2.0, 4.0, 0.1, 0.2, -0.4])?;
/// let bt = Matrix::from_row_major(&device, 2, 3, &[300.0f32, 100.0, 200.0, 1.0, 0.0, 1.0])?;
/// let (mut qa, mut qb) = (Matrix::<E4m3>::zeros(&device, 2, 3)?, Matrix::zeros(&device, 2, 3)?);
/// let (mut of_a, mut of_b) = (Matrix::zeros(&device, 2, 1)?, Matrix::zeros(&device, 2, 1)?);
/// quantise(&stream, Granularity::Row, a.view(), qa.view_mut(), of_a.view_mut())?;
/// quantise(&stream, Granularity::Row, bt.view(), qb.view_mut(), of_b.view_mut())?;
///
/// let scales = Scales::RowsCols { a: of_a.view().into(), b: of_b.view().t().into() };
/// let mut c = Matrix::<f32>::zeros(&device, 2, 2)?;
/// let gemm = Gemm::<E4m3, f32>::of_types().scales(scales);
/// gemm.run(&stream, qa.view(), qb.view().t(), c.view_mut())?;
/// let c = c.to_row_major()?;
/// for (c, right, terms) in [(c[0], 1300.0, 1300.0), (c[1], 5.0, 5.0), (c[2], -30.0, 130.0)] {
///     assert!((c - right).abs() <= 0.064f32 * terms);
/// }
/// # Ok::<(), gpu_gemm::Error>(())
/// ```
///
/// # Numerics
/// A scale is the greatest finite magnitude over the largest number of the type (448, 57344, 127),
/// rounded to f32. It is at least 2^-63, so that the product of two is a normal f32, and 1 where
/// all is zero. An element is multiplied by the reciprocal of its scale, rounded to f32, and that
/// rounded to the nearest number of 8 bits, of two to the even one. A GPU gives the bits of the
/// CPU.
///
/// What is not finite has no part in a scale. In e4m3 and e5m2 NaN and infinities become NaN. In i8
/// NaN is 0, and an infinity 127 or -127.
///
/// # Errors
/// [`Error::Argument`] for other types; for sizes, strides, devices or memory that do not fit
/// together; for more than 2^32 - 513 rows, columns or scales; and for blocks of 128 x 128 of rows
/// (or columns) more than 2^27 - 1 elements apart: nothing is launched. As [`Stream::launch`].
pub fn quantise<T: BoxElement, Q: BoxElement>(
    stream: &Stream,
    granularity: Granularity,
    x: MatrixView<T>,
    q: MatrixViewMut<Q>,
    scales: MatrixViewMut<f32>,
) -> Result<()> {
    let operand = |size: (usize, usize), strides, elements| {
        let (rows, cols) = size;
        Operand { rows, cols, strides, elements }
    };
    let x = operand((x.rows(), x.cols()), x.strides(), AnyView::from(x.elements()));
    let (size, strides) = ((q.rows(), q.cols()), q.strides());
    let q = operand(size, strides, AnyView::from(q.into_elements()));
    let (size, strides) = ((scales.rows(), scales.cols()), scales.strides());
    let scales = operand(size, strides, AnyView::from(scales.into_elements()));
    launch(stream, granularity, [T::TYPE, Q::TYPE], [x, q, scales])
}

/// A matrix of any type.
#[derive(Clone, Copy)]
struct Operand<'a> {
    rows: usize,
    cols: usize,
    strides: [usize; 2],
    elements: AnyView<'a>,
}

impl Operand<'_> {
    fn t(self) -> Self {
        let [between_rows, between_cols] = self.strides;
        let strides = [between_cols, between_rows];
        Operand { rows: self.cols, cols: self.rows, strides, ..self }
    }

    /// Elements from one row to the next, if each row is contiguous.
    fn pitch(&self) -> Option<usize> {
        let is_contiguous = self.cols <= 1 || self.strides[1] == 1;
        is_contiguous.then_some(if self.rows <= 1 { 0 } else { self.strides[0] })
    }

    fn addresses(&self) -> Range<usize> {
        let start = self.elements.address().addr();
        start..start.saturating_add(self.elements.len() * self.elements.element().bytes)
    }
}

const NAMES: [&str; 3] = ["x", "q", "scales"];

/// [`quantise`] of these types.
fn launch(
    stream: &Stream,
    granularity: Granularity,
    [of_x, of_q]: [Type; 2],
    operands: [Operand; 3],
) -> Result<()> {
    let kernel: &dyn AnyKernel = match of_x {
        _ if of_x == Type::F32 => &quantise_f32,
        _ if Half::TYPES.contains(&of_x) => &quantise_half,
        _ => return Err(Error::argument("x", of_x, "must be of f32, bf16 or f16")),
    };
    let fraction = match of_q {
        _ if of_q == Type::E4M3 => 3,
        _ if of_q == Type::E5M2 => 2,
        _ if of_q == Type::I8 => INTEGERS,
        _ => return Err(Error::argument("q", of_q, "must be of e4m3, e5m2 or i8")),
    };
    let size = (operands[0].rows, operands[0].cols);
    let sizes = [size, size, granularity.scales(size.0, size.1)];
    for (number, (of, (rows, cols))) in operands.iter().zip(sizes).enumerate() {
        let (name, device, own) = (NAMES[number], stream.device(), of.elements.device());
        device.refuse_elsewhere(name, own, "the stream's device")?;
        if (of.rows, of.cols) != (rows, cols) {
            let value = format!("{} x {}", of.rows, of.cols);
            return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
        }
        let addresses = of.addresses();
        for (other, written) in operands.iter().enumerate().skip(number + 1) {
            let to = written.addresses();
            let is_empty = addresses.is_empty() || to.is_empty();
            if !is_empty && addresses.start < to.end && to.start < addresses.end {
                let limit = format!("must not overlap {}", NAMES[other]);
                return Err(Error::argument(name, format!("at {:#x}", addresses.start), limit));
            }
        }
    }
    // Blocks of 128 x 128 of a transpose are those of the matrix.
    let is_square = granularity == Granularity::Block128x128;
    let turns = is_square && operands[..2].iter().any(|of| of.pitch().is_none());
    let [x, q, scales] = if turns { operands.map(Operand::t) } else { operands };
    let most = if is_square { MOST_PITCH } else { u64::MAX };
    let mut pitches = [0; 2];
    for (number, of) in [x, q].iter().enumerate() {
        let pitch = of.pitch().map(|pitch| pitch as u64).filter(|pitch| *pitch <= most);
        pitches[number] = pitch.ok_or_else(|| {
            let limit = match is_square {
                true => format!(
                    "must be 1 along the rows of x and q, or along the columns of both, and otherwise at most {most}"
                ),
                false => "must be 1 along a row: transpose or copy it before".to_owned(),
            };
            let strides = format!("{:?}", operands[number].strides);
            Error::argument(format!("{}.strides", NAMES[number]), strides, limit)
        })?;
    }
    let (down, width) = match granularity {
        Granularity::Row => (1, x.cols),
        Granularity::Block1x128 => (1, SIDE),
        Granularity::Block128x128 => (SIDE, SIDE),
    };
    // A thread has sixteen elements, unless a row has too many.
    let threads = match down * width {
        0..=SIDE => SIDE / EACH,
        elements => elements.div_ceil(EACH).next_power_of_two().clamp(32, THREADS),
    };
    let groups = scales.rows.saturating_mul(scales.cols);
    let most = u32::MAX as usize - THREADS;
    if [x.rows, x.cols, groups].iter().any(|count| *count > most) {
        let limit = format!("must have at most {most} rows, columns and scales");
        return Err(Error::argument("x", format!("{} x {}", size.0, size.1), limit));
    }
    if groups == 0 {
        return Ok(());
    }
    let params = QuantiseParams {
        rows: x.rows as u32,
        cols: x.cols as u32,
        down: down as u32,
        width: width as u32,
        across: scales.cols as u32,
        threads: threads as u32,
        from_pitch: pitches[0],
        to_pitch: pitches[1],
        scales: scales.strides.map(|stride| stride as u64),
    };
    let blocks = groups.div_ceil(THREADS / threads) as u32;
    let config = LaunchConfig::new([blocks, 1, 1], [THREADS as u32, 1, 1]);
    let constants = config.constants.with("fraction", fraction);
    let arguments: &mut NamedArguments = &mut [
        ("shape", Box::new(Value(params))),
        ("from", Box::new(x.elements)),
        ("to", Box::new(q.elements)),
        ("scales", Box::new(scales.elements)),
    ];
    // SAFETY:
    // 1. The kernel keeps inside the sizes and pitches of its parameters, and the views reach from
    //    the first to the last element of those; the tests run it with guard bands.
    // 2. Each element of `q`, and each scale, is written by one thread, and no two of them share
    //    memory (`MatrixViewMut`).
    // 3. `x` is borrowed, the others mutably, and no two overlap. Work on other streams is waited
    //    for.
    // 4. to 6. hold for every kernel of the registry.
    unsafe { stream.launch_named(kernel, &LaunchConfig { constants, ..config }, arguments) }
}
