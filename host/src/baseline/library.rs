//! Loads NVIDIA's libraries, and converts their status codes to errors.

use std::{error::Error as _, ffi::c_int};

use libloading::Library;

use super::DenseBatch;
use gpu_gemm::{Error, Result};

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
