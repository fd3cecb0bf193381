//! Padding in place of boundary checks, and its cost.
//!
//! A tiled kernel needs no boundary checks if every tile is whole. For that, A and B are copied
//! into larger matrices, with zeros at their right and lower edges, and C is cut out of a larger
//! one. This module computes a product both ways. So the kernel's gain can be compared with the
//! bytes and the time that padding takes.
//!
//! ```
//! use host::{Device, Shape, padding};
//!
//! // 17 is one more than a tile: of the padded C, 32 x 32, seven tenths are padding.
//! let shape = Shape::new(17, 17, 17)?;
//! let (stream, ones) = (Device::cpu().stream()?, vec![1.0; 17 * 17]);
//! let checked = padding::with_checks(&stream, shape, &ones, &ones, 1)?;
//! let padded = padding::with_padding(&stream, shape, &ones, &ones, 1)?;
//! assert_eq!(checked.c, padded.c);
//! assert_eq!((checked.bytes, padded.bytes), (3 * 17 * 17 * 4, 3 * 32 * 32 * 4));
//! # Ok::<(), host::Error>(())
//! ```

use std::time::{Duration, Instant};

use gpu::lessons::padded::{TILE, padded16};
use simt::LaunchConfig;

use gpu_gemm::{Buffer, Error, Result, Shape, Stream, product};

/// A product, and its times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Measured {
    /// The product, m x n.
    pub c: Vec<f32>,
    /// Bytes of A, B and C on the device. A and B are copied there, and C back.
    pub bytes: u64,
    /// Time to copy A and B into larger matrices. Zero without padding.
    pub pad: Duration,
    /// Time to copy A and B to the device, into memory that is already allocated.
    pub upload: Duration,
    /// Median time of a launch.
    pub kernel: Duration,
    /// Time to copy C back.
    pub download: Duration,
    /// Time to cut C out. Zero without padding.
    pub cut: Duration,
}

impl Measured {
    /// The total time of one product.
    pub fn total(&self) -> Duration {
        self.pad + self.upload + self.kernel + self.download + self.cut
    }
}

/// The shape rounded up to whole tiles: multiples of 16.
///
/// # Errors
/// [`Error::Argument`] for a size without such a multiple below 2^32, or a matrix that cannot be
/// addressed.
pub fn padded_shape(shape: Shape) -> Result<Shape> {
    let whole = |size: usize| size.next_multiple_of(TILE) as u64;
    Shape::new(whole(shape.m()), whole(shape.n()), whole(shape.k()))
}

/// A dense row-major matrix of `rows` x `cols`, with zeros added at its right and lower edges.
///
/// # Errors
/// [`Error::Argument`] for another number of values than `rows * cols`, and for a smaller target.
pub fn pad(
    values: &[f32],
    [rows, cols]: [usize; 2],
    [padded_rows, padded_cols]: [usize; 2],
) -> Result<Vec<f32>> {
    check_sizes(values.len(), [rows, cols], [rows, cols], [padded_rows, padded_cols])?;
    let mut padded = vec![0.0; padded_rows * padded_cols];
    if cols > 0 {
        let pairs = padded.chunks_exact_mut(padded_cols).zip(values.chunks_exact(cols));
        pairs.for_each(|(padded, row)| padded[..cols].copy_from_slice(row));
    }
    Ok(padded)
}

/// The upper left `rows` x `cols` of a dense row-major matrix.
///
/// # Errors
/// As [`pad`].
pub fn cut(
    padded: &[f32],
    [padded_rows, padded_cols]: [usize; 2],
    [rows, cols]: [usize; 2],
) -> Result<Vec<f32>> {
    let whole = [padded_rows, padded_cols];
    check_sizes(padded.len(), whole, [rows, cols], whole)?;
    let mut values = Vec::with_capacity(rows * cols);
    // A chunk has at least one element.
    for row in padded.chunks_exact(padded_cols.max(1)).take(rows) {
        values.extend_from_slice(&row[..cols]);
    }
    Ok(values)
}

fn check_sizes(
    len: usize,
    [rows, cols]: [usize; 2],
    [inner_rows, inner_cols]: [usize; 2],
    [outer_rows, outer_cols]: [usize; 2],
) -> Result<()> {
    if rows.checked_mul(cols) != Some(len) {
        let limit = format!("must be rows * cols = {rows} * {cols}");
        return Err(Error::argument("values.len()", len, limit));
    }
    if outer_rows.checked_mul(outer_cols).is_none() {
        let limit = format!("a matrix has at most {} elements", usize::MAX);
        let value = format!("{outer_rows} * {outer_cols}");
        return Err(Error::argument("padded_rows * padded_cols", value, limit));
    }
    for (name, outer, inner) in
        [("padded_rows", outer_rows, inner_rows), ("padded_cols", outer_cols, inner_cols)]
    {
        if outer < inner {
            let limit = format!("must be at least {inner}, what is to be inside");
            return Err(Error::argument(name, outer, limit));
        }
    }
    Ok(())
}

