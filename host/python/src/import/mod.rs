//! Python's arrays as operands: what a type can do is found once, and kept.

mod cuda_interface;
mod kinds;
mod numpy;
mod torch;

use gpu_gemm::Error;
use pyo3::{intern, prelude::*};

pub(crate) use self::kinds::{Kind, Module};
use crate::{
    array::{Dims, Dtype, Place, shown},
    device::own_stream,
    dlpack::{
        abi::{self, Exchange, Tensor},
        borrowed::{Borrowed, Described, describe},
    },
    failure::to_python,
};

/// An array of Python's.
pub(crate) struct Operand<'py> {
    pub(crate) object: Bound<'py, PyAny>,
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    pub(crate) dtype: Dtype,
    pub(crate) dims: Dims,
    pub(crate) place: Place,
    pub(crate) is_read_only: bool,
    /// Whether its elements are aligned, in the machine's order of bytes, and whole elements apart.
    pub(crate) is_regular: bool,
    /// The stream whose work so far writes the array, if the array says it.
    pub(crate) ready_on: Option<u64>,
    /// Keeps the array's memory.
    pub(crate) borrowed: Option<Borrowed>,
}

impl<'py> Operand<'py> {
    /// The array of that argument. `stream`: the handle on which it is to be ready, if the caller has named one.
    ///
    /// # Errors
    /// `TypeError` for an object that is no array, and for elements that no product has; `ValueError` for a place that is not supported.
    pub(crate) fn new(
        name: &'static str,
        object: &Bound<'py, PyAny>,
        stream: Option<u64>,
    ) -> PyResult<Self> {
        let kind = Kind::of(name, object)?;
        match kind.module {
            Module::Numpy => return numpy::array(name, object, kind),
            Module::Torch => torch::check(name, object)?,
            Module::Cupy | Module::Jax | Module::Other => {}
        }
        match kind.how {
            kinds::How::Exchange(exchange) => exchanged(name, object, kind, exchange),
            kinds::How::Attributes => torch::array(name, object, kind),
            kinds::How::CudaInterface => cuda_interface::array(name, object, kind),
            kinds::How::Dlpack => borrowed(name, object, kind, stream),
        }
    }

    /// An operand of which its module has said all.
    fn described(object: &Bound<'py, PyAny>, kind: Kind, described: Described) -> Self {
        let Described { address, dtype, dims, place } = described;
        Operand {
            object: object.clone(),
            kind,
            address,
            dtype,
            dims,
            place,
            is_read_only: kind.module == Module::Jax,
            is_regular: address.is_multiple_of(dtype.bytes() as u64),
            ready_on: None,
            borrowed: None,
        }
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

/// An array by its type's table of functions.
fn exchanged<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    exchange: &Exchange,
) -> PyResult<Operand<'py>> {
    let mut tensor = Tensor::EMPTY;
    let Some(tensor_of) = exchange.tensor_of else { return borrowed(name, object, kind, None) };
    // SAFETY: the table is of the object's type, and the GIL is held.
    if unsafe { tensor_of(object.as_ptr().cast(), &mut tensor) } != 0 {
        let error = PyErr::fetch(object.py());
        return match kind.module {
            // The other way names the argument and what is wrong with it.
            Module::Torch => torch::array(name, object, kind),
            _ => Err(error),
        };
    }
    // SAFETY: the object keeps its sizes and strides until Python runs again.
    let described = unsafe { describe(name, &tensor) }?;
    Ok(Operand::described(object, kind, described))
}

/// An array by `__dlpack__`.
fn borrowed<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
    stream: Option<u64>,
) -> PyResult<Operand<'py>> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    let stream = match (device, stream) {
        ((abi::CUDA, _), Some(stream)) => Some(stream),
        ((abi::CUDA, index), None) => {
            let own = own_stream(py, index.unsigned_abs() as usize)?;
            own.raw_cuda_stream().map(|raw| raw.addr() as u64)
        }
        _ => None,
    };
    let borrowed = Borrowed::take(name, object, stream)?;
    // SAFETY: the producer keeps sizes and strides until the deleter is called.
    let described = unsafe { describe(name, borrowed.tensor()) }?;
    let mut operand = Operand::described(object, kind, described);
    operand.is_read_only |= borrowed.is_read_only();
    operand.borrowed = Some(borrowed);
    Ok(operand)
}
