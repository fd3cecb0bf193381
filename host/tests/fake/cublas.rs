//! A stand-in for `libcublas.so.13` and `libcublasLt.so.13`. `bench.rs` compiles it, not Cargo.
//! Device memory is host memory, as in the stand-in for the driver.
//!
//! The environment variable `FAKE_CUBLAS` sets the arithmetic: `fp32`, `tf32` (factors with 11
//! bits, as with `NVIDIA_TF32_OVERRIDE=1`), or `nothing` (C is not changed). With `refused` cuBLAS
//! returns an error, and cublasLt computes in fp32. Wrong arguments make it panic.

#![allow(non_snake_case)]

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;

type Handle = *mut c_void;

const HANDLE: usize = 0x6000;
/// The handles of the driver's streams begin with this one.
const STREAM: usize = 0x4000;
const WORKSPACE: usize = 32 << 20;
const NOT_SUPPORTED: c_int = 15;

/// `CUDA_R_32F`, `CUDA_R_16F`, `CUDA_R_16BF`.
const F32: c_int = 0;
const F16: c_int = 2;
const BF16: c_int = 14;
/// `CUBLAS_COMPUTE_32F`.
const COMPUTE_32F: c_int = 68;
/// `CUBLAS_GEMM_DEFAULT`.
const GEMM_DEFAULT: c_int = -1;

/// `CUBLASLT_EPILOGUE_DEFAULT`, `_RELU`, `_BIAS`, `_GELU`.
const DEFAULT: u32 = 1;
const RELU: u32 = 2;
const BIAS: u32 = 4;
const GELU: u32 = 32;

/// Bytes of an element.
fn bytes_of(kind: c_int) -> usize {
    match kind {
        F32 => 4,
        F16 | BF16 => 2,
        other => panic!("elements of type {other}"),
    }
}

/// A finite f16 as f32: its exponent is 112 less than that of the f32 with the same fields.
fn of_half(bits: u16) -> f32 {
    let size = f32::from_bits(u32::from(bits & 0x7fff) << 13) * 2f32.powi(112);
    if bits >> 15 == 1 { -size } else { size }
}

/// The nearest f16. Ties go to the even one.
fn to_half(value: f32) -> u16 {
    let bits = (value.abs() * 2f32.powi(-112)).to_bits();
    let nearest = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
    nearest as u16 | (u16::from(value.is_sign_negative()) << 15)
}

/// A column-major matrix, transposed or not, and the step to the next matrix.
#[derive(Clone, Copy)]
struct Matrix {
    start: *mut c_void,
    kind: c_int,
    leading: usize,
    transposed: bool,
    step: usize,
}

impl Matrix {
    unsafe fn place(&self, index: usize, row: usize, col: usize) -> *mut c_void {
        let (row, col) = if self.transposed { (col, row) } else { (row, col) };
        let element = index * self.step + row + col * self.leading;
        unsafe { self.start.byte_add(element * bytes_of(self.kind)) }
    }

    unsafe fn read(&self, index: usize, row: usize, col: usize) -> f32 {
        let place = unsafe { self.place(index, row, col) };
        match self.kind {
            BF16 => f32::from_bits(u32::from(unsafe { *place.cast::<u16>() }) << 16),
            F16 => of_half(unsafe { *place.cast() }),
            _ => unsafe { *place.cast() },
        }
    }

    unsafe fn write(&self, index: usize, row: usize, col: usize, value: f32) {
        let place = unsafe { self.place(index, row, col) };
        // The nearest bf16. Ties go to the even one.
        let bits = value.to_bits();
        let nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        match self.kind {
            BF16 => unsafe { *place.cast::<u16>() = nearest as u16 },
            F16 => unsafe { *place.cast() = to_half(value) },
            _ => unsafe { *place.cast::<f32>() = value },
        }
    }
}

/// What is done with a product: the factors, the address of the bias or null, and the function.
#[derive(Clone, Copy)]
struct Epilogue {
    alpha: f32,
    beta: f32,
    bias: *mut c_void,
    function: u32,
}

