//! A product of Python's arrays: checks, places, results.

use std::sync::Arc;

use gpu_gemm::{Activation, Compute, Device, Error, Stream, TuningCache, Type};
use pyo3::prelude::*;

use crate::{
    array::{Place, offered},
    device::{foreign_stream, or_best, own_stream},
    failure::to_python,
    import::{self, Kind, Module, Operand, written},
    product::{ARRAYS, BiasAt, NAMES, Product, Settings},
    results::{Finish, contiguous, copy_into, empty},
    shape::Shapes,
    streams::{Queue, current, record_on_torch},
};

/// The arguments of scales.
const SCALES: [&str; 2] = ["scale_a", "scale_b"];

/// The arguments besides A and B.
pub(crate) struct Options<'a, 'py> {
    /// Of A and of B: both or none.
    pub(crate) scales: [Option<&'a Bound<'py, PyAny>>; 2],
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) out_dtype: Option<Type>,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) bias: Option<&'a Bound<'py, PyAny>>,
    pub(crate) activation: Option<Activation>,
    pub(crate) compute: Option<Compute>,
    pub(crate) invariant: bool,
    pub(crate) tune: Option<&'static TuningCache>,
    pub(crate) stream: Option<u64>,
    pub(crate) device: Option<Place>,
}

impl<'py> Options<'_, 'py> {
    fn settings(&self) -> PyResult<Settings> {
        if self.beta != 0.0 && self.out.is_none() {
            let limit = "must be 0 without out: it is the factor of out's old elements";
            return Err(to_python(Error::argument("beta", self.beta, limit)));
        }
        let Options { alpha, beta, invariant, tune, .. } = *self;
        let activation = self.activation.unwrap_or(Activation::Identity);
        let compute = self.compute.unwrap_or(Compute::Native);
        Ok(Settings { alpha, beta, activation, compute, invariant, tune })
    }

    /// The product of two arrays, as its caller gets it.
    ///
    /// # Errors
    /// Those of the arguments and of the product.
    pub(crate) fn multiplied(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ready = Ready::new(a, b, self, true)?;
        let finish = match self.out {
            Some(_) => Finish::As,
            None => Finish::new(a, ready.a.kind.module, ready.is_number)?,
        };
        finish.of(ready.run(py, self.stream)?.result())
    }
}

/// Where a product runs.
#[derive(Clone, Debug)]
pub(crate) enum On {
    /// On the CPU device, where the arrays are.
    Cpu,
    /// On a GPU, with copies of arrays in host memory.
    Copied(usize),
    /// On the GPU whose memory the arrays are in.
    Gpu(usize),
}

/// A product that is ready to be run.
pub(crate) struct Ready<'py> {
    pub(crate) product: Product,
    pub(crate) on: On,
    queue: Queue,
    pub(crate) a: Operand<'py>,
    pub(crate) b: Operand<'py>,
    /// The array that is written.
    pub(crate) c: Operand<'py>,
    pub(crate) bias: Option<Operand<'py>>,
    /// Of A and of B.
    pub(crate) scales: Option<[Operand<'py>; 2]>,
    /// Whether `c` is the caller's `out`.
    writes_out: bool,
    /// The caller's `out`, into which `c` is copied at the end.
    copied_to: Option<Bound<'py, PyAny>>,
    /// Whether the result is a number.
    pub(crate) is_number: bool,
}

