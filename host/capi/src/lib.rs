//! Products of 8-bit numbers by functions with C's calling convention: `include/gpu_gemm.h` says
//! what they do. No panic leaves them.

use std::{
    cell::RefCell,
    collections::{BTreeMap, btree_map::Entry},
    ffi::{CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Mutex, PoisonError},
};

use gpu_gemm::{
    Bf16, Buffer, Device, E4m3, E5m2, Error, F16, Gemm, MatrixView, MatrixViewMut, Pod, Result,
    Stream, Type, extent,
    gemm::{Activation, Bias, Output, Scalar, Scales},
};

/// The status of a panic. Other errors have the command's exit codes.
const PANIC: c_int = 1;

/// GPUs that were opened. They stay open, so that all queues of one have the same kernels.
static GPUS: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// A stream of a device.
pub struct Queue(Stream);

/// Threads may share a queue.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Queue>();
};

/// A matrix in the memory of the queue's device, with its strides in elements.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct In {
    first: *const c_void,
    strides: [usize; 2],
}

/// Runs a function of the library, and keeps its error.
fn status(work: impl FnOnce() -> Result<()>) -> c_int {
    let (code, words) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => (error.exit_code().into(), error.to_string()),
        Err(_) => (PANIC, "a panic, which standard error has".to_owned()),
    };
    let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
    // Without effect while the thread ends.
    let _ = LAST_ERROR.try_with(|last| last.replace(words));
    code
}

fn null(name: &str) -> Error {
    Error::argument(name, "NULL", "must be an address")
}

/// Opens a queue.
///
/// # Safety
/// 1. `queue` is null, or a place for an address.
/// 2. The stream is one, or null, until the queue is closed. One that another library captures is
///    used as `Device::foreign_stream` says, and the default one in one thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_gemm_open(
    device: c_int,
    stream: *mut c_void,
    queue: *mut *mut Queue,
) -> c_int {
    status(|| {
        if queue.is_null() {
            return Err(null("queue"));
        }
        let opened = match usize::try_from(device) {
            Err(_) if device != -1 => {
                let limit = "must be the index of a GPU, or -1 for the CPU";
                return Err(Error::argument("device", device, limit));
            }
            Err(_) if !stream.is_null() => {
                let limit = "must be NULL for the CPU";
                return Err(Error::argument("stream", format!("{stream:p}"), limit));
            }
            Err(_) => Device::cpu().stream()?,
            Ok(index) => {
                let mut gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
                let gpu = match gpus.entry(index) {
                    Entry::Occupied(gpu) => gpu.into_mut(),
                    Entry::Vacant(place) => place.insert(Device::cuda(index)?),
                };
                // SAFETY: condition 2.
                unsafe { gpu.foreign_stream(stream)? }
            }
        };
        // SAFETY: condition 1.
        unsafe { *queue = Box::into_raw(Box::new(Queue(opened))) };
        Ok(())
    })
}

/// Closes a queue.
///
/// # Safety
/// 1. It is null, or [`gpu_gemm_open`] has made it. Nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_gemm_close(queue: *mut Queue) {
    if !queue.is_null() {
        // SAFETY: condition 1.
        let queue = unsafe { Box::from_raw(queue) };
        status(|| {
            drop(queue);
            Ok(())
        });
    }
}

/// The words of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn gpu_gemm_last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// A product: its queue, its sizes and its matrices.
struct Product<'q> {
    queue: &'q Queue,
    sizes: [usize; 3],
    /// A, B and C.
    matrices: [In; 3],
    /// Whether they are of blocks, and those of A and of B.
    scales: Option<(bool, [In; 2])>,
    factors: [f64; 2],
    /// The bias of the columns, or null.
    bias: *const c_void,
    activation: Activation,
}

/// What is done to each element at the end, in the order of the header.
const ACTIVATIONS: [Activation; 5] = [
    Activation::Identity,
    Activation::Relu,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
];

/// The elements from the first of a matrix to its last.
fn elements<T: Pod>(
    queue: &Queue,
    name: &str,
    of: In,
    [rows, cols]: [usize; 2],
) -> Result<Buffer<T>> {
    let len = extent(rows, cols, of.strides).map_err(|_| {
        let limit = format!("strides of {rows}x{cols} elements that can be addressed");
        Error::argument(name, format!("{:?}", of.strides), limit)
    })?;
    let address = of.first.expose_provenance() as u64;
    // SAFETY: the caller of `gpu_gemm_scaled` or `gpu_gemm_int8` promises it: the elements of the
    // matrix are there until its work has ended, and nobody else writes them.
    let buffer = unsafe { queue.0.device().foreign(address, len) };
    buffer.map_err(|error| error.renamed(|argument| format!("{name}: {argument}")))
}

