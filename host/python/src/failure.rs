//! The library's errors as Python's.

use gpu_gemm::Error;
use pyo3::{
    PyErr,
    exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError},
};

/// The exception for an error. Arguments have Python's names.
pub(crate) fn to_python(error: Error) -> PyErr {
    match error {
        Error::Argument { argument, value, limit } => {
            let argument = named(&argument);
            // NumPy's `strides` are in bytes.
            let unit = if is_of_strides(&argument) { " in elements" } else { "" };
            let message = format!("{argument}{unit} = {value}: {}", named_within(&limit));
            match argument.ends_with(".dtype") {
                true => PyTypeError::new_err(message),
                false => PyValueError::new_err(message),
            }
        }
        Error::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Whether the argument's value is strides.
fn is_of_strides(argument: &str) -> bool {
    argument.rsplit('.').next() == Some("strides")
}

/// An argument's name in Python: the library calls the operands A, B and C.
fn named(argument: &str) -> String {
    let (name, rest) = match argument.split_once('.') {
        Some((name, rest)) => (name, format!(".{rest}")),
        None => (argument, String::new()),
    };
    let name = match name {
        "A" => "a",
        "B" => "b",
        "C" => "out",
        other => other,
    };
    format!("{name}{rest}")
}

/// The limit of an argument, which may name C.
fn named_within(limit: &str) -> String {
    match limit {
        "must not overlap C" => "must not overlap out".to_owned(),
        other => other.to_owned(),
    }
}
