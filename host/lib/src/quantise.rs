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
    /// Rows and columns of the scales of a `rows x cols` matrix.
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
/// [`Error::Argument`] for other types, and for sizes, strides, devices or memory that do not fit
/// together: nothing is launched. As [`Stream::launch`].
pub fn quantise<T: BoxElement, Q: BoxElement>(
    stream: &Stream,
    granularity: Granularity,
    x: MatrixView<T>,
    q: MatrixViewMut<Q>,
    scales: MatrixViewMut<f32>,
) -> Result<()> {
    let of = |view: &MatrixView<T>| (view.rows(), view.cols(), view.strides());
    let matrix = |(rows, cols, strides): (usize, usize, [usize; 2]), elements| Operand {
        rows,
        cols,
        strides,
        elements,
    };
    let x = matrix(of(&x), AnyView::from(x.elements()));
    let of = (q.rows(), q.cols(), q.strides());
    let q = matrix(of, AnyView::from(q.into_elements()));
    let of = (scales.rows(), scales.cols(), scales.strides());
    let scales = matrix(of, AnyView::from(scales.into_elements()));
    Quantisation::new(stream, granularity, [T::TYPE, Q::TYPE], [x, q, scales])?.launch(stream)
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

/// A launch whose arguments were checked.
struct Quantisation<'a> {
    kernel: &'static dyn AnyKernel,
    config: LaunchConfig,
    params: QuantiseParams,
    memory: [AnyView<'a>; 3],
}

const NAMES: [&str; 3] = ["x", "q", "scales"];

impl<'a> Quantisation<'a> {
    fn new(
        stream: &Stream,
        granularity: Granularity,
        [of_x, of_q]: [Type; 2],
        [x, q, scales]: [Operand<'a>; 3],
    ) -> Result<Self> {
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
        let sizes = [(x.rows, x.cols), (x.rows, x.cols), granularity.scales(x.rows, x.cols)];
        for ((name, of), (rows, cols)) in NAMES.into_iter().zip([x, q, scales]).zip(sizes) {
            let (device, own) = (stream.device(), of.elements.device());
            if own != device {
                let limit = format!("must be on the stream's device, {}", device.name());
                return Err(Error::argument(name, own.name(), limit));
            }
            if (of.rows, of.cols) != (rows, cols) {
                let value = format!("{} x {}", of.rows, of.cols);
                return Err(Error::argument(name, value, format!("must be {rows} x {cols}")));
            }
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let [a, b] = [one, other].map(|i| [x, q, scales][i].addresses());
            if !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end {
                let (value, limit) = (format!("at {:#x}", a.start), NAMES[other]);
                return Err(Error::argument(
                    NAMES[one],
                    value,
                    format!("must not overlap {limit}"),
                ));
            }
        }
        // Blocks of 128 x 128 of a transpose are those of the matrix.
        let is_by_rows = x.pitch().is_some() && q.pitch().is_some();
        let turns = granularity == Granularity::Block128x128 && !is_by_rows;
        let [x, q, scales] = if turns { [x.t(), q.t(), scales.t()] } else { [x, q, scales] };
        let pitch = |name: &str, of: &Operand| {
            let most = if granularity == Granularity::Block128x128 { MOST_PITCH } else { u64::MAX };
            let pitch = of.pitch().map(|pitch| pitch as u64).filter(|pitch| *pitch <= most);
            pitch.ok_or_else(|| {
                let strides = if turns { of.t().strides } else { of.strides };
                let limit = match granularity {
                    Granularity::Block128x128 => format!(
                        "must be 1 along the rows of x and q, or along the columns of both, and otherwise at most {most}"
                    ),
                    _ => "must be 1 along a row: transpose or copy it before".to_owned(),
                };
                Error::argument(format!("{name}.strides"), format!("{strides:?}"), limit)
            })
        };
        let pitches = [pitch("x", &x)?, pitch("q", &q)?];
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
            let limit = format!("may have {most} rows, columns and scales at most");
            return Err(Error::argument("x", format!("{} x {}", x.rows, x.cols), limit));
        }
        let config = LaunchConfig::new(
            [groups.div_ceil(THREADS / threads) as u32, 1, 1],
            [THREADS as u32, 1, 1],
        );
        let constants = config.constants.with("fraction", fraction);
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
        let memory = [x, q, scales].map(|of| of.elements);
        Ok(Quantisation { kernel, config: LaunchConfig { constants, ..config }, params, memory })
    }

    fn launch(self, stream: &Stream) -> Result<()> {
        if self.config.grid[0] == 0 {
            return Ok(());
        }
        let [x, q, scales] = self.memory;
        let arguments: &mut NamedArguments = &mut [
            ("shape", Box::new(Value(self.params))),
            ("from", Box::new(x)),
            ("to", Box::new(q)),
            ("scales", Box::new(scales)),
        ];
        // SAFETY:
        // 1. The kernel keeps inside the sizes and pitches of its parameters, and the views reach
        //    from the first to the last element of those; the tests run it with guard bands.
        // 2. Each element of `q`, and each scale, is written by the one thread that computes it,
        //    and no two of them share memory (`MatrixViewMut`).
        // 3. `x` is borrowed, the others mutably, and no two overlap (`new`). Work on other streams
        //    is waited for.
        // 4. The kernel has no pointer variables.
        // 5. and 6. hold for every kernel of the registry.
        // 7. A capture keeps what is used in it.
        unsafe { stream.launch_named(self.kernel, &self.config, arguments) }
    }
}
