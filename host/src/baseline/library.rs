//! Loads NVIDIA's libraries, and converts their status codes to errors.

use std::{
    error::Error as _,
    ffi::{c_int, c_void},
};

use libloading::Library;
use simt::types::{NumberFormat, Type};

use super::DenseBatch;
use gpu_gemm::{Compute, Error, Result};

/// Defines the types of functions whose result is a `cublasStatus_t`.
macro_rules! functions {
    ($($visibility:vis fn $Name:ident($($argument:ident: $type:ty),*);)*) => {
        $($visibility type $Name = unsafe extern "C" fn($($argument: $type),*) -> std::ffi::c_int;)*
    };
}
pub(super) use functions;

/// The first of these libraries that exists, and its name.
pub(super) fn load(names: &[&'static str]) -> Result<(Library, &'static str)> {
    let mut reasons = Vec::new();
    for name in names {
        // SAFETY: loading runs the initialisers of NVIDIA's library, as in every program that uses
        // it.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok((library, name)),
            Err(error) => {
                reasons.push(error.source().map_or_else(|| error.to_string(), ToString::to_string));
            }
        }
    }
    Err(Error::NoCublas { reason: reasons.join("; ") })
}

/// A function of a library. It is used while the library is loaded.
///
/// # Safety
/// 1. `T` is the type of that function.
pub(super) unsafe fn symbol<T: Copy>(library: &Library, file: &str, name: &str) -> Result<T> {
    // SAFETY: the caller's promise.
    let found = unsafe { library.get::<T>(name) };
    found
        .map(|function| *function)
        .map_err(|_| Error::NoCublas { reason: format!("{file} has no {name}") })
}

/// The error for a `cublasStatus_t`.
pub(super) fn check(call: &'static str, status: c_int) -> Result<()> {
    let name = match status {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "a status of cuBLAS",
    };
    let text = "see cublasStatus_t in the documentation of cuBLAS".to_owned();
    Err(Error::Driver { call, code: status, name: name.to_owned(), text })
}

/// m, n, k and the count as cuBLAS takes them.
pub(super) fn sizes(product: &DenseBatch) -> Result<[c_int; 4]> {
    let size = |name, value: usize| {
        let limit = || format!("cuBLAS takes sizes up to {}", c_int::MAX);
        c_int::try_from(value).map_err(|_| Error::argument(name, value, limit()))
    };
    let DenseBatch { shape, count, .. } = product;
    Ok([
        size("m", shape.m())?,
        size("n", shape.n())?,
        size("k", shape.k())?,
        size("count", *count)?,
    ])
}

/// The arithmetic of a product: a `cublasComputeType_t`, and the factors in the type of the sums.
#[derive(Clone, Copy)]
pub(super) enum Arithmetic {
    /// The number, `CUBLAS_COMPUTE_32F` or one that rounds factors; alpha and beta.
    F32(c_int, [f32; 2]),
    /// `CUBLAS_COMPUTE_64F`.
    F64([f64; 2]),
    /// `CUBLAS_COMPUTE_32I`.
    I32([i32; 2]),
}

impl Arithmetic {
    /// That for A and B, and C, of these types.
    ///
    /// # Errors
    /// [`Error::Argument`] for sums of another type.
    pub(super) fn of(types: [Type; 2], compute: Compute, factors: [f32; 2]) -> Result<Self> {
        let of_f32 = types == [Type::F32; 2];
        match types[0].sums() {
            // `CUBLAS_COMPUTE_32F_FAST_TF32`: factors may be rounded to tf32 for tensor cores.
            Some(NumberFormat::F32) if of_f32 && compute == Compute::Tf32 => {
                Ok(Arithmetic::F32(77, factors))
            }
            Some(NumberFormat::F32) => Ok(Arithmetic::F32(68, factors)),
            Some(NumberFormat::F64) => Ok(Arithmetic::F64(factors.map(f64::from))),
            Some(NumberFormat::Signed { bits: 32 }) if types[1] == Type::I32 => {
                Ok(Arithmetic::I32(factors.map(|factor| factor as i32)))
            }
            _ => {
                let limit = "NVIDIA's libraries are compared with sums in f32, f64 and i32, of i8 with a C of i32";
                Err(Error::argument("type", types[0], limit))
            }
        }
    }

    /// The `cublasComputeType_t`.
    pub(super) fn number(&self) -> c_int {
        match self {
            Arithmetic::F32(number, _) => *number,
            Arithmetic::F64(_) => 70,
            Arithmetic::I32(_) => 72,
        }
    }

