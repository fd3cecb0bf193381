//! Products that are checked once and run many times.

use pyo3::{exceptions::PyRuntimeError, prelude::*};

use std::{fmt::Display, time::Instant};

use crate::{
    array::shown,
    call::{On, Ready, launch, run_copied, run_on_cpu},
    device::check_fork,
    dlpack::borrowed::{Borrowed, Described},
    failure::to_python,
    import::{self, Kind, Module, Operand, written},
    product::Product,
    streams::{Queue, handle, record_on_torch},
};

/// A product whose arguments were checked: `gpu_gemm.prepare` makes it. It keeps the arrays.
///
/// product(*, stream=None) computes it again from what the arrays hold then, and returns `out`. It runs on the stream that is current for
/// the arrays' module, or on `stream`, after what the arrays say they wait for.
///
/// RuntimeError: an array has other memory, another shape or other elements than when the product was prepared.
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
    kind: Kind,
    was: Described,
}

impl Argument {
    /// The array, and what it waits for, now.
    ///
    /// # Errors
    /// Those of its module; `RuntimeError` for an array that has changed.
    fn read<'py>(&self, py: Python<'py>, queue: &Queue) -> PyResult<Operand<'py>> {
        let ready_on = |index| queue.handle(py, index);
        let now = import::array(self.name, self.array.bind(py), &ready_on)?;
        self.check_same(&now.as_described())?;
        if now.is_read_only && self.name == "out" {
            return Err(self.changed("read-only", "must be writable".to_owned()));
        }
        Ok(now)
    }

    /// Refuses an array that has changed, if it is a tensor of PyTorch's or has a table of functions.
    ///
    /// # Errors
    /// As of `read`.
    fn check(&self, py: Python) -> PyResult<()> {
        let array = self.array.bind(py);
        // SAFETY: `Prepared::new` found the kind by this object. A type that is assigned to `__class__` later has the same layout.
        match unsafe { import::is_unchanged(array, self.kind, &self.was) } {
            Some(true) => Ok(()),
            None if self.kind.module != Module::Torch => Ok(()),
            _ => self.check_same(&import::described(self.name, array)?),
        }
    }

    fn check_same(&self, now: &Described) -> PyResult<()> {
        let Argument { name, was, .. } = self;
        let as_before = |was: String| format!("must be {was}, as when the product was prepared");
        if now.address != was.address {
            let message = format!("{name} has other memory than when the product was prepared");
            return Err(PyRuntimeError::new_err(message));
        }
        let [old, new] = [was, now].map(|it| (it.dims.sizes(), it.dims.strides()));
        if new.0 != old.0 {
            return Err(self.changed(format!("shape = {}", shown(new.0)), as_before(shown(old.0))));
        }
        if new.1 != old.1 {
            let value = format!("strides in elements = {:?}", new.1);
            return Err(self.changed(value, as_before(format!("{:?}", old.1))));
        }
        if now.dtype != was.dtype {
            return Err(
                self.changed(format!("dtype = {}", now.dtype), as_before(was.dtype.to_string()))
            );
        }
        if now.place != was.place {
            return Err(
                self.changed(format!("device = {}", now.place), as_before(was.place.to_string()))
            );
        }
        Ok(())
    }

    fn changed(&self, what: impl Display, limit: String) -> PyErr {
        PyRuntimeError::new_err(format!("{}.{what}: {limit}", self.name))
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
        let mut arrays = [const { None }; 4];
        let operands = [("a", Some(a)), ("b", Some(b)), ("out", Some(c)), ("bias", bias)];
        for (array, (name, operand)) in arrays.iter_mut().zip(operands) {
            let Some(operand) = operand else { continue };
            // A result's kind is that of A, which may not be that of its own type.
            let (kind, was) = (Kind::of(name, &operand.object)?, operand.as_described());
            borrowed.extend(operand.borrowed);
            *array = Some(Argument { name, array: operand.object.unbind(), kind, was });
        }
        Ok(Prepared { product, on, kind, arrays, _borrowed: borrowed })
    }

    /// The array with the result.
    fn result(&self, py: Python) -> Py<PyAny> {
        self.arrays[2].as_ref().map_or_else(|| py.None(), |out| out.array.clone_ref(py))
    }

    /// The tensors of PyTorch's.
    fn tensors(&self) -> impl Iterator<Item = &Argument> {
        self.arrays.iter().flatten().filter(|argument| argument.kind.module == Module::Torch)
    }

    /// Refuses tensors that have changed: a program may give a tensor other memory, or another shape. Tells PyTorch of the write.
    fn check_tensors(&self, py: Python) -> PyResult<()> {
        for argument in self.arrays.iter().flatten() {
            argument.check(py)?;
        }
        let out = self.tensors().find(|tensor| tensor.name == "out");
        out.map_or(Ok(()), |out| written(out.array.bind(py)))
    }

    /// Queues the product on a GPU.
    fn launch(&self, py: Python, index: usize, explicit: Option<u64>) -> PyResult<()> {
        let queue = Queue::new(self.kind, explicit);
        let stream = queue.stream(py, index)?;
        // CuPy's say its current stream, which is this one if none is named.
        let is_on_current =
            |module| explicit.is_none() && [module, self.kind.module] == [Module::Cupy; 2];
        let mut now = [const { None }; 4];
        for (now, argument) in now.iter_mut().zip(&self.arrays) {
            if let Some(argument) = argument
                && argument.kind.says_when_ready()
                && !is_on_current(argument.kind.module)
            {
                *now = Some(argument.read(py, &queue)?);
            }
        }
        let mut arrays = [None; 4];
        for ((array, argument), now) in arrays.iter_mut().zip(&self.arrays).zip(&now) {
            let ready_on = now.as_ref().and_then(|now| now.ready_on);
            *array = argument.as_ref().map(|argument| (argument.kind, ready_on));
        }
        let (after, waits) = queue.order(py, index, arrays)?;
        launch(py, &self.product, (&stream, index), after, waits)?;
        match explicit {
            Some(handle) => {
                record_on_torch(self.tensors().map(|it| it.array.bind(py)), index, handle)
            }
            None => Ok(()),
        }
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
        let stream = Queue::new(self.kind, None).stream(py, index)?;
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
