//! Products that are checked once and run many times.

use gpu_gemm::Stream;
use pyo3::{exceptions::PyRuntimeError, intern, prelude::*};

use std::{sync::Arc, time::Instant};

use crate::{
    call::{On, Ready, launch, run_copied, run_on_cpu},
    device::check_fork,
    dlpack::borrowed::Borrowed,
    failure::to_python,
    import::{self, Kind, Module, Operand, written},
    product::Product,
    streams::{handle, record_on_torch, select},
};

/// A product whose arguments were checked: `gpu_gemm.prepare` makes it. It keeps the arrays.
///
/// product(*, stream=None) computes it again from what the arrays hold then, and returns `out`. It runs on the stream that is current for
/// the arrays' module, or on `stream`, after what the arrays say they wait for.
///
/// RuntimeError: an array has other memory than when the product was prepared.
#[pyclass(frozen, module = "gpu_gemm")]
pub(crate) struct Prepared {
    product: Product,
    on: On,
    /// Of A.
    kind: Kind,
    /// A, B, C and the bias: they keep the memory.
    arrays: [Option<Argument>; 4],
    _borrowed: Vec<Borrowed>,
}

/// An array of a prepared product.
struct Argument {
    name: &'static str,
    array: Py<PyAny>,
    module: Module,
    address: u64,
    /// Whether it says anew at each call what it waits for.
    says_when_ready: bool,
}

impl Argument {
    /// The array's memory, and what it waits for, now.
    ///
    /// # Errors
    /// Those of its module; `RuntimeError` for other memory.
    fn read<'py>(&self, py: Python<'py>, stream: Option<u64>) -> PyResult<Operand<'py>> {
        let now = import::array(self.name, self.array.bind(py), stream)?;
        self.check_address(now.address)?;
        Ok(now)
    }

    fn check_address(&self, now: u64) -> PyResult<()> {
        if now == self.address {
            return Ok(());
        }
        let message = format!("{} has other memory than when the product was prepared", self.name);
        Err(PyRuntimeError::new_err(message))
    }
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
        let mut argument = |name, operand: Operand| {
            borrowed.extend(operand.borrowed);
            let Operand { object, kind, address, .. } = operand;
            let (array, says_when_ready) = (object.unbind(), kind.says_when_ready());
            Argument { name, array, module: kind.module, address, says_when_ready }
        };
        let [a, b, c] = [("a", a), ("b", b), ("out", c)].map(|(name, it)| Some(argument(name, it)));
        let bias = bias.map(|bias| argument("bias", bias));
        Ok(Prepared { product, on, kind, arrays: [a, b, c, bias], _borrowed: borrowed })
    }

    /// The array with the result.
    fn result(&self, py: Python) -> Py<PyAny> {
        self.arrays[2].as_ref().map_or_else(|| py.None(), |out| out.array.clone_ref(py))
    }

    /// The tensors of PyTorch's.
    fn tensors(&self) -> impl Iterator<Item = &Argument> {
        self.arrays.iter().flatten().filter(|argument| argument.module == Module::Torch)
    }

    /// Refuses tensors of PyTorch's that were moved: a program may give a tensor other memory. Tells PyTorch of the write.
    fn check_tensors(&self, py: Python) -> PyResult<()> {
        for tensor in self.tensors() {
            let now = tensor.array.call_method0(py, intern!(py, "data_ptr"))?.extract(py)?;
            tensor.check_address(now)?;
        }
        let out = self.tensors().find(|tensor| tensor.name == "out");
        out.map_or(Ok(()), |out| written(out.array.bind(py)))
    }

    /// Queues the product on a GPU.
    fn launch(&self, py: Python, index: usize, explicit: Option<u64>) -> PyResult<()> {
        let (stream, waits) = self.stream(py, index, explicit)?;
        // CuPy's say its current stream, which is this one if none is named.
        let is_on_current =
            |module| explicit.is_none() && [module, self.kind.module] == [Module::Cupy; 2];
        let mut now = [const { None }; 4];
        for (now, argument) in now.iter_mut().zip(&self.arrays) {
            if let Some(argument) = argument
                && argument.says_when_ready
                && !is_on_current(argument.module)
            {
                *now = Some(argument.read(py, explicit)?);
            }
        }
        let after = now.each_ref().map(|now| now.as_ref().and_then(|now| now.ready_on));
        launch(py, &self.product, (&stream, index), after, waits)?;
        match explicit {
            Some(handle) => {
                record_on_torch(self.tensors().map(|it| it.array.bind(py)), index, handle)
            }
            None => Ok(()),
        }
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
        self.check_tensors(py)?;
        match self.on {
            On::Cpu => run_on_cpu(py, &self.product)?,
            On::Copied(index) => run_copied(py, &self.product, index)?,
            On::Gpu(index) => self.launch(py, index, explicit)?,
        }
        Ok(self.result(py))
    }

    /// The array with the result.
    #[getter]
    fn out(&self, py: Python) -> Py<PyAny> {
        self.result(py)
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