impl<'py> Ready<'py> {
    /// Checks the arguments. `copies`: arrays in host memory that cannot be used where they are may
    /// be copied.
    ///
    /// # Errors
    /// Those of the arguments.
    pub(crate) fn new(
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        options: &Options<'_, 'py>,
        copies: bool,
    ) -> PyResult<Self> {
        let py = a.py();
        let settings = options.settings()?;
        // Before A is read: it may have to be ready on the product's stream.
        let queue = Queue::new(Kind::of("a", a)?, options.stream);
        // A prepared product reads the arrays again.
        let read = |name, array| {
            let is_own = name == "out" || !copies;
            import::array(name, array, &|index| queue.handle(py, index), is_own)
        };
        let (mut a, mut b) = (read("a", a)?, read("b", b)?);
        let mut bias = options.bias.map(|bias| read("bias", bias)).transpose()?;
        let mut scales = match options.scales {
            [None, None] => None,
            [Some(of_a), Some(of_b)] => Some([read(SCALES[0], of_a)?, read(SCALES[1], of_b)?]),
            _ => {
                let limit = "must be both arrays, or both None";
                return Err(to_python(Error::argument("scale_a, scale_b", "one of them", limit)));
            }
        };
        let out = options.out.map(|out| read("out", out)).transpose()?;
        if a.dtype.sums().is_none() {
            let limit = format!("must be {}", offered("a"));
            return Err(to_python(Error::argument("a.dtype", a.dtype.numpy(), limit)));
        }
        if b.dtype != a.dtype {
            let limit = format!("must be {}, as a", a.dtype.numpy());
            return Err(to_python(Error::argument("b.dtype", b.dtype.numpy(), limit)));
        }
        // What is multiplied by scales is no integer.
        let usual = match scales.is_some() && !a.dtype.format().is_float() {
            true => Type::F32,
            false => a.dtype.usual_c(),
        };
        let usual = options.out_dtype.unwrap_or(usual);
        let c_dtype = out.as_ref().map_or(usual, |out| out.dtype);
        if options.out_dtype.is_some_and(|of| of != c_dtype) {
            let limit = format!("must be {}, out_dtype", usual.numpy());
            return Err(to_python(Error::argument("out.dtype", c_dtype.numpy(), limit)));
        }
        let of_result = if out.is_some() { "out.dtype" } else { "out_dtype" };
        Product::check_types(of_result, [a.dtype, c_dtype]).map_err(to_python)?;
        let mut of_scales = SCALES.into_iter().zip(scales.iter().flatten());
        if let Some((name, of)) = of_scales.find(|(_, of)| of.dtype != Type::F32) {
            let (name, limit) = (format!("{name}.dtype"), "must be float32");
            return Err(to_python(Error::argument(name, of.dtype.numpy(), limit)));
        }
        if let Some(bias) = &bias
            && bias.dtype != c_dtype
        {
            let limit = format!("must be {}, as the result", c_dtype.numpy());
            return Err(to_python(Error::argument("bias.dtype", bias.dtype.numpy(), limit)));
        }
        let of_scales = SCALES.into_iter().zip(scales.iter().flatten());
        let others = [("b", &b)].into_iter().chain(bias.iter().map(|bias| ("bias", bias)));
        for (name, other) in others.chain(of_scales).chain(out.iter().map(|out| ("out", out))) {
            if other.place != a.place {
                let (name, limit) =
                    (format!("{name}.device"), format!("must be {}, as a", a.place));
                return Err(to_python(Error::argument(name, other.place, limit)));
            }
        }
        let on = on(py, a.place, options)?;
        let shapes = Shapes::new(&a.dims, &b.dims).map_err(to_python)?;
        let bias_per_col = match &bias {
            Some(bias) => Some(shapes.bias_per_col(&bias.dims).map_err(to_python)?),
            None => None,
        };
        let are_blocks = match &scales {
            Some(of) => Some(shapes.are_blocks([&of[0].dims, &of[1].dims]).map_err(to_python)?),
            None => None,
        };
        let (sizes, ndim) = shapes.result();
        let sizes = &sizes[..ndim];
        if let Some(out) = &out {
            out.check_shape("out", sizes)?;
            if out.is_read_only {
                return Err(to_python(Error::argument("out", "read-only", "must be writable")));
            }
            out.dims.check_written(out.dtype.bytes()).map_err(to_python)?;
        }
        let of_scales = SCALES.into_iter().zip(scales.iter_mut().flatten());
        let others = bias.iter_mut().map(|bias| ("bias", bias)).chain(of_scales);
        for (name, operand) in [("a", &mut a), ("b", &mut b)].into_iter().chain(others) {
            settle(name, operand, &on, (copies, are_blocks.is_some()))?;
        }
        let has_out = out.is_some();
        let (c, copied_to) = match out {
            Some(out) => {
                let inputs = [&a, &b].into_iter().chain(&bias).chain(scales.iter().flatten());
                output(out, inputs, &on, settings.beta != 0.0, copies)?
            }
            None => {
                let stream = || match on {
                    On::Gpu(index) => queue.stream(py, index),
                    _ => Device::cpu().stream().map(Arc::new).map_err(to_python),
                };
                (empty(&a, sizes, c_dtype, stream)?, None)
            }
        };
        let folds = bias_per_col != Some(false);
        let dims = scales.as_ref().map(|of| of.each_ref().map(|one| &one.dims));
        let geometry = shapes.bind([&a.dims, &b.dims, &c.dims], dims, folds).map_err(to_python)?;
        let product = Product {
            dtypes: [a.dtype, c.dtype],
            geometry,
            addresses: [a.address, b.address, c.address],
            bias: bias.as_ref().zip(bias_per_col).map(|(bias, per_col)| BiasAt {
                address: bias.address,
                len: bias.dims.count(),
                per_col,
            }),
            scales: are_blocks.zip(scales.as_ref().map(|of| of.each_ref().map(|one| one.address))),
            settings,
        };
        let (writes_out, is_number) = (has_out && copied_to.is_none(), ndim == 0);
        Ok(Ready { product, on, queue, a, b, c, bias, scales, writes_out, copied_to, is_number })
    }

