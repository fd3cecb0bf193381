//! cublasLt's products of f32 and f64, and of 16-bit types with sums in f32, by any algorithm that
//! its heuristics propose.

mod attributes;
mod functions;

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    fmt,
    marker::PhantomData,
    ptr::null_mut,
};

use libloading::Library;

use self::functions::{
    DESC_EPILOGUE, DESC_TRANSA, DESC_TRANSB, Destroy, EPILOGUE_BIAS, EPILOGUE_DEFAULT,
    EPILOGUE_GELU, EPILOGUE_RELU, Functions, LAYOUT_BATCH_COUNT, LAYOUT_STRIDED_BATCH_OFFSET,
    Opaque, PREF_MAX_WORKSPACE_BYTES, PREF_MIN_ALIGNMENT_A_BYTES, Proposal, set,
};
use super::{
    DenseBatch, Epilogue,
    library::{Arithmetic, check, load, sizes, version},
};
use crate::scaling::Scaling;
use gpu_gemm::{
    Activation, Buffer, BufferView, BufferViewMut, Error, Result, Stream,
    gemm::{Compute, Output, Scalar},
};
use simt::types::Type;

/// The library's file names, the newest first. The last is a toolkit's.
const NAMES: [&str; 3] = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"];

/// The workspace of an algorithm: NVIDIA's advice for Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;

/// The alignment of a buffer in bytes. The heuristics ask for no larger one.
const ALIGNMENT: usize = 256;

/// cublasLt on a stream, with sums in f32, or of f64 in f64, and 32 MiB of workspace. Products
/// of f32 do not use tensor cores, unless [`CublasLt::compute`] allows it.
pub struct CublasLt<'a> {
    handle: Opaque,
    stream: &'a Stream,
    queue: *mut c_void,
    functions: Functions,
    compute: Compute,
    is_fast: bool,
    /// For this handle only. Its products run one after another.
    workspace: RefCell<Buffer<f32>>,
    name: &'static str,
    /// The code behind the function pointers above. It is unloaded last.
    _library: Library,
}

impl fmt::Debug for CublasLt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CublasLt({} on {:?})", self.name, self.stream)
    }
}

impl<'a> CublasLt<'a> {
    /// Loads the library, and makes a handle and a workspace for products on a stream.
    ///
    /// # Errors
    /// [`Error::NoCublas`] if the library is not there; [`Error::Argument`] for a stream of the CPU
    /// device; [`Error::Driver`] if cublasLt does not start; [`Error::OutOfMemory`].
    pub fn open(stream: &'a Stream) -> Result<Self> {
        let Some(queue) = stream.raw_cuda_stream() else {
            let limit = "cublasLt runs on a GPU alone";
            return Err(Error::argument("device", stream.device().name(), limit));
        };
        let (library, name) = load(&NAMES)?;
        let functions = Functions::of(&library, name)?;
        let workspace = stream.device().uninit::<f32>(WORKSPACE_BYTES / size_of::<f32>())?;
        stream.device().make_current()?;
        let mut handle = null_mut();
        // SAFETY: one handle is written, of the current context.
        check("cublasLtCreate", unsafe { (functions.create)(&mut handle) })?;
        Ok(CublasLt {
            handle,
            stream,
            queue,
            functions,
            compute: Compute::Native,
            is_fast: false,
            workspace: RefCell::new(workspace),
            name,
            _library: library,
        })
    }

    /// The arithmetic for products of f32. [`Compute::Tf32`] is `CUBLAS_COMPUTE_32F_FAST_TF32`.
    #[must_use]
    pub fn compute(mut self, compute: Compute) -> Self {
        self.compute = compute;
        self
    }

    /// Whether tensor cores sum products of 8-bit floats over all of k, without f32 in between.
    #[must_use]
    pub fn fast_accumulation(mut self, is_fast: bool) -> Self {
        self.is_fast = is_fast;
        self
    }

    /// Whether it does.
    pub fn is_fast(&self) -> bool {
        self.is_fast
    }

