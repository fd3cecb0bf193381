//! NumPy's arrays by `__array_struct__`: a C structure, which every version of NumPy fills in the same way.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr::null,
    slice,
};

use gpu_gemm::Error;
use pyo3::{ffi, intern, prelude::*};

use super::{kinds::Kind, operand::Operand};
use crate::{
    array::{Dims, Dtype, MOST_DIMS, Place},
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
    let capsule = object.getattr(intern!(py, "__array_struct__"))?;
    // SAFETY: any object may be asked for the pointer of a capsule without a name.
    let interface = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), null()) };
    // SAFETY: null, or NumPy's structure, which the capsule keeps with its sizes and strides.
    let Some(interface) = (unsafe { interface.cast::<Interface>().as_ref() }) else {
        return Err(PyErr::fetch(py));
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
            _ => format!("must be {}", Dtype::NAMES),
        };
        to_python(Error::argument(format!("{name}.dtype"), value, limit))
    };
    let dtype = match (typekind as u8, itemsize) {
        (b'f', 8) => Dtype::F64,
        (b'f', 4) => Dtype::F32,
        (b'f' | b'V', 2) => {
            let dtype = object.getattr(intern!(py, "dtype"))?;
            if dtype.getattr(intern!(py, "num"))?.extract::<i32>()? == HALF {
                Dtype::F16
            } else if dtype.getattr(intern!(py, "name"))?.extract::<String>()? == "bfloat16" {
                Dtype::Bf16
            } else {
                return Err(refused());
            }
        }
        _ => return Err(refused()),
    };
    let ndim = nd.unsigned_abs() as usize;
    if ndim > MOST_DIMS {
        let limit = format!("must be at most {MOST_DIMS}");
        return Err(to_python(Error::argument(format!("{name}.ndim"), ndim, limit)));
    }
    let (mut sizes, mut strides) = ([0; MOST_DIMS], [0; MOST_DIMS]);
    let bytes = dtype.bytes() as isize;
    let mut is_regular = flags & ALIGNED != 0 && flags & NOT_SWAPPED != 0;
    if ndim > 0 {
        // SAFETY: as many of both.
        let from = unsafe {
            let sizes = slice::from_raw_parts(interface.shape, ndim);
            sizes.iter().zip(slice::from_raw_parts(interface.strides, ndim))
        };
        for ((size, stride), (&of, &between)) in sizes.iter_mut().zip(&mut strides).zip(from) {
            (*size, *stride) = (of.unsigned_abs(), between / bytes);
            is_regular &= of <= 1 || between % bytes == 0;
        }
    }
    let dims = Dims::new(name, &sizes[..ndim], Some(&strides[..ndim])).map_err(to_python)?;
    let address = interface.data.addr() as u64;
    Ok(Operand {
        object: object.clone(),
        kind,
        address,
        dtype,
        dims,
        place: Place::Host,
        is_read_only: flags & WRITEABLE == 0,
        is_regular: is_regular && address.is_multiple_of(bytes as u64),
        ready_on: None,
        borrowed: None,
    })
}
