//! Host memory.

mod free;

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    cell::Cell,
    ptr::NonNull,
};

pub(crate) use free::available;

use crate::{
    error::{Error, Result},
    testing,
};

/// The alignment of a buffer's first element, as of a CUDA allocation.
const ALIGN: usize = 256;

/// Zeroed bytes, 256-byte aligned. The system maps a page at its first access, so a large buffer
/// takes little memory if only a part of it is used.
#[derive(Debug)]
pub(crate) struct HostMemory {
    /// The allocation: the bytes, and some more for the alignment. `None` for no bytes, and for
    /// foreign memory.
    allocation: Option<(NonNull<u8>, Layout)>,
    /// The first byte.
    start: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory that this value alone owns, or may use in the same way.
unsafe impl Send for HostMemory {}
// SAFETY: a shared reference gives shared access to plain bytes, and nothing else.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    pub(crate) fn zeroed(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            let start = std::ptr::without_provenance_mut(ALIGN);
            return Ok(HostMemory { allocation: None, start, bytes });
        }
        let out_of_memory = || Error::out_of_host_memory(bytes as u64);
        // The system's allocator gives an alignment of 16 anyway. For a larger one it would clear
        // the memory page by page, instead of taking fresh pages, which are zero.
        let layout = bytes
            .checked_add(ALIGN)
            .and_then(|padded| Layout::from_size_align(padded, 16).ok())
            .ok_or_else(out_of_memory)?;
        if testing::refuses() {
            return Err(out_of_memory());
        }
        // SAFETY: the layout's size is not zero.
        let start = may_fail(|| unsafe { alloc_zeroed(layout) });
        let start = NonNull::new(start).ok_or_else(out_of_memory)?;
        testing::allocated();
        // SAFETY: the offset is below ALIGN, and ALIGN bytes more than needed were allocated.
        let aligned = unsafe { start.as_ptr().add(start.align_offset(ALIGN)) };
        Ok(HostMemory { allocation: Some((start, layout)), start: aligned, bytes })
    }

    /// Memory that somebody else owns.
    ///
    /// # Safety
    /// 1. `bytes` bytes at `start` are valid and initialised while this value exists.
    /// 2. Until then nobody else writes them, and nobody else reads them while this value writes
    ///    them.
    pub(crate) unsafe fn foreign(start: *mut u8, bytes: usize) -> Self {
        // A slice of no bytes may have any address but null.
        let start = if bytes == 0 { std::ptr::without_provenance_mut(ALIGN) } else { start };
        HostMemory { allocation: None, start, bytes }
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes were allocated and zeroed, or are promised to be valid, and are
        // borrowed with `self`. A kernel on the CPU has ended when its launch returns, and the
        // launch borrows mutably what it writes.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.bytes) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some((start, layout)) = self.allocation {
            // SAFETY: allocated with this layout, and not freed before.
            unsafe { dealloc(start.as_ptr(), layout) };
            testing::freed();
        }
    }
}

/// A vector of `len` times `value`. Everything whose size grows with a problem is allocated by this
/// or by [`reserved`]: a `vec!` without memory would abort the process.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    let mut values = reserved(len)?;
    values.resize(len, value);
    Ok(values)
}

/// An empty vector with room for `len` values.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn reserved<T>(len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    if testing::refuses_vector() {
        return Err(Error::out_of_host_memory((len as u64).saturating_mul(size_of::<T>() as u64)));
    }
    may_fail(|| values.try_reserve_exact(len)).map_err(|_| {
        Error::out_of_host_memory((len as u64).saturating_mul(size_of::<T>() as u64))
    })?;
    Ok(values)
}

thread_local! {
    /// Whether the caller of the allocator handles a failure.
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread handles a failure of the allocation that it makes now. The command's
/// allocator aborts the process otherwise.
#[doc(hidden)]
pub fn allocation_may_fail() -> bool {
    MAY_FAIL.get()
}

/// Runs an allocation whose failure is handled.
fn may_fail<R>(allocate: impl FnOnce() -> R) -> R {
    MAY_FAIL.set(true);
    let outcome = allocate();
    MAY_FAIL.set(false);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zero() {
        for bytes in [0, 1, 255, 4096, 1 << 20] {
            let memory = HostMemory::zeroed(bytes).unwrap();
            assert!(memory.as_ptr().addr().is_multiple_of(ALIGN));
            assert_eq!(memory.bytes().len(), bytes);
            assert!(memory.bytes().iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn values_that_do_not_fit_are_an_error() {
        assert_eq!(filled(7u16, 3).unwrap(), [7; 3]);
        let error = filled(0.0f64, 1 << 59).unwrap_err().to_string();
        assert!(error.contains(&(1u64 << 62).to_string()), "{error}");
        assert!(!allocation_may_fail());
    }

    #[test]
    fn an_impossible_size_is_an_error_that_names_it() {
        let error = HostMemory::zeroed(isize::MAX as usize).unwrap_err().to_string();
        assert!(error.contains(&isize::MAX.to_string()) && error.contains("free"), "{error}");
    }
}
