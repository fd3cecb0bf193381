//! The Python package `gpu_gemm`: its native module.
//!
//! `argument` reads what is no array. `call` checks the arguments of a product, and runs it.
//! `import` reads Python's arrays, `shape` is `numpy.matmul`'s rules, `product` calls the library.
//! `laboratory` and `reports` show the built-in kernels.

mod argument;
mod array;
mod call;
mod device;
mod dlpack;
mod failure;
mod import;
mod interrupt;
mod laboratory;
mod prepared;
mod product;
mod quantise;
mod reports;
mod results;
mod shape;
mod streams;
mod tuning;

use pyo3::{exceptions::PyImportError, ffi, prelude::*};

/// Refuses an interpreter besides the main one: types and caches are the process's, and objects
/// of one interpreter are none of another.
fn check_interpreter(py: Python) -> PyResult<()> {
    // SAFETY: the thread is attached to an interpreter, which exists meanwhile.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match id {
        0 => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "gpu_gemm serves no subinterpreters: import it in the main interpreter of a process",
        )),
    }
}

/// Products of arrays by kernels written in Rust.
#[pymodule]
mod _native {
    use gpu_gemm::{
        Activation, Compute, Device, Granularity, TuningCache, Type, gpu::registry::Entry,
    };
    use pyo3::prelude::*;

    /// The package's version, as Cargo has it.
    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name.
    const __version__: &str = env!("CARGO_PKG_VERSION");

    use crate::{
        argument,
        array::Place,
        call::{Options, Ready},
        device,
        dlpack::export::Array,
        failure::to_python,
        prepared::Prepared,
        reports::{Check, Profile},
        streams::handle,
    };