    /// Runs it, and returns the array with the result.
    ///
    /// # Errors
    /// Those of the product.
    pub(crate) fn run(self, py: Python<'py>, stream: Option<u64>) -> PyResult<Self> {
        let Ready { a, c, product, .. } = &self;
        let [_, b, _, bias, of_a, of_b] = self.arrays();
        let out = self.writes_out.then_some(c);
        let read = [Some(a), b, out, bias, of_a, of_b];
        let read =
            || NAMES.into_iter().zip(read).filter_map(|(name, operand)| Some((name, operand?)));
        if read().any(|(_, operand)| operand.kind.runs_code()) {
            for (name, operand) in read() {
                import::check_unchanged(name, operand)?;
            }
        }
        if self.writes_out && c.kind.module == Module::Torch {
            // Before the launch: PyTorch may refuse the write.
            written(&c.object)?;
        }
        match self.on {
            On::Cpu => run_on_cpu(py, product)?,
            On::Copied(index) => run_copied(py, product, index)?,
            On::Gpu(index) => {
                let on = self.queue.stream(py, index)?;
                let ready = self.arrays();
                let arrays = ready.map(|operand| operand.map(|it| (it.kind, it.ready_on)));
                let (mut after, waits) = self.queue.order(py, index, arrays)?;
                if stream.is_some() && !self.writes_out && after[2].is_none() {
                    // Its module may have given it memory that its current stream still uses.
                    after[2] = current(py, c.kind, index)?;
                }
                launch(py, product, (&on, index), after, waits)?;
                if let Some(handle) = stream {
                    let tensors = ready.into_iter().flatten();
                    let tensors = tensors.filter(|operand| operand.kind.module == Module::Torch);
                    record_on_torch(tensors.map(|operand| &operand.object), index, handle)?;
                }
            }
        }
        if let Some(out) = &self.copied_to {
            copy_into(c.kind.module, out, &c.object)?;
        }
        Ok(self)
    }

