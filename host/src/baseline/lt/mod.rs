//! cublasLt's products of float32, and of bfloat16 with sums of float32, by any of the algorithms that its heuristics propose.

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
    COMPUTE_32F, COMPUTE_32F_FAST_TF32, DESC_TRANSA, DESC_TRANSB, Destroy, Functions,
    LAYOUT_BATCH_COUNT, LAYOUT_STRIDED_BATCH_OFFSET, Opaque, PREF_MAX_WORKSPACE_BYTES,
    PREF_MIN_ALIGNMENT_A_BYTES, Proposal, R_32F, set,
};
use super::{
    DataType, DenseBatch,
    library::{check, load, sizes, version},
};
use gpu_gemm::{Buffer, BufferView, BufferViewMut, Error, Result, Stream, gemm::Compute};

/// The library's names, the newest first; the last is that of a toolkit.
const NAMES: [&str; 3] = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"];

/// What an algorithm may use besides the operands: NVIDIA's advice for Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;

/// Bytes at whose multiples a buffer begins, and the most that the heuristics ask about.
const ALIGNMENT: usize = 256;

/// cublasLt on a stream: float32 sums (`CUBLAS_COMPUTE_32F`), of float32 without tensor cores unless
/// [`CublasLt::compute`] lets it; 32 MiB of workspace.
pub struct CublasLt<'a> {
    handle: Opaque,
    stream: &'a Stream,
    queue: *mut c_void,
    functions: Functions,
    compute: Compute,
    /// Of this handle alone, whose products run one after another.
    workspace: RefCell<Buffer<f32>>,
    name: &'static str,
    /// Keeps the code behind the pointers above; unloaded last.
    _library: Library,
}

impl fmt::Debug for CublasLt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CublasLt({} on {:?})", self.name, self.stream)
    }
}

impl<'a> CublasLt<'a> {
    /// Loads the library and makes a handle, and a workspace, for products on `stream`.
    ///
    /// # Errors
    /// [`Error::NoCublas`] where there is no library; [`Error::Argument`] for a stream of the CPU device;
    /// [`Error::Driver`] where cublasLt does not start; [`Error::OutOfMemory`].
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
        // SAFETY: one handle is written, of the context that is current.
        check("cublasLtCreate", unsafe { (functions.create)(&mut handle) })?;
        Ok(CublasLt {
            handle,
            stream,
            queue,
            functions,
            compute: Compute::Native,
            workspace: RefCell::new(workspace),
            name,
            _library: library,
        })
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
    pub fn version(&self) -> String {
        // SAFETY: it takes nothing and returns a number.
        version(unsafe { (self.functions.get_version)() })
    }

