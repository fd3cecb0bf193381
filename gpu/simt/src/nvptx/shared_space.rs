//! The shared state space of PTX: declarations of arrays there, and addresses.

use core::arch::asm;

unsafe extern "C" {
    // device.ll
    safe fn simt_shared_pointer(address: u32) -> *mut u8;
    pub(super) safe fn simt_dynamic_shared_pointer() -> *mut u8;
    pub(super) safe fn simt_shared_address(pointer: *mut u8) -> u32;
}

/// Declares an array of `ROWS * COLS` elements, 16-byte aligned, and gives its first element's
/// address. Each inlined copy declares another array.
#[inline(always)]
pub(super) fn declare_array<T, const ROWS: usize, const COLS: usize>() -> *mut T {
    let address: u32;
    // SAFETY: declares a symbol of the PTX block around it and takes its address. Not `pure`: each
    // declaration is an array of its own.
    unsafe {
        asm!(
            "{{ .shared .align 16 .b8 array[{bytes}]; mov.u32 {address}, array; }}",
            bytes = const ROWS * COLS * size_of::<T>(),
            address = out(reg32) address,
            options(nomem, nostack, preserves_flags),
        )
    };
    simt_shared_pointer(address).cast()
}