/// `C = A B` in whole tiles, by the kernel without boundary checks.
///
/// # Errors
/// [`Error::Argument`] for a size that is no multiple of 16; as [`Stream::launch`], which also
/// compares the buffers' lengths.
pub fn multiply(
    stream: &Stream,
    shape: Shape,
    a: &Buffer<f32>,
    b: &Buffer<f32>,
    c: &mut Buffer<f32>,
) -> Result<()> {
    for (name, size) in [("m", shape.m()), ("n", shape.n()), ("k", shape.k())] {
        if !size.is_multiple_of(TILE) {
            let limit = format!("must be a multiple of {TILE}: this kernel has no boundary checks");
            return Err(Error::argument(name, size, limit));
        }
    }
    if shape.c_len() == 0 {
        return Ok(());
    }
    // A `Shape` has sizes of u32.
    let [m, n, k] = [shape.m(), shape.n(), shape.k()].map(|size| size as u32);
    let tile = TILE as u32;
    let config = LaunchConfig::new([n / tile, m / tile, 1], [tile, tile, 1]);
    // SAFETY:
    // 1. The sizes are multiples of the tile. So all tiles are inside A, B and C, whose lengths the
    //    launch compares with the declared ones.
    // 2. Each element of C is written by the one thread that computes it.
    // 3. The buffers are borrowed, C mutably.
    unsafe { stream.launch(&padded16, &config, (m, n, k, a, b, c)) }
}

/// `C = A B` by `tiled16`, whose boundary checks allow any size. It is launched `launches` times,
/// at least once. On a GPU the first launch is not timed.
///
/// # Errors
/// [`Error::Argument`] for values that do not fit the shape; [`Error::OutOfMemory`]; as
/// [`Stream::launch`].
pub fn with_checks(
    stream: &Stream,
    shape: Shape,
    a: &[f32],
    b: &[f32],
    launches: u32,
) -> Result<Measured> {
    check_values(shape, a, b)?;
    let entry = product::find("tiled16")?;
    measure(stream, shape, a, b, launches, |a, b, c| {
        product::multiply_views(stream, entry, shape, a.view(..)?, b.view(..)?, c.view_mut(..)?)
    })
}

/// `C = A B` with padded matrices, otherwise as [`with_checks`].
///
/// # Errors
/// As [`with_checks`] and [`padded_shape`].
pub fn with_padding(
    stream: &Stream,
    shape: Shape,
    a: &[f32],
    b: &[f32],
    launches: u32,
) -> Result<Measured> {
    check_values(shape, a, b)?;
    let whole = padded_shape(shape)?;
    let begin = Instant::now();
    let a = pad(a, [shape.m(), shape.k()], [whole.m(), whole.k()])?;
    let b = pad(b, [shape.k(), shape.n()], [whole.k(), whole.n()])?;
    let pad = begin.elapsed();
    let launch = |a: &_, b: &_, c: &mut _| multiply(stream, whole, a, b, c);
    let mut measured = measure(stream, whole, &a, &b, launches, launch)?;
    let begin = Instant::now();
    measured.c = cut(&measured.c, [whole.m(), whole.n()], [shape.m(), shape.n()])?;
    Ok(Measured { pad, cut: begin.elapsed(), ..measured })
}

fn check_values(shape: Shape, a: &[f32], b: &[f32]) -> Result<()> {
    for (name, rule, len, needed) in
        [("a", "m * k", a.len(), shape.a_len()), ("b", "k * n", b.len(), shape.b_len())]
    {
        if len != needed {
            let limit = format!("must be {rule} = {needed} for {shape}");
            return Err(Error::argument(format!("{name}.len()"), len, limit));
        }
    }
    Ok(())
}