impl Product<'_> {
    fn launch<T: Scalar<O>, O: Output>(&self) -> Result<()> {
        let Product { queue, sizes: [m, n, k], matrices: [a, b, c], scales, factors, bias, .. } =
            *self;
        let of_a = elements::<T>(queue, "A", a, [m, k])?;
        let of_b = elements::<T>(queue, "B", b, [k, n])?;
        let mut of_c = elements::<O>(queue, "C", c, [m, n])?;
        let [of_k, of_n] = [k, n].map(|size| size.div_ceil(Scales::BLOCK));
        let scales = scales.map(|(are_blocks, both)| {
            let sizes = if are_blocks { [[m, of_k], [of_k, of_n]] } else { [[m, 1], [1, n]] };
            (are_blocks, both, sizes)
        });
        let buffers = scales.map(|(_, [a, b], [of_a, of_b])| -> Result<_> {
            let a = elements::<f32>(queue, "scales of A", a, of_a)?;
            Ok([a, elements::<f32>(queue, "scales of B", b, of_b)?])
        });
        let buffers = buffers.transpose()?;
        let [alpha, beta] = factors;
        let bias = (!bias.is_null())
            .then(|| elements::<O>(queue, "bias", In { first: bias, strides: [n, 1] }, [1, n]));
        let bias = bias.transpose()?;
        let mut gemm = Gemm::<T, O>::of_types().alpha(alpha).beta(beta).activation(self.activation);
        if let Some(bias) = &bias {
            gemm = gemm.bias(Bias::PerCol(bias.all()));
        }
        if let (Some((are_blocks, both, sizes)), Some(buffers)) = (scales, &buffers) {
            let of = |i: usize| {
                let [rows, cols] = sizes[i];
                MatrixView::new(buffers[i].all(), rows, cols, both[i].strides)
            };
            let (a, b) = (of(0)?.into(), of(1)?.into());
            gemm = gemm.scales(match are_blocks {
                true => Scales::Blocks { a, b },
                false => Scales::RowsCols { a, b },
            });
        }
        let a = MatrixView::new(of_a.all(), m, k, a.strides)?;
        let b = MatrixView::new(of_b.all(), k, n, b.strides)?;
        let c = MatrixViewMut::new(of_c.all_mut(), m, n, c.strides)?;
        gemm.launch(&queue.0, a, b, c).map(|_| ())
    }

    /// With a C of that number in the table of types.
    fn with_c<T: Scalar<f32> + Scalar<Bf16> + Scalar<F16>>(&self, c: c_int) -> Result<()> {
        match c {
            _ if c == Type::F32.cublas() => self.launch::<T, f32>(),
            _ if c == Type::BF16.cublas() => self.launch::<T, Bf16>(),
            _ if c == Type::F16.cublas() => self.launch::<T, F16>(),
            _ => Err(Error::argument("type_c", c, "must be f32, bf16 or f16, as cudaDataType")),
        }
    }
}

/// What the arguments point to.
///
/// # Safety
/// 1. Each is null, or the address of a value that lives as long as the result.
unsafe fn all<'v, T, const COUNT: usize>(
    named: [(&str, *const T); COUNT],
) -> Result<[&'v T; COUNT]> {
    for (name, address) in named {
        if address.is_null() {
            return Err(null(name));
        }
    }
    // SAFETY: condition 1, and none is null.
    Ok(named.map(|(_, address)| unsafe { &*address }))
}

/// A product of i8, e4m3 or e5m2 with a C of floating-point numbers, perhaps with scales, a bias
/// and an activation.
///
/// # Safety
/// 1. `queue` is null or open. A, B, C and the scales are null or addresses of matrices. The bias
///    is null or has n elements.
/// 2. Elements of these are in the memory of the queue's device, and stay until the work has ended.
///    Until then nobody else writes them, nor reads C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_gemm_scaled(
    queue: *const Queue,
    m: usize,
    n: usize,
    k: usize,
    type_ab: c_int,
    type_c: c_int,
    alpha: f32,
    a: *const In,
    b: *const In,
    scales: c_int,
    scales_a: *const In,
    scales_b: *const In,
    beta: f32,
    c: *const In,
    bias: *const c_void,
    activation: c_int,
) -> c_int {
    status(|| {
        // SAFETY: condition 1.
        let [queue] = unsafe { all([("queue", queue)])? };
        // SAFETY: condition 1.
        let matrices = unsafe { all([("A", a), ("B", b), ("C", c)])? }.map(|of| *of);
        let scales = match scales {
            0 => None,
            1 | 2 => {
                let named = [("scales of A", scales_a), ("scales of B", scales_b)];
                // SAFETY: condition 1.
                let both = unsafe { all(named)? }.map(|of| *of);
                Some((scales == 2, both))
            }
            _ => {
                let limit = "must be 0 for none, 1 for rows and columns, or 2 for blocks";
                return Err(Error::argument("scales", scales, limit));
            }
        };
        let known = usize::try_from(activation).ok().and_then(|number| ACTIVATIONS.get(number));
        let Some(&activation) = known else {
            let limit = "must be 0 to 4, of gpu_gemm_activation";
            return Err(Error::argument("activation", activation, limit));
        };
        let (sizes, factors) = ([m, n, k], [alpha, beta].map(f64::from));
        let product = Product { queue, sizes, matrices, scales, factors, bias, activation };
        match type_ab {
            _ if type_ab == Type::I8.cublas() => product.with_c::<i8>(type_c),
            _ if type_ab == Type::E4M3.cublas() => product.with_c::<E4m3>(type_c),
            _ if type_ab == Type::E5M2.cublas() => product.with_c::<E5m2>(type_c),
            _ => {
                let limit = "must be i8, e4m3 or e5m2, as cudaDataType";
                Err(Error::argument("type_ab", type_ab, limit))
            }
        }
    })
}

/// A product of i8 with a C of i32.
///
/// # Safety
/// As [`gpu_gemm_scaled`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpu_gemm_int8(
    queue: *const Queue,
    m: usize,
    n: usize,
    k: usize,
    alpha: i32,
    a: *const In,
    b: *const In,
    beta: i32,
    c: *const In,
) -> c_int {
    status(|| {
        // SAFETY: as there.
        let [queue] = unsafe { all([("queue", queue)])? };
        // SAFETY: as there.
        let matrices = unsafe { all([("A", a), ("B", b), ("C", c)])? }.map(|of| *of);
        let factors = [alpha, beta].map(f64::from);
        let (sizes, scales, bias) = ([m, n, k], None, ptr::null());
        let activation = Activation::Identity;
        Product { queue, sizes, matrices, scales, factors, bias, activation }.launch::<i8, i32>()
    })
}
