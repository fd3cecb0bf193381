//! Arrays as the products see them: an address, a type, sizes and strides.

use std::{fmt, slice};

use gpu_gemm::{Error, Result, Type, check_written};

/// The most dimensions of an array.
pub(crate) const MOST_DIMS: usize = 16;

fn is_result(of: Type) -> bool {
    Type::products().any(|(_, c)| c == of)
}

/// The types of elements: those that are multiplied, and those of the results.
pub(crate) fn types() -> impl Iterator<Item = Type> {
    Type::ALL.iter().copied().filter(|&of| of.sums().is_some() || is_result(of))
}

/// The types of elements that a message offers for an argument: of an operand `float64, float32,
/// float16, bfloat16, int8, float8_e4m3fn or float8_e5m2`; of scales `float32`.
pub(crate) fn offered(name: &str) -> String {
    let is_one = |of: &Type| match name {
        "a" | "b" => of.sums().is_some(),
        "scale_a" | "scale_b" => *of == Type::F32,
        _ => is_result(*of),
    };
    let mut types = types().filter(is_one).collect::<Vec<_>>();
    types.sort_by_key(|of| std::cmp::Reverse((of.bytes(), of.format().digits())));
    let names = types.into_iter().map(Type::numpy).collect::<Vec<_>>();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The type of elements with a name of NumPy's, as `types` has it.
pub(crate) fn named(name: &str) -> Option<Type> {
    types().find(|of| of.numpy() == name)
}

/// Whether NumPy has no code for the type: to it an element is raw bytes.
pub(crate) fn is_raw(of: Type) -> bool {
    of.numpy_code().starts_with('V')
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dims {
    len: usize,
    sizes: [usize; MOST_DIMS],
    strides: [isize; MOST_DIMS],
    /// The bytes of a stride besides its whole elements, with its sign. Not 0 only for modules
    /// whose strides count bytes.
    rests: [isize; MOST_DIMS],
}

impl Dims {
    /// The dimensions of an array of that name. Without strides it is C-contiguous.
    ///
    /// # Errors
    /// [`Error::Argument`] for too many dimensions, for another number of strides than of sizes,
    /// and for more elements than can be addressed.
    pub(crate) fn new(name: &str, sizes: &[usize], strides: Option<&[isize]>) -> Result<Self> {
        let len = sizes.len();
        check_ndim(name, len as i64)?;
        if let Some(strides) = strides.filter(|strides| strides.len() != len) {
            let limit = format!("must be {len}, one for each size");
            return Err(Error::argument(format!("len({name}.strides)"), strides.len(), limit));
        }
        let mut dims =
            Dims { len, sizes: [0; MOST_DIMS], strides: [0; MOST_DIMS], rests: [0; MOST_DIMS] };
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

    /// As [`Dims::new`], by strides that count `unit` parts of an element.
    ///
    /// # Errors
    /// As of [`Dims::new`].
    pub(crate) fn in_parts(
        name: &str,
        sizes: &[usize],
        strides: Option<&[isize]>,
        unit: usize,
    ) -> Result<Self> {
        let unit = unit as isize;
        let all = strides.unwrap_or_default();
        check_ndim(name, all.len() as i64)?;
        let mut whole = [0; MOST_DIMS];
        for (whole, stride) in whole.iter_mut().zip(all) {
            *whole = stride / unit;
        }
        let mut dims = Dims::new(name, sizes, strides.is_some().then_some(&whole[..all.len()]))?;
        for ((rest, stride), size) in dims.rests.iter_mut().zip(all).zip(sizes) {
            *rest = if *size > 1 { stride % unit } else { 0 };
        }
        Ok(dims)
    }

    /// The dimensions that another library says in memory. Its strides count `unit` parts of an
    /// element.
    ///
    /// # Errors
    /// As of [`lent`] and [`Dims::new`].
    ///
    /// # Safety
    /// 1. As of [`lent`].
    pub(crate) unsafe fn of_lent(
        name: &str,
        ndim: i32,
        pointers: [*const i64; 2],
        unit: usize,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let (from, between) = unsafe { lent(name, ndim, pointers) }?;
        let (mut sizes, mut strides) = ([0; MOST_DIMS], [0; MOST_DIMS]);
        for (to, &from) in sizes.iter_mut().zip(from) {
            *to = from as usize;
        }
        for (to, &from) in strides.iter_mut().zip(between.unwrap_or_default()) {
            *to = from as isize;
        }
        let len = from.len();
        Dims::in_parts(name, &sizes[..len], between.is_some().then_some(&strides[..len]), unit)
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes[..self.len]
    }

    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides[..self.len]
    }

    /// Whether the elements are whole elements apart. If not, `strides` say less than where they
    /// are.
    pub(crate) fn is_whole(&self) -> bool {
        self.rests == [0; MOST_DIMS]
    }

    /// Refuses an `out` of which two elements might share memory, be it a part of each.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(crate) fn check_written(&self, element: usize) -> Result<()> {
        if self.is_whole() {
            return check_written("out", 1, self.sizes(), self.strides());
        }
        // As the module has said them, so there is no overflow.
        let strides = self.strides().iter().zip(self.rests);
        let strides =
            strides.map(|(stride, rest)| stride * element as isize + rest).collect::<Vec<_>>();
        check_written("out", element, self.sizes(), &strides).map_err(|error| match error {
            Error::Argument { value, limit, .. } => {
                Error::Argument { argument: "out.strides in bytes".into(), value, limit }
            }
            other => other,
        })
    }

    /// Whether sizes and strides are these. The stride of a dimension of one element is any; `None`
    /// is C-contiguous.
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

    /// The number of elements from the first to the last, both included, where no stride is
    /// negative. `None` if they cannot be addressed.
    pub(crate) fn extent(&self) -> Option<usize> {
        if self.sizes().contains(&0) {
            return Some(0);
        }
        let last = self.sizes().iter().zip(self.strides());
        last.into_iter().try_fold(1usize, |sum, (size, stride)| {
            (size - 1).checked_mul(usize::try_from(*stride).ok()?)?.checked_add(sum)
        })
    }

    /// The first and the last byte's end of an array whose first element, that of all indices 0, is
    /// at an address. `None`: it has no elements, or they are not in one address space.
    pub(crate) fn bytes_at(&self, address: u64, element: usize) -> Option<(u64, u64)> {
        if self.sizes().contains(&0) {
            return None;
        }
        let (mut first, mut last) = (i128::from(address), i128::from(address));
        for ((&size, &stride), rest) in self.sizes().iter().zip(self.strides()).zip(self.rests) {
            // Each is below 2^63, so the products are below 2^126.
            let length = (size as i128 - 1) * (stride as i128);
            let rests = (size as i128 - 1) * (rest as i128);
            let bytes = length.checked_mul(element as i128)?.checked_add(rests)?;
            let end = if bytes < 0 { &mut first } else { &mut last };
            *end = end.checked_add(bytes)?;
        }
        let end = last.checked_add(element as i128)?;
        // The system maps nothing in the first page, and no memory of a program is above 2^63.
        (first >= 4096 && end <= i128::from(i64::MAX)).then_some((first as u64, end as u64))
    }
}

/// Refuses a number of dimensions.
fn check_ndim(name: &str, ndim: i64) -> Result<()> {
    match (0..=MOST_DIMS as i64).contains(&ndim) {
        true => Ok(()),
        false => {
            let limit = match ndim < 0 {
                true => "must not be negative".to_owned(),
                false => format!("must be at most {MOST_DIMS}"),
            };
            Err(Error::argument(format!("{name}.ndim"), ndim, limit))
        }
    }
}

/// The sizes, and the strides if there are any, that another library has in memory.
///
/// # Errors
/// [`Error::Argument`] for a number of dimensions that no array has here, for sizes that are
/// nowhere or at odd addresses, and for a negative size.
///
/// # Safety
/// 1. A pointer that is not null points to `ndim` numbers. They stay as they are while the result
///    is used.
pub(crate) unsafe fn lent<'a>(
    name: &str,
    ndim: i32,
    [sizes, strides]: [*const i64; 2],
) -> Result<(&'a [i64], Option<&'a [i64]>)> {
    check_ndim(name, ndim.into())?;
    let len = ndim as usize;
    if len == 0 {
        return Ok((&[], None));
    }
    for (what, pointer) in [("shape", sizes), ("strides", strides)] {
        if !pointer.is_aligned() || what == "shape" && pointer.is_null() {
            let limit = format!("must point to {len} numbers of 64 bits, as ndim says");
            return Err(Error::argument(
                format!("{name}.{what}"),
                format!("at {pointer:p}"),
                limit,
            ));
        }
    }
    // SAFETY: the caller's promise, and `ndim` is a number of dimensions.
    let sizes = unsafe { slice::from_raw_parts(sizes, len) };
    if sizes.iter().any(|&size| size < 0) {
        let limit = "no size may be negative";
        return Err(Error::argument(format!("{name}.shape"), format!("{sizes:?}"), limit));
    }
    // SAFETY: as above.
    let strides = (!strides.is_null()).then(|| unsafe { slice::from_raw_parts(strides, len) });
    Ok((sizes, strides))
}

/// Sizes as Python shows a shape.
pub(crate) fn shown(sizes: &[usize]) -> String {
    let sizes = sizes.iter().map(ToString::to_string).collect::<Vec<_>>();
    match &*sizes {
        [one] => format!("({one},)"),
        _ => format!("({})", sizes.join(", ")),
    }
}
