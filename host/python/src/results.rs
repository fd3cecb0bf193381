//! Arrays that this package makes: results, and copies of arrays that cannot be used where they
//! are.

use gpu_gemm::{Stream, Type};
use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyString, PyTuple},
};

use crate::{
    argument::refused,
    array::{Dims, Place},
    dlpack::{borrowed::Described, export::Array},
    failure::to_python,
    import::{self, Module, Operand},
};

/// A function of a module, looked up once.
macro_rules! function {
    ($py:expr, $module:literal, $name:literal) => {{
        static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        FUNCTION.import($py, $module, $name)
    }};
}

/// Nobody has written these arrays on a stream.
const NO_STREAM: fn(usize) -> PyResult<Option<u64>> = |_| Ok(None);

/// An array for the result, of the same module as `like`, not initialised. `stream`: the one that
/// writes it, or any of the CPU.
///
/// # Errors
/// Those of the module; `MemoryError`.
pub(crate) fn empty<'py>(
    like: &Operand<'py>,
    sizes: &[usize],
    dtype: Type,
    stream: impl FnOnce() -> PyResult<std::sync::Arc<Stream>>,
) -> PyResult<Operand<'py>> {
    let py = like.object.py();
    let shape = PyTuple::new(py, sizes)?;
    let object = match like.kind.module {
        Module::Numpy => {
            let dtype = match (dtype == like.dtype, like.object.getattr(intern!(py, "dtype"))?) {
                (false, _) => {
                    // NumPy knows these names once that module is imported.
                    if [Type::BF16, Type::E4M3, Type::E5M2].contains(&dtype) {
                        py.import(intern!(py, "ml_dtypes"))?;
                    }
                    PyString::new(py, dtype.numpy()).into_any()
                }
                (true, own) if like.is_regular => own,
                (true, own) => own.call_method1(intern!(py, "newbyteorder"), ("=",))?,
            };
            function!(py, "numpy", "empty")?.call1((shape, dtype))?
        }
        Module::Torch => {
            let options = PyDict::new(py);
            if dtype != like.dtype {
                let of = py.import(intern!(py, "torch"))?.getattr(dtype.numpy())?;
                options.set_item(intern!(py, "dtype"), of)?;
            }
            let new_empty = intern!(py, "new_empty");
            like.object.get_type().call_method(new_empty, (&like.object, shape), Some(&options))?
        }
        Module::Cupy => {
            let dtype = match dtype == like.dtype {
                true => like.object.getattr(intern!(py, "dtype"))?,
                false => PyString::new(py, dtype.numpy()).into_any(),
            };
            let device = like.object.getattr(intern!(py, "device"))?;
            device.call_method0(intern!(py, "__enter__"))?;
            let made = function!(py, "cupy", "empty")?.call1((shape, dtype));
            let none = py.None();
            device.call_method1(intern!(py, "__exit__"), (&none, &none, &none))?;
            made?
        }
        Module::Jax | Module::Other => {
            let dims = Dims::new("out", sizes, None).map_err(to_python)?;
            let (array, address) = Array::new(&*stream()?, dtype, like.place, sizes)?;
            let described = Described { address, dtype, dims, place: like.place };
            let mut operand =
                Operand::described(&Bound::new(py, array)?.into_any(), like.kind, described);
            operand.is_read_only = false;
            return Ok(operand);
        }
    };
    let made = import::array("out", &object, &NO_STREAM, true)?;
    made.check_made(dtype, like.place, sizes)?;
    made.dims.check_written(dtype.bytes()).map_err(to_python)?;
    Ok(made)
}

/// How a result becomes an array of the module that `a` is from.
pub(crate) enum Finish<'py> {
    /// It is one.
    As,
    /// NumPy's products of two vectors are numbers.
    Number,
    /// By the module's `from_dlpack`.
    FromDlpack(Bound<'py, PyAny>),
}

impl<'py> Finish<'py> {
    /// Looks it up, before there is a result.
    ///
    /// # Errors
    /// Those of the module; `TypeError` for a namespace without `from_dlpack`.
    pub(crate) fn new(like: &Bound<'py, PyAny>, module: Module, is_number: bool) -> PyResult<Self> {
        let py = like.py();
        match module {
            Module::Numpy if is_number => return Ok(Finish::Number),
            Module::Numpy | Module::Torch | Module::Cupy => return Ok(Finish::As),
            Module::Jax | Module::Other => {}
        }
        let Some(namespace) = like.getattr_opt(intern!(py, "__array_namespace__"))? else {
            return Ok(Finish::As);
        };
        let namespace = namespace.call0()?;
        let made = namespace.getattr(intern!(py, "from_dlpack"));
        made.map(Finish::FromDlpack).map_err(|cause| {
            let limit = "must have from_dlpack, which makes the result";
            refused("a.__array_namespace__()", &namespace, cause, limit)
        })
    }

    /// The result as its caller gets it.
    ///
    /// # Errors
    /// Those of the module.
    pub(crate) fn of(self, out: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Finish::As => Ok(out),
            Finish::Number => out.get_item(PyTuple::empty(out.py())),
            Finish::FromDlpack(from_dlpack) => from_dlpack.call1((out,)),
        }
    }
}

/// A contiguous copy of an array in host memory, in the machine's order of bytes. `None`: its
/// module has no such function here.
///
/// # Errors
/// Those of the module.
pub(crate) fn contiguous<'py>(
    name: &'static str,
    of: &Operand<'py>,
) -> PyResult<Option<Operand<'py>>> {
    let py = of.object.py();
    let copy = match (of.kind.module, of.place) {
        (Module::Numpy, _) => {
            let dtype = of.object.getattr(intern!(py, "dtype"))?;
            let dtype = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
            // `ascontiguousarray` gives an array back that is contiguous but not aligned.
            let options = PyDict::new(py);
            options.set_item(intern!(py, "order"), "C")?;
            function!(py, "numpy", "array")?.call((&of.object, dtype), Some(&options))?
        }
        (Module::Torch, Place::Host) => {
            of.object.get_type().call_method1(intern!(py, "contiguous"), (&of.object,))?
        }
        _ => return Ok(None),
    };
    let made = import::array(name, &copy, &NO_STREAM, false)?;
    made.check_made(of.dtype, of.place, of.dims.sizes())?;
    Ok(Some(made))
}

/// Copies one array into another, of the same module and shape, in host memory.
///
/// # Errors
/// Those of the module.
pub(crate) fn copy_into(
    module: Module,
    to: &Bound<'_, PyAny>,
    from: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = to.py();
    match module {
        Module::Torch => to.call_method1(intern!(py, "copy_"), (from,))?,
        _ => function!(py, "numpy", "copyto")?.call1((to, from))?,
    };
    Ok(())
}
