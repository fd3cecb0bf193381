//! Accesses through raw pointers: what `#[kernel]` makes of `*pointer` in the body of a kernel.
//!
//! A kernel in Rust-CUDA's idiom has no views. In the version of it that a checked launch runs,
//! each dereference in the kernel's own body goes through [`Probe`]. Dereferences in functions that
//! it calls, and `read` and `write`, are not observed.

use std::{ops::Deref, panic::Location};

use super::{
    findings::{MemoryId, memory_of},
    watched::is_profiling,
};
use crate::cpu::{
    access::{Access, Refused},
    block,
    limits::SHARED_BYTES,
};

/// A borrowed value that a kernel dereferences. For a raw pointer the access is reported; other
/// types are let through.
///
/// (Rust prefers the inherent methods, which exist only for raw pointers, to those of [`Other`].)
#[derive(Debug)]
pub struct Probe<'a, P: ?Sized>(pub &'a P);

macro_rules! pointers {
    ($($ty:ty)*) => {$(
        impl<T> Probe<'_, $ty> {
            /// Reports a read and gives the pointer to read through.
            #[track_caller]
            pub fn read(&self) -> $ty {
                access(*self.0 as *mut T, Access::Read, Location::caller()) as $ty
            }

            /// Reports a write. Gives whether it may be carried out.
            #[track_caller]
            pub fn write(&self) -> bool {
                let pointer = *self.0 as *mut T;
                std::ptr::eq(access(pointer, Access::Write, Location::caller()), pointer)
            }
        }
    )*};
}

pointers! { *const T *mut T }

/// Types other than raw pointers: a reference, a box, a type with its own `Deref`.
pub trait Other<'a> {
    /// The type that it points to.
    type Target: ?Sized;

    /// The reference itself.
    fn read(&self) -> &'a Self::Target;

    /// Always `true`.
    fn write(&self) -> bool {
        true
    }
}

impl<'a, P: Deref + ?Sized> Other<'a> for Probe<'a, P> {
    type Target = P::Target;

    fn read(&self) -> &'a P::Target {
        self.0
    }
}

/// Reports an access and gives the address to use.
fn access<T>(pointer: *mut T, access: Access, place: &'static Location<'static>) -> *mut T {
    let (address, bytes) = (pointer.addr(), size_of::<T>());
    let Some(checker) = block::checker() else { return pointer };
    if bytes == 0 {
        return pointer;
    }
    // Shared memory first: a tiled kernel reads it most often.
    let base = block::shared_base().addr();
    let shared = (base..base + SHARED_BYTES).contains(&address);
    let array = shared.then(|| checker.array_at(address - base, bytes)).flatten();
    if let Some(array) = array {
        // SAFETY: the checker's, which keeps it as long as the launch.
        let array = unsafe { &*array };
        let offset = address - base - array.offset;
        if access != Access::Read
            || !array.is_saturated(offset, bytes, checker.saturated_clock().get())
        {
            checker.count(place);
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
            checker.count(place);
            checker.global(buffer, (address, bytes), access, place);
        }
        return pointer;
    }
    if is_on_this_stack(address) {
        return pointer;
    }
    // The nearest buffer that begins before the address is the one that was probably meant.
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
            (Some(MemoryId::Global(number)), address - buffer.address, buffer.bytes)
        }
        (None, None) => (None, 0, 0),
    };
    let refused = Refused::Outside { index: start / bytes, count: 1, len: len / bytes };
    checker.refuse(memory, refused, bytes, access, place).cast()
}

/// Whether an address is on the running thread's stack. Stacks grow towards lower addresses, so the
/// frames of the kernel are between this one and the stack's end.
fn is_on_this_stack(address: usize) -> bool {
    let here = 0u8;
    (std::ptr::from_ref(&here).addr()..block::current().stack_end()).contains(&address)
}
