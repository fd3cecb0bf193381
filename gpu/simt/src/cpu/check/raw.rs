//! Accesses through raw pointers: what `#[kernel]` makes of `*pointer` in the body of a kernel.
//!
//! A kernel in Rust-CUDA's idiom has no views. In the version of it that a checked launch runs, each
//! dereference that stands in the kernel's own body goes through [`Probe`]; those in functions that it
//! calls, and `read` and `write`, are not seen.

use std::{ops::Deref, panic::Location};

use super::{checker::memory_of, watched::is_profiling};
use crate::cpu::{
    block,
    mode::{Access, Refused},
};

/// What a kernel dereferences, borrowed. A raw pointer reports the access; everything else lets it pass.
///
/// (Rust prefers the inherent methods, which are there for raw pointers only, to those of [`Other`].)
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

            /// Reports a write. May it be carried out?
            #[track_caller]
            pub fn write(&self) -> bool {
                let pointer = *self.0 as *mut T;
                std::ptr::eq(access(pointer, Access::Write, Location::caller()), pointer)
            }
        }
    )*};
}

pointers! { *const T *mut T }

/// What is no raw pointer: a reference, a box, a type with a `Deref` of its own.
pub trait Other<'a> {
    /// What it points to.
    type Target: ?Sized;

    /// The place.
    fn read(&self) -> &'a Self::Target;

    /// Always.
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

/// Is it a local variable of the running thread's? Stacks grow towards lower addresses, so the frames of the
/// kernel lie between this one and the stack's end.
fn is_on_this_stack(address: usize) -> bool {
    let here = 0u8;
    (std::ptr::from_ref(&here).addr()..block::current().stack_end()).contains(&address)
}
