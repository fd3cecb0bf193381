//! Arrays as the products see them: an address, a type, sizes and strides.

use std::fmt;

use gpu_gemm::{Error, Result};

/// The most dimensions of an array.
pub(crate) const MOST_DIMS: usize = 16;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F64,
    F32,
    F16,
    Bf16,
}

impl Dtype {
    /// The size of an element in bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Dtype::F64 => 8,
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::Bf16 => 2,
        }
    }

    /// The types that a message offers.
    pub(crate) const NAMES: &'static str = "float64, float32, float16 or bfloat16";
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Dtype::F64 => "float64",
            Dtype::F32 => "float32",
            Dtype::F16 => "float16",
            Dtype::Bf16 => "bfloat16",
        })
    }
}

/// The memory that an array is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// A GPU's memory, by the driver's index.
    Cuda(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Place::Host => f.write_str("host memory"),
            Place::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// Sizes and strides. Strides count elements; that of a dimension of one element is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dims {
    len: usize,
    sizes: [usize; MOST_DIMS],
    strides: [isize; MOST_DIMS],
}

impl Dims {
    /// The dimensions of an array of that name. Without strides it is C-contiguous.
    ///
    /// # Errors
    /// [`Error::Argument`] for too many dimensions, and for more elements than can be addressed.
    pub(crate) fn new(name: &str, sizes: &[usize], strides: Option<&[isize]>) -> Result<Self> {
        let len = sizes.len();
        if len > MOST_DIMS {
            let limit = format!("must be at most {MOST_DIMS}");
            return Err(Error::argument(format!("{name}.ndim"), len, limit));
        }
        let mut dims = Dims { len, sizes: [0; MOST_DIMS], strides: [0; MOST_DIMS] };
        dims.sizes[..len].copy_from_slice(sizes);
        let mut dense = Some(1isize);
        for index in (0..len).rev() {
            let size = sizes[index];
            let stride = match strides {
                Some(strides) => Some(strides[index]),
                None => dense,
            };
            let length = isize::try_from(size.max(1)).ok();
            dense = dense.zip(length).and_then(|(dense, size)| dense.checked_mul(size));
            let stride = stride.filter(|_| dense.is_some()).ok_or_else(|| {
                Error::argument(format!("{name}.shape"), shown(sizes), "more than can be addressed")
            })?;
            dims.strides[index] = if size > 1 { stride } else { 0 };
        }
        Ok(dims)
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes[..self.len]
    }

    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides[..self.len]
    }

    /// Whether sizes and strides are these. The stride of a dimension of one element is any; `None` is C-contiguous.
    pub(crate) fn are(&self, sizes: &[i64], strides: Option<&[i64]>) -> bool {
        if self.len != sizes.len() {
            return false;
        }
        let mut dense = 1i64;
        (0..self.len).rev().all(|index| {
            let (size, stride) = (sizes[index], strides.map_or(dense, |strides| strides[index]));
            dense = dense.wrapping_mul(size.max(1));
            self.sizes[index] as i64 == size && (size <= 1 || self.strides[index] as i64 == stride)
        })
    }

    /// The number of elements.
    pub(crate) fn count(&self) -> usize {
        self.sizes().iter().product()
    }

    /// Whether an element is before the first.
    pub(crate) fn has_negative_stride(&self) -> bool {
        self.strides().iter().any(|&stride| stride < 0)
    }

    /// The number of elements from the first to the last, both included, where no stride is negative. `None` if they cannot be addressed.
    pub(crate) fn extent(&self) -> Option<usize> {
        if self.sizes().contains(&0) {
            return Some(0);
        }
        let last = self.sizes().iter().zip(self.strides());
        last.into_iter().try_fold(1usize, |sum, (size, stride)| {
            (size - 1).checked_mul(usize::try_from(*stride).ok()?)?.checked_add(sum)
        })
    }
}

/// Sizes as Python shows a shape.
pub(crate) fn shown(sizes: &[usize]) -> String {
    let sizes = sizes.iter().map(ToString::to_string).collect::<Vec<_>>();
    match &*sizes {
        [one] => format!("({one},)"),
        _ => format!("({})", sizes.join(", ")),
    }
}
