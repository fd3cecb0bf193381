//! cuBLAS's products: of f32 and f64, and of 16-bit types with sums in f32.

use std::{
    ffi::{c_int, c_longlong, c_void},
    ptr::null_mut,
};

use libloading::Library;
use simt::types::Type;

use super::{
    DenseBatch,
    library::{Arithmetic, check, functions, load, sizes, symbol, version},
};
use gpu_gemm::{
    BufferView, BufferViewMut, Error, Matrix, Result, Stream,
    gemm::{Compute, Output, Scalar},
};

/// The library's file names, the newest first. The last is a toolkit's.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

type Handle = *mut c_void;

// The arguments' names are those of cuBLAS's documentation.
functions! {
    fn Create(handle: *mut Handle);
    fn Destroy(handle: Handle);
    fn SetStream(handle: Handle, stream: *mut c_void);
    fn SetMathMode(handle: Handle, mode: c_int);
    fn GetVersion(handle: Handle, version: *mut c_int);
    fn Sgemm(
        handle: Handle, transa: c_int, transb: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const f32, a: *const f32, lda: c_int, b: *const f32, ldb: c_int,
        beta: *const f32, c: *mut f32, ldc: c_int
    );
    fn SgemmStridedBatched(
        handle: Handle, transa: c_int, transb: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const f32, a: *const f32, lda: c_int, stride_a: c_longlong,
        b: *const f32, ldb: c_int, stride_b: c_longlong,
        beta: *const f32, c: *mut f32, ldc: c_int, stride_c: c_longlong, batch_count: c_int
    );
    fn GemmEx(
        handle: Handle, transa: c_int, transb: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, a_type: c_int, lda: c_int,
        b: *const c_void, b_type: c_int, ldb: c_int,
        beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: c_int,
        compute_type: c_int, algo: c_int
    );
    fn GemmStridedBatchedEx(
        handle: Handle, transa: c_int, transb: c_int, m: c_int, n: c_int, k: c_int,
        alpha: *const c_void, a: *const c_void, a_type: c_int, lda: c_int, stride_a: c_longlong,
        b: *const c_void, b_type: c_int, ldb: c_int, stride_b: c_longlong,
        beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: c_int, stride_c: c_longlong,
        batch_count: c_int, compute_type: c_int, algo: c_int
    );
}

/// `CUBLAS_GEMM_DEFAULT`: cuBLAS selects the algorithm.
const GEMM_DEFAULT: c_int = -1;

/// `CUBLAS_DEFAULT_MATH`: f32 is not rounded. (`NVIDIA_TF32_OVERRIDE=1` rounds it to tf32.)
const DEFAULT_MATH: c_int = 0;

/// cuBLAS on a stream, with its default arithmetic. Products of f32 do not use tensor cores, unless
/// [`Cublas::compute`] allows it. Products of bf16 do, with sums in f32.
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
    /// The code behind the function pointers above. It is unloaded last.
    _library: Library,
}

impl<'a> Cublas<'a> {
    /// Loads the library and makes a handle for a stream.
    ///
    /// # Errors
    /// [`Error::NoCublas`] if the library is not there; [`Error::Argument`] for a stream of the CPU
    /// device; [`Error::Driver`] if cuBLAS does not start.
    pub fn open(stream: &'a Stream) -> Result<Self> {
        let Some(queue) = stream.raw_cuda_stream() else {
            let limit = "cuBLAS runs on a GPU alone";
            return Err(Error::argument("device", stream.device().name(), limit));
        };
        let (library, name) = load(&NAMES)?;
        // SAFETY: the types are those of cuBLAS's documentation, the same in each release named.
        // The pointers are used while `_library` is loaded.
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
        // SAFETY: one handle is written, of the current context.
        check("cublasCreate_v2", unsafe { create(&mut handle) })?;
        // From here on the handle is destroyed on every path.
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
        // SAFETY: the stream belongs to the handle's context. It is borrowed, so it outlives the
        // handle.
        check("cublasSetStream_v2", unsafe { set_stream(handle, queue) })?;
        // SAFETY: the handle exists.
        check("cublasSetMathMode", unsafe { set_math_mode(handle, DEFAULT_MATH) })?;
        let mut number = 0;
        // SAFETY: one number is written.
        check("cublasGetVersion_v2", unsafe { get_version(handle, &mut number) })?;
        cublas.version = version(number.unsigned_abs() as usize);
        Ok(cublas)
    }

    /// The arithmetic for products of f32. [`Compute::Tf32`] is `CUBLAS_COMPUTE_32F_FAST_TF32`.
    #[must_use]
    pub fn compute(mut self, compute: Compute) -> Self {
        self.compute = compute;
        self
    }