/// Copies, launches, and the copy back.
fn measure(
    stream: &Stream,
    shape: Shape,
    a: &[f32],
    b: &[f32],
    launches: u32,
    multiply: impl Fn(&Buffer<f32>, &Buffer<f32>, &mut Buffer<f32>) -> Result<()>,
) -> Result<Measured> {
    let device = stream.device();
    // The first access to memory takes time that is no part of a copy. So all memory is written
    // before.
    let (mut a_buffer, mut b_buffer) = (device.upload(a)?, device.upload(b)?);
    let mut c_buffer = device.zeros(shape.c_len())?;
    stream.synchronize()?;
    let begin = Instant::now();
    a_buffer.write(0, a)?;
    b_buffer.write(0, b)?;
    stream.synchronize()?;
    let upload = begin.elapsed();
    // The driver compiles a kernel at its first launch.
    let first = usize::from(device.is_cuda());
    let mut times = Vec::new();
    for number in 0..first + launches.max(1) as usize {
        gpu_gemm::check_interrupt()?;
        // An element that no launch writes is NaN.
        c_buffer.fill_bytes(0xff)?;
        let start = stream.record()?;
        multiply(&a_buffer, &b_buffer, &mut c_buffer)?;
        let time = stream.record()?.since(&start)?;
        if number >= first {
            times.push(time);
        }
    }
    times.sort_unstable();
    // Written before, as A and B.
    let mut c = vec![f32::NAN; shape.c_len()];
    let begin = Instant::now();
    c_buffer.read(0, &mut c)?;
    let download = begin.elapsed();
    let none = Duration::ZERO;
    let (bytes, kernel) = (shape.bytes(), times[times.len() / 2]);
    Ok(Measured { c, bytes, pad: none, upload, kernel, download, cut: none })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Device;

    fn shape(m: u64, n: u64, k: u64) -> Shape {
        Shape::new(m, n, k).unwrap()
    }

    #[test]
    fn zeros_are_added_and_cut_off_again() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let padded = pad(&values, [2, 3], [3, 5]).unwrap();
        let rows = [[1.0, 2.0, 3.0, 0.0, 0.0], [4.0, 5.0, 6.0, 0.0, 0.0], [0.0; 5]];
        assert_eq!(padded, rows.concat());
        assert_eq!(cut(&padded, [3, 5], [2, 3]).unwrap(), values);
        // An empty matrix that becomes larger, and one that stays empty.
        assert_eq!(pad(&[], [0, 3], [1, 3]).unwrap(), [0.0; 3]);
        assert_eq!(pad(&[], [2, 0], [2, 1]).unwrap(), [0.0; 2]);
        assert_eq!(pad(&[], [2, 0], [2, 0]).unwrap(), [0.0; 0]);
        assert_eq!(cut(&[], [2, 0], [1, 0]).unwrap(), [0.0; 0]);
        assert_eq!(cut(&values, [2, 3], [2, 0]).unwrap(), [0.0; 0]);
    }

    #[test]
    fn sizes_become_multiples_of_the_tile() {
        assert_eq!(padded_shape(shape(1, 16, 17)).unwrap(), shape(16, 16, 32));
        assert_eq!(padded_shape(shape(0, 0, 0)).unwrap(), shape(0, 0, 0));
        let error = padded_shape(shape(u64::from(u32::MAX), 1, 1)).unwrap_err().to_string();
        assert!(error.starts_with("m = 4294967296: must be"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let message = |error: Error| error.to_string();
        let error = message(pad(&[0.0; 5], [2, 3], [4, 4]).unwrap_err());
        assert_eq!(error, "values.len() = 5: must be rows * cols = 2 * 3");
        let error = message(pad(&[0.0; 6], [2, 3], [2, 2]).unwrap_err());
        assert_eq!(error, "padded_cols = 2: must be at least 3, what is to be inside");
        let error = message(cut(&[0.0; 6], [2, 3], [3, 3]).unwrap_err());
        assert_eq!(error, "padded_rows = 2: must be at least 3, what is to be inside");
        let stream = Device::cpu().stream().unwrap();
        let error = with_padding(&stream, shape(2, 2, 2), &[0.0; 4], &[0.0; 5], 1).unwrap_err();
        assert!(message(error).starts_with("b.len() = 5: must be k * n = 4 for"));
    }

    #[test]
    fn sizes_that_need_checks_are_refused_by_the_kernel_without() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let [a, b] = [(); 2].map(|()| device.zeros(32 * 32).unwrap());
        let mut c = device.zeros(32 * 32).unwrap();
        for (name, sizes) in [("m", [17, 16, 16]), ("n", [16, 15, 16]), ("k", [16, 16, 1])] {
            let [m, n, k] = sizes;
            let error = multiply(&stream, shape(m, n, k), &a, &b, &mut c).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} = ")), "{error}");
            assert!(error.contains("must be a multiple of 16"), "{error}");
        }
        multiply(&stream, shape(32, 32, 32), &a, &b, &mut c).unwrap();
        multiply(&stream, shape(0, 32, 32), &a, &b, &mut c).unwrap();
        let error = multiply(&stream, shape(32, 48, 16), &a, &b, &mut c).unwrap_err().to_string();
        assert!(error.contains("c has 1024 elements") && error.contains("1536"), "{error}");
    }
}
