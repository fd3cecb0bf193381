//! The arguments that are no arrays. Each has a function of its name here, for `from_py_with`: its
//! errors name the argument, its value and the limit. They are `TypeError` for a value of another
//! type, and `ValueError` for one outside the limit.

use std::{borrow::Cow, fmt::Display, ops::RangeInclusive, path::PathBuf};

use gpu_gemm::{
    Activation, Compute, Error, Granularity, TuningCache, Type, gpu::registry::Entry,
    names::must_be_a_kernel_of, product::counted,
};
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyException, PyOverflowError, PyTypeError, PyValueError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyString},
};

use crate::{
    array::{Place, named, offered},
    failure::to_python,
    laboratory::{MOST_SIZE, kernels},
    tuning,
};

/// Functions that read the argument of their name.
macro_rules! arguments {
    ($($name:ident: $ty:ty = $read:ident($($limit:expr),*);)*) => {$(
        pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$ty> {
            $read(stringify!($name), value $(, $limit)*)
        }
    )*};
}

arguments! {
    alpha: f64 = number();
    beta: f64 = number();
    activation: Option<Activation> = one_of("must be None, 'relu', 'gelu', 'gelu_tanh' or 'silu'", |name| {
        match name {
            "identity" => Some(Activation::Identity),
            "relu" => Some(Activation::Relu),
            "gelu" => Some(Activation::Gelu),
            "gelu_tanh" => Some(Activation::GeluTanh),
            "silu" => Some(Activation::Silu),
            _ => None,
        }
    });
    compute: Option<Compute> = one_of("must be None, 'native', 'tf32', 'bf16x6' or 'f16x3'", |name| {
        match name {
            "native" => Some(Compute::Native),
            "tf32" => Some(Compute::Tf32),
            "bf16x6" => Some(Compute::Fp32Bf16x6),
            "f16x3" => Some(Compute::Fp32F16x3),
            _ => None,
        }
    });
    invariant: bool = yes_or_no("must be True or False");
    device: Option<Place> = one_of("must be None, 'cpu', 'cuda' or 'cuda:' and an index", |name| {
        match name {
            "cpu" => Some(Place::Host),
            "cuda" => Some(Place::Cuda(0)),
            _ => {
                let index = name.strip_prefix("cuda:")?;
                // A number takes a sign, too.
                let is_plain = index.bytes().all(|byte| byte.is_ascii_digit());
                index.parse().ok().filter(|_| is_plain).map(Place::Cuda)
            }
        }
    });
    m: u64 = whole(0..=MOST_SIZE);
    n: u64 = whole(0..=MOST_SIZE);
    k: u64 = whole(0..=MOST_SIZE);
    orders: u32 = whole(1..=10_000);
    every: u32 = whole(1..=u32::MAX);
}

/// What has a scale of its own.
///
/// # Errors
/// Those of the argument.
pub(crate) fn scales(value: &Bound<'_, PyAny>) -> PyResult<Granularity> {
    let limit = "must be 'rows', '1x128' or '128x128'";
    match &*text("scales", value, limit)? {
        "rows" => Ok(Granularity::Row),
        "1x128" => Ok(Granularity::Block1x128),
        "128x128" => Ok(Granularity::Block128x128),
        _ => Err(outside("scales", value, limit)),
    }
}

/// The type that [`quantised`](crate::quantise::quantised) rounds to, as [`out_dtype`].
///
/// # Errors
/// As there.
pub(crate) fn type_of_8_bits(value: &Bound<'_, PyAny>) -> PyResult<Type> {
    let found = type_named(value)?.filter(|of| [Type::E4M3, Type::E5M2, Type::I8].contains(of));
    let limit = "must be float8_e4m3fn, float8_e5m2 or int8";
    found.ok_or_else(|| outside("dtype", value, limit))
}

