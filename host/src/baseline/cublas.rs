//! cuBLAS's products: of float32, and of bfloat16 with sums of float32.

use std::{
    ffi::{c_int, c_longlong, c_void},
    ptr::null_mut,
};

use libloading::Library;

use super::{
    DataType, DenseBatch,
    library::{check, load, sizes, symbol, version},
};
use gpu_gemm::{BufferView, BufferViewMut, Error, Matrix, Result, Stream, gemm::Compute};

/// The library's names, the newest first; the last is that of a toolkit.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
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

/// handle, transa, transb, m, n, k, alpha, A, its type, lda, strideA, B, its type, ldb, strideB, beta, C, its type, ldc,
/// strideC, batchCount, arithmetic, algorithm.
type GemmStridedBatchedEx = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    c_longlong,
    c_int,
    c_int,
    c_int,
) -> c_int;
/// handle, transa, transb, m, n, k, alpha, A, its type, lda, B, its type, ldb, beta, C, its type, ldc, arithmetic, algorithm.
type GemmEx = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    *const c_void,
    c_int,
    c_int,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// `CUBLAS_COMPUTE_32F`: sums and factors of float32.
const COMPUTE_32F: c_int = 68;
/// `CUBLAS_COMPUTE_32F_FAST_TF32`: factors of float32 may be rounded to TF32 for tensor cores.
const COMPUTE_32F_FAST_TF32: c_int = 77;
/// `CUBLAS_GEMM_DEFAULT`: its own choice of an algorithm.
const GEMM_DEFAULT: c_int = -1;

/// `CUBLAS_DEFAULT_MATH`: float32 as it is. (`NVIDIA_TF32_OVERRIDE=1` makes TF32 of it.)
const DEFAULT_MATH: c_int = 0;

