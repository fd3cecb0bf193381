//! cuBLAS's float32 product, to compare with. Nothing else uses it, and nothing needs it: its library is looked
//! for when it is asked for, at run time.

use std::{
    error::Error as _,
    ffi::{c_int, c_void},
    ptr::null_mut,
    sync::Arc,
};

use cust::sys::CUstream;
use libloading::Library;

use crate::{
    cuda,
    error::{Error, Result},
    launch::Stream,
    matrix::Matrix,
    product::Shape,
};

/// The library's names, the newest first; the last is that of a toolkit.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, CUstream) -> c_int;
/// handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc.
type Sgemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> c_int;

/// `CUBLAS_OP_N`: as it stands.
const NOT_TRANSPOSED: c_int = 0;

/// cuBLAS on a stream, with its default arithmetic: float32, no tensor cores.
#[derive(Debug)]
pub struct Cublas<'a> {
    handle: Handle,
    stream: &'a Stream,
    context: Arc<cuda::Context>,
    sgemm: Sgemm,
    destroy: Destroy,
    name: &'static str,
    /// Keeps the code behind the pointers above; unloaded last.
    _library: Library,
}

impl<'a> Cublas<'a> {
    /// Loads the library and makes a handle whose work goes to `stream`.
    ///
    /// # Errors
    /// [`Error::NoCublas`] where there is no library; [`Error::Argument`] for a stream of the CPU device;
    /// [`Error::Driver`] where cuBLAS does not start.
    pub fn open(stream: &'a Stream) -> Result<Self> {
        let Some(queue) = stream.cuda() else {
            let limit = "cuBLAS runs on a GPU alone";
            return Err(Error::argument("device", stream.device().name(), limit));
        };
        let (library, name) = load(&NAMES)?;
        // SAFETY: the types are those of the functions in cuBLAS's documentation, the same in each of the
        // releases named; the pointers are used while `_library` is loaded.
        let (create, destroy, set_stream, sgemm) = unsafe {
            (
                *symbol::<Create>(&library, name, "cublasCreate_v2")?,
                *symbol::<Destroy>(&library, name, "cublasDestroy_v2")?,
                *symbol::<SetStream>(&library, name, "cublasSetStream_v2")?,
                *symbol::<Sgemm>(&library, name, "cublasSgemm_v2")?,
            )
        };
        let context = queue.context().clone();
        context.make_current()?;
        let mut handle = null_mut();
        // SAFETY: one handle is written, of the context that is current.
        check("cublasCreate_v2", unsafe { create(&mut handle) })?;
        // From here on it is destroyed whatever happens.
        let cublas = Cublas { handle, stream, context, sgemm, destroy, name, _library: library };
        // SAFETY: the stream is of the handle's context and outlives it: it is borrowed.
        check("cublasSetStream_v2", unsafe { set_stream(handle, queue.raw()) })?;
        Ok(cublas)
    }