/// C (m x n) = function(alpha A (m x k) B (k x n) + beta C + bias), `count` times. The bias is
/// along the rows of C.
unsafe fn multiply([m, n, k, count]: [usize; 4], [a, b, c]: [Matrix; 3], epilogue: Epilogue) {
    let computes = std::env::var("FAKE_CUBLAS").unwrap_or_default();
    let factor = |x: f32| match &*computes {
        "tf32" => f32::from_bits((x.to_bits() + 0x1000) & !0x1fff),
        _ => x,
    };
    if computes == "nothing" {
        return;
    }
    // cuBLAS's combinations of types.
    let together = a.kind == b.kind && (a.kind == c.kind || c.kind == F32);
    assert!(together, "CUBLAS_STATUS_NOT_SUPPORTED");
    for index in 0..count {
        for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
            unsafe {
                let product = |p| factor(a.read(index, row, p)) * factor(b.read(index, p, col));
                let mut value = epilogue.alpha * (0..k).map(product).sum::<f32>();
                value += if epilogue.beta == 0.0 { 0.0 } else { epilogue.beta * c.read(index, row, col) };
                if !epilogue.bias.is_null() {
                    let bias = Matrix { start: epilogue.bias, leading: m, step: 0, ..c };
                    value += bias.read(0, row, 0);
                }
                let value = match epilogue.function {
                    RELU if value < 0.0 => 0.0,
                    GELU => {
                        let inner = 0.797_884_56 * (value + 0.044_715 * value * value * value);
                        0.5 * value * (1.0 + inner.tanh())
                    }
                    _ => value,
                };
                c.write(index, row, col, value);
            }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasCreate_v2(handle: *mut Handle) -> c_int {
    unsafe { *handle = HANDLE as Handle };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasDestroy_v2(handle: Handle) -> c_int {
    assert_eq!(handle as usize, HANDLE);
    0
}

fn is_stream(stream: Handle) -> bool {
    (STREAM..STREAM + 0x1000).contains(&(stream as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasSetStream_v2(handle: Handle, stream: Handle) -> c_int {
    assert_eq!(handle as usize, HANDLE);
    assert!(is_stream(stream));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasSetMathMode(handle: Handle, mode: c_int) -> c_int {
    assert_eq!((handle as usize, mode), (HANDLE, 0), "CUBLAS_DEFAULT_MATH");
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGetVersion_v2(_: Handle, version: *mut c_int) -> c_int {
    unsafe { *version = 130_100 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasSgemm_v2(
    handle: Handle, of_a: c_int, of_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const f32,
    a: *mut f32, lda: c_int, b: *mut f32, ldb: c_int, beta: *const f32, c: *mut f32, ldc: c_int,
) -> c_int {
    unsafe {
        cublasSgemmStridedBatched(
            handle, of_a, of_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasSgemmStridedBatched(
    handle: Handle, of_a: c_int, of_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const f32,
    a: *mut f32, lda: c_int, step_a: c_longlong, b: *mut f32, ldb: c_int, step_b: c_longlong,
    beta: *const f32, c: *mut f32, ldc: c_int, step_c: c_longlong, count: c_int,
) -> c_int {
    let f32s = |matrix: *mut f32| matrix.cast::<c_void>();
    unsafe {
        strided_batched(
            handle, [of_a, of_b], [m, n, k, count], alpha, [f32s(a), f32s(b), f32s(c)], [F32; 3],
            [lda, ldb, ldc], [step_a, step_b, step_c], beta,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGemmEx(
    handle: Handle, of_a: c_int, of_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const f32,
    a: *mut c_void, kind_a: c_int, lda: c_int, b: *mut c_void, kind_b: c_int, ldb: c_int,
    beta: *const f32, c: *mut c_void, kind_c: c_int, ldc: c_int, compute: c_int, algorithm: c_int,
) -> c_int {
    unsafe {
        cublasGemmStridedBatchedEx(
            handle, of_a, of_b, m, n, k, alpha, a, kind_a, lda, 0, b, kind_b, ldb, 0, beta, c,
            kind_c, ldc, 0, 1, compute, algorithm,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGemmStridedBatchedEx(
    handle: Handle, of_a: c_int, of_b: c_int, m: c_int, n: c_int, k: c_int, alpha: *const f32,
    a: *mut c_void, kind_a: c_int, lda: c_int, step_a: c_longlong, b: *mut c_void, kind_b: c_int,
    ldb: c_int, step_b: c_longlong, beta: *const f32, c: *mut c_void, kind_c: c_int, ldc: c_int,
    step_c: c_longlong, count: c_int, compute: c_int, algorithm: c_int,
) -> c_int {
    assert_eq!((compute, algorithm), (COMPUTE_32F, GEMM_DEFAULT));
    unsafe {
        strided_batched(
            handle, [of_a, of_b], [m, n, k, count], alpha, [a, b, c], [kind_a, kind_b, kind_c],
            [lda, ldb, ldc], [step_a, step_b, step_c], beta,
        )
    }
}

/// The product of all four cuBLAS functions.
unsafe fn strided_batched(
    handle: Handle, [of_a, of_b]: [c_int; 2], [m, n, k, count]: [c_int; 4], alpha: *const f32,
    starts: [*mut c_void; 3], kinds: [c_int; 3], leading: [c_int; 3], steps: [c_longlong; 3],
    beta: *const f32,
) -> c_int {
    if std::env::var("FAKE_CUBLAS").is_ok_and(|computes| computes == "refused") {
        return NOT_SUPPORTED;
    }
    let [lda, ldb, ldc] = leading;
    assert_eq!(handle as usize, HANDLE);
    // cuBLAS refuses these with CUBLAS_STATUS_INVALID_VALUE.
    let rows = |of, plain, transposed| if of == 0 { plain } else { transposed };
    if lda < rows(of_a, m, k) || ldb < rows(of_b, k, n) || ldc < m {
        return 7;
    }
    let transposed = [of_a, of_b, 0].map(|of| [false, true][of as usize]);
    let matrices = [0, 1, 2].map(|i| Matrix {
        start: starts[i],
        kind: kinds[i],
        leading: leading[i] as usize,
        transposed: transposed[i],
        step: steps[i] as usize,
    });
    let (alpha, beta) = unsafe { (*alpha, *beta) };
    let epilogue = Epilogue { alpha, beta, bias: null_mut(), function: 0 };
    unsafe { multiply([m, n, k, count].map(|size| size as usize), matrices, epilogue) };
    0
}

/// `cublasLtMatmulDesc_t`.
struct Operation {
    transposed: [bool; 2],
    epilogue: u32,
    bias: *mut c_void,
}

/// `cublasLtMatrixLayout_t`.
struct Layout {
    kind: c_int,
    rows: usize,
    cols: usize,
    leading: usize,
    count: usize,
    step: usize,
}

/// `cublasLtMatmulPreference_t`.
struct Preference {
    workspace: usize,
    alignments: [usize; 4],
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
struct Proposal {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// The number of existing objects of that kind.
static ALIVE: std::sync::Mutex<i64> = std::sync::Mutex::new(0);

unsafe fn make<T>(place: *mut Handle, value: T) -> c_int {
    *ALIVE.lock().unwrap() += 1;
    unsafe { *place = Box::into_raw(Box::new(value)).cast() };
    0
}

unsafe fn destroy<T>(object: Handle) -> c_int {
    *ALIVE.lock().unwrap() -= 1;
    drop(unsafe { Box::from_raw(object.cast::<T>()) });
    0
}

unsafe fn value<T: Copy>(from: *const c_void, bytes: usize) -> T {
    assert_eq!(bytes, size_of::<T>(), "CUBLAS_STATUS_INVALID_VALUE");
    unsafe { *from.cast::<T>() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtCreate(handle: *mut Handle) -> c_int {
    unsafe { *handle = HANDLE as Handle };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtDestroy(handle: Handle) -> c_int {
    assert_eq!(handle as usize, HANDLE);
    assert_eq!(*ALIVE.lock().unwrap(), 0, "descriptions outlive the handle");
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtGetVersion() -> usize {
    130_100
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescCreate(place: *mut Handle, compute: c_int, scale: c_int) -> c_int {
    assert_eq!((compute, scale), (68, 0), "CUBLAS_COMPUTE_32F, CUDA_R_32F");
    unsafe { make(place, Operation { transposed: [false; 2], epilogue: DEFAULT, bias: null_mut() }) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescDestroy(object: Handle) -> c_int {
    unsafe { destroy::<Operation>(object) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    object: Handle, attribute: c_int, from: *const c_void, bytes: usize,
) -> c_int {
    let operation = unsafe { &mut *object.cast::<Operation>() };
    match attribute {
        // CUBLASLT_MATMUL_DESC_TRANSA and TRANSB.
        3 | 4 => operation.transposed[attribute as usize - 3] = unsafe { value::<c_int>(from, bytes) } != 0,
        // CUBLASLT_MATMUL_DESC_EPILOGUE and BIAS_POINTER.
        7 => operation.epilogue = unsafe { value(from, bytes) },
        8 => operation.bias = unsafe { value(from, bytes) },
        other => panic!("attribute {other}"),
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    place: *mut Handle, kind: c_int, rows: u64, cols: u64, leading: i64,
) -> c_int {
    assert!(leading as u64 >= rows, "column-major");
    let [rows, cols, leading] = [rows, cols, leading as u64].map(|size| size as usize);
    unsafe { make(place, Layout { kind, rows, cols, leading, count: 1, step: 0 }) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutDestroy(object: Handle) -> c_int {
    unsafe { destroy::<Layout>(object) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    object: Handle, attribute: c_int, from: *const c_void, bytes: usize,
) -> c_int {
    let layout = unsafe { &mut *object.cast::<Layout>() };
    match attribute {
        5 => layout.count = unsafe { value::<i32>(from, bytes) } as usize,
        6 => layout.step = unsafe { value::<i64>(from, bytes) } as usize,
        other => panic!("layout attribute {other}"),
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceCreate(place: *mut Handle) -> c_int {
    unsafe { make(place, Preference { workspace: 0, alignments: [256; 4] }) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceDestroy(object: Handle) -> c_int {
    unsafe { destroy::<Preference>(object) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    object: Handle, attribute: c_int, from: *const c_void, bytes: usize,
) -> c_int {
    let preference = unsafe { &mut *object.cast::<Preference>() };
    match attribute {
        1 => preference.workspace = unsafe { value::<u64>(from, bytes) } as usize,
        5..=8 => {
            preference.alignments[attribute as usize - 5] =
                unsafe { value::<u32>(from, bytes) } as usize;
        }
        other => panic!("preference attribute {other}"),
    }
    0
}

/// Ten algorithms. The fourth is refused at once, the sixth when it is launched.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: Handle, operation: Handle, a: Handle, b: Handle, c: Handle, d: Handle,
    preference: Handle, wanted: c_int, results: *mut Proposal, came: *mut c_int,
) -> c_int {
    assert_eq!((handle as usize, c), (HANDLE, d));
    assert!(!operation.is_null() && wanted >= 8);
    let Operation { epilogue, bias, .. } = unsafe { &*operation.cast::<Operation>() };
    // The heuristics look at the address.
    assert_eq!(epilogue & BIAS != 0, !bias.is_null());
    // On request no algorithm adds a bias, as if the types were not supported.
    if epilogue & BIAS != 0 && std::env::var_os("FAKE_CUBLAS_NO_BIAS").is_some() {
        return NOT_SUPPORTED;
    }
    let Preference { workspace, alignments } = unsafe { &*preference.cast::<Preference>() };
    assert_eq!(*workspace, WORKSPACE);
    for (layout, alignment) in [a, b, c, d].into_iter().zip(alignments) {
        let Layout { kind, step, .. } = unsafe { &*layout.cast::<Layout>() };
        let bytes = bytes_of(*kind) * step;
        assert!(alignment.is_power_of_two() && bytes.is_multiple_of(*alignment));
    }
    let count = wanted.min(10);
    for index in 0..count {
        let state = if index == 3 { NOT_SUPPORTED } else { 0 };
        let proposal = Proposal {
            algorithm: [index as u64; 8],
            workspace: WORKSPACE,
            state,
            waves: 1.0,
            reserved: [0; 4],
        };
        unsafe { results.add(index as usize).write(proposal) };
    }
    unsafe { *came = count };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmul(
    handle: Handle, operation: Handle, alpha: *const f32, a: *mut c_void, of_a: Handle, b: *mut c_void,
    of_b: Handle, beta: *const f32, c: *const c_void, of_c: Handle, d: *mut c_void, of_d: Handle,
    algorithm: *const [u64; 8], workspace: Handle, bytes: usize, stream: Handle,
) -> c_int {
    assert_eq!((handle as usize, bytes), (HANDLE, WORKSPACE));
    assert!(is_stream(stream));
    assert!(!workspace.is_null() && (workspace as usize).is_multiple_of(256));
    assert_eq!((c, of_c), (d.cast_const(), of_d));
    let algorithm = unsafe { *algorithm };
    assert_eq!(algorithm, [algorithm[0]; 8], "all of it is passed");
    if algorithm[0] == 5 {
        return NOT_SUPPORTED;
    }
    unsafe {
        let Operation { transposed, epilogue, bias } = *operation.cast::<Operation>();
        let known = [DEFAULT, RELU, BIAS, RELU | BIAS, GELU, GELU | BIAS];
        assert!(known.contains(&epilogue), "epilogue {epilogue}");
        let bias = if epilogue & BIAS != 0 { bias } else { null_mut() };
        let epilogue = Epilogue { alpha: *alpha, beta: *beta, bias, function: epilogue & !BIAS };
        let [of_a, of_b, of_c] = [of_a, of_b, of_c].map(|layout| &*layout.cast::<Layout>());
        let (m, n, count) = (of_c.rows, of_c.cols, of_c.count);
        let size = |layout: &Layout, transposed| match transposed {
            false => (layout.rows, layout.cols),
            true => (layout.cols, layout.rows),
        };
        let k = size(of_a, transposed[0]).1;
        assert_eq!((size(of_a, transposed[0]), size(of_b, transposed[1])), ((m, k), (k, n)));
        assert_eq!((of_a.count, of_b.count), (count, count));
        let matrix = |start, layout: &Layout, transposed| Matrix {
            start,
            kind: layout.kind,
            leading: layout.leading,
            transposed,
            step: layout.step,
        };
        let matrices = [
            matrix(a, of_a, transposed[0]),
            matrix(b, of_b, transposed[1]),
            matrix(d, of_c, false),
        ];
        multiply([m, n, k, count], matrices, epilogue);
    }
    0
}