    /// A, B, C, the bias, and the scales.
    fn arrays(&self) -> [Option<&Operand<'py>>; ARRAYS] {
        let Ready { a, b, c, bias, scales, .. } = self;
        let [of_a, of_b] = [0, 1].map(|i| scales.as_ref().map(|of| &of[i]));
        [Some(a), Some(b), Some(c), bias.as_ref(), of_a, of_b]
    }

    /// The array that the caller gets.
    pub(crate) fn result(self) -> Bound<'py, PyAny> {
        self.copied_to.unwrap_or(self.c.object)
    }
}

/// The error for a stream that nothing runs on.
pub(crate) fn no_stream(handle: u64) -> PyErr {
    let limit = "must be None for arrays in host memory";
    to_python(Error::argument("stream", handle, limit))
}

/// The device of a product.
fn on(py: Python, place: Place, options: &Options) -> PyResult<On> {
    let refused = |name: &str, value: String, limit: &str| {
        Err(to_python(Error::argument(name, value, limit)))
    };
    match (place, options.stream) {
        (Place::Host, Some(handle)) => Err(no_stream(handle)),
        (Place::Host, None) => Ok(match or_best(py, options.device)? {
            Place::Host => On::Cpu,
            Place::Cuda(index) => On::Copied(index),
        }),
        (Place::Cuda(index), _) => match options.device {
            None => Ok(On::Gpu(index)),
            Some(device) if device == place => Ok(On::Gpu(index)),
            Some(other) => {
                let other = match other {
                    Place::Host => "'cpu'".to_owned(),
                    Place::Cuda(other) => format!("'cuda:{other}'"),
                };
                let limit = format!("must be None or 'cuda:{index}': the arrays are there");
                refused("device", other, &limit)
            }
        },
    }
}

/// Makes an operand one that the library takes: by a copy, if it may. `has_scales`: kernels with
/// scales read A and B contiguous along a side.
fn settle<'py>(
    name: &'static str,
    operand: &mut Operand<'py>,
    on: &On,
    (copies, has_scales): (bool, bool),
) -> PyResult<()> {
    let dims = &operand.dims;
    let is_vector = name == "bias";
    let has_gaps = || dims.extent().is_none_or(|extent| extent > dims.count());
    let has_runs = || {
        let mut sides = dims.sizes().iter().zip(dims.strides()).rev().take(2);
        dims.sizes().len() < 2 || sides.any(|(&size, &stride)| size <= 1 || stride == 1)
    };
    let is_factor = name == "a" || name == "b";
    let is_fit = operand.is_regular
        && !dims.has_negative_stride()
        && !(has_scales && is_factor && !has_runs())
        && !(matches!(on, On::Copied(_)) && has_gaps())
        && !(is_vector && dims.count() > 1 && dims.extent() != Some(dims.count()));
    if is_fit {
        return Ok(());
    }
    if copies && let Some(copy) = contiguous(name, operand)? {
        *operand = copy;
        return Ok(());
    }
    operand.check_in_place(name)?;
    let limit = match () {
        () if is_vector => "must be contiguous",
        () if is_factor && has_scales && !has_runs() => "must be 1 along a side, with scales",
        () => "must have no gaps between its elements to be copied to a GPU",
    };
    Err(to_python(Error::argument(
        format!("{name}.strides"),
        format!("{:?}", dims.strides()),
        limit,
    )))
}