    /// The file name of the library.
    pub fn file_name(&self) -> &'static str {
        self.name
    }

    /// The version: `13.1.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `C = A B`, dense and row-major. Returns at once. The stream's next synchronisation waits.
    ///
    /// # Errors
    /// [`Error::Argument`] for matrices that do not fit together, are on another device, or exceed
    /// cuBLAS's 32-bit sizes; [`Error::Driver`] for cuBLAS's own errors.
    pub fn multiply(&self, a: &Matrix<f32>, b: &Matrix<f32>, c: &mut Matrix<f32>) -> Result<()> {
        let shape = gpu_gemm::product::dense_shape("cuBLAS", a, b, c)?;
        let (a, b, c) = (a.buffer().all(), b.buffer().all(), c.buffer_mut());
        self.launch(&DenseBatch::one(shape), [1.0, 0.0], a, b, c)
    }

    /// `C = alpha A B + beta C` of dense matrices, by one call. For f32 it is `cublasSgemm`, or
    /// `cublasSgemmStridedBatched` for several products. For other types, and if factors may be
    /// rounded, it is `cublasGemmEx` or `cublasGemmStridedBatchedEx`. Returns at once.
    ///
    /// # Errors
    /// As [`Cublas::multiply`].
    pub fn launch<T: Scalar<O>, O: Output>(
        &self,
        product: &DenseBatch,
        factors: [f32; 2],
        a: BufferView<T>,
        b: BufferView<T>,
        mut c: BufferViewMut<O>,
    ) -> Result<()> {
        product.check(self.stream, &a, &b, &c)?;
        let [m, n, _, count] = sizes(product)?;
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        self.stream.device().make_current()?;
        let (a, b) = (a.address_on(self.stream)?, b.address_on(self.stream)?);
        let c = c.address_on(self.stream)?;
        // SAFETY: A, B and C have m k, k n and m n elements on this device, `count` times,
        // contiguous and dense (`DenseBatch::check`). They are borrowed for this call. A buffer is
        // freed only after the work that was queued before.
        unsafe { self.call([T::TYPE, O::TYPE], product, factors, [a.cast(), b.cast()], c.cast()) }
    }

    /// Calls the function for these types.
    ///
    /// # Safety
    /// 1. A, B and C have the elements of the product, dense, of these types, on the stream's
    ///    device, until the work that is queued now has ended.
    unsafe fn call(
        &self,
        types: [Type; 2],
        product: &DenseBatch,
        factors: [f32; 2],
        [a, b]: [*const c_void; 2],
        c: *mut c_void,
    ) -> Result<()> {
        let [m, n, k, count] = sizes(product)?;
        // cuBLAS's matrices are column-major. A row-major matrix that is read so is its transpose,
        // and C^T = B^T A^T. So A and B are swapped. A transposed operand is transposed once more
        // (`CUBLAS_OP_T` is 1, `CUBLAS_OP_N` is 0), and has the other leading dimension.
        let [a_transposed, b_transposed] = product.transposed;
        let (of_a, of_b) = (c_int::from(a_transposed), c_int::from(b_transposed));
        let lda = if a_transposed { m } else { k }.max(1);
        let ldb = if b_transposed { k } else { n }.max(1);
        let handle = self.handle;
        let shape = product.shape;
        let [step_a, step_b, step_c] =
            [shape.a_len(), shape.b_len(), shape.c_len()].map(|len| len as c_longlong);
        let arithmetic = Arithmetic::of(types, self.compute, factors)?;
        let is_f32 = types == [Type::F32; 2] && self.compute != Compute::Tf32;
        let [of_t, of_o] = types.map(Type::cublas);
        let ([alpha, beta], [alpha_f32, beta_f32]) = (arithmetic.factors(), factors);
        let (sums, way) = (arithmetic.number(), GEMM_DEFAULT);
        // SAFETY: condition 1: the leading dimensions and types say so. The factors have the type
        // of the sums, as the arithmetic requires. They are in host memory, cuBLAS's default, and
        // are read at once.
        let (call, status) = unsafe {
            match (is_f32, count) {
                (true, 1) => {
                    let (a, b, c) = (a.cast(), b.cast(), c.cast());
                    let status = (self.sgemm)(
                        handle, of_b, of_a, n, m, k, &alpha_f32, b, ldb, a, lda, &beta_f32, c, n,
                    );
                    ("cublasSgemm_v2", status)
                }
                (true, _) => {
                    let (a, b, c) = (a.cast(), b.cast(), c.cast());
                    let status = (self.batched)(
                        handle, of_b, of_a, n, m, k, &alpha_f32, b, ldb, step_b, a, lda, step_a,
                        &beta_f32, c, n, step_c, count,
                    );
                    ("cublasSgemmStridedBatched", status)
                }
                (false, 1) => {
                    let status = (self.gemm_ex)(
                        handle, of_b, of_a, n, m, k, alpha, b, of_t, ldb, a, of_t, lda, beta, c,
                        of_o, n, sums, way,
                    );
                    ("cublasGemmEx", status)
                }
                (false, _) => {
                    let status = (self.batched_ex)(
                        handle, of_b, of_a, n, m, k, alpha, b, of_t, ldb, step_b, a, of_t, lda,
                        step_a, beta, c, of_o, n, step_c, count, sums, way,
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