    /// What the heuristics propose for a product, `most` algorithms at most, none for an empty one.
    ///
    /// # Errors
    /// [`Error::Argument`] for sizes beyond cuBLAS's integers; [`Error::Driver`] for cublasLt's own.
    pub fn plan<T: DataType, O: DataType>(
        &self,
        product: DenseBatch,
        most: usize,
    ) -> Result<Plan<'_, T, O>> {
        let [m, n, k, count] = sizes(&product)?;
        self.stream.device().make_current()?;
        let functions = &self.functions;
        // Whatever is made is destroyed with the plan, also where the next cannot be made.
        let mut plan = Plan {
            lt: self,
            product,
            operation: null_mut(),
            layouts: [null_mut(); 3],
            proposals: Vec::new(),
            types: PhantomData,
        };
        if m == 0 || n == 0 || count == 0 {
            return Ok(plan);
        }
        let arithmetic = match self.compute {
            Compute::Tf32 if T::CUDA == f32::CUDA && O::CUDA == f32::CUDA => COMPUTE_32F_FAST_TF32,
            _ => COMPUTE_32F,
        };
        // SAFETY: one description is written.
        let status = unsafe { (functions.desc_create)(&mut plan.operation, arithmetic, R_32F) };
        check("cublasLtMatmulDescCreate", status)?;
        // Its matrices are column-major, so the operands change places (`Cublas::launch`): its A is B, its B is A.
        let [of_a, of_b] = product.transposed;
        for (attribute, transposed) in [(DESC_TRANSA, of_b), (DESC_TRANSB, of_a)] {
            let value = i32::from(transposed);
            // SAFETY: the attribute is an int, which is copied.
            let status = unsafe { set(functions.desc_set, plan.operation, attribute, &value) };
            check("cublasLtMatmulDescSetAttribute", status)?;
        }
        let size = |size: c_int| size.unsigned_abs().into();
        let (m, n, k): (u64, u64, u64) = (size(m), size(n), size(k));
        let shape = product.shape;
        let matrices = [
            (T::CUDA, if of_b { (k, n) } else { (n, k) }, shape.b_len()),
            (T::CUDA, if of_a { (m, k) } else { (k, m) }, shape.a_len()),
            (O::CUDA, (n, m), shape.c_len()),
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

    /// What the heuristics propose, and can run.
    fn proposals<T: DataType, O: DataType>(
        &self,
        plan: &Plan<T, O>,
        most: usize,
    ) -> Result<Vec<Proposal>> {
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
        // Buffers begin at multiples of 256 bytes, a batch's next matrix where the one before ends.
        let DenseBatch { shape, count, .. } = plan.product;
        let [b, a] = [shape.b_len(), shape.a_len()].map(|len| len * size_of::<T>());
        let c = shape.c_len() * size_of::<O>();
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
        // SAFETY: the descriptions are there, C's serves for D, and there is room for as many as are wanted.
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

/// The largest power of two, up to that of a buffer, that divides so many bytes.
fn alignment(bytes: usize) -> u32 {
    1 << bytes.trailing_zeros().min(ALIGNMENT.trailing_zeros())
}

/// A preference, until it is dropped.
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

/// A product described to cublasLt, and the algorithms that it proposes for it, the one that it thinks best first.
pub struct Plan<'l, T, O> {
    lt: &'l CublasLt<'l>,
    product: DenseBatch,
    operation: Opaque,
    /// Of B, A and C.
    layouts: [Opaque; 3],
    proposals: Vec<Proposal>,
    types: PhantomData<fn(T) -> O>,
}

impl<T, O> fmt::Debug for Plan<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Plan({:?}, {} algorithms)", self.product, self.proposals.len())
    }
}

impl<T: DataType, O: DataType> Plan<'_, T, O> {
    /// How many algorithms there are.
    pub fn algorithms(&self) -> usize {
        self.proposals.len()
    }

    /// The product by the algorithm of that number. Returns at once; the stream's next synchronisation waits.
    ///
    /// # Errors
    /// [`Error::Argument`] for operands that lie elsewhere or have another length, and for an algorithm that there is
    /// not; [`Error::Driver`] where cublasLt refuses.
    pub fn launch(
        &self,
        algorithm: usize,
        a: BufferView<T>,
        b: BufferView<T>,
        mut c: BufferViewMut<O>,
    ) -> Result<()> {
        let CublasLt { handle, stream, functions, queue, .. } = self.lt;
        self.product.check(stream, &a, &b, &c)?;
        let Some(proposal) = self.proposals.get(algorithm) else {
            let limit = format!("there are {}, counted from 0", self.proposals.len());
            return Err(Error::argument("algorithm", algorithm, limit));
        };
        stream.device().make_current()?;
        let (a, b) = (a.address_on(stream)?, b.address_on(stream)?);
        let c = c.address_on(stream)?;
        for (name, address) in [("a", a.addr()), ("b", b.addr()), ("c", c.addr())] {
            if !address.is_multiple_of(ALIGNMENT) {
                let limit = format!("must begin at a multiple of {ALIGNMENT} bytes");
                return Err(Error::argument(name, format!("at {address:#x}"), limit));
            }
        }
        let mut workspace = self.lt.workspace.borrow_mut();
        let workspace = workspace.all_mut().address_on(stream)?;
        let (one, zero) = (1.0f32, 0.0f32);
        let [of_b, of_a, of_c] = self.layouts;
        // SAFETY: the operands are as the layouts describe them (`DenseBatch::check`), and the workspace is as large as
        // the heuristics were told. All are borrowed for this call; that work queued on a stream is waited for before
        // a buffer is freed is the driver's rule for every buffer. The factors are read at once.
        let status = unsafe {
            (functions.matmul)(
                *handle,
                self.operation,
                (&raw const one).cast(),
                b.cast(),
                of_b,
                a.cast(),
                of_a,
                (&raw const zero).cast(),
                c.cast_const().cast(),
                of_c,
                c.cast(),
                of_c,
                &proposal.algorithm,
                workspace.cast(),
                WORKSPACE_BYTES,
                *queue,
            )
        };
        check("cublasLtMatmul", status)
    }
}

impl<T, O> Drop for Plan<'_, T, O> {
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
