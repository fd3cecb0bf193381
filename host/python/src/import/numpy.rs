//! NumPy's arrays by `__array_struct__`: a C structure, which every version of NumPy fills in the
//! same way.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr::{null, null_mut},
};

use gpu_gemm::{Error, Type};
use pyo3::{exceptions::PyTypeError, ffi, intern, prelude::*};

use super::{kinds::Kind, operand::Operand};
use crate::{
    array::{Dims, Place, named, offered, types},
    dlpack::borrowed::Described,
    failure::to_python,
};

/// NumPy's `PyArrayInterface`.
#[repr(C)]
struct Interface {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    /// In bytes.
    strides: *const isize,
    data: *mut c_void,
}

const ALIGNED: c_int = 0x100;
const NOT_SWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

/// NumPy's number of float16.
const HALF: i32 = 23;

/// An array of NumPy's.
pub(super) fn array<'py>(
    name: &'static str,
    object: &Bound<'py, PyAny>,
    kind: Kind,
) -> PyResult<Operand<'py>> {
    let py = object.py();
    // While it exists, NumPy gives the array no other memory: `resize` is an error, with
    // `refcheck=False` too.
    // SAFETY: the object exists; no callback.
    let pin = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyWeakref_NewRef(object.as_ptr(), null_mut()))
    }?;
    let capsule = object.getattr(intern!(py, "__array_struct__"))?;
    // SAFETY: any object may be asked for the pointer of a capsule without a name.
    let interface = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), null()) };
    if interface.is_null() {
        return Err(PyErr::fetch(py));
    }
    let interface = interface.cast_const().cast::<Interface>();
    // SAFETY: a capsule without a name has NumPy's structure, and keeps it with its sizes and
    // strides.
    let Some(interface) =
        interface.is_aligned().then(|| unsafe { &*interface }).filter(|it| it.two == 2)
    else {
        let message = format!("{name}.__array_struct__ is not NumPy's structure");
        return Err(PyTypeError::new_err(message));
    };
    let Interface { nd, typekind, itemsize, flags, .. } = *interface;
    let refused = || -> PyErr {
        let value = object.getattr("dtype").map(|dtype| dtype.to_string()).unwrap_or_default();
        let limit = match value.as_str() {
            "uint16" => {
                "must be a float's: bfloat16 is ml_dtypes.bfloat16, and an array of uint16 is \
                         made one by a.view(ml_dtypes.bfloat16)"
                    .to_owned()
            }
            _ => format!("must be {}", offered(name)),
        };
        to_python(Error::argument(format!("{name}.dtype"), value, limit))
    };
    let dtype = match (typekind as u8, itemsize) {
        (b'f' | b'V', bytes @ 1..=2) => {
            let dtype = object.getattr(intern!(py, "dtype"))?;
            if dtype.getattr(intern!(py, "num"))?.extract::<i32>()? == HALF {
                Some(Type::F16)
            } else {
                let name = dtype.getattr(intern!(py, "name"))?.extract::<String>()?;
                named(&name).filter(|of| of.bytes() == bytes as usize)
            }
        }
        (kind, bytes) => {
            let code = format!("{}{bytes}", char::from(kind));
            types().find(|of| of.numpy_code() == code)
        }
    };
    let dtype = dtype.ok_or_else(refused)?;
    let bytes = dtype.bytes();
    // A size is a number of 64 bits.
    let pointers = [interface.shape, interface.strides].map(<*const isize>::cast::<i64>);
    // SAFETY: as many of both.
    let dims = unsafe { Dims::of_lent(name, nd, pointers, bytes) }.map_err(to_python)?;
    let address = interface.data.addr() as u64;
    let mut operand =
        Operand::described(object, kind, Described { address, dtype, dims, place: Place::Host });
    operand.is_read_only = flags & WRITEABLE == 0;
    operand.is_regular &= flags & ALIGNED != 0 && flags & NOT_SWAPPED != 0;
    operand.held = [Some(capsule), Some(pin)];
    Ok(operand)
}