/// The type of the result's elements: its name, or what NumPy, PyTorch or JAX has for it.
///
/// # Errors
/// What Python raises meanwhile and is no `Exception`.
pub(crate) fn out_dtype(value: &Bound<'_, PyAny>) -> PyResult<Option<Type>> {
    if value.is_none() {
        return Ok(None);
    }
    let refused = || outside("out_dtype", value, format!("must be None, {}", offered("out_dtype")));
    type_named(value)?.map(Some).ok_or_else(refused)
}

/// The type with the name of a value.
fn type_named(value: &Bound<'_, PyAny>) -> PyResult<Option<Type>> {
    // A type has the one attribute, a dtype of NumPy the other, and PyTorch's are `torch.float32`.
    let attribute =
        ["__name__", "name"].into_iter().find_map(|of| value.getattr_opt(of).transpose());
    let name = attribute.transpose()?.unwrap_or_else(|| value.clone()).str()?;
    let name = name.to_string_lossy();
    Ok(named(name.trim_start_matches("torch.")))
}

/// Where the answers of a tuned product are. `None`: it is not tuned.
///
/// # Errors
/// `RuntimeError` for a file that is damaged.
pub(crate) fn tune(value: &Bound<'_, PyAny>) -> PyResult<Option<&'static TuningCache>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(is_tuned) = value.cast::<PyBool>() {
        return Ok(is_tuned.is_true().then(tuning::in_memory));
    }
    let limit = "must be None, True, False or the path of a file";
    let path: PathBuf = value.extract().map_err(|cause| refused("tune", value, cause, limit))?;
    tuning::of_file(&path).map(Some).map_err(to_python)
}