/// The array to write for the caller's `out`: itself, or one that is copied to it at the end.
fn output<'a, 'py: 'a>(
    out: Operand<'py>,
    mut inputs: impl Iterator<Item = &'a Operand<'py>>,
    on: &On,
    is_read: bool,
    copies: bool,
) -> PyResult<(Operand<'py>, Option<Bound<'py, PyAny>>)> {
    let (start, end) = out.range();
    let mut overlaps = || {
        inputs.any(|input| {
            let (from, to) = input.range();
            from < end && start < to
        })
    };
    let is_dense = || out.dims.extent() == Some(out.dims.count());
    let is_fit = match on {
        // Several launches: one would overwrite what another reads.
        On::Gpu(_) if out.dims.sizes().len() > 2 && overlaps() => {
            let limit = "must not overlap a, b, bias or scales";
            return Err(to_python(Error::argument("out", "an array", limit)));
        }
        // One product: the library looks for overlaps more closely.
        On::Gpu(_) => return out.check_in_place("out").map(|()| (out, None)),
        _ if !out.is_regular || out.dims.has_negative_stride() => false,
        On::Copied(_) => is_dense(),
        On::Cpu => !overlaps(),
    };
    if is_fit {
        return Ok((out, None));
    }
    if !copies || !matches!(out.kind.module, Module::Numpy | Module::Torch) {
        out.check_in_place("out")?;
        let limit = match on {
            On::Copied(_) => "must have no gaps between its elements to be copied from a GPU",
            _ => "must not overlap a, b, bias or scales",
        };
        return Err(to_python(Error::argument("out", "an array", limit)));
    }
    let no_stream = || Device::cpu().stream().map(Arc::new).map_err(to_python);
    let made = empty(&out, out.dims.sizes(), out.dtype, no_stream)?;
    if is_read {
        copy_into(made.kind.module, &made.object, &out.object)?;
    }
    Ok((made, Some(out.object)))
}

/// Runs a product of arrays in host memory on the CPU device.
///
/// # Errors
/// Those of the product.
pub(crate) fn run_on_cpu(py: Python, product: &Product) -> PyResult<()> {
    let run = || {
        let stream = Device::cpu().stream()?;
        // SAFETY: the caller holds the arrays, whose memory their modules keep as long. It says
        // which of them are written; that other threads of Python leave them alone meanwhile is its
        // part, as for any function that releases the GIL.
        unsafe { product.launch(&stream, [None; ARRAYS]) }
    };
    py.detach(run).map_err(to_python)
}

/// Runs a product of arrays in host memory on a GPU.
///
/// # Errors
/// Those of the product.
pub(crate) fn run_copied(py: Python, product: &Product, index: usize) -> PyResult<()> {
    let stream = own_stream(py, index)?;
    // SAFETY: as in `run_on_cpu`.
    py.detach(|| unsafe { product.run_copied(&stream) }).map_err(to_python)
}

/// Queues a product of arrays on a GPU, the one with that index. `after`: the streams whose work so
/// far writes A, B, C, the bias and the scales.
///
/// # Errors
/// Those of the product.
pub(crate) fn launch(
    py: Python,
    product: &Product,
    (stream, index): (&Stream, usize),
    after: [Option<u64>; ARRAYS],
    waits: bool,
) -> PyResult<()> {
    // SAFETY: the arrays are in this GPU's memory. Their module frees them in the order of the
    // stream, or the product is waited for while the caller holds them.
    on_streams(py, (stream, index), after, waits, |after| unsafe { product.launch(stream, after) })
}

/// Queues work on a stream, which is given the streams of the handles `after`. `waits`: for it.
///
/// # Errors
/// Those of the work.
pub(crate) fn on_streams(
    py: Python,
    (stream, index): (&Stream, usize),
    after: [Option<u64>; ARRAYS],
    waits: bool,
    work: impl FnOnce([Option<&Stream>; ARRAYS]) -> gpu_gemm::Result<()> + Send,
) -> PyResult<()> {
    let mut streams = [const { None }; ARRAYS];
    for (stream, handle) in streams.iter_mut().zip(after) {
        *stream = handle.map(|handle| foreign_stream(py, index, handle)).transpose()?;
    }
    let after = streams;
    let run = || {
        let outcome = work(after.each_ref().map(Option::as_deref));
        // After an error, too: products of the same call may be running.
        let ended = if waits { stream.synchronize() } else { Ok(()) };
        outcome.and(ended)
    };
    py.detach(run).map_err(to_python)
}