    /// Python runs it for each module of the process: an import is another one after its entry in
    /// `sys.modules` was removed.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Before there are types, which belong to one interpreter.
        crate::check_interpreter(module.py())?;
        module.add_class::<Array>()?;
        module.add_class::<Check>()?;
        module.add_class::<Prepared>()?;
        module.add_class::<Profile>()?;
        Prepared::set_up(module.py())
    }

    /// The matrix product activation(alpha a b + beta out + bias), by shapes as numpy.matmul.
    ///
    /// The result is `out`, or a new array of the module that `a` is from: NumPy, PyTorch, CuPy,
    /// JAX, or any with __dlpack__ or __cuda_array_interface__. Types are float64, float32,
    /// float16, bfloat16, int8, float8_e4m3fn and float8_e5m2, and nothing is converted.
    ///
    /// Arguments
    ///   a: (.., m, k), or (k,).
    ///   b: (.., k, n), or (k,). Its type and its memory are those of a. Leading dimensions are
    ///     broadcast.
    ///   out: the result's shape; nothing is broadcast to it. Its type is that of a, or float32
    ///     where a has 16 bits. Where a is int8 it is int32: exact, modulo 2^32. Where a has
    ///     8 bits it may be float32, bfloat16 or float16.
    ///   out_dtype: the type of a result without out: its name, or a dtype. None: that of a, or
    ///     float32 where a is of 8-bit floats, or int32 where it is int8 and there are no scales.
    ///   alpha: a factor.
    ///   beta: the factor of the old elements of out, which are not read where it is 0.
    ///   bias: (n,) or (1, n), added to each row, or (m, 1), added to each column. (m,) where b is
    ///     a vector. Its type is the result's.
    ///   activation: None, "relu", "gelu", "gelu_tanh" (PyTorch's gelu with approximate="tanh") or
    ///     "silu".
    ///   compute: None for the arithmetic of the type. For float32 also "tf32", which is less
    ///     precise, or "bf16x6" and "f16x3", which emulate float32.
    ///   invariant: True for the same bits of a row of the result, whatever other rows and leading
    ///     dimensions there are.
    ///   tune: True to time a few kernels in the first product of these shapes, and to take the
    ///     fastest from then on. The path of a file to keep the answers there, for later processes.
    ///   stream: for arrays on a GPU: a handle, or a stream of PyTorch, of CuPy or with
    ///     __cuda_stream__. None: the stream that is current for the module of a.
    ///   device: for arrays in host memory: "cpu", "cuda", or "cuda:" and an index. None: the
    ///     first GPU, or without one the CPU.
    ///
    /// Arrays on a GPU are used where they are. There it is an error, and no copy, if an array has
    /// a negative stride or elements at odd addresses, if a bias has gaps, or if out overlaps an
    /// operand. Strides in messages count elements, and not bytes as NumPy's.
    ///
    /// Errors
    ///   TypeError: no array, another type of elements, or an argument of another type.
    ///   ValueError: shapes, strides, devices or values that do not fit. It names the argument,
    ///     its value and the limit.
    ///   RuntimeError: a tensor of PyTorch that requires a gradient, except under torch.no_grad():
    ///     none is recorded, so pass its .detach(). Failures of the driver.
    ///   MemoryError: too little memory.
    #[pyfunction]
    #[pyo3(signature = (a, b, *, out=None, out_dtype=None, alpha=1.0, beta=0.0, bias=None, activation=None, compute=None, invariant=false, tune=None, stream=None, device=None))]
    fn matmul<'py>(
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::out_dtype)] out_dtype: Option<Type>,
        #[pyo3(from_py_with = argument::alpha)] alpha: f64,
        #[pyo3(from_py_with = argument::beta)] beta: f64,
        bias: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::activation)] activation: Option<Activation>,
        #[pyo3(from_py_with = argument::compute)] compute: Option<Compute>,
        #[pyo3(from_py_with = argument::invariant)] invariant: bool,
        #[pyo3(from_py_with = argument::tune)] tune: Option<&'static TuningCache>,
        stream: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::device)] device: Option<Place>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = stream.map(handle).transpose()?;
        let options = Options {
            scales: [None; 2],
            out,
            out_dtype,
            alpha,
            beta,
            bias,
            activation,
            compute,
            invariant,
            tune,
            stream,
            device,
        };
        options.multiplied(py, a, b)
    }

    /// The matrix product activation(alpha (scale_a a) (scale_b b) + beta out + bias) of 8-bit
    /// numbers with their scales.
    ///
    /// Arguments
    ///   a: (.., m, k), of float8_e4m3fn, float8_e5m2 or int8. Scales of blocks are for floats.
    ///   b: (.., k, n), of the same type.
    ///   scale_a: what a is multiplied by, of float32, in the memory of a, with any strides. (1, 1)
    ///     is one for all, (.., m, 1) one for each row, and (.., m, k / 128), rounded up, one for
    ///     each 1 x 128.
    ///   scale_b: (1, 1) is one for all of b, (.., 1, n) one for each column, and
    ///     (.., k / 128, n / 128), rounded up, one for each 128 x 128. If the one is of blocks, so
    ///     is the other. Leading dimensions are broadcast.
    ///   out, out_dtype, alpha, beta, bias, activation, invariant, tune, stream, device: of matmul.
    /// Of float8 a GPU is one of Hopper. With scales of blocks the rows of out are contiguous.
    ///
    /// Errors
    ///   Those of matmul.
    #[pyfunction]
    #[pyo3(signature = (a, b, scale_a, scale_b, *, out=None, out_dtype=None, alpha=1.0, beta=0.0, bias=None, activation=None, invariant=false, tune=None, stream=None, device=None))]
    fn scaled_matmul<'py>(
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        scale_a: &Bound<'py, PyAny>,
        scale_b: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::out_dtype)] out_dtype: Option<Type>,
        #[pyo3(from_py_with = argument::alpha)] alpha: f64,
        #[pyo3(from_py_with = argument::beta)] beta: f64,
        bias: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::activation)] activation: Option<Activation>,
        #[pyo3(from_py_with = argument::invariant)] invariant: bool,
        #[pyo3(from_py_with = argument::tune)] tune: Option<&'static TuningCache>,
        stream: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::device)] device: Option<Place>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = stream.map(handle).transpose()?;
        let options = Options {
            scales: [Some(scale_a), Some(scale_b)],
            out,
            out_dtype,
            alpha,
            beta,
            bias,
            activation,
            compute: None,
            invariant,
            tune,
            stream,
            device,
        };
        options.multiplied(py, a, b)
    }

    /// An array rounded to 8 bits, and its scales: (q, scales), which scaled_matmul takes.
    ///
    /// An element of q stands for itself times its scale. A scale is the greatest finite magnitude
    /// of its elements over the largest number of the type, at least 2^-63, and 1 where all are
    /// zero. q is rounded to the nearest, of two to the even one. NaN and infinities have no part
    /// in a scale: they are NaN in q, and in int8 0 and 127 or -127. What is in host memory is
    /// rounded by the CPU.
    ///
    /// Arguments
    ///   x: (m, k), of float32, bfloat16 or float16. On a GPU its rows are contiguous.
    ///   scales: "rows" for (m, 1), one for each row; "1x128" for (m, k / 128), rounded up, one for
    ///     each 1 x 128; "128x128" for (m / 128, k / 128), rounded up, one for each 128 x 128.
    ///   dtype: the type of q: float8_e4m3fn, float8_e5m2 or int8, by its name or as a dtype.
    ///     NumPy's floats of 8 bits are of ml_dtypes, which must be installed.
    ///   stream: of matmul.
    /// For b of scaled_matmul, round its transpose, on a GPU a contiguous copy of it, and pass q.T
    /// and scales.T.
    ///
    /// Errors
    ///   Those of matmul.
    #[pyfunction]
    #[pyo3(signature = (x, scales, dtype, *, stream=None))]
    fn quantise<'py>(
        x: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::scales)] scales: Granularity,
        #[pyo3(from_py_with = argument::type_of_8_bits)] dtype: Type,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let stream = stream.map(handle).transpose()?;
        let [q, scales] = crate::quantise::quantised(x, scales, dtype, stream)?;
        Ok((q, scales))
    }

    /// A product of these arrays, to be run many times: its arguments are checked once.
    ///
    /// A call of the result, product(*, stream=None), multiplies what a, b and bias hold then, into
    /// out, and returns out. It keeps the arrays.
    ///
    /// Arguments
    ///   a, b, out, out_dtype, alpha, beta, bias, activation, compute, invariant, tune, device: as
    ///     of matmul.
    ///     Without out the result has an array of its own, product.out.
    ///   scale_a, scale_b: as of scaled_matmul, both or none.
    ///
    /// Errors
    ///   Those of matmul. What matmul would copy is a ValueError. JAX's arrays cannot be written,
    ///     so they are a RuntimeError.
    #[pyfunction]
    #[pyo3(signature = (a, b, *, scale_a=None, scale_b=None, out=None, out_dtype=None, alpha=1.0, beta=0.0, bias=None, activation=None, compute=None, invariant=false, tune=None, device=None))]
    fn prepare<'py>(
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        scale_a: Option<&Bound<'py, PyAny>>,
        scale_b: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::out_dtype)] out_dtype: Option<Type>,
        #[pyo3(from_py_with = argument::alpha)] alpha: f64,
        #[pyo3(from_py_with = argument::beta)] beta: f64,
        bias: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::activation)] activation: Option<Activation>,
        #[pyo3(from_py_with = argument::compute)] compute: Option<Compute>,
        #[pyo3(from_py_with = argument::invariant)] invariant: bool,
        #[pyo3(from_py_with = argument::tune)] tune: Option<&'static TuningCache>,
        #[pyo3(from_py_with = argument::device)] device: Option<Place>,
    ) -> PyResult<Prepared> {
        let stream = None;
        let options = Options {
            scales: [scale_a, scale_b],
            out,
            out_dtype,
            alpha,
            beta,
            bias,
            activation,
            compute,
            invariant,
            tune,
            stream,
            device,
        };
        Prepared::new(Ready::new(a, b, &options, false)?)
    }

    /// The device of arrays in host memory where none is named, and why it is no GPU: ("cuda:0",
    /// None) or ("cpu", reason).
    #[pyfunction]
    fn default_device(py: Python) -> PyResult<(String, Option<String>)> {
        let best = device::best(py)?;
        Ok((best.device.name(), best.why_no_gpu.clone()))
    }

    /// The devices: a list of names and descriptions. The CPU is the first, "cpu", and each GPU
    /// follows, "cuda:0" and so on.
    #[pyfunction]
    fn devices(py: Python) -> PyResult<Vec<(String, String)>> {
        device::check_fork()?;
        let mut found = vec![("cpu".to_owned(), Device::cpu().description())];
        let count = py.detach(Device::cuda_count).unwrap_or(0);
        for index in 0..count {
            let own = device::own_stream(py, index)?;
            found.push((own.device().name(), own.device().description()));
        }
        Ok(found)
    }

    /// The kernels of products: a list of names and summaries. `check` takes the names, and
    /// `profile` those of the course and of float32.
    #[pyfunction]
    fn kernels() -> Vec<(&'static str, &'static str)> {
        crate::laboratory::kernels().map(|entry| (entry.name(), entry.summary)).collect()
    }

    /// Runs a built-in kernel on the CPU with every access checked, in some orders of blocks, warps
    /// and lanes.
    ///
    /// Arguments
    ///   kernel: a name of kernels().
    ///   m, n, k: the sizes of C (m, n) = A (m, k) B (k, n), at most 256 each.
    ///   orders: how many orders, 1 to 10000: ascending, descending, and random ones.
    ///
    /// Errors
    ///   TypeError, ValueError: an unknown kernel, or a number outside of these limits.
    #[pyfunction]
    #[pyo3(signature = (kernel, m=64, n=64, k=64, *, orders=3))]
    fn check(
        py: Python,
        #[pyo3(from_py_with = argument::kernel)] kernel: &'static Entry,
        #[pyo3(from_py_with = argument::m)] m: u64,
        #[pyo3(from_py_with = argument::n)] n: u64,
        #[pyo3(from_py_with = argument::k)] k: u64,
        #[pyo3(from_py_with = argument::orders)] orders: u32,
    ) -> PyResult<Check> {
        Check::new(py, kernel, [m, n, k], orders)
    }

    /// Counts the accesses of a built-in kernel on the CPU: of one block in `every`, for each line
    /// of its source.
    ///
    /// Arguments
    ///   kernel: a name of kernels(), of a lesson or of a kernel of float32 on CUDA cores and not
    ///     by TMA. Others are checked, and not counted.
    ///   m, n, k: the sizes of C (m, n) = A (m, k) B (k, n), at most 256 each.
    ///   every: 1 counts all blocks, 2 every second one, and so on.
    ///
    /// Errors
    ///   TypeError, ValueError: an unknown kernel, one that is not counted, or a number outside of
    ///     these limits.
    #[pyfunction]
    #[pyo3(signature = (kernel, m=64, n=64, k=64, *, every=1))]
    fn profile(
        py: Python,
        #[pyo3(from_py_with = argument::counted_kernel)] kernel: &'static Entry,
        #[pyo3(from_py_with = argument::m)] m: u64,
        #[pyo3(from_py_with = argument::n)] n: u64,
        #[pyo3(from_py_with = argument::k)] k: u64,
        #[pyo3(from_py_with = argument::every)] every: u32,
    ) -> PyResult<Profile> {
        Profile::new(py, kernel, [m, n, k], every)
    }

    /// The number of GPUs, of which none is opened.
    #[pyfunction]
    fn _gpus(py: Python) -> usize {
        py.detach(Device::cuda_count).unwrap_or(0)
    }

    /// The number of tensors that other libraries have and have not given back, for tests.
    #[pyfunction]
    fn _lent() -> usize {
        crate::dlpack::export::lent()
    }

    /// Waits for the library's own stream of a GPU, for tests.
    #[pyfunction]
    fn _synchronize(py: Python, index: usize) -> PyResult<()> {
        let stream = device::own_stream(py, index)?;
        py.detach(|| stream.synchronize()).map_err(to_python)
    }
}
