//! Accesses through raw pointers: what `#[kernel]` makes of `*pointer` in the body of a kernel.
//!
//! A kernel in Rust-CUDA's idiom has no views. In the version of it that a checked launch runs, each
//! dereference that stands in the kernel's own body goes through [`Place`]; those in functions that it
//! calls, and `read` and `write`, are not seen.

use std::panic::Location;

use super::{checker::memory_of, watched::is_profiling};
use crate::cpu::{
    block,
    mode::{Access, Refused},
};

/// What a kernel may dereference. Through a reference nothing is reported.
pub trait Place: Sized {
    /// Its own kind, to be read.
    type Read;
    /// Its own kind, to be written.
    type Write;

    /// The place, to be read.
    #[track_caller]
    fn read(self) -> Self::Read;

    /// The place, to be written.
    #[track_caller]
    fn write(self) -> Self::Write;

    /// Reports a read: of `*pointer += value`, before the write.
    #[track_caller]
    fn read_first(self) -> Self;
}

macro_rules! pointers {
    ($($ty:ty)*) => {$(
        impl<T> Place for $ty {
            type Read = *const T;
            type Write = *mut T;

            fn read(self) -> *const T {
                access(self as *mut T, Access::Read, Location::caller())
            }

            fn write(self) -> *mut T {
                access(self as *mut T, Access::Write, Location::caller())
            }

            fn read_first(self) -> Self {
                Place::read(self);
                self
            }
        }
    )*};
}

pointers! { *const T *mut T }

macro_rules! references {
    ($($ty:ty)*) => {$(
        impl<T> Place for $ty {
            type Read = Self;
            type Write = Self;

            fn read(self) -> Self {
                self
            }

            fn write(self) -> Self {
                self
            }

            fn read_first(self) -> Self {
                self
            }
        }
    )*};
}

references! { &T &mut T }

/// Reports an access and gives the address to be used.
fn access<T>(pointer: *mut T, access: Access, place: &'static Location<'static>) -> *mut T {
    let (address, bytes) = (pointer.addr(), size_of::<T>());
    let Some(checker) = block::checker() else { return pointer };
    if bytes == 0 {
        return pointer;
    }
    // Shared memory first: a tiled kernel reads it most.
    let base = block::shared_base().addr();
    let shared = (base..base + block::SHARED_BYTES).contains(&address);
    let array = shared.then(|| checker.array_at(address - base, bytes)).flatten();
    if let Some(array) = array {
        // SAFETY: the checker's, which keeps it as long as the launch.
        let array = unsafe { &*array };
        let offset = address - base - array.offset;
        if access != Access::Read || !array.is_saturated(offset, bytes, checker.hot().get()) {
            checker.shared(array, (offset, bytes), access, place);
        }
        return pointer;
    }
    let mut buffers = checker.buffers().iter();
    let buffer = buffers.find(|buffer| {
        address >= buffer.address && address + bytes <= buffer.address + buffer.bytes
    });
    if let Some(buffer) = buffer {
        if access != Access::Read || !buffer.is_saturated(address, bytes) || is_profiling() {
            checker.global(buffer, (address, bytes), access, place);
        }
        return pointer;
    }
    // The nearest buffer that begins before is the one that was meant.
    let nearest = (checker.buffers().iter().enumerate())
        .filter(|(_, buffer)| buffer.address <= address)
        .max_by_key(|(_, buffer)| buffer.address);
    let near_shared = shared.then(|| checker.array_before(address - base)).flatten().map(|array| {
        // SAFETY: as above.
        let array = unsafe { &*array };
        (memory_of(array), address - base - array.offset, array.bytes())
    });
    let (memory, start, len) = match (near_shared, nearest) {
        (Some((memory, offset, len)), _) => (Some(memory), offset, len),
        (None, Some((number, buffer))) => {
            (Some(super::finding::MemoryId::Global(number)), address - buffer.address, buffer.bytes)
        }
        (None, None) => (None, 0, 0),
    };
    let refused = Refused::Outside { index: start / bytes, count: 1, len: len / bytes };
    checker.refuse(memory, refused, bytes, access, place).cast()
}
