//! cuBLAS's float32 product.

use std::{
    ffi::{c_int, c_longlong, c_void},
    ptr::null_mut,
    sync::Arc,
};

use cust::sys::CUstream;
use libloading::Library;

use super::{
    DenseBatch,
    library::{check, load, sizes, symbol, version},
};
use crate::{
    buffer::{BufferView, BufferViewMut},
    cuda,
    error::{Error, Result},
    launch::Stream,
    matrix::Matrix,
};

/// The library's names, the newest first; the last is that of a toolkit.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, CUstream) -> c_int;
type SetMathMode = unsafe extern "C" fn(Handle, c_int) -> c_int;
type GetVersion = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
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
/// handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount.
type SgemmStridedBatched = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    c_longlong,
    *const f32,
    c_int,
    c_longlong,
    *const f32,
    *mut f32,
    c_int,
    c_longlong,
    c_int,
) -> c_int;

/// `CUBLAS_DEFAULT_MATH`: float32 as it is. (`NVIDIA_TF32_OVERRIDE=1` makes TF32 of it.)
const DEFAULT_MATH: c_int = 0;

/// cuBLAS on a stream, with its default arithmetic: float32, no tensor cores.
#[derive(Debug)]
pub struct Cublas<'a> {
    handle: Handle,
    stream: &'a Stream,
    context: Arc<cuda::Context>,
    sgemm: Sgemm,
    batched: SgemmStridedBatched,
    destroy: Destroy,
    name: &'static str,
    version: String,
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
        let (create, destroy, set_stream, set_math_mode, get_version, sgemm, batched) = unsafe {
            (
                symbol::<Create>(&library, name, "cublasCreate_v2")?,
                symbol::<Destroy>(&library, name, "cublasDestroy_v2")?,
                symbol::<SetStream>(&library, name, "cublasSetStream_v2")?,
                symbol::<SetMathMode>(&library, name, "cublasSetMathMode")?,
                symbol::<GetVersion>(&library, name, "cublasGetVersion_v2")?,
                symbol::<Sgemm>(&library, name, "cublasSgemm_v2")?,
                symbol::<SgemmStridedBatched>(&library, name, "cublasSgemmStridedBatched")?,
            )
        };
        let context = queue.context().clone();
        context.make_current()?;
        let mut handle = null_mut();
        // SAFETY: one handle is written, of the context that is current.
        check("cublasCreate_v2", unsafe { create(&mut handle) })?;
        // From here on it is destroyed whatever happens.
        let mut cublas = Cublas {
            handle,
            stream,
            context,
            sgemm,
            batched,
            destroy,
            name,
            version: String::new(),
            _library: library,
        };
        // SAFETY: the stream is of the handle's context and outlives it: it is borrowed.
        check("cublasSetStream_v2", unsafe { set_stream(handle, queue.raw()) })?;
        // SAFETY: the handle is there.
        check("cublasSetMathMode", unsafe { set_math_mode(handle, DEFAULT_MATH) })?;
        let mut number = 0;
        // SAFETY: one number is written.
        check("cublasGetVersion_v2", unsafe { get_version(handle, &mut number) })?;
        cublas.version = version(number.unsigned_abs() as usize);
        Ok(cublas)
    }

    /// The name under which the library was found.
    pub fn file_name(&self) -> &'static str {
        self.name
    }

    /// Its version: `13.1.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `C = A B`, dense and row-major. Returns at once; the stream's next synchronisation waits.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices that do not fit together, lie on another device, or are larger than
    /// cuBLAS's 32-bit sizes; [`Error::Driver`] for cuBLAS's own.
    pub fn multiply(&self, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
        let shape = crate::product::dense_shape("cuBLAS", a, b, c)?;
        let (a, b, c) = (a.buffer().all(), b.buffer().all(), c.buffer_mut());
        self.launch(&DenseBatch::one(shape), a, b, c)
    }

    /// Products of dense matrices, by one call: `cublasSgemm`, or of several `cublasSgemmStridedBatched`. Returns at
    /// once.
    ///
    /// # Errors
    /// As [`Cublas::multiply`].
    pub fn launch(
        &self,
        product: &DenseBatch,
        a: BufferView<f32>,
        b: BufferView<f32>,
        mut c: BufferViewMut<f32>,
    ) -> Result<()> {
        product.check(self.stream, &a, &b, &c)?;
        let [m, n, k, count] = sizes(product)?;
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        let (a, b) = (a.address_on(self.stream)?, b.address_on(self.stream)?);
        let c = c.address_on(self.stream)?;
        let (one, zero) = (1.0, 0.0);
        // cuBLAS's matrices are column-major. A row-major matrix read so is its transpose, and
        // C^T = B^T A^T: the operands change places. What lies transposed is transposed once more (`CUBLAS_OP_T` is
        // 1, `CUBLAS_OP_N` is 0), and its leading dimension is the other.
        let [a_transposed, b_transposed] = product.transposed;
        let (of_a, of_b) = (c_int::from(a_transposed), c_int::from(b_transposed));
        let lda = if a_transposed { m } else { k }.max(1);
        let ldb = if b_transposed { k } else { n }.max(1);
        let handle = self.handle;
        if count == 1 {
            // SAFETY: A, B and C have m k, k n and m n elements on this device (`DenseBatch::check`), dense, as the
            // leading dimensions say. They are borrowed for this call; that work queued on a stream is waited for
            // before a buffer is freed is the driver's rule for every buffer. The factors are read at once: they
            // lie in the host's memory, cuBLAS's default.
            let status = unsafe {
                (self.sgemm)(handle, of_b, of_a, n, m, k, &one, b, ldb, a, lda, &zero, c, n)
            };
            return check("cublasSgemm_v2", status);
        }
        let shape = product.shape;
        let [step_a, step_b, step_c] =
            [shape.a_len(), shape.b_len(), shape.c_len()].map(|len| len as c_longlong);
        // SAFETY: as above, of `count` matrices each, one right behind the other.
        let status = unsafe {
            (self.batched)(
                handle, of_b, of_a, n, m, k, &one, b, ldb, step_b, a, lda, step_a, &zero, c, n,
                step_c, count,
            )
        };
        check("cublasSgemmStridedBatched", status)
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        let _ = self.context.make_current();
        // SAFETY: nothing uses the handle after this.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn it_is_not_for_the_cpu() {
        let stream = Device::cpu().stream().unwrap();
        let error = Cublas::open(&stream).unwrap_err().to_string();
        assert_eq!(error, "device = cpu: cuBLAS runs on a GPU alone");
    }
}
