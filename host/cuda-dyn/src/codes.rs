//! The driver's words for result codes.

use crate::functions::Functions;
use crate::library::{NO_LIBRARY, NO_SYMBOL};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;

/// The driver's name of a result code: `CUDA_ERROR_OUT_OF_MEMORY`.
pub fn error_name(code: i32) -> &'static str {
    match (words(Functions::get().cuGetErrorName, code), code) {
        (Some(name), _) => name.to_str().unwrap_or("CUDA_ERROR"),
        (None, NO_LIBRARY) => "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
        (None, NO_SYMBOL) => "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
        (None, _) => "CUDA_ERROR",
    }
}

/// The driver's description of a result code: `out of memory`.
pub fn error_text(code: i32) -> &'static str {
    description(code).to_str().unwrap_or("an error without a description")
}

/// [`error_text`] for C. There is always a text: otherwise `cust`'s `Display` of an error panics.
pub(crate) fn description(code: c_int) -> &'static CStr {
    words(Functions::get().cuGetErrorString, code).unwrap_or(match code {
        NO_LIBRARY => c"the CUDA driver's library libcuda.so.1 cannot be loaded",
        NO_SYMBOL => c"the CUDA driver's library lacks this function",
        _ => c"an error that the CUDA driver does not describe",
    })
}

/// What `cuGetErrorName` or `cuGetErrorString` says about `code`.
fn words(
    describe: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    code: c_int,
) -> Option<&'static CStr> {
    let mut text = null();
    // SAFETY: both functions take any number, and write one pointer: to a constant in the library,
    // which stays loaded, or null. Where there is no such function the pointer stays null.
    unsafe { (describe(code, &mut text) == 0 && !text.is_null()).then(|| CStr::from_ptr(text)) }
}
