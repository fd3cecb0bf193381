//! Products that are checked once and run many times.

use gpu_gemm::Stream;
use pyo3::{exceptions::PyRuntimeError, intern, prelude::*};

use std::{sync::Arc, time::Instant};

use crate::{
    call::{On, Ready, launch, run_copied, run_on_cpu},
    device::check_fork,
    dlpack::borrowed::Borrowed,
    failure::to_python,
    import::{Kind, Module},
    product::Product,
    streams::{handle, select},
};

/// A product whose arguments were checked. A call runs it again, on the same arrays.
#[pyclass(frozen, module = "gpu_gemm")]
pub(crate) struct Prepared {
    product: Product,
    on: On,
    kind: Kind,
    /// A, B and the bias: they keep the memory.
    inputs: Vec<Py<PyAny>>,
    out: Py<PyAny>,
    _borrowed: Vec<Borrowed>,
}

impl Prepared {
    pub(crate) fn new(ready: Ready) -> PyResult<Self> {
        let Ready { product, on, a, b, c, bias, .. } = ready;
        if c.kind.module == Module::Jax {
            let message = "out: JAX's arrays cannot be written. Call matmul, which makes a new one";
            return Err(PyRuntimeError::new_err(message));
        }
        let kind = a.kind;
        let mut borrowed = Vec::new();
        let mut inputs = Vec::new();
        for operand in [Some(a), Some(b), bias].into_iter().flatten() {
            inputs.push(operand.object.unbind());
            borrowed.extend(operand.borrowed);
        }
        borrowed.extend(c.borrowed);
        let out = c.object.unbind();
        Ok(Prepared { product, on, kind, inputs, out, _borrowed: borrowed })
    }

    /// Refuses tensors of PyTorch's that were moved: a program may give a tensor other memory.
    fn check_addresses(&self, py: Python) -> PyResult<()> {
        if self.kind.module != Module::Torch {
            return Ok(());
        }
        let [a, b, c] = self.product.addresses;
        let tensors = [("a", self.inputs.first(), a), ("b", self.inputs.get(1), b)];
        let bias = self.product.bias.map_or(0, |bias| bias.address);
        let rest = [("bias", self.inputs.get(2), bias), ("out", Some(&self.out), c)];
        for (name, tensor, address) in tensors.into_iter().chain(rest) {
            if let Some(tensor) = tensor
                && tensor.call_method0(py, intern!(py, "data_ptr"))?.extract::<u64>(py)? != address
            {
                let message = format!("{name} has other memory than when the product was prepared");
                return Err(PyRuntimeError::new_err(message));
            }
        }
        Ok(())
    }

    fn stream(
        &self,
        py: Python,
        index: usize,
        explicit: Option<u64>,
    ) -> PyResult<(Arc<Stream>, bool)> {
        select(py, self.kind, index, explicit)
    }
}

#[pymethods]
impl Prepared {
    /// Runs the product, and returns `out`.
    #[pyo3(signature = (*, stream=None))]
    fn __call__(&self, py: Python, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let explicit = stream.map(handle).transpose()?;
        self.check_addresses(py)?;
        match self.on {
            On::Cpu => run_on_cpu(py, &self.product)?,
            On::Copied(index) => run_copied(py, &self.product, index)?,
            On::Gpu(index) => {
                let (stream, waits) = self.stream(py, index, explicit)?;
                launch(py, &self.product, &stream, [const { None }; 4], waits)?;
            }
        }
        Ok(self.out.clone_ref(py))
    }

    /// The array with the result.
    #[getter]
    fn out(&self, py: Python) -> Py<PyAny> {
        self.out.clone_ref(py)
    }

    /// Nanoseconds that the library's call takes, without Python: of `calls` calls in a row, each. For benchmarks.
    fn _library_ns(&self, py: Python, calls: usize) -> PyResult<Vec<u64>> {
        check_fork()?;
        let On::Gpu(index) = self.on else {
            return Err(PyRuntimeError::new_err("the arrays are in host memory"));
        };
        let (stream, _) = self.stream(py, index, None)?;
        let run = || {
            (0..calls)
                .map(|_| {
                    let start = Instant::now();
                    // SAFETY: as in `launch`.
                    unsafe { self.product.launch(&stream, [None; 4]) }?;
                    Ok(start.elapsed().as_nanos() as u64)
                })
                .collect::<gpu_gemm::Result<Vec<_>>>()
        };
        py.detach(run).map_err(to_python)
    }
}