    /// The stream.
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// The file name of the library.
    pub fn file_name(&self) -> &'static str {
        self.name
    }

    /// The version: `13.1.0`.
    pub fn version(&self) -> String {
        // SAFETY: it takes nothing, and returns a number.
        version(unsafe { (self.functions.get_version)() })
    }

    /// Whether cublasLt applies this activation to a product itself. It has no SiLU, and its GELU
    /// is the form with tanh.
    pub fn fuses(activation: Activation) -> bool {
        fused(activation).is_some()
    }

    /// The algorithms that the heuristics propose for a product with an epilogue, at most `most`.
    /// None for an empty product.
    ///
    /// # Errors
    /// [`Error::Argument`] for sizes beyond cuBLAS's integers, and an activation that cublasLt does
    /// not have; [`Error::Driver`] for cublasLt's own errors.
    pub fn plan<T: Scalar<O>, O: Output>(
        &self,
        product: DenseBatch,
        epilogue: Epilogue,
        most: usize,
    ) -> Result<Plan<'_, T, O>> {
        let described = self.describe([T::TYPE, O::TYPE], product, epilogue, most)?;
        Ok(Plan { described, types: PhantomData })
    }

    fn describe(
        &self,
        types: [Type; 2],
        product: DenseBatch,
        epilogue: Epilogue,
        most: usize,
    ) -> Result<Described<'_>> {
        let [m, n, k, count] = sizes(&product)?;
        let Some(activation) = fused(epilogue.activation) else {
            let limit = "cublasLt does not have it";
            return Err(Error::argument("activation", epilogue.activation, limit));
        };
        self.stream.device().make_current()?;
        let functions = &self.functions;
        // The plan destroys its descriptions, also if a later one cannot be made.
        let factors = [epilogue.alpha, epilogue.beta];
        let mut plan = Described {
            lt: self,
            types,
            product,
            arithmetic: Arithmetic::of(types, self.compute, factors)?,
            epilogue,
            operation: null_mut(),
            layouts: [null_mut(); 3],
            proposals: Vec::new(),
        };
        if m == 0 || n == 0 || count == 0 {
            return Ok(plan);
        }
        let (number, factors) = (plan.arithmetic.number(), plan.arithmetic.of_factors());
        // SAFETY: one description is written.
        let status = unsafe { (functions.desc_create)(&mut plan.operation, number, factors) };
        check("cublasLtMatmulDescCreate", status)?;
        // cublasLt's matrices are column-major, so A and B are swapped (`Cublas::launch`): its A is
        // B, its B is A.
        let [of_a, of_b] = product.transposed;
        for (attribute, transposed) in [(DESC_TRANSA, of_b), (DESC_TRANSB, of_a)] {
            let value = i32::from(transposed);
            // SAFETY: the attribute is an int, which is copied.
            let status = unsafe { set(functions.desc_set, plan.operation, attribute, &value) };
            check("cublasLtMatmulDescSetAttribute", status)?;
        }
        // A vector along the rows of the column-major C^T, so along the columns of C.
        let what = activation | if epilogue.bias { EPILOGUE_BIAS } else { 0 };
        let what = if what == 0 { EPILOGUE_DEFAULT } else { what };
        // SAFETY: the attribute is a number of 32 bits, which is copied.
        let status = unsafe { set(functions.desc_set, plan.operation, DESC_EPILOGUE, &what) };
        check("cublasLtMatmulDescSetAttribute", status)?;
        if epilogue.bias {
            // For the heuristics alone: an address that is aligned as every buffer is.
            plan.set_bias(self.workspace.borrow_mut().all_mut().address_on(self.stream)?.cast())?;
        }
        plan.set_precision()?;
        let size = |size: c_int| size.unsigned_abs().into();
        let (m, n, k): (u64, u64, u64) = (size(m), size(n), size(k));
        let shape = product.shape;
        let matrices = [
            (types[0].cublas(), if of_b { (k, n) } else { (n, k) }, shape.b_len()),
            (types[0].cublas(), if of_a { (m, k) } else { (k, m) }, shape.a_len()),
            (types[1].cublas(), (n, m), shape.c_len()),
        ];
        for (layout, (element, (rows, cols), step)) in plan.layouts.iter_mut().zip(matrices) {
            let leading = rows.max(1) as i64;
            // SAFETY: one description is written.
            let status = unsafe { (functions.layout_create)(layout, element, rows, cols, leading) };
            check("cublasLtMatrixLayoutCreate", status)?;
            if count > 1 {
                let step = step as i64;
                // SAFETY: the attributes are an int and a number of 64 bits, which are copied.
                let statuses = unsafe {
                    [
                        set(functions.layout_set, *layout, LAYOUT_BATCH_COUNT, &count),
                        set(functions.layout_set, *layout, LAYOUT_STRIDED_BATCH_OFFSET, &step),
                    ]
                };
                for status in statuses {
                    check("cublasLtMatrixLayoutSetAttribute", status)?;
                }
            }
        }
        plan.proposals = self.proposals(&plan, most)?;
        Ok(plan)
    }

    /// The algorithms that the heuristics propose and that can run.
    fn proposals(&self, plan: &Described, most: usize) -> Result<Vec<Proposal>> {
        let functions = &self.functions;
        let mut preference = Preference { raw: null_mut(), destroy: functions.preference_destroy };
        // SAFETY: one preference is written.
        let status = unsafe { (functions.preference_create)(&mut preference.raw) };
        check("cublasLtMatmulPreferenceCreate", status)?;
        let workspace = WORKSPACE_BYTES as u64;
        // SAFETY: the attribute is a number of 64 bits, which is copied.
        let status = unsafe {
            set(functions.preference_set, preference.raw, PREF_MAX_WORKSPACE_BYTES, &workspace)
        };
        check("cublasLtMatmulPreferenceSetAttribute", status)?;
        // Buffers are 256-byte aligned. A batch's next matrix starts where the one before ends.
        let DenseBatch { shape, count, .. } = plan.product;
        let [of_operands, of_c] = plan.types.map(Type::bytes);
        let [b, a] = [shape.b_len(), shape.a_len()].map(|len| len * of_operands);
        let c = shape.c_len() * of_c;
        for (attribute, step) in (PREF_MIN_ALIGNMENT_A_BYTES..).zip([b, a, c, c]) {
            let value = if count > 1 { alignment(step) } else { ALIGNMENT as u32 };
            // SAFETY: the attribute is a number of 32 bits, which is copied.
            let status =
                unsafe { set(functions.preference_set, preference.raw, attribute, &value) };
            check("cublasLtMatmulPreferenceSetAttribute", status)?;
        }
        let most = most.min(1000);
        let mut proposals = vec![Proposal::default(); most];
        let mut came = 0;
        let [of_b, of_a, of_c] = plan.layouts;
        // SAFETY: the descriptions exist, C's is also D's, and there is room for the number wanted.
        let status = unsafe {
            (functions.heuristic)(
                self.handle,
                plan.operation,
                of_b,
                of_a,
                of_c,
                of_c,
                preference.raw,
                most as c_int,
                proposals.as_mut_ptr(),
                &mut came,
            )
        };
        check("cublasLtMatmulAlgoGetHeuristic", status)?;
        proposals.truncate(came.unsigned_abs() as usize);
        proposals
            .retain(|proposal| proposal.state == 0 && proposal.workspace_bytes <= WORKSPACE_BYTES);
        Ok(proposals)
    }
}

