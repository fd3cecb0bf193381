//! What the crate `cudarc` calls besides.

use std::ffi::c_uint;

use crate::copies::catch_up;
use crate::memory::{allocate, free};
use crate::settings::{Handle, called};
use crate::{FIRST_STREAM, STREAMS, current, is_stream};
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

driver! {
    @context fn cuStreamCreate(stream: *mut Handle, _flags: c_uint) {
        *stream = (FIRST_STREAM + STREAMS.fetch_add(1, Relaxed)) as Handle;
        0
    }
    @context fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Handle) {
        assert!(is_stream(stream));
        allocate(&mut *address, bytes)
    }
    @context fn cuMemFreeAsync(address: u64, stream: Handle) {
        assert!(is_stream(stream));
        catch_up();
        free(address)
    }
    @context fn cuMemsetD8Async(target: u64, value: u8, count: usize, stream: Handle) {
        assert!(is_stream(stream));
        std::slice::from_raw_parts_mut(target as *mut u8, count).fill(value);
        0
    }
}