    /// The name under which the library was found.
    pub fn file_name(&self) -> &'static str {
        self.name
    }

    /// `C = A B`, dense and row-major. Returns at once; the stream's next synchronisation waits.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices that do not fit together, lie on another device, or are larger than
    /// cuBLAS's 32-bit sizes; [`Error::Driver`] for cuBLAS's own.
    pub fn multiply(&self, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
        let shape = crate::product::dense_shape("cuBLAS", a, b, c)?;
        for (name, matrix) in [("A", a), ("B", b), ("C", &*c)] {
            if matrix.device() != self.stream.device() {
                let limit = format!("must lie on {}", self.stream.device().name());
                return Err(Error::argument(name, matrix.device().name(), limit));
            }
        }
        let [m, n, k] = sizes(shape)?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        let (a, b) =
            (a.buffer().all().address_on(self.stream)?, b.buffer().all().address_on(self.stream)?);
        let c = c.buffer_mut().all_mut().address_on(self.stream)?;
        let (one, zero) = (1.0, 0.0);
        // cuBLAS's matrices are column-major. A row-major matrix read so is its transpose, and
        // C^T = B^T A^T: the operands change places.
        let [lda, ldb, ldc] = [k, n, n].map(|leading| leading.max(1));
        // SAFETY: A, B and C have m k, k n and m n elements on this device (`dense_shape`), dense, as the
        // leading dimensions say. They are borrowed for this call; that work queued on a stream is waited for
        // before a buffer is freed is the driver's rule for every buffer. The factors are read at once: they
        // lie in the host's memory, cuBLAS's default.
        let status = unsafe {
            (self.sgemm)(
                self.handle,
                NOT_TRANSPOSED,
                NOT_TRANSPOSED,
                n,
                m,
                k,
                &one,
                b,
                ldb,
                a,
                lda,
                &zero,
                c,
                ldc,
            )
        };
        check("cublasSgemm_v2", status)
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        let _ = self.context.make_current();
        // SAFETY: nothing uses the handle after this.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

/// The first of these libraries that there is.
fn load(names: &[&'static str]) -> Result<(Library, &'static str)> {
    let mut reasons = Vec::new();
    for name in names {
        // SAFETY: loading runs the initialisers of NVIDIA's library, which any program that uses it runs.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok((library, name)),
            Err(error) => {
                reasons.push(error.source().map_or_else(|| error.to_string(), ToString::to_string));
            }
        }
    }
    Err(Error::NoCublas { reason: reasons.join("; ") })
}

/// # Safety
/// 1. `T` is the type of that function.
unsafe fn symbol<'l, T>(
    library: &'l Library,
    file: &str,
    name: &str,
) -> Result<libloading::Symbol<'l, T>> {
    // SAFETY: the caller's promise.
    unsafe { library.get(name) }
        .map_err(|_| Error::NoCublas { reason: format!("{file} has no {name}") })
}

/// The sizes as cuBLAS takes them.
fn sizes(shape: Shape) -> Result<[c_int; 3]> {
    let size = |name, value: usize| {
        let limit = || format!("cuBLAS takes sizes up to {}", c_int::MAX);
        c_int::try_from(value).map_err(|_| Error::argument(name, value, limit()))
    };
    Ok([size("m", shape.m())?, size("n", shape.n())?, size("k", shape.k())?])
}

fn check(call: &'static str, status: c_int) -> Result<()> {
    let name = match status {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        _ => "a status of cuBLAS",
    };
    let text = "see cublasStatus_t in the documentation of cuBLAS".to_owned();
    Err(Error::Driver { call, code: status, name: name.to_owned(), text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

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
        // The C library is there wherever a test runs.
        let (library, name) = load(&["libc.so.6"]).unwrap();
        // SAFETY: there is no such function, so its type does not matter.
        let error = unsafe { symbol::<Create>(&library, name, "cublasCreate_v2") }.unwrap_err();
        assert_eq!(error.to_string(), "no cuBLAS: libc.so.6 has no cublasCreate_v2");
    }

    #[test]
    fn it_is_not_for_the_cpu_and_not_for_sizes_beyond_its_integers() {
        let stream = Device::cpu().stream().unwrap();
        let error = Cublas::open(&stream).unwrap_err().to_string();
        assert_eq!(error, "device = cpu: cuBLAS runs on a GPU alone");
        assert_eq!(sizes(Shape::new(3, 2, 1).unwrap()).unwrap(), [3, 2, 1]);
        let error = sizes(Shape::new(1, 1 << 31, 1).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "n = 2147483648: cuBLAS takes sizes up to 2147483647");
    }

    #[test]
    fn a_status_is_named() {
        assert!(check("cublasSgemm_v2", 0).is_ok());
        let error = check("cublasSgemm_v2", 13).unwrap_err().to_string();
        assert!(error.starts_with("cublasSgemm_v2 failed: CUBLAS_STATUS_EXECUTION_FAILED (13)"));
    }
}
