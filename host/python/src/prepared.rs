//! Products that are checked once and run many times.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    gc::{PyTraverseError, PyVisit},
    intern,
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::{
    array::shown,
    call::{On, Ready, launch, no_stream, run_copied, run_on_cpu},
    device::check_fork,
    dlpack::borrowed::{Borrowed, Described},
    failure::to_python,
    import::{self, Kind, Module, Operand, written},
    product::{ARRAYS, NAMES, Product},
    streams::{Queue, handle, record_on_torch},
};

/// A product whose arguments were checked: `gpu_gemm.prepare` makes it. It keeps the arrays.
///
/// product(*, stream=None) computes it again from what the arrays hold then, and returns `out`. It
/// runs on the stream that is current for the arrays' module, or on `stream`, after what the arrays
/// say they wait for.
///
/// RuntimeError: an array has other memory, another shape or other elements than when the product
/// was prepared.
#[pyclass(frozen, module = "gpu_gemm")]
pub(crate) struct Prepared {
    /// `None`: Python has found the object in a cycle of garbage. Locked for no longer than a copy
    /// of the pointer takes.
    state: Mutex<Option<Arc<State>>>,
}

/// What a prepared product keeps.
struct State {
    /// Keep memory of `arrays`, and are given back before these.
    _borrowed: Vec<Borrowed>,
    /// A, B, C, the bias, and the scales of A and of B.
    arrays: [Option<Argument>; ARRAYS],
    product: Product,
    on: On,
    /// Of A.
    kind: Kind,
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
    /// Those of its module; `RuntimeError` for an array that has changed, also into none that is
    /// an operand.
    fn read<'py>(&self, py: Python<'py>, queue: &Queue) -> PyResult<Operand<'py>> {
        let ready_on = |index| queue.handle(py, index);
        let now = import::array(self.name, self.array.bind(py), &ready_on, true);
        let now = now.map_err(|error| self.no_operand(py, error))?;
        self.check_same(&now)?;
        Ok(now)
    }

    /// Refuses an array that has changed, if it is NumPy's, a tensor of PyTorch's or has a table of
    /// functions. The result keeps NumPy's memory.
    ///
    /// # Errors
    /// As of `read`.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Option<Operand<'py>>> {
        let array = self.array.bind(py);
        // SAFETY: `Prepared::new` found the kind by this object. A type that is assigned to
        // `__class__` later has the same layout.
        if unsafe { import::is_unchanged(array, self.kind, &self.was) } == Some(true) {
            return Ok(None);
        }
        let now = import::again(self.name, array).map_err(|error| self.no_operand(py, error))?;
        if let Some(now) = &now {
            self.check_same(now)?;
        }
        Ok(now)
    }

    fn check_same(&self, operand: &Operand) -> PyResult<()> {
        let (Argument { name, was, .. }, now) = (self, &operand.as_described());
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
            let [now, was] = [now, was].map(|operand| operand.dtype.numpy());
            return Err(self.changed(format!("dtype = {now}"), as_before(was.to_owned())));
        }
        if now.place != was.place {
            return Err(
                self.changed(format!("device = {}", now.place), as_before(was.place.to_string()))
            );
        }
        if operand.is_read_only && *name == "out" {
            return Err(self.changed("read-only", "must be writable".to_owned()));
        }
        if !operand.is_regular {
            let limit = "must be aligned, in the machine's order of bytes".to_owned();
            return Err(self.changed("elements", limit));
        }
        Ok(())
    }

    /// The error for an array that was an operand, and is none any more.
    fn no_operand(&self, py: Python, cause: PyErr) -> PyErr {
        let is_of_value =
            cause.is_instance_of::<PyTypeError>(py) || cause.is_instance_of::<PyValueError>(py);
        if !is_of_value {
            return cause;
        }
        let message = format!("{}: changed after the product was prepared", cause.value(py));
        let error = PyRuntimeError::new_err(message);
        error.set_cause(py, Some(cause));
        error
    }

    fn changed(&self, what: impl Display, limit: String) -> PyErr {
        PyRuntimeError::new_err(format!("{}.{what}: {limit}", self.name))
    }
}

impl Prepared {
    pub(crate) fn new(ready: Ready) -> PyResult<Self> {
        let Ready { product, on, a, b, c, bias, scales, .. } = ready;
        if c.kind.module == Module::Jax {
            let message = "out: JAX's arrays cannot be written. Call matmul, which makes a new one";
            return Err(PyRuntimeError::new_err(message));
        }
        let kind = a.kind;
        let mut borrowed = Vec::new();
        let mut arrays = [const { None }; ARRAYS];
        let [of_a, of_b] = scales.map_or([None, None], |of| of.map(Some));
        let operands = [Some(a), Some(b), Some(c), bias, of_a, of_b];
        for ((array, name), operand) in arrays.iter_mut().zip(NAMES).zip(operands) {
            let Some(operand) = operand else { continue };
            // A result's kind is that of A, which may not be that of its own type.
            let (kind, was) = (Kind::of(name, &operand.object)?, operand.as_described());
            borrowed.extend(operand.borrowed);
            *array = Some(Argument { name, array: operand.object.unbind(), kind, was });
        }
        let state = State { _borrowed: borrowed, arrays, product, on, kind };
        Ok(Prepared { state: Mutex::new(Some(Arc::new(state))) })
    }

    /// Gives the type its `__call__`, if it has none yet: the type is the process's, and the module
    /// may be imported again. One that is written as such has no signature that Python can show, or
    /// compare with the stubs.
    ///
    /// # Errors
    /// Those of Python.
    pub(crate) fn set_up(py: Python) -> PyResult<()> {
        let (of, name) = (py.get_type::<Prepared>(), intern!(py, "_call"));
        if let Some(call) = of.getattr_opt(name)? {
            of.setattr(intern!(py, "__call__"), call)?;
            of.delattr(name)?;
        }
        Ok(())
    }