impl Drop for CublasLt<'_> {
    fn drop(&mut self) {
        let _ = self.stream.device().make_current();
        // SAFETY: nothing uses the handle after this.
        let _ = unsafe { (self.functions.destroy)(self.handle) };
    }
}

/// The number of an activation in cublasLt's epilogues, if it has it.
fn fused(activation: Activation) -> Option<u32> {
    match activation {
        Activation::Identity => Some(0),
        Activation::Relu => Some(EPILOGUE_RELU),
        Activation::GeluTanh => Some(EPILOGUE_GELU),
        _ => None,
    }
}

/// The largest power of two that divides this number of bytes, at most a buffer's alignment.
fn alignment(bytes: usize) -> u32 {
    1 << bytes.trailing_zeros().min(ALIGNMENT.trailing_zeros())
}

/// A preference. It is destroyed on drop.
struct Preference {
    raw: Opaque,
    destroy: Destroy,
}

impl Drop for Preference {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: nothing uses it after this.
            let _ = unsafe { (self.destroy)(self.raw) };
        }
    }
}

/// A product described to cublasLt, and the proposed algorithms. The first is the one that cublasLt
/// estimates to be the best.
pub struct Plan<'l, T, O> {
    described: Described<'l>,
    types: PhantomData<fn(T) -> O>,
}

/// The same of any types.
struct Described<'l> {
    lt: &'l CublasLt<'l>,
    /// Of A and B, and of C.
    types: [Type; 2],
    product: DenseBatch,
    arithmetic: Arithmetic,
    epilogue: Epilogue,
    operation: Opaque,
    /// For B, A and C.
    layouts: [Opaque; 3],
    proposals: Vec<Proposal>,
}

impl<T, O> fmt::Debug for Plan<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Described { product, proposals, .. } = &self.described;
        write!(f, "Plan({product:?}, {} algorithms)", proposals.len())
    }
}

