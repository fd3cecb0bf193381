//! cublasLt's functions, with the types and numbers of its documentation.

use std::ffi::{c_int, c_void};

use libloading::Library;

use super::super::library::{functions, symbol};
use gpu_gemm::Result;

// From `cublasLt.h`, the same in releases 11 to 13.
pub(super) const DESC_TRANSA: c_int = 3;
pub(super) const DESC_TRANSB: c_int = 4;
/// A `cublasLtEpilogue_t`, of 32 bits.
pub(super) const DESC_EPILOGUE: c_int = 7;
/// The address of the bias: an element for each row of the column-major C.
pub(super) const DESC_BIAS_POINTER: c_int = 8;
/// The address of A's scales; B's is the next. From release 11.8 on.
pub(super) const DESC_A_SCALE_POINTER: c_int = 17;
/// A number of 8 bits: whether 8-bit floats are summed by the tensor cores alone.
pub(super) const DESC_FAST_ACCUM: c_int = 25;
/// A `cublasLtMatmulMatrixScale_t`, of 32 bits; B's is the next. From release 12.8 on.
pub(super) const DESC_A_SCALE_MODE: c_int = 31;
/// A scale for each row, or column.
pub(super) const SCALE_OUTER_VEC: u32 = 3;
/// A scale for each 128 k-steps of a row, or column.
pub(super) const SCALE_VEC128: u32 = 4;
pub(super) const SCALE_BLK128X128: u32 = 5;
/// `CUBLASLT_EPILOGUE_DEFAULT`. The others are sums: `CUBLASLT_EPILOGUE_GELU_BIAS` is 36.
pub(super) const EPILOGUE_DEFAULT: u32 = 1;
pub(super) const EPILOGUE_RELU: u32 = 2;
pub(super) const EPILOGUE_BIAS: u32 = 4;
/// The form with tanh.
pub(super) const EPILOGUE_GELU: u32 = 32;
pub(super) const LAYOUT_BATCH_COUNT: c_int = 5;
pub(super) const LAYOUT_STRIDED_BATCH_OFFSET: c_int = 6;
pub(super) const PREF_MAX_WORKSPACE_BYTES: c_int = 1;
/// For A. The numbers for B, C and D follow.
pub(super) const PREF_MIN_ALIGNMENT_A_BYTES: c_int = 5;

/// A handle, or the description of a product, of a matrix or of a preference. The library owns what
/// it points to.
pub(super) type Opaque = *mut c_void;
pub(super) type GetVersion = unsafe extern "C" fn() -> usize;

functions! {
    pub(super) fn Create(handle: *mut Opaque);
    pub(super) fn Destroy(of: Opaque);
    pub(super) fn DescCreate(desc: *mut Opaque, compute_type: c_int, scale_type: c_int);
    pub(super) fn LayoutCreate(
        layout: *mut Opaque, of_elements: c_int, rows: u64, cols: u64, ld: i64
    );
    pub(super) fn SetAttribute(of: Opaque, attribute: c_int, value: *const c_void, bytes: usize);
    pub(super) fn Heuristic(
        handle: Opaque, operation: Opaque, a: Opaque, b: Opaque, c: Opaque, d: Opaque,
        preference: Opaque, wanted: c_int, results: *mut Proposal, found: *mut c_int
    );
    pub(super) fn Matmul(
        handle: Opaque, operation: Opaque,
        alpha: *const c_void, a: *const c_void, of_a: Opaque, b: *const c_void, of_b: Opaque,
        beta: *const c_void, c: *const c_void, of_c: Opaque, d: *mut c_void, of_d: Opaque,
        algorithm: *const [u64; 8], workspace: *mut c_void, bytes: usize, stream: *mut c_void
    );
}

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Proposal {
    /// `cublasLtMatmulAlgo_t`.
    pub(super) algorithm: [u64; 8],
    pub(super) workspace_bytes: usize,
    pub(super) state: c_int,
    pub(super) waves: f32,
    pub(super) reserved: [c_int; 4],
}

pub(super) struct Functions {
    pub(super) create: Create,
    pub(super) destroy: Destroy,
    pub(super) get_version: GetVersion,
    pub(super) desc_create: DescCreate,
    pub(super) desc_destroy: Destroy,
    pub(super) desc_set: SetAttribute,
    pub(super) layout_create: LayoutCreate,
    pub(super) layout_destroy: Destroy,
    pub(super) layout_set: SetAttribute,
    pub(super) preference_create: Create,
    pub(super) preference_destroy: Destroy,
    pub(super) preference_set: SetAttribute,
    pub(super) heuristic: Heuristic,
    pub(super) matmul: Matmul,
}

impl Functions {
    pub(super) fn of(library: &Library, name: &str) -> Result<Self> {
        // SAFETY: the types are those of cublasLt's documentation, the same in each release named.
        // Its enums are ints. The pointers are used while the library is loaded.
        unsafe {
            Ok(Functions {
                create: symbol(library, name, "cublasLtCreate")?,
                destroy: symbol(library, name, "cublasLtDestroy")?,
                get_version: symbol(library, name, "cublasLtGetVersion")?,
                desc_create: symbol(library, name, "cublasLtMatmulDescCreate")?,
                desc_destroy: symbol(library, name, "cublasLtMatmulDescDestroy")?,
                desc_set: symbol(library, name, "cublasLtMatmulDescSetAttribute")?,
                layout_create: symbol(library, name, "cublasLtMatrixLayoutCreate")?,
                layout_destroy: symbol(library, name, "cublasLtMatrixLayoutDestroy")?,
                layout_set: symbol(library, name, "cublasLtMatrixLayoutSetAttribute")?,
                preference_create: symbol(library, name, "cublasLtMatmulPreferenceCreate")?,
                preference_destroy: symbol(library, name, "cublasLtMatmulPreferenceDestroy")?,
                preference_set: symbol(library, name, "cublasLtMatmulPreferenceSetAttribute")?,
                heuristic: symbol(library, name, "cublasLtMatmulAlgoGetHeuristic")?,
                matmul: symbol(library, name, "cublasLtMatmul")?,
            })
        }
    }
}

/// Sets an attribute.
///
/// # Safety
/// 1. `function` takes `of`, and the attribute has type `T`.
pub(super) unsafe fn set<T>(
    function: SetAttribute,
    of: Opaque,
    attribute: c_int,
    value: &T,
) -> c_int {
    // SAFETY: the caller's promise; the value is copied during the call.
    unsafe { function(of, attribute, (value as *const T).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_lies_as_in_the_header() {
        // An algorithm of 64 bytes, a size, a status, a float, four ints.
        assert_eq!((size_of::<Proposal>(), align_of::<Proposal>()), (96, 8));
        assert_eq!(std::mem::offset_of!(Proposal, workspace_bytes), 64);
        assert_eq!(std::mem::offset_of!(Proposal, state), 72);
    }
}