    /// What it keeps. A call has it to its end, whatever happens to the object meanwhile.
    ///
    /// # Errors
    /// `RuntimeError` if Python has collected it.
    fn state(&self) -> PyResult<Arc<State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        state.ok_or_else(|| {
            PyRuntimeError::new_err("the product was collected: nothing but a cycle has kept it")
        })
    }
}

/// Refuses arguments that a call does not know, as Python does.
fn check_unknown(
    arguments: &Bound<'_, PyTuple>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    const NAME: &str = "Prepared.__call__()";
    if !arguments.is_empty() {
        let given = arguments.len() + 1;
        let message = format!("{NAME} takes 1 positional argument but {given} were given");
        return Err(PyTypeError::new_err(message));
    }
    match options.and_then(|options| options.keys().iter().next()) {
        Some(name) => {
            let message = format!("{NAME} got an unexpected keyword argument '{name}'");
            Err(PyTypeError::new_err(message))
        }
        None => Ok(()),
    }
}

impl State {
    /// The array with the result.
    fn result(&self, py: Python) -> Py<PyAny> {
        self.arrays[2].as_ref().map_or_else(|| py.None(), |out| out.array.clone_ref(py))
    }

    /// The tensors of PyTorch's.
    fn tensors(&self) -> impl Iterator<Item = &Argument> {
        self.arrays.iter().flatten().filter(|argument| argument.kind.module == Module::Torch)
    }

    /// Refuses arrays that have changed: a program may give an array other memory, or another
    /// shape. Tells PyTorch of the write. The result keeps NumPy's memory.
    fn check_arrays<'py>(&self, py: Python<'py>) -> PyResult<[Option<Operand<'py>>; ARRAYS]> {
        let mut kept = [const { None }; ARRAYS];
        for (kept, argument) in kept.iter_mut().zip(&self.arrays) {
            if let Some(argument) = argument {
                *kept = argument.check(py)?;
            }
        }
        if let Some(out) = self.tensors().find(|tensor| tensor.name == "out") {
            written(out.array.bind(py))?;
        }
        Ok(kept)
    }

    /// Queues the product on a GPU.
    fn launch(&self, py: Python, index: usize, explicit: Option<u64>) -> PyResult<()> {
        let queue = Queue::new(self.kind, explicit);
        let stream = queue.stream(py, index)?;
        // CuPy's say its current stream, which is this one if none is named.
        let is_on_current =
            |module| explicit.is_none() && [module, self.kind.module] == [Module::Cupy; 2];
        let mut now = [const { None }; ARRAYS];
        for (now, argument) in now.iter_mut().zip(&self.arrays) {
            if let Some(argument) = argument
                && argument.kind.says_when_ready()
                && !is_on_current(argument.kind.module)
            {
                *now = Some(argument.read(py, &queue)?);
            }
        }
        let mut arrays = [None; ARRAYS];
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
    /// Runs the product, and returns `out`. [`Prepared::set_up`] makes it the type's `__call__`,
    /// which errors name: so it takes what it does not know.
    #[pyo3(
        signature = (*arguments, stream=None, **options),
        text_signature = "($self, /, *, stream=None)"
    )]
    fn _call(
        &self,
        py: Python,
        arguments: &Bound<'_, PyTuple>,
        stream: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        check_unknown(arguments, options)?;
        let state = self.state()?;
        let explicit = stream.map(handle).transpose()?;
        if let Some(handle) = explicit
            && !matches!(state.on, On::Gpu(_))
        {
            return Err(no_stream(handle));
        }
        // Other code of Python runs before this or not at all.
        let _kept = state.check_arrays(py)?;
        match state.on {
            On::Cpu => run_on_cpu(py, &state.product)?,
            On::Copied(index) => run_copied(py, &state.product, index)?,
            On::Gpu(index) => state.launch(py, index, explicit)?,
        }
        Ok(state.result(py))
    }

    /// The array with the result.
    #[getter]
    fn out(&self, py: Python) -> PyResult<Py<PyAny>> {
        Ok(self.state()?.result(py))
    }

    /// Shows Python's collector of garbage the arrays, which may lead back here.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector runs with the GIL, and nobody gives it away while the lock is taken.
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        let arrays = state.iter().flat_map(|state| state.arrays.iter().flatten());
        arrays.into_iter().try_for_each(|argument| visit.call(&argument.array))
    }

    /// Lets go of the arrays.
    fn __clear__(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(state);
    }

    /// Nanoseconds that the library's call takes, without Python: of `calls` calls in a row, each.
    /// For benchmarks.
    fn _library_ns(&self, py: Python, calls: usize) -> PyResult<Vec<u64>> {
        check_fork()?;
        let state = self.state()?;
        let On::Gpu(index) = state.on else {
            return Err(PyRuntimeError::new_err("the arrays are in host memory"));
        };
        let _kept = state.check_arrays(py)?;
        let stream = Queue::new(state.kind, None).stream(py, index)?;
        let run = || {
            (0..calls)
                .map(|_| {
                    let start = Instant::now();
                    // SAFETY: as in `launch`.
                    unsafe { state.product.launch(&stream, [None; ARRAYS]) }?;
                    Ok(start.elapsed().as_nanos() as u64)
                })
                .collect::<gpu_gemm::Result<Vec<_>>>()
        };
        py.detach(run).map_err(to_python)
    }
}
