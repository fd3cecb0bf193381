//! Device memory: host memory, and a list of what is allocated.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Mutex;

pub(crate) const TOTAL: usize = 1 << 30;

/// The bytes of each allocation, by address.
static MEMORY: Mutex<Option<HashMap<u64, usize>>> = Mutex::new(None);

/// Bytes that are not allocated.
pub(crate) fn free_bytes() -> usize {
    let memory = MEMORY.lock().unwrap();
    TOTAL - memory.iter().flat_map(|memory| memory.values()).sum::<usize>()
}

/// The bytes of the allocation at that address.
pub(crate) fn bytes_at(address: u64) -> usize {
    MEMORY.lock().unwrap().as_ref().unwrap()[&address]
}

/// Whether that address is in an allocation.
pub(crate) fn is_allocated(address: u64) -> bool {
    let memory = MEMORY.lock().unwrap();
    let has = |(start, bytes): (&u64, &usize)| (*start..start + *bytes as u64).contains(&address);
    memory.iter().flatten().any(has)
}

pub(crate) unsafe fn free(address: u64) -> c_int {
    let Some(bytes) = MEMORY.lock().unwrap().as_mut().unwrap().remove(&address) else {
        return 1;
    };
    unsafe { dealloc(address as *mut u8, Layout::from_size_align_unchecked(bytes, 256)) };
    0
}

pub(crate) fn allocate(address: &mut u64, bytes: usize) -> c_int {
    let mut memory = MEMORY.lock().unwrap();
    let memory = memory.get_or_insert_default();
    if bytes == 0 || bytes > 1 << 40 {
        return 1;
    }
    if bytes > TOTAL - memory.values().sum::<usize>() {
        return 2;
    }
    *address = unsafe { alloc(Layout::from_size_align_unchecked(bytes, 256)) } as u64;
    memory.insert(*address, bytes);
    0
}
