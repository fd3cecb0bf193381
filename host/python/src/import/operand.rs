//! An array as an operand.

use gpu_gemm::{Error, Type};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use super::kinds::{Kind, Module};
use crate::{
    array::{Dims, Place, shown},
    dlpack::borrowed::{Borrowed, Described},
    failure::to_python,
};

/// An array of Python's.
pub(crate) struct Operand<'py> {
    /// Keeps the array's memory. (The first: it is given back while the object still exists.)
    pub(crate) borrowed: Option<Borrowed>,
    /// What else the memory is by: a structure or a dictionary of the object, a weak reference that
    /// forbids `resize`.
    pub(super) held: [Option<Bound<'py, PyAny>>; 2],
    pub(crate) object: Bound<'py, PyAny>,
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    pub(crate) dtype: Type,
    pub(crate) dims: Dims,
    pub(crate) place: Place,
    pub(crate) is_read_only: bool,
    /// Whether its elements are aligned, in the machine's order of bytes, and whole elements apart.
    pub(crate) is_regular: bool,
    /// The stream whose work so far writes the array, if the array says it.
    pub(crate) ready_on: Option<u64>,
}

impl<'py> Operand<'py> {
    /// An operand of which its module has said all.
    pub(crate) fn described(object: &Bound<'py, PyAny>, kind: Kind, described: Described) -> Self {
        let Described { address, dtype, dims, place } = described;
        Operand {
            borrowed: None,
            held: [None, None],
            object: object.clone(),
            kind,
            address,
            dtype,
            dims,
            place,
            is_read_only: kind.module == Module::Jax,
            is_regular: address.is_multiple_of(dtype.bytes() as u64) && dims.is_whole(),
            ready_on: None,
        }
    }

    /// What the array has said about itself.
    pub(crate) fn as_described(&self) -> Described {
        let Operand { address, dtype, dims, place, .. } = *self;
        Described { address, dtype, dims, place }
    }

    /// Refuses elements at an address where no memory is.
    ///
    /// # Errors
    /// `ValueError`.
    pub(super) fn check_memory(&self, name: &str) -> PyResult<()> {
        let Operand { address, dtype, dims, .. } = self;
        if dims.sizes().contains(&0) || dims.bytes_at(*address, dtype.bytes()).is_some() {
            return Ok(());
        }
        let [sizes, strides] = [shown(dims.sizes()), format!("{:?}", dims.strides())];
        let limit =
            format!("no memory has elements of shape {sizes}, strides in elements {strides} there");
        Err(to_python(Error::argument(format!("{name}.data"), format!("at {address:#x}"), limit)))
    }

    /// Refuses an array that was asked for with a shape and a type, and is not so.
    ///
    /// # Errors
    /// `RuntimeError`.
    pub(crate) fn check_made(&self, dtype: Type, place: Place, sizes: &[usize]) -> PyResult<()> {
        let is_so = (self.dtype, self.place, self.dims.sizes()) == (dtype, place, sizes);
        if is_so && !self.is_read_only && self.is_regular && !self.dims.has_negative_stride() {
            return Ok(());
        }
        let message = format!(
            "an array of {}, shape {}, on {place} was asked of a module, which made another",
            dtype.numpy(),
            shown(sizes)
        );
        Err(PyRuntimeError::new_err(message))
    }

    /// Refuses an array that would have to be copied.
    ///
    /// # Errors
    /// `ValueError`.
    pub(crate) fn check_in_place(&self, name: &str) -> PyResult<()> {
        if !self.is_regular {
            let limit =
                "must be aligned, in the machine's order of bytes, and whole elements apart";
            return Err(to_python(Error::argument(name, "an array", limit)));
        }
        if self.dims.has_negative_stride() {
            let strides = format!("{:?}", self.dims.strides());
            let limit = format!("must not be negative here: pass a contiguous copy of {name}");
            return Err(to_python(Error::argument(format!("{name}.strides"), strides, limit)));
        }
        Ok(())
    }

    /// The addresses from the first element to the end of the last.
    pub(crate) fn range(&self) -> (u64, u64) {
        let bytes = self.dims.extent().unwrap_or(0).saturating_mul(self.dtype.bytes());
        (self.address, self.address.saturating_add(bytes as u64))
    }

    /// Checks the shape.
    ///
    /// # Errors
    /// `ValueError`.
    pub(crate) fn check_shape(&self, name: &str, sizes: &[usize]) -> PyResult<()> {
        if self.dims.sizes() == sizes {
            return Ok(());
        }
        let limit = format!("is non-broadcastable: must be {}, the result's", shown(sizes));
        let value = shown(self.dims.sizes());
        Err(to_python(Error::argument(format!("{name}.shape"), value, limit)))
    }
}