/// cuBLAS on a stream, with its default arithmetic: of float32 no tensor cores (unless [`Cublas::compute`] lets it), of
/// bfloat16 their products, summed up in float32.
#[derive(Debug)]
pub struct Cublas<'a> {
    handle: Handle,
    stream: &'a Stream,
    sgemm: Sgemm,
    batched: SgemmStridedBatched,
    gemm_ex: GemmEx,
    batched_ex: GemmStridedBatchedEx,
    destroy: Destroy,
    compute: Compute,
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
        let Some(queue) = stream.raw_cuda_stream() else {
            let limit = "cuBLAS runs on a GPU alone";
            return Err(Error::argument("device", stream.device().name(), limit));
        };
        let (library, name) = load(&NAMES)?;
        // SAFETY: the types are those of the functions in cuBLAS's documentation, the same in each of the
        // releases named; the pointers are used while `_library` is loaded.
        let (create, destroy, set_stream, set_math_mode, get_version) = unsafe {
            (
                symbol::<Create>(&library, name, "cublasCreate_v2")?,
                symbol::<Destroy>(&library, name, "cublasDestroy_v2")?,
                symbol::<SetStream>(&library, name, "cublasSetStream_v2")?,
                symbol::<SetMathMode>(&library, name, "cublasSetMathMode")?,
                symbol::<GetVersion>(&library, name, "cublasGetVersion_v2")?,
            )
        };
        // SAFETY: as above; its enums are ints.
        let (sgemm, batched, gemm_ex, batched_ex) = unsafe {
            (
                symbol::<Sgemm>(&library, name, "cublasSgemm_v2")?,
                symbol::<SgemmStridedBatched>(&library, name, "cublasSgemmStridedBatched")?,
                symbol::<GemmEx>(&library, name, "cublasGemmEx")?,
                symbol::<GemmStridedBatchedEx>(&library, name, "cublasGemmStridedBatchedEx")?,
            )
        };
        stream.device().make_current()?;
        let mut handle = null_mut();
        // SAFETY: one handle is written, of the context that is current.
        check("cublasCreate_v2", unsafe { create(&mut handle) })?;
        // From here on it is destroyed whatever happens.
        let mut cublas = Cublas {
            handle,
            stream,
            sgemm,
            batched,
            gemm_ex,
            batched_ex,
            destroy,
            compute: Compute::Native,
            name,
            version: String::new(),
            _library: library,
        };
        // SAFETY: the stream is of the handle's context and outlives it: it is borrowed.
        check("cublasSetStream_v2", unsafe { set_stream(handle, queue) })?;
        // SAFETY: the handle is there.
        check("cublasSetMathMode", unsafe { set_math_mode(handle, DEFAULT_MATH) })?;
        let mut number = 0;
        // SAFETY: one number is written.
        check("cublasGetVersion_v2", unsafe { get_version(handle, &mut number) })?;
        cublas.version = version(number.unsigned_abs() as usize);
        Ok(cublas)
    }

    /// How it may compute products of float32: [`Compute::Tf32`] is `CUBLAS_COMPUTE_32F_FAST_TF32`.
    #[must_use]
    pub fn compute(mut self, compute: Compute) -> Self {
        self.compute = compute;
        self
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
        let shape = gpu_gemm::product::dense_shape("cuBLAS", a, b, c)?;
        let (a, b, c) = (a.buffer().all(), b.buffer().all(), c.buffer_mut());
        self.launch(&DenseBatch::one(shape), a, b, c)
    }

    /// Products of dense matrices, by one call: `cublasSgemm`, or of several `cublasSgemmStridedBatched`; of other types
    /// than f32, and where they may be rounded, `cublasGemmEx`, `cublasGemmStridedBatchedEx`. Returns at once.
    ///
    /// # Errors
    /// As [`Cublas::multiply`].
    pub fn launch<T: DataType, O: DataType>(
        &self,
        product: &DenseBatch,
        a: BufferView<T>,
        b: BufferView<T>,
        mut c: BufferViewMut<O>,
    ) -> Result<()> {
        product.check(self.stream, &a, &b, &c)?;
        let [m, n, k, count] = sizes(product)?;
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        self.stream.device().make_current()?;
        let (a, b) = (a.address_on(self.stream)?, b.address_on(self.stream)?);
        let c = c.address_on(self.stream)?;
        let (one, zero) = (1.0f32, 0.0f32);
        // cuBLAS's matrices are column-major. A row-major matrix read so is its transpose, and
        // C^T = B^T A^T: the operands change places. What lies transposed is transposed once more (`CUBLAS_OP_T` is
        // 1, `CUBLAS_OP_N` is 0), and its leading dimension is the other.
        let [a_transposed, b_transposed] = product.transposed;
        let (of_a, of_b) = (c_int::from(a_transposed), c_int::from(b_transposed));
        let lda = if a_transposed { m } else { k }.max(1);
        let ldb = if b_transposed { k } else { n }.max(1);
        let handle = self.handle;
        let shape = product.shape;
        let [step_a, step_b, step_c] =
            [shape.a_len(), shape.b_len(), shape.c_len()].map(|len| len as c_longlong);
        let of_f32 = T::CUDA == f32::CUDA && O::CUDA == f32::CUDA;
        let is_f32 = of_f32 && self.compute != Compute::Tf32;
        let arithmetic = if of_f32 { COMPUTE_32F_FAST_TF32 } else { COMPUTE_32F };
        // SAFETY: A, B and C have m k, k n and m n elements on this device (`DenseBatch::check`), `count` times one right
        // behind the other, dense, as the leading dimensions say, and of the types that are named, or of f32. They are
        // borrowed for this call; that work queued on a stream is waited for before a buffer is freed is the driver's rule
        // for every buffer. The factors, of f32 as the arithmetic wants them, are read at once: they lie in the host's
        // memory, cuBLAS's default.
        let (call, status) = unsafe {
            match (is_f32, count) {
                (true, 1) => {
                    let (a, b, c) = (a.cast(), b.cast(), c.cast());
                    let status = (self.sgemm)(
                        handle, of_b, of_a, n, m, k, &one, b, ldb, a, lda, &zero, c, n,
                    );
                    ("cublasSgemm_v2", status)
                }
                (true, _) => {
                    let (a, b, c) = (a.cast(), b.cast(), c.cast());
                    let status = (self.batched)(
                        handle, of_b, of_a, n, m, k, &one, b, ldb, step_b, a, lda, step_a, &zero,
                        c, n, step_c, count,
                    );
                    ("cublasSgemmStridedBatched", status)
                }
                (false, 1) => {
                    let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
                    let (a, b, c) = (a.cast(), b.cast(), c.cast());
                    let status = (self.gemm_ex)(
                        handle,
                        of_b,
                        of_a,
                        n,
                        m,
                        k,
                        one,
                        b,
                        T::CUDA,
                        ldb,
                        a,
                        T::CUDA,
                        lda,
                        zero,
                        c,
                        O::CUDA,
                        n,
                        arithmetic,
                        GEMM_DEFAULT,
                    );
                    ("cublasGemmEx", status)
                }
                (false, _) => {
                    let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
                    let (a, b, c) = (a.cast(), b.cast(), c.cast());
                    let status = (self.batched_ex)(
                        handle,
                        of_b,
                        of_a,
                        n,
                        m,
                        k,
                        one,
                        b,
                        T::CUDA,
                        ldb,
                        step_b,
                        a,
                        T::CUDA,
                        lda,
                        step_a,
                        zero,
                        c,
                        O::CUDA,
                        n,
                        step_c,
                        count,
                        arithmetic,
                        GEMM_DEFAULT,
                    );
                    ("cublasGemmStridedBatchedEx", status)
                }
            }
        };
        check(call, status)
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        let _ = self.stream.device().make_current();
        // SAFETY: nothing uses the handle after this.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Device;

    #[test]
    fn it_is_not_for_the_cpu() {
        let stream = Device::cpu().stream().unwrap();
        let error = Cublas::open(&stream).unwrap_err().to_string();
        assert_eq!(error, "device = cpu: cuBLAS runs on a GPU alone");
    }
}