    /// The `cudaDataType` of the factors.
    pub(super) fn of_factors(&self) -> c_int {
        match self {
            Arithmetic::F32(..) => Type::F32.cublas(),
            Arithmetic::F64(_) => Type::F64.cublas(),
            Arithmetic::I32(_) => Type::I32.cublas(),
        }
    }

    /// The addresses of alpha and beta, for as long as this lives.
    pub(super) fn factors(&self) -> [*const c_void; 2] {
        match self {
            Arithmetic::F32(_, [alpha, beta]) => {
                [(&raw const *alpha).cast(), (&raw const *beta).cast()]
            }
            Arithmetic::F64([alpha, beta]) => {
                [(&raw const *alpha).cast(), (&raw const *beta).cast()]
            }
            Arithmetic::I32([alpha, beta]) => {
                [(&raw const *alpha).cast(), (&raw const *beta).cast()]
            }
        }
    }
}

/// A version in cuBLAS's notation: 130100 is 13.1.0. Before release 12 each part had fewer digits.
pub(super) fn version(number: usize) -> String {
    let (major, minor, patch) = match number {
        new if new >= 100_000 => (new / 10_000, new / 100 % 100, new % 100),
        old => (old / 1000, old / 100 % 10, old % 100),
    };
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Shape;

    #[test]
    fn sums_have_the_numbers_of_their_type() {
        let of = |arithmetic: Arithmetic| {
            let [alpha, beta] = arithmetic.factors();
            (arithmetic.number(), arithmetic.of_factors(), alpha, beta)
        };
        let f64s = Arithmetic::of([Type::F64; 2], Compute::Tf32, [0.5, 2.0]).unwrap();
        let (number, factors, alpha, beta) = of(f64s);
        assert_eq!((number, factors), (70, 1));
        assert_eq!(beta.addr() - alpha.addr(), 8);
        let number =
            |compute| Arithmetic::of([Type::F32; 2], compute, [1.0, 0.0]).unwrap().number();
        assert_eq!([Compute::Native, Compute::Tf32].map(number), [68, 77]);
        let halves = Arithmetic::of([Type::BF16, Type::F32], Compute::Tf32, [1.0, 0.0]).unwrap();
        assert_eq!((halves.number(), halves.of_factors()), (68, 0));
        let bytes = Arithmetic::of([Type::I8, Type::I32], Compute::Native, [2.0, 0.0]).unwrap();
        assert_eq!((bytes.number(), bytes.of_factors()), (72, 10));
    }

    #[test]
    fn a_missing_library_is_told_by_its_names() {
        let error = load(&["libcublas.so.none", "libcublas.so.neither"]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("no cuBLAS: "), "{text}");
        assert!(text.contains("libcublas.so.none") && text.contains("; "), "{text}");
        assert_eq!(error.exit_code(), 3);
    }

    #[test]
    fn a_library_without_the_function_is_told() {
        // Every machine that runs the test has the C library.
        let (library, name) = load(&["libc.so.6"]).unwrap();
        // SAFETY: the function does not exist, so its type does not matter.
        let error = unsafe { symbol::<usize>(&library, name, "cublasCreate_v2") }.unwrap_err();
        assert_eq!(error.to_string(), "no cuBLAS: libc.so.6 has no cublasCreate_v2");
    }

    #[test]
    fn sizes_beyond_its_integers_are_refused() {
        let dense = |m, n, k| DenseBatch::one(Shape::new(m, n, k).unwrap());
        assert_eq!(sizes(&dense(3, 2, 1)).unwrap(), [3, 2, 1, 1]);
        let error = sizes(&dense(1, 1 << 31, 1)).unwrap_err().to_string();
        assert_eq!(error, "n = 2147483648: cuBLAS takes sizes up to 2147483647");
    }

    #[test]
    fn a_status_is_named() {
        assert!(check("cublasSgemm_v2", 0).is_ok());
        let error = check("cublasSgemm_v2", 13).unwrap_err().to_string();
        assert!(error.starts_with("cublasSgemm_v2 failed: CUBLAS_STATUS_EXECUTION_FAILED (13)"));
    }

    #[test]
    fn versions() {
        assert_eq!([130_100, 120_804, 11_803].map(version), ["13.1.0", "12.8.4", "11.8.3"]);
    }
}