impl<T: Scalar<O>, O: Output> Plan<'_, T, O> {
    /// The number of algorithms.
    pub fn algorithms(&self) -> usize {
        self.described.proposals.len()
    }

    /// The product by the algorithm with that number. Returns at once. The stream's next
    /// synchronisation waits. `bias`: n elements, if the epilogue has a bias. `scaling`: those of
    /// its kind, if it has scales.
    ///
    /// # Errors
    /// [`Error::Argument`] for operands on another device or with another length, and for an
    /// algorithm that does not exist; [`Error::Driver`] if cublasLt refuses.
    pub fn launch(
        &self,
        algorithm: usize,
        a: BufferView<T>,
        b: BufferView<T>,
        bias: Option<BufferView<O>>,
        scaling: Option<&Scaling<Buffer<f32>>>,
        mut c: BufferViewMut<O>,
    ) -> Result<()> {
        let Described { lt: CublasLt { stream, .. }, product, epilogue, .. } = &self.described;
        product.check(stream, &a, &b, &c)?;
        let proposal = self.described.proposal(algorithm)?;
        stream.device().make_current()?;
        let (a, b) = (a.address_on(stream)?.cast(), b.address_on(stream)?.cast());
        let c = c.address_on(stream)?.cast::<c_void>();
        check_aligned([a, b, c.cast_const()])?;
        if epilogue.bias {
            let (n, own) = (product.shape.n(), stream.device());
            let bias =
                bias.filter(|bias| bias.len() == n && bias.device() == own).ok_or_else(|| {
                    let limit = format!("must be {n} on {}", own.name());
                    Error::argument("bias.len()", bias.map_or(0, |bias| bias.len()), limit)
                })?;
            self.described.set_bias(bias.address_on(stream)?.cast())?;
        }
        if epilogue.scales.is_some() {
            let scaling = scaling.filter(|of| of.are(epilogue.scales, product.shape));
            let scaling = scaling.ok_or_else(|| {
                Error::argument("scales", "none", "must be those of the epilogue's kind and sizes")
            })?;
            let [of_a, of_b] = scaling.values.each_ref().map(Buffer::all);
            let [of_a, of_b] = [of_a.address_on(stream)?.cast(), of_b.address_on(stream)?.cast()];
            self.described.set_scales([of_b, of_a])?;
        }
        // SAFETY: the layouts describe the operands (`DenseBatch::check`), and the bias and the
        // scales have their sizes. All are borrowed for this call. A buffer is freed only after the
        // work that was queued before.
        unsafe { self.described.launch(proposal, [a, b], c) }
    }
}

fn check_aligned(addresses: [*const c_void; 3]) -> Result<()> {
    for (name, address) in ["a", "b", "c"].into_iter().zip(addresses) {
        let address = address.addr();
        if !address.is_multiple_of(ALIGNMENT) {
            let limit = format!("must begin at a multiple of {ALIGNMENT} bytes");
            return Err(Error::argument(name, format!("at {address:#x}"), limit));
        }
    }
    Ok(())
}

impl Described<'_> {
    fn proposal(&self, algorithm: usize) -> Result<&Proposal> {
        self.proposals.get(algorithm).ok_or_else(|| {
            let limit = format!("there are {}, counted from 0", self.proposals.len());
            Error::argument("algorithm", algorithm, limit)
        })
    }

    /// # Safety
    /// 1. The layouts describe A, B and C. They, the bias and the scales exist until the work that
    ///    is queued now has ended.
    unsafe fn launch(
        &self,
        proposal: &Proposal,
        [a, b]: [*const c_void; 2],
        c: *mut c_void,
    ) -> Result<()> {
        let CublasLt { handle, stream, functions, queue, .. } = self.lt;
        let mut workspace = self.lt.workspace.borrow_mut();
        let workspace = workspace.all_mut().address_on(stream)?.cast();
        let bytes = WORKSPACE_BYTES;
        let (product, way) = (self.operation, &proposal.algorithm);
        let [alpha, beta] = self.arithmetic.factors();
        let [of_b, of_a, of_c] = self.layouts;
        // SAFETY: condition 1. The workspace has the size that the heuristics were given, and is
        // freed only after the work that was queued before. The factors are read at once.
        let status = unsafe {
            (functions.matmul)(
                *handle, product, alpha, b, of_b, a, of_a, beta, c, of_c, c, of_c, way, workspace,
                bytes, *queue,
            )
        };
        check("cublasLtMatmul", status)
    }
}

impl Drop for Described<'_> {
    fn drop(&mut self) {
        let Functions { desc_destroy, layout_destroy, .. } = self.lt.functions;
        let layouts = self.layouts.map(|layout| (layout_destroy, layout));
        for (destroy, description) in layouts.into_iter().chain([(desc_destroy, self.operation)]) {
            if !description.is_null() {
                // SAFETY: nothing uses it after this.
                let _ = unsafe { destroy(description) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn it_is_not_for_the_cpu() {
        let stream = Device::cpu().stream().unwrap();
        let error = CublasLt::open(&stream).unwrap_err().to_string();
        assert_eq!(error, "device = cpu: cublasLt runs on a GPU alone");
    }

    #[test]
    fn the_alignment_of_a_batch_is_that_of_its_steps() {
        assert_eq!([64 * 64 * 4, 31 * 31 * 4, 6 * 4, 0].map(alignment), [256, 4, 8, 256]);
    }
}