/// The kernel of a product.
pub(crate) fn kernel(value: &Bound<'_, PyAny>) -> PyResult<&'static Entry> {
    let name = text("kernel", value, "must be a name of kernels()")?;
    kernels().find(|entry| entry.name() == name).ok_or_else(|| {
        let names = kernels().map(Entry::name).collect::<Vec<_>>();
        outside("kernel", value, must_be_a_kernel_of(&name, &names))
    })
}

/// The kernel of a product, if its accesses are counted.
pub(crate) fn counted_kernel(value: &Bound<'_, PyAny>) -> PyResult<&'static Entry> {
    let entry = kernel(value)?;
    match counted(entry) {
        Ok(_) => Ok(entry),
        Err(Error::Argument { limit, .. }) => Err(outside("kernel", value, limit)),
        Err(error) => Err(to_python(error)),
    }
}

fn yes_or_no(name: &str, value: &Bound<'_, PyAny>, limit: &str) -> PyResult<bool> {
    value.extract().map_err(|cause| refused(name, value, cause, limit))
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    const LIMIT: &str = "must be a real number";
    const RANGE: &str = "must be within the range of float64";
    let wrong = |cause: PyErr| {
        let is_large = cause.is_instance_of::<PyOverflowError>(value.py());
        refused(name, value, cause, if is_large { RANGE } else { LIMIT })
    };
    let is_plain = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if !is_plain && !is_real(value).map_err(wrong)? {
        return Err(message(name, value, LIMIT).map_or_else(|error| error, PyTypeError::new_err));
    }
    let number: f64 = value.extract().map_err(wrong)?;
    // Some types round what is too large.
    match number.is_infinite() && !value.eq(number)? {
        true => Err(outside(name, value, RANGE)),
        false => Ok(number),
    }
}

/// Whether a value is one real number, by what it says of itself. `float()` takes more: NumPy's
/// complex numbers, whose imaginary part it drops, its texts and durations, and arrays of one
/// element.
fn is_real(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    if value.is_instance_of::<PyComplex>()
        || value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
    {
        return Ok(false);
    }
    if let Some(ndim) = value.getattr_opt(intern!(py, "ndim"))?
        && ndim.extract::<u64>().is_ok_and(|ndim| ndim > 0)
    {
        return Ok(false);
    }
    if let Some(dtype) = value.getattr_opt(intern!(py, "dtype"))? {
        // PyTorch's type says it so; those of NumPy, CuPy and JAX by a letter.
        let is_complex = dtype.getattr_opt(intern!(py, "is_complex"))?;
        let kind = dtype.getattr_opt(intern!(py, "kind"))?;
        let kind = kind.and_then(|kind| kind.extract::<String>().ok());
        // Complex numbers, durations, dates and texts.
        if is_complex.is_some_and(|it| it.cast::<PyBool>().is_ok_and(|it| it.is_true()))
            || kind.is_some_and(|kind| matches!(kind.as_str(), "c" | "m" | "M" | "U" | "S"))
        {
            return Ok(false);
        }
    }
    static COMPLEX: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static REAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if value.is_instance(COMPLEX.import(py, "numbers", "Complex")?)?
        && !value.is_instance(REAL.import(py, "numbers", "Real")?)?
    {
        return Ok(false);
    }
    // Of an unknown library: by what it is as a complex number.
    if value.get_type().hasattr(intern!(py, "__complex__"))? {
        let value = py.get_type::<PyComplex>().call1((value,))?;
        return Ok(value.cast::<PyComplex>()?.imag() == 0.0);
    }
    Ok(true)
}

fn whole<T>(name: &str, value: &Bound<'_, PyAny>, limits: RangeInclusive<T>) -> PyResult<T>
where
    T: for<'py> FromPyObjectOwned<'py, Error = PyErr> + PartialOrd + Display,
{
    let limit = || format!("must be a whole number from {} to {}", limits.start(), limits.end());
    let number = value.extract().map_err(|cause| refused(name, value, cause, limit()))?;
    if limits.contains(&number) { Ok(number) } else { Err(outside(name, value, limit())) }
}

fn one_of<T>(
    name: &str,
    value: &Bound<'_, PyAny>,
    limit: &str,
    of: fn(&str) -> Option<T>,
) -> PyResult<Option<T>> {
    if value.is_none() {
        return Ok(None);
    }
    match of(&text(name, value, limit)?) {
        None => Err(outside(name, value, limit)),
        found => Ok(found),
    }
}

fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>, limit: &str) -> PyResult<Cow<'a, str>> {
    let text =
        value.cast::<PyString>().map_err(|cause| refused(name, value, cause.into(), limit))?;
    text.to_cow().map_err(|cause| refused(name, value, cause, limit))
}

/// The error for a value that Python does not convert. Python's own error is its cause. What is no
/// `Exception`, such as `KeyboardInterrupt`, stays as it is.
pub(crate) fn refused(
    name: &str,
    value: &Bound<'_, PyAny>,
    cause: PyErr,
    limit: impl Into<String>,
) -> PyErr {
    let py = value.py();
    if !cause.is_instance_of::<PyException>(py) {
        return cause;
    }
    let is_outside =
        cause.is_instance_of::<PyOverflowError>(py) || cause.is_instance_of::<PyValueError>(py);
    let error = match (message(name, value, limit), is_outside) {
        (Ok(message), true) => PyValueError::new_err(message),
        (Ok(message), false) => PyTypeError::new_err(message),
        (Err(error), _) => return error,
    };
    error.set_cause(py, Some(cause));
    error
}

/// The error for a value outside the limit.
fn outside(name: &str, value: &Bound<'_, PyAny>, limit: impl Into<String>) -> PyErr {
    message(name, value, limit).map_or_else(|error| error, PyValueError::new_err)
}

fn message(name: &str, value: &Bound<'_, PyAny>, limit: impl Into<String>) -> PyResult<String> {
    Ok(Error::argument(name, shown(value)?, limit).to_string())
}

/// The value as Python shows it: the first line, not too long.
///
/// # Errors
/// What Python raises meanwhile and is no `Exception`.
fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    const MOST: usize = 60;
    let text = match value.repr() {
        Ok(text) => text,
        Err(error) if error.is_instance_of::<PyException>(value.py()) => {
            return Ok(format!("a value of {}", value.get_type()));
        }
        Err(error) => return Err(error),
    };
    let text = text.to_string_lossy();
    let line = text.lines().next().unwrap_or_default();
    let start = line.chars().take(MOST).collect::<String>();
    Ok(if start.len() < text.len() { start + "..." } else { start })
}
