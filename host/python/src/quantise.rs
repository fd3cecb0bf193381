//! An array rounded to 8 bits, with its scales.

use std::sync::Arc;

use gpu_gemm::{
    Bf16, Device, E4m3, E5m2, Error, F16, Granularity, MatrixView, MatrixViewMut, Result, Stream,
    Type, gemm::Output, quantise,
};
use pyo3::prelude::*;

use crate::{
    array::Place,
    call::{no_stream, on_streams},
    failure::to_python,
    import::{self, Kind, Module, Operand},
    product::{ARRAYS, InPlace, foreign},
    results::{Finish, contiguous, empty},
    streams::{Queue, current, record_on_torch},
};

/// The array rounded to `dtype`, and the scales: arrays of its module. What is in host memory is
/// rounded by the CPU device.
///
/// # Errors
/// Those of the arguments and of the launch.
pub(crate) fn quantised<'py>(
    given: &Bound<'py, PyAny>,
    granularity: Granularity,
    dtype: Type,
    stream: Option<u64>,
) -> PyResult<[Bound<'py, PyAny>; 2]> {
    let py = given.py();
    let queue = Queue::new(Kind::of("x", given)?, stream);
    let mut x = import::array("x", given, &|index| queue.handle(py, index), false)?;
    let refused =
        |name: &str, value: &str, limit: &str| to_python(Error::argument(name, value, limit));
    if ![Type::F32, Type::BF16, Type::F16].contains(&x.dtype) {
        let limit = "must be float32, bfloat16 or float16";
        return Err(refused("x.dtype", x.dtype.numpy(), limit));
    }
    let &[rows, cols] = x.dims.sizes() else {
        return Err(refused("x.ndim", &x.dims.sizes().len().to_string(), "must be 2"));
    };
    let is_fit = |x: &Operand| {
        let is_contiguous = cols <= 1 || x.dims.strides()[1] == 1;
        x.is_regular && !x.dims.has_negative_stride() && is_contiguous
    };
    if !is_fit(&x) {
        x = contiguous("x", &x)?.unwrap_or(x);
        x.check_in_place("x")?;
        if !is_fit(&x) {
            let strides = format!("{:?}", x.dims.strides());
            return Err(refused("x.strides", &strides, "must be 1 along a row"));
        }
    }
    let finish = || Finish::new(given, x.kind.module, false);
    let (of_q, of_scales) = (finish()?, finish()?);
    let on = || match (x.place, stream) {
        (Place::Cuda(index), _) => queue.stream(py, index),
        (Place::Host, None) => Device::cpu().stream().map(Arc::new).map_err(to_python),
        (Place::Host, Some(handle)) => Err(no_stream(handle)),
    };
    let (down, across) = granularity.scales(rows, cols);
    let q = empty(&x, &[rows, cols], dtype, on)?;
    let scales = empty(&x, &[down, across], Type::F32, on)?;
    let (arrays, on) = ([&x, &q, &scales], on()?);
    if x.kind.runs_code() {
        import::check_unchanged("x", &x)?;
    }
    let (mut after, mut waits) = ([None; ARRAYS], false);
    let index = if let Place::Cuda(index) = x.place { index } else { 0 };
    if on.device().is_cuda() {
        let mut ready = [None; ARRAYS];
        for (ready, of) in ready.iter_mut().zip(arrays) {
            *ready = Some((of.kind, of.ready_on));
        }
        (after, waits) = queue.order(py, index, ready)?;
        if stream.is_some() {
            // Their module may have given them memory that its current stream still uses.
            let current = current(py, q.kind, index)?;
            after[1..3].iter_mut().for_each(|after| *after = after.or(current));
        }
    }
    let (sizes, pitch) = ([rows, cols], x.dims.strides()[0].unsigned_abs());
    let launch = Launch { granularity, sizes, pitch, addresses: arrays.map(|of| of.address) };
    let from = x.dtype;
    on_streams(py, (&on, index), after, waits, |after| {
        // SAFETY: the arrays are held, and nobody else has those that are written. That other
        // threads of Python leave `x` alone is the caller's part. A module frees its arrays in the
        // order of the stream, or the launch is waited for.
        let promise = unsafe { InPlace::new() };
        match from {
            of if of == Type::F32 => launch.of::<f32>(&on, dtype, after, promise),
            of if of == Type::BF16 => launch.of::<Bf16>(&on, dtype, after, promise),
            _ => launch.of::<F16>(&on, dtype, after, promise),
        }
    })?;
    if let Some(handle) = stream {
        let tensors = arrays.into_iter().filter(|of| of.kind.module == Module::Torch);
        record_on_torch(tensors.map(|of| &of.object), index, handle)?;
    }
    Ok([of_q.of(q.object)?, of_scales.of(scales.object)?])
}

/// What is launched, and where its arrays are.
struct Launch {
    granularity: Granularity,
    sizes: [usize; 2],
    /// Elements from a row of `x` to the next.
    pitch: usize,
    /// Of `x`, the result, and the scales.
    addresses: [u64; 3],
}

impl Launch {
    /// Queues it, after the streams whose work so far writes the arrays.
    fn of<T: Output>(
        &self,
        stream: &Stream,
        dtype: Type,
        after: [Option<&Stream>; ARRAYS],
        promise: InPlace,
    ) -> Result<()> {
        match dtype {
            of if of == Type::E4M3 => self.run::<T, E4m3>(stream, after, promise),
            of if of == Type::E5M2 => self.run::<T, E5m2>(stream, after, promise),
            _ => self.run::<T, i8>(stream, after, promise),
        }
    }

    fn run<T: Output, Q: Output>(
        &self,
        stream: &Stream,
        after: [Option<&Stream>; ARRAYS],
        promise: InPlace,
    ) -> Result<()> {
        let Launch { granularity, sizes: [rows, cols], pitch, addresses: [x, q, scales] } = *self;
        let (device, (down, across)) = (stream.device(), granularity.scales(rows, cols));
        let len = gpu_gemm::extent(rows, cols, [pitch, 1])?;
        let x = foreign::<T>(device, x, len, after[0], promise)?;
        let mut q = foreign::<Q>(device, q, rows * cols, after[1], promise)?;
        let mut scales = foreign(device, scales, down * across, after[2], promise)?;
        let x = MatrixView::new(x.all(), rows, cols, [pitch, 1])?;
        let q = MatrixViewMut::new(q.all_mut(), rows, cols, [cols, 1])?;
        let scales = MatrixViewMut::new(scales.all_mut(), down, across, [across, 1])?;
        quantise(stream, granularity, x, q, scales)
    }
}
