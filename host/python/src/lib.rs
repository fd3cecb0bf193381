//! The Python package `gpu_gemm`: its native module.
//!
//! `call` checks the arguments of a product, and runs it. `import` reads Python's arrays, `shape` is `numpy.matmul`'s rules, `product` calls
//! the library. `laboratory` and `reports` show the built-in kernels.

mod array;
mod call;
mod device;
mod dlpack;
mod failure;
mod import;
mod laboratory;
mod prepared;
mod product;
mod reports;
mod results;
mod shape;
mod streams;

use pyo3::prelude::*;

/// Products of arrays by kernels written in Rust.
#[pymodule]
mod _native {
    use gpu_gemm::Device;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        dlpack::export::Array,
        prepared::Prepared,
        reports::{Check, Profile},
    };

    use crate::{
        call::{Options, Ready},
        device,
        failure::to_python,
        results::finished,
        streams::handle,
    };

    /// The matrix product `activation(alpha a b + beta out + bias)`.
    #[pyfunction]
    #[pyo3(signature = (a, b, *, out=None, alpha=1.0, beta=0.0, bias=None, activation=None, compute=None, stream=None, device=None))]
    fn matmul<'py>(
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        alpha: f64,
        beta: f64,
        bias: Option<&Bound<'py, PyAny>>,
        activation: Option<&str>,
        compute: Option<&str>,
        stream: Option<&Bound<'py, PyAny>>,
        device: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = stream.map(handle).transpose()?;
        let options = Options { out, alpha, beta, bias, activation, compute, stream, device };
        let ready = Ready::new(a, b, &options, true)?.run(py, stream)?;
        let (module, is_number) = (ready.a.kind.module, ready.is_number);
        let result = ready.result();
        match out {
            Some(_) => Ok(result),
            None => finished(a, module, result, is_number),
        }
    }

    /// A product of these arrays, to be run many times.
    #[pyfunction]
    #[pyo3(signature = (a, b, *, out=None, alpha=1.0, beta=0.0, bias=None, activation=None, compute=None, device=None))]
    fn prepare<'py>(
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        alpha: f64,
        beta: f64,
        bias: Option<&Bound<'py, PyAny>>,
        activation: Option<&str>,
        compute: Option<&str>,
        device: Option<&str>,
    ) -> PyResult<Prepared> {
        let stream = None;
        let options = Options { out, alpha, beta, bias, activation, compute, stream, device };
        Prepared::new(Ready::new(a, b, &options, false)?)
    }

    /// The device of arrays in host memory where none is named, and why it is no GPU.
    #[pyfunction]
    fn default_device(py: Python) -> PyResult<(String, Option<String>)> {
        let best = device::best(py)?;
        Ok((best.device.name(), best.why_no_gpu.clone()))
    }

    /// What the devices are: the CPU and each GPU, by its name.
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

    /// The kernels of products: name and summary.
    #[pyfunction]
    fn kernels() -> Vec<(&'static str, &'static str)> {
        crate::laboratory::kernels().map(|entry| (entry.name(), entry.summary)).collect()
    }

    /// Runs a built-in kernel on the CPU with every access checked, in some orders of blocks, warps and lanes.
    #[pyfunction]
    #[pyo3(signature = (kernel, m=64, n=64, k=64, *, orders=3))]
    fn check(py: Python, kernel: &str, m: u64, n: u64, k: u64, orders: u32) -> PyResult<Check> {
        Check::new(py, kernel, [m, n, k], orders)
    }

    /// Counts the accesses of a built-in kernel on the CPU: of one block in `every`, for each line of its source.
    #[pyfunction]
    #[pyo3(signature = (kernel, m=64, n=64, k=64, *, every=1))]
    fn profile(py: Python, kernel: &str, m: u64, n: u64, k: u64, every: u32) -> PyResult<Profile> {
        let every = std::num::NonZeroU32::new(every).ok_or_else(|| {
            to_python(gpu_gemm::Error::argument("every", 0, "must be at least 1"))
        })?;
        Profile::new(py, kernel, [m, n, k], every)
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
